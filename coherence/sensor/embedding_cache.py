"""Each text is embedded once: the cache of vectors, and embedding single texts outside a tick."""

from __future__ import annotations

import inspect
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from threading import RLock
from typing import Any, Protocol, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from coherence.core.calls import Breaker, PluginCall, failed
from coherence.core.errors import VectorError
from coherence.core.plugin_calls import Group, Stages, drive_sync, run_stages
from coherence.core.protocols import Embedder
from coherence.core.readings import Failure, excerpt
from coherence.core.vectors import Half, to_half
from coherence.providers.hashing import HashingEmbedder
from coherence.providers.minilm import MiniLMEmbedder

MAX_TEXTS = 20_000
"""Vectors kept by default (0.9 KB each at 384 dimensions)."""

GIVE_UP_AFTER = 3
"""Calls in a row that an embedder may fail before the rest waits for the next tick."""

REPORT_AT_MOST = 5
"""Failures of one kind that are listed one by one."""

POLL_S = 0.001
"""Seconds between two looks at a text that another sensor is embedding."""

Key: TypeAlias = tuple[str, bytes]
"""Fingerprint and hash of the text."""


class VectorBook(Protocol):
    """Store of vectors that outlive the process, see :class:`EmbeddingCache`; called from any thread."""

    def read(self, fingerprint: str, digests: Sequence[bytes]) -> Mapping[bytes, bytes]:
        """Return the vectors that are known, as the bytes of little-endian float16."""
        ...

    def write(self, fingerprint: str, digest: bytes, vector: bytes) -> None:
        """Note a new vector."""
        ...


