"""The slots that tell an error from its siblings, and putting other names into a fix."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from hashlib import blake2b
from posixpath import basename

from coherence.core.lazy import lazy_regex
from coherence.lessons.normal import KEYS, ErrorShape, Slot

HERE = frozenset({"localhost", "127.0.0.1", "0.0.0.0", "::1", "[::1]"})  # noqa: S104 - nothing listens
"""Hosts that every machine is to itself."""

_TAGGED = lazy_regex(r"(?P<name>.{2,120}?)(?::[a-z]{2,8})?[:@]v?\d[\w.+-]{0,40}$")
SAFE = lazy_regex(r"[\w@./~][\w@./:+%=,~^\\-]{0,119}")
"""Names that may be put into a fix: a shell takes them for one plain word, and not for an option."""

_HOST = lazy_regex(r"(?:[a-z][a-z0-9+.-]*://)?(?P<host>\[[0-9a-f:]+\]|[^\s/:]+)(?::(?P<port>\d+))?", re.IGNORECASE)
_FILE = lazy_regex(r"^(?P<path>.*?)(?::\d+(?::\d+)?)?$", re.DOTALL)


def keys_of(shape: ErrorShape) -> tuple[str, ...]:
    """Return the slots that tell an error from its siblings, in order, in small letters; of paths the base name.

    Examples
    --------
    >>> slots = (Slot("path", "/srv/app/Config.yml"), Slot("number", "3"))
    >>> keys_of(ErrorShape("", "", "", slots, b"", False, False))
    ('config.yml',)
    """
    return _keys(shape.slots)


@lru_cache(4_096)
def _keys(slots: tuple[Slot, ...]) -> tuple[str, ...]:
    found = (key_of(slot) for slot in slots if slot.kind in KEYS)
    return tuple(key for key in found if key)


def key_of(slot: Slot) -> str:
    """Return a slot as a key, in small letters."""
    value = slot.value.strip().lower()
    if slot.kind == "path":
        found = _FILE.match(value)
        value = (found["path"] if found else value).replace("\\", "/").rstrip("/").rpartition("/")[2] or value
    return value[:200]


def digest(parts: Iterable[str]) -> int:
    """Return 63 bits of a hash of texts, as SQLite keeps numbers."""
    data = "\0".join(parts).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big") >> 1


def number(signature: bytes) -> int:
    """Return a signature as SQLite keeps it."""
    return int.from_bytes(signature[:8], "big") >> 1


def refill(fix: str, lesson: ErrorShape, asked: ErrorShape, question: str) -> str | None:
    """Return a fix with the names of the error that was asked about, ``None`` if it quotes one that has no counterpart.

    Parameters
    ----------
    fix : str
        The lesson's.
    lesson, asked : ErrorShape
        Of the lesson's error, and of the question.
    question : str
        Its text: a name that stands there needs no counterpart.

    A name that a shell would read as more than one plain word is no counterpart.

    Examples
    --------
    >>> from coherence.lessons.normal import normalise
    >>> asked = normalise("ModuleNotFoundError: No module named 'numpy'")
    >>> known = normalise("ModuleNotFoundError: No module named 'yaml'")
    >>> refill("pip install yaml", known, asked, ""), refill("pip install pyyaml", known, asked, "")
    ('pip install numpy', 'pip install pyyaml')
    """
    low = question.lower()
    partners = _partners(lesson, asked)
    changes: dict[str, str] = {}
    for at, slot in enumerate(lesson.slots):
        partner = partners.get(at)
        others = list(_forms(asked.slots[partner])) if partner is not None else []
        for form, value in _forms(slot):
            if value in changes or value in HERE or not _quotes(fix, value):
                continue
            if _quotes(low, value.lower()):
                changes[value] = value
                continue
            other = next((text for name, text in others if name == form and text), None)
            if other is None and " " in value:  # a command or a phrase, which says nothing of this error
                continue
            if other is None and not (asked.prose and partner is None):
                return None
            if other not in (None, value) and not _is_one_word(other, value):  # a command must stay the one it was
                return None
            changes[value] = value if other is None else other
    changes = {old: new for old, new in changes.items() if old != new}
    if not changes:
        return fix
    either = "|".join(re.escape(old) for old in sorted(changes, key=len, reverse=True))
    return re.sub(rf"(?<!\w)(?:{either})(?!\w)", lambda found: changes[found[0]], fix)


def _is_one_word(other: str | None, value: str) -> bool:
    """Return whether a shell reads a name as one plain word, and as an option only in place of one."""
    return other is not None and SAFE.fullmatch(other.lstrip("-") if value.startswith("-") else other) is not None


def _partners(lesson: ErrorShape, asked: ErrorShape) -> dict[int, int]:
    """Return which slot of the question stands where one of the lesson does."""
    if lesson.signature == asked.signature and len(lesson.slots) == len(asked.slots):
        return {at: at for at in range(len(lesson.slots))}
    found: dict[int, int] = {}
    for kind in dict.fromkeys(slot.kind for slot in lesson.slots):
        left = [at for at, slot in enumerate(lesson.slots) if slot.kind == kind]
        right = [at for at, slot in enumerate(asked.slots) if slot.kind == kind and _is_named(asked, slot)]
        if len(left) == len(right):
            found.update(zip(left, right, strict=True))
    return found


def _is_named(asked: ErrorShape, slot: Slot) -> bool:
    """Return whether a slot is a name for certain: in a description, a plain word may as well be a word."""
    return (
        not asked.prose
        or not slot.value.islower()
        or not slot.value.isalpha()
        or bool(re.search(rf"['\"`‘“]{re.escape(slot.value)}['\"`’”]", asked.text))
    )


def _forms(slot: Slot) -> Iterator[tuple[str, str]]:
    """Yield the ways in which a fix may quote a slot."""
    value = slot.value.strip()
    if slot.kind in ("name", "version", "id"):
        yield "whole", value
        found = _TAGGED.match(value)
        if found and slot.kind == "name":
            yield "bare", found["name"]
    elif slot.kind == "number":
        if len(value) > 2:  # smaller ones stand in many fixes and mean something else
            yield "whole", value
    elif slot.kind == "path":
        found = _FILE.match(value)
        path = found["path"] if found else value
        yield "whole", path
        yield "base", basename(path.replace("\\", "/").rstrip("/"))
    elif slot.kind in ("url", "address"):
        yield "whole", value
        found = _HOST.match(value)
        if found:
            yield "host", found["host"]
            yield "port", found["port"] or ""


def _quotes(fix: str, value: str) -> bool:
    return len(value) > 1 and value in fix and re.search(rf"(?<!\w){re.escape(value)}(?!\w)", fix) is not None
