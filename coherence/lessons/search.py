"""Lessons by meaning: the embedder, and a vector index that follows the tables."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from threading import RLock
from weakref import WeakSet

import numpy as np

from coherence.core.calls import Breaker
from coherence.core.vectors import Half
from coherence.lessons.errors import EmbedderMismatchError
from coherence.lessons.index import LessonIndex
from coherence.lessons.qdrant import QdrantIndex
from coherence.lessons.table import LessonState, New, add_vector, count_records, find_vector, read_state
from coherence.sensor.embedding_cache import EmbeddingCache, embed_now
from coherence.store.store import Store
from coherence.store.transaction import Transaction

LOG = logging.getLogger("coherence")

PAGE = 2_000
"""Vectors read at once."""

SAVE_EVERY = 5_000
"""New vectors after which the index is saved: so many are read and searched in milliseconds. Of more than 500,000
lessons it takes a hundredth, as the whole file is written."""

MAX_REMOVED = 100
"""Removed lessons in the index, besides a tenth of all, from which on it is made anew."""

EMBEDDED_FIX = 200
"""Characters of a fix that are embedded with its error."""

EMBEDDED_AT_ONCE = 64
"""Lessons that are embedded between two transactions of a rebuild."""

WHOSE = "SELECT fingerprint, dimensions FROM lesson_state"


def embedded_text(text: str, fix: str) -> str:
    """Return what of a lesson is embedded: with the fix, descriptions of an error find it more often."""
    return f"{text}. {fix[:EMBEDDED_FIX]}"


class Searching:
    """The embedder, and the index that follows the tables.

    Parameters
    ----------
    store : Store
        The tables.
    cache : EmbeddingCache
        The embedder; it must have a fingerprint.
    own : QdrantIndex, optional
        An index on a server; default: one in this process, and in a file beside the database.
    timeout_s : float
        Seconds that embedding one text may take.
    """

    def __init__(self, store: Store, cache: EmbeddingCache, own: QdrantIndex | None, timeout_s: float) -> None:
        self.store = store
        self.cache = cache
        self.timeout_s = timeout_s
        self.path = Path(f"{store.path}.lessons")
        self._own = own
        self._begin()
        _ALL.add(self)

    def _begin(self) -> None:
        """Begin, or begin anew in the child of a fork, where a lock may be held by a thread that is not there."""
        self.lock = RLock()
        self.index: LessonIndex | QdrantIndex | None = None
        """``None`` = it has not been looked for on the disk or the server."""
        self._breaker = Breaker()
        self._save_at = SAVE_EVERY
        self._warned = False
        """True once it was logged that the vectors are of another model now."""

    def begin_in_child(self) -> None:
        """Forget what a fork has copied while other threads may have been at work on it."""
        self.cache = EmbeddingCache(self.cache.embedder, self.cache.max_texts)
        self._begin()

    @property
    def fingerprint(self) -> str:
        """Of the embedder."""
        return self.cache.fingerprint

    @property
    def dimensions(self) -> int:
        """Of the embedder."""
        return self.cache.embedder.dimensions

    def check(self, state: LessonState) -> None:
        """Raise :class:`EmbedderMismatchError` if the kept vectors are of another model."""
        if not self._is_ours(state.fingerprint, state.dimensions):
            raise self._mismatch(state.fingerprint, state.dimensions)

    def any_missing(self) -> bool:
        """Tell whether any lesson has no vector of this model."""
        state = read_state(self.store)
        ours = self._is_ours(state.fingerprint, state.dimensions)
        return not ours or count_records(self.store)[3] < state.count

    def _is_ours(self, kept: str | None, length: int | None) -> bool:
        return kept is None or (kept, length) == (self.fingerprint, self.dimensions)

    def _mismatch(self, kept: str | None, length: int | None) -> EmbedderMismatchError:
        names = (str(kept), self.fingerprint)
        if kept == self.fingerprint:
            names = (f"{kept} ({length} dimensions)", f"{kept} ({self.dimensions} dimensions)")
        return EmbedderMismatchError(str(self.store.path), *names)

    def serves(self, state: LessonState) -> bool:
        """Tell whether the kept vectors are still of this model; if another process has changed that, log it once."""
        ours = self._is_ours(state.fingerprint, state.dimensions)
        if not ours and not self._warned:
            LOG.warning(
                "coherence: %s: its lessons have been embedded by %r since it was opened with %r; until it is opened "
                "with that one, lessons are found by signature and names only, and kept without a vector",
                self.store.path,
                state.fingerprint,
                self.fingerprint,
            )
        self._warned = not ours
        return ours

    def embed(self, text: str) -> Half | None:
        """Return the vector of a text, ``None`` if the embedder fails or takes too long."""
        return embed_now(self.cache, [text], self.timeout_s, self._breaker).get(text)

    def vector(self, new: New) -> bytes | None:
        """Return the vector of a lesson as it is kept, from the tables if it is there already.

        ``None`` if the embedder fails, or if the vectors are of another model now.
        """
        if not self.serves(read_state(self.store)):
            return None
        known = find_vector(self.store, new.identity)
        if known is not None:
            return known
        vector = self.embed(embedded_text(new.shape.text, new.fix_text))
        return None if vector is None else vector.astype("<f2").tobytes()

    def claim(self, transaction: Transaction) -> bool:
        """Name this model, in a transaction that is to keep a vector, as that of the vectors; ``False``: another is."""
        transaction.execute(
            "UPDATE lesson_state SET fingerprint = ?, dimensions = ? WHERE fingerprint IS NULL",
            (self.fingerprint, self.dimensions),
        )
        kept, length = transaction.execute(WHOSE)[0]
        return self._is_ours(kept, length)

    def nearest(self, vector: Half, k: int) -> list[tuple[int, float]]:
        """Return (lesson, cosine) of the nearest lessons as of the last :meth:`follow`, the nearest first.

        Lessons that were removed since the index was saved may be among them.
        """
        with self.lock:
            return [] if self.index is None else self.index.search(vector, k)

    def follow(self, state: LessonState | None = None) -> int:
        """Take in what any process has added to the tables; return how many lessons there are.

        0 if their vectors are of another model now: then nothing can be found by meaning. With the ``state`` of a
        moment ago, what was added since may be left out.
        """
        index = self.index
        if state is not None and index is not None and self._fits(index, state) and index.newest == state.newest:
            return state.count
        with self.lock:
            index, state = self.index, read_state(self.store)
            if not self.serves(state):
                self.index = None
                return 0
            if index is None or not self._fits(index, state):
                index = self._load(self._owner(state))
                state = read_state(self.store)  # no file or server holds what the tables did not hold before
                if not self._fits(index, state):
                    index = self._empty(self._owner(state))
            self.index = index
            self._add_new(index)
            index.newest = max(index.newest, state.newest)  # the newest ones may have been removed
            if isinstance(index, LessonIndex) and index.fresh >= max(self._save_at, state.count // 100):
                self._save(index)
            return state.count

    def _owner(self, state: LessonState) -> str:
        return f"{self.fingerprint} {state.token}"

    def _load(self, owner: str) -> LessonIndex | QdrantIndex:
        own = self._own
        return LessonIndex.load(self.path, owner, self.dimensions) if own is None else own.load(owner)

    def _empty(self, owner: str) -> LessonIndex | QdrantIndex:
        return LessonIndex(owner, self.dimensions) if self._own is None else self._own.clear(owner)

    def _fits(self, index: LessonIndex | QdrantIndex, state: LessonState) -> bool:
        """Tell whether an index is of these tables, is not ahead of them, and holds few lessons that were removed."""
        removed = len(index) - state.count
        return (
            index.owner == self._owner(state)
            and index.newest <= state.newest
            and removed <= max(MAX_REMOVED, state.count // 10)
        )

    def _add_new(self, index: LessonIndex | QdrantIndex) -> None:
        """Add all vectors behind the newest one of the index."""
        while True:
            rows = self.store.fetch(
                "SELECT number, lesson_id, vector FROM lesson_vectors WHERE number > ? AND length(vector) = ? "
                "ORDER BY number LIMIT ?",
                (index.newest, 2 * self.dimensions, PAGE),
            )
            if rows:
                vectors = np.frombuffer(b"".join(vector for _, _, vector in rows), "<f2")
                index.add([id for _, id, _ in rows], vectors.reshape(-1, self.dimensions), rows[-1][0])
            if len(rows) < PAGE:
                return

    def _save(self, index: LessonIndex) -> None:
        alive = self.store.fetch("SELECT lesson_id FROM lesson_vectors")
        try:
            index.save(self.path, np.fromiter((id for (id,) in alive), np.int64, len(alive)))
            self._save_at = SAVE_EVERY
        except OSError as error:
            self._save_at = index.fresh + SAVE_EVERY  # tried again when more is new
            LOG.warning("coherence: the index of lessons was not saved: %s", error)

    def followed(self) -> LessonIndex | QdrantIndex | None:
        """Return the index, brought up to date; ``None`` if the vectors are of another model now."""
        with self.lock:
            self.follow()
            return self.index

    def rebuild(self) -> int:
        """Embed every lesson anew that has no vector of this model, and begin a new index; return how many.

        Killed half-way, it is gone on with by calling it again.
        """
        with self.store.transaction() as transaction:
            if transaction.execute(WHOSE)[0] != (self.fingerprint, self.dimensions):
                transaction.execute("DELETE FROM lesson_vectors")
            transaction.execute(
                "UPDATE lesson_state SET fingerprint = ?, dimensions = ?, token = lower(hex(randomblob(8)))",
                (self.fingerprint, self.dimensions),
            )
        self.cache = EmbeddingCache(self.cache.embedder, self.cache.max_texts)  # the old one remembers what was bad
        after = made = 0
        while True:
            rows = self.store.fetch(
                "SELECT id, json_extract(shape, '$.text'), fix_text FROM lessons WHERE id > ? "
                "AND id NOT IN (SELECT lesson_id FROM lesson_vectors) ORDER BY id LIMIT ?",
                (after, EMBEDDED_AT_ONCE),
            )
            if not rows:
                break
            after = rows[-1][0]
            vectors = [(id, self.embed(embedded_text(text, fix))) for id, text, fix in rows]
            with self.store.transaction() as transaction:
                for id, vector in vectors:
                    if vector is not None and transaction.execute("SELECT 1 FROM lessons WHERE id = ?", (id,)):
                        if not self.claim(transaction):  # another process has begun a rebuild
                            raise self._mismatch(*transaction.execute(WHOSE)[0])
                        add_vector(transaction, id, vector.astype("<f2").tobytes())
                        made += 1
        self.follow()
        return made


_ALL: WeakSet[Searching] = WeakSet()


def _after_fork() -> None:
    for searching in list(_ALL):
        searching.begin_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
