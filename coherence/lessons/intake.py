"""Arguments of the store of lessons: texts bounded and made fit to be kept, lessons and embedders checked."""

from __future__ import annotations

import time
from typing import Literal

from coherence.core.plain import is_a
from coherence.core.protocols import Embedder
from coherence.core.redact import redact, redacted_end, redacted_start
from coherence.core.validation import check_count, check_number, check_text, clean, shown
from coherence.lessons.clean import HEAD, MAX_LESSON, TAIL
from coherence.lessons.names import anchor_of, kept_names
from coherence.lessons.normal import ErrorShape, normalise
from coherence.lessons.records import Origin
from coherence.lessons.table import New
from coherence.providers.minilm import default_embedder
from coherence.sensor.embedding_cache import EmbeddingCache

MAX_FIX = 2_000
MAX_NAME = 200
MAX_ORIGIN = 1_000
AROUND = 2
"""Lines before and after the one that says what went wrong, that are kept of a long error."""

MAX_TEXTS = 1_000
"""Vectors of questions that are remembered."""


def make_new(
    *, pattern: object, error_text: object, fix_text: object, tool: object, origin: Origin | None, ts: float | None
) -> New:
    """Return a lesson that can be kept, without secrets, or raise TypeError or ValueError that names the argument."""
    error = safe_ends(_visible("error_text", error_text))
    fix = safe_ends(_visible("fix_text", fix_text)).strip()
    shape = normalise(error)
    if not shape.text.strip():
        raise ValueError(f"error_text must say something, not {shown(error_text)}")
    if len(error) > MAX_LESSON:
        error = shortened(error, shape)
        shape = normalise(error)  # as it is derived again from what is kept
    return New(
        pattern=short(redact(clean(check_text("pattern", pattern), HEAD)), MAX_NAME),
        error_text=error,
        fix_text=short(fix, MAX_FIX),
        tool=short(redact(clean(check_text("tool", tool), HEAD)), MAX_NAME),
        shape=shape,
        names=kept_names(shape, error, fix),
        ts=time.time() if ts is None else check_number("ts", ts, least=-1e17, most=1e17),
        origin=None if origin is None else _checked(origin),
    )


def shortened(error: str, shape: ErrorShape) -> str:
    """Return both ends of a long error, and the lines that say what went wrong."""
    anchor = anchor_of(shape)
    lines = error.splitlines()
    at = next((at for at, line in enumerate(lines) if anchor and anchor in line), None)
    if at is None:
        return short(error, MAX_LESSON)
    around = short("\n".join(lines[max(at - AROUND, 0) : at + AROUND + 1]), MAX_LESSON // 4)
    third = MAX_LESSON * 3 // 8 - 10
    return f"{error[:third]}\n[…]\n{around}\n[…]\n{error[-third:]}"


def _visible(field: str, text: object) -> str:
    """Return a text in which something can be seen: white space, control and format characters cannot."""
    found = check_text(field, text, empty=False)
    if not any(char.isprintable() and not char.isspace() for char in ends(found)):
        raise ValueError(f"{field} must hold a visible character, not {shown(text)}")
    return found


def _checked(origin: Origin) -> Origin:
    """Return where a lesson was learned, as it can be kept and read again."""
    if not is_a(origin, Origin):
        raise TypeError(f"origin must be an Origin, not {shown(origin)}")
    return Origin(
        agent=clean(check_text("origin.agent", origin.agent), MAX_ORIGIN),
        session=clean(check_text("origin.session", origin.session), MAX_ORIGIN),
        seqs=tuple(check_count("origin.seqs", seq) for seq in origin.seqs),
    )


def own_cache(embedder: Embedder | EmbeddingCache | Literal[False] | None) -> EmbeddingCache | None:
    """Return a cache of its own for questions and lessons: these texts are of no use to a sensor."""
    if embedder is False:
        return None
    if isinstance(embedder, EmbeddingCache):
        embedder = embedder.embedder
    cache = EmbeddingCache(default_embedder() if embedder is None else embedder, MAX_TEXTS)
    if not isinstance(getattr(cache.embedder, "fingerprint", None), str):
        raise ValueError(
            f"embedder: {type(cache.embedder).__name__} has no fingerprint, so its vectors cannot be kept; give it a "
            "str attribute `fingerprint` that names model and settings, or pass embedder=False"
        )
    check_count("embedder.dimensions", getattr(cache.embedder, "dimensions", None), least=1)
    return cache


def ends(text: str) -> str:
    """Return what of a text is looked at: all, or both ends of a long one, without what no file can hold."""
    if len(text) > HEAD + TAIL:
        text = f"{text[:HEAD]}\n[…]\n{text[-TAIL:]}"
    return plain(text)


def plain(text: str) -> str:
    """Return a text without what no file can hold."""
    return clean(text, HEAD + TAIL + 100).replace("\0", "\ufffd")


def safe_ends(text: str) -> str:
    """Return what of a text is looked at, without secrets; one that a cut goes through is seen whole before."""
    if len(text) <= HEAD + TAIL:
        return redact(ends(text))
    return plain(f"{redacted_start(text, HEAD)}\n[…]\n{redacted_end(text, TAIL)}")


def short(text: str, most: int) -> str:
    """Return a text of limited length: of a longer one both ends."""
    half = most // 2 - 3
    return text if len(text) <= most else f"{text[:half]}\n[…]\n{text[-half:]}"