class EmbeddingCache:
    """An embedder and what it has made, found again by the content of the text; thread-safe.

    Keys are a hash of the text and the embedder's fingerprint, so vectors of two models never mix. Vectors are kept as
    float16, least recently used first out. Pass one cache as ``embedder=`` of several sensors to share it; a text that
    two of them need at once is embedded by one.

    Parameters
    ----------
    embedder : Embedder
        What makes the vectors. One text at a time, or ``batch_size`` texts if it has that attribute above 1.
    max_texts : int
        Vectors kept, 1 or more; never fewer than the sensors' ticks need, or every tick would embed everything again.
    book : VectorBook, optional
        Where vectors are looked up before they are made, and noted when they are; only for an embedder with a
        fingerprint of its own.
    """

    def __init__(self, embedder: Embedder, max_texts: int = MAX_TEXTS, *, book: VectorBook | None = None) -> None:
        if isinstance(embedder, type):
            raise TypeError(f"embedder: pass an instance, {embedder.__name__}(...), not the class")
        if isinstance(embedder, str):
            raise TypeError(
                f"embedder: a name such as {embedder!r} is for the command line; pass an instance, such as "
                "HashingEmbedder() of coherence.providers"
            )
        if not callable(getattr(embedder, "embed", None)) or not callable(getattr(embedder, "embed_batch", None)):
            raise TypeError(f"embedder must have embed and embed_batch, {type(embedder).__name__} does not")
        if isinstance(max_texts, bool) or not isinstance(max_texts, int):
            raise TypeError(f"max_texts must be an int, not {max_texts!r}")
        if max_texts < 1:
            raise ValueError(f"max_texts must be 1 or more, not {max_texts}")
        self.embedder = embedder
        self.max_texts = max_texts
        # Without a fingerprint an embedder is known by its id, which some other object has in the next process.
        self.book = book if book is not None and isinstance(getattr(embedder, "fingerprint", None), str) else None
        self.embedded = 0
        """Texts that the embedder has answered so far."""
        self._lock = RLock()
        self._kept: OrderedDict[Key, Half | str] = OrderedDict()
        self._claimed: set[Key] = set()
        """Texts that are being embedded now."""
        self._failed: dict[Key, tuple[int, int]] = {}
        """Texts that failed when last tried: number of failures, and ``embedded`` at the first one."""
        self._needs: WeakKeyDictionary[object, int] = WeakKeyDictionary()
        self._room = max_texts
        self._dimensions: tuple[str, int] | None = None
        """The fingerprint of the last good vector, and its length."""

    @property
    def fingerprint(self) -> str:
        """The embedder's own, or one that holds for this object only."""
        own = getattr(self.embedder, "fingerprint", None)
        return own if isinstance(own, str) else f"object-{id(self.embedder)}"

    def find(self, texts: Iterable[str], found: dict[str, Half | str], fingerprint: str | None = None) -> list[str]:
        """Put what is known of each text into ``found``: its vector, or why it has none. Return the unknown texts.

        ``fingerprint`` is the embedder's, for callers that must not ask a stranger's object for it now.
        """
        if fingerprint is None:
            fingerprint = self.fingerprint
        keys = {text: (fingerprint, _digest(text)) for text in texts if text not in found}
        missing = []
        with self._lock:
            for text, key in keys.items():
                entry = self._kept.get(key)
                if entry is None:
                    missing.append(text)
                else:
                    self._kept.move_to_end(key)
                    found[text] = entry
        if missing and self.book is not None:
            missing = self._look_up(self.book, missing, keys, found)
        return missing

    def _look_up(
        self, book: VectorBook, texts: list[str], keys: Mapping[str, Key], found: dict[str, Half | str]
    ) -> list[str]:
        """Take from the book what it has; return the rest."""
        # Not under the lock: the book may wait for a database.
        read = book.read(keys[texts[0]][0], [keys[text][1] for text in texts])
        with self._lock:
            for text in texts:
                vector = read.get(keys[text][1])
                if vector is not None:
                    found[text] = self._kept[keys[text]] = np.frombuffer(vector, "<f2")
        return [text for text in texts if text not in found]

    def make_room(self, owner: object, texts: int) -> None:
        """See that as many vectors are kept as all living owners need together."""
        with self._lock:
            self._needs[owner] = texts
            self._room = max(self.max_texts, sum(self._needs.values()))

    def make(self, texts: Sequence[str], until: float, report: list[Failure]) -> Awaitable[None] | None:
        """Embed texts until a time (monotonic); what fails or is left over goes to ``report``.

        Returns an awaitable if the embedder is ``async``.
        """
        run = _Run(self, texts, until)
        try:
            while (chunk := run.next()) is not None:
                if not chunk:
                    time.sleep(POLL_S)
                    continue
                try:
                    result = run.call(chunk)
                    if inspect.isawaitable(result):
                        return self._make_async(run, chunk, result, report)
                    run.succeeded(chunk, result)
                except Exception as error:
                    run.failed(chunk, error)
        finally:
            self.unclaim(run.claims)
        report += run.report()
        return None

    async def _make_async(self, run: _Run, chunk: list[Key], first: Awaitable[Any], report: list[Failure]) -> None:
        import asyncio

        following: list[Key] | None = chunk
        result: Awaitable[Any] | None = first
        try:
            while following is not None:
                try:
                    if following:
                        run.claim(following)
                        run.succeeded(following, await (result if result is not None else run.call(following)))
                    else:
                        await asyncio.sleep(POLL_S)
                except Exception as error:
                    run.failed(following, error)
                following, result = run.next(), None
        finally:
            self.unclaim(run.claims)
        report += run.report()

    def make_one(self, text: str, until: float) -> Half | str | None:
        """Embed one text until a time (monotonic), with an embedder that is not ``async``, one text at a time.

        Returns what is known of it then: its vector, why it has none, or ``None`` if the embedder failed or was late.
        """
        key = (self.fingerprint, _digest(text))
        if self.claim([key]):
            try:
                if time.monotonic() <= until:
                    return self.keep(key, self.embedder.embed(text))
            except Exception as error:
                self.note_failure([key], failed(error).message)
            finally:
                self.unclaim([key])
        else:  # another thread has made it, or is making it
            self.make([text], until, [])
        with self._lock:
            return self._kept.get(key)

    def claim(self, keys: Sequence[Key]) -> list[Key]:
        """Reserve those of the keys that nobody has made or is making; return them."""
        with self._lock:
            free = [key for key in keys if key not in self._kept and key not in self._claimed]
            self._claimed.update(free)
        return free

    def unclaim(self, keys: Iterable[Key]) -> None:
        """Give back what was reserved."""
        with self._lock:
            self._claimed.difference_update(keys)

    def made(self, key: Key) -> bool:
        """Tell whether something is known of a text by now."""
        with self._lock:
            return key in self._kept

    def last_failed(self, key: Key) -> bool:
        """Tell whether a text failed when it was last tried."""
        return key in self._failed

    def keep(self, key: Key, vector: object) -> Half | str:
        """Check, keep and return a vector. A bad one is remembered with its reason, and not made again."""
        entry: Half | str
        try:
            entry = to_half(vector, self._length(key[0]))
        except VectorError as error:
            entry = str(error)
        else:
            self._dimensions = (key[0], entry.size)
        with self._lock:
            self.embedded += 1
            self._failed.pop(key, None)
            self._kept[key] = entry
            while len(self._kept) > self._room:
                self._kept.popitem(last=False)
        if self.book is not None and not isinstance(entry, str):
            self.book.write(key[0], key[1], entry.astype("<f2", copy=False).tobytes())
        return entry

    def note_again(self) -> None:
        """Note in the book every vector that is held: what was noted before is lost."""
        if self.book is None:
            return
        with self._lock:
            held = [(key, entry) for key, entry in self._kept.items() if not isinstance(entry, str)]
        for (fingerprint, digest), entry in held:
            self.book.write(fingerprint, digest, entry.astype("<f2", copy=False).tobytes())

    def note_failure(self, keys: Sequence[Key], reason: str) -> None:
        """Remember that texts failed; they are tried again, after the others.

        A text that fails time and again while others do not is taken for bad, or its source would be unknown for ever.
        """
        with self._lock:
            # a bound on memory; what is forgotten is tried in its usual order again
            if len(self._failed) > MAX_TEXTS:
                self._failed.clear()
            for key in keys:
                times, embedded = self._failed.get(key, (0, self.embedded))
                self._failed[key] = (times + 1, embedded)
                if times + 1 >= GIVE_UP_AFTER and self.embedded > embedded:
                    self._kept[key] = f"failed {times + 1} times: {reason}"
                    del self._failed[key]

    def _length(self, fingerprint: str) -> int | None:
        if self._dimensions is not None and self._dimensions[0] == fingerprint:
            return self._dimensions[1]
        declared = getattr(self.embedder, "dimensions", None)
        return declared if isinstance(declared, int) else None


