"""Each text is embedded once."""

from __future__ import annotations

import inspect
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from threading import Lock
from typing import Any

from coherence.errors import VectorError
from coherence.protocols import Embedder
from coherence.records import Failure, excerpt
from coherence.vectors import Half, to_half

MAX_TEXTS = 20_000
"""Vectors kept by default (0.9 KB each at 384 dimensions)."""

GIVE_UP_AFTER = 3
"""Texts in a row that an embedder may fail on before the rest waits for the next tick."""

REPORT_AT_MOST = 5
"""Failures of one kind that are listed one by one."""


class EmbeddingCache:
    """An embedder and what it has made, found again by the content of the text; thread-safe.

    Keys are a hash of the text and the embedder's fingerprint, so vectors of two models never mix. Vectors are kept as
    float16, least recently used first out. Pass one cache as ``embedder=`` of several sensors to share it.

    Parameters
    ----------
    embedder : Embedder
        What makes the vectors. One text at a time, or ``batch_size`` texts if it has that attribute above 1.
    max_texts : int
        Vectors kept, 1 or more; never fewer than one tick needs, or every tick would embed everything again.
    """

    def __init__(self, embedder: Embedder, max_texts: int = MAX_TEXTS) -> None:
        if isinstance(embedder, type):
            raise TypeError(f"embedder: pass an instance, {embedder.__name__}(...), not the class")
        if not callable(getattr(embedder, "embed", None)) or not callable(getattr(embedder, "embed_batch", None)):
            raise TypeError(f"embedder must have embed and embed_batch, {type(embedder).__name__} does not")
        if isinstance(max_texts, bool) or not isinstance(max_texts, int):
            raise TypeError(f"max_texts must be an int, not {max_texts!r}")
        if max_texts < 1:
            raise ValueError(f"max_texts must be 1 or more, not {max_texts}")
        self.embedder = embedder
        self.max_texts = max_texts
        self.embedded = 0
        """Texts handed to the embedder so far."""
        self._lock = Lock()
        self._kept: OrderedDict[tuple[str, bytes], Half | str] = OrderedDict()
        self._room = max_texts
        self._dimensions: int | None = None

    @property
    def fingerprint(self) -> str:
        """The embedder's own, or one that holds for this object only."""
        own = getattr(self.embedder, "fingerprint", None)
        return own if isinstance(own, str) else f"object-{id(self.embedder)}"

    def find(self, texts: Iterable[str], found: dict[str, Half | str]) -> list[str]:
        """Put what is known of each text into ``found``: its vector, or why it has none. Return the unknown texts."""
        fingerprint = self.fingerprint
        missing = []
        with self._lock:
            for text in dict.fromkeys(texts):
                if text in found:
                    continue
                key = (fingerprint, _digest(text))
                entry = self._kept.get(key)
                if entry is None:
                    missing.append(text)
                else:
                    self._kept.move_to_end(key)
                    found[text] = entry
        return missing

    def make_room(self, texts: int) -> None:
        """See that at least this many vectors are kept."""
        self._room = max(self.max_texts, texts)

    def make(self, texts: Sequence[str], until: float, report: list[Failure]) -> Awaitable[None] | None:
        """Embed texts until a time (monotonic); what fails or is left over goes to ``report``.

        Returns an awaitable if the embedder is ``async``.
        """
        run = _Run(self, texts, until, report)
        for chunk in run.chunks():
            try:
                result = run.call(chunk)
            except Exception as error:
                run.failed(chunk, error)
                continue
            if inspect.isawaitable(result):
                return self._make_async(run, chunk, result)
            run.succeeded(chunk, result)
        return None

    async def _make_async(self, run: _Run, chunk: Sequence[str], first: Awaitable[Any]) -> None:
        result: Awaitable[Any] | None = first
        for following in run.chunks(resume=chunk):
            try:
                value = await (result if result is not None else run.call(following))
            except Exception as error:
                run.failed(following, error)
            else:
                run.succeeded(following, value)
            result = None

    def keep(self, text: str, fingerprint: str, vector: object) -> str | None:
        """Check and keep a vector; return why it is not usable, if so. A bad one is remembered too, not made again."""
        if self._dimensions is None:
            declared = getattr(self.embedder, "dimensions", None)
            self._dimensions = declared if isinstance(declared, int) else None
        entry: Half | str
        try:
            entry = to_half(vector, self._dimensions)
            self._dimensions = entry.size
        except VectorError as error:
            entry = str(error)
        with self._lock:
            self.embedded += 1
            self._kept[(fingerprint, _digest(text))] = entry
            while len(self._kept) > self._room:
                self._kept.popitem(last=False)
        return entry if isinstance(entry, str) else None


class _Run:
    """One pass over the texts of a tick: pacing, and what went wrong."""

    def __init__(self, cache: EmbeddingCache, texts: Sequence[str], until: float, report: list[Failure]) -> None:
        self.cache = cache
        self.texts = texts
        self.until = until
        self.report = report
        self.fingerprint = cache.fingerprint
        size = getattr(cache.embedder, "batch_size", 1)
        self.batch = size if isinstance(size, int) and size > 1 else 1
        self.call: Callable[[Sequence[str]], Any] = self._many if self.batch > 1 else self._one
        self.began = time.monotonic()
        self.at = 0
        self.in_a_row = 0
        self.unlisted = 0

    def _one(self, chunk: Sequence[str]) -> Any:
        return self.cache.embedder.embed(chunk[0])

    def _many(self, chunk: Sequence[str]) -> Any:
        return self.cache.embedder.embed_batch(list(chunk))

    def chunks(self, resume: Sequence[str] | None = None) -> Iterator[Sequence[str]]:
        """Yield the texts in turn; stop early when the next ones would probably not be done in time."""
        if resume is not None:
            yield resume
        while self.at < len(self.texts):
            started = time.monotonic()
            chunk = self.texts[self.at : self.at + self.batch]
            self.at += len(chunk)
            yield chunk
            now = time.monotonic()
            if self.in_a_row >= GIVE_UP_AFTER or now + 3 * (now - started) > self.until:
                break
        left = len(self.texts) - self.at
        if left and self.in_a_row < GIVE_UP_AFTER:
            took = f"{self.at} of {len(self.texts)} new texts in {time.monotonic() - self.began:.2g} s"
            self.report.append(Failure("embedder", "timeout", f"embedded {took}; the rest follows at the next ticks"))
        if self.unlisted:
            self.report.append(Failure("embedder", "more", f"{self.unlisted} more texts failed likewise"))

    def succeeded(self, chunk: Sequence[str], result: Any) -> None:
        """Keep what came, text by text."""
        vectors: list[Any] = [result]
        if self.batch > 1:
            vectors = list(result)
            if len(vectors) != len(chunk):
                self.failed(chunk, VectorError(f"returned {len(vectors)} vectors for {len(chunk)} texts"))
                return
        self.in_a_row = 0
        for text, vector in zip(chunk, vectors, strict=True):
            self.cache.keep(text, self.fingerprint, vector)

    def failed(self, chunk: Sequence[str], error: Exception) -> None:
        """Note an exception; the text is tried again at the next tick."""
        self.in_a_row += 1
        if len(self.report) < REPORT_AT_MOST:
            about = f"{error} (text “{excerpt(chunk[0], 60)}”)"
            self.report.append(Failure("embedder", type(error).__name__, about[:500]))
        else:
            self.unlisted += len(chunk)


def _digest(text: str) -> bytes:
    # surrogatepass: a lone surrogate is hostile but hashable
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