class _Run:
    """One pass over the texts of a tick: order, pacing, and what went wrong."""

    def __init__(self, cache: EmbeddingCache, texts: Sequence[str], until: float) -> None:
        self.cache = cache
        self.until = until
        fingerprint = cache.fingerprint
        self.texts: dict[Key, str] = {(fingerprint, _digest(text)): text for text in texts}
        self.claims: set[Key] = set()
        size = getattr(cache.embedder, "batch_size", 1)
        batch = size if isinstance(size, int) and size > 1 else 1
        keys = sorted(self.texts, key=cache.last_failed)  # stable: what failed last time comes last
        self.todo: deque[list[Key]] = deque(keys[at : at + batch] for at in range(0, len(keys), batch))
        self.single = batch == 1
        self.began = self.started = time.monotonic()
        self.done = self.chunks = 0
        self.in_a_row = 0
        self.late = False
        self.failures: list[Failure] = []
        self.unlisted = 0

    def next(self) -> list[Key] | None:
        """Return the next keys to embed, none of them if they are being embedded elsewhere, ``None`` at the end."""
        while self.todo and self.in_a_row < GIVE_UP_AFTER:
            now = time.monotonic()
            pace = now - self.started if self.done else 0.0
            # The first text may have waited for a model to load, which says little about the next one.
            if now + (3 if self.chunks > 1 else 1) * pace > self.until:
                self.late = True
                break
            chunk = self.todo.popleft()
            mine = self.cache.claim(chunk)
            self.claims.update(mine)
            elsewhere = [key for key in chunk if key not in mine and not self.cache.made(key)]
            if elsewhere:
                self.todo.append(elsewhere)
            if mine or elsewhere:
                self.started = now
                return mine
        return None

    def claim(self, chunk: list[Key]) -> None:
        """Reserve again what the synchronous part has given back."""
        self.claims.update(chunk)
        self.cache.claim(chunk)

    def call(self, chunk: list[Key]) -> Any:
        """Hand the texts to the embedder."""
        embedder = self.cache.embedder
        if self.single:
            return embedder.embed(self.texts[chunk[0]])
        return embedder.embed_batch([self.texts[key] for key in chunk])

    def succeeded(self, chunk: list[Key], result: Any) -> None:
        """Keep what came, text by text."""
        vectors = [result] if self.single else list(result)
        if len(vectors) != len(chunk):
            raise VectorError(f"returned {len(vectors)} vectors for {len(chunk)} texts")
        self.in_a_row = 0
        for key, vector in zip(chunk, vectors, strict=True):
            self.cache.keep(key, vector)
        self._release(chunk)
        self.done += len(chunk)
        self.chunks += 1

    def failed(self, chunk: list[Key], error: Exception) -> None:
        """Note an exception; a batch is tried again text by text, a text at the next tick."""
        self._release(chunk)
        self.in_a_row += 1
        if not self.single and len(chunk) > 1 and self.in_a_row < GIVE_UP_AFTER:
            self.todo.extend([key] for key in chunk)
        else:
            self.cache.note_failure(chunk, failed(error).message)
        if len(self.failures) < REPORT_AT_MOST:
            about = f"{failed(error).message} (text “{excerpt(self.texts[chunk[0]], 60)}”)"
            self.failures.append(Failure("embedder", type(error).__name__, about))
        else:
            self.unlisted += len(chunk)

    def _release(self, chunk: list[Key]) -> None:
        self.cache.unclaim(chunk)
        self.claims.difference_update(chunk)

    def report(self) -> list[Failure]:
        """Say what failed and what is left over."""
        failures = list(self.failures)
        if self.late:
            took = f"{self.done} of {len(self.texts)} new texts in {time.monotonic() - self.began:.2g} s"
            failures.append(Failure("embedder", "timeout", f"embedded {took}; the rest follows at the next ticks"))
        if self.unlisted:
            failures.append(Failure("embedder", "more", f"{self.unlisted} more texts failed likewise"))
        return failures


def _digest(text: str) -> bytes:
    # surrogatepass: a lone surrogate is hostile but hashable
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


OWN = (MiniLMEmbedder, HashingEmbedder)
"""Embedders that do not hang: they are asked on the caller's thread. A stranger's is asked on another one."""


def embed_now(
    cache: EmbeddingCache, texts: Sequence[str], timeout_s: float, breaker: Breaker | None = None
) -> dict[str, Half]:
    """Return the vectors of texts, embedding one after the other those that are not known.

    What fails, or takes longer than ``timeout_s`` seconds, has none. Nothing is raised. With a ``breaker`` that the
    caller keeps, an embedder that took too long is left out for some texts, and for as long as that call still runs:
    one that hangs holds one thread, and not one a text.
    """
    found: dict[str, Half | str] = {}
    breaker = Breaker() if breaker is None else breaker
    for text in cache.find(texts, found):
        until = time.monotonic() + timeout_s
        # exactly these: a subclass may do anything
        if type(cache.embedder) in OWN:
            made = cache.make_one(text, until)
            if made is not None:
                found[text] = made
        else:
            call = PluginCall("embedder", partial(cache.make, [text], until, []), breaker)
            drive_sync(run_stages(_alone(call, until)))
            cache.find([text], found)
    return {text: vector for text, vector in found.items() if not isinstance(vector, str)}


def _alone(call: PluginCall, until: float) -> Stages[None]:
    yield Group([call], until)
