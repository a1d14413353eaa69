"""Lessons by meaning: the embedder, and a vector index that follows the tables."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from threading import RLock
from weakref import WeakSet

import msgspec
import numpy as np

from coherence.core.vectors import Half
from coherence.lessons.errors import EmbedderMismatchError
from coherence.lessons.index.base import HalfRows, Ids, IndexStats, Mark, VectorIndex
from coherence.lessons.index.coded import CodedIndex
from coherence.lessons.index.exact import ExactIndex
from coherence.lessons.table import LessonState, New, add_vector, count_records, find_vector, read_state
from coherence.sensor.calls import Breaker
from coherence.sensor.embedding_cache import EmbeddingCache, embed_now
from coherence.store.store import Store
from coherence.store.transaction import Transaction

LOG = logging.getLogger("coherence")

PAGE = 2_000
"""Vectors read at once."""

MAX_EXACT = 5_000
"""Up to so many lessons the index is exact, and read from the tables in milliseconds; for more there is a file."""

SAVE_EVERY = 2_000
"""New vectors after which the index is saved; of a large one it takes a twentieth, as the whole file is written."""

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
    timeout_s : float
        Seconds that embedding one text may take.
    """

    def __init__(self, store: Store, cache: EmbeddingCache, timeout_s: float) -> None:
        self.store = store
        self.cache = cache
        self.timeout_s = timeout_s
        self.path = Path(f"{store.path}.lessons")
        self._begin()
        _ALL.add(self)

    def _begin(self) -> None:
        """Begin, or begin anew in the child of a fork, where a lock may be held by a thread that is not there."""
        self.lock = RLock()
        self.index = self._empty(0)
        self._breaker = Breaker()
        self._mark: Mark | None = None
        """The part of the tables that the index holds; ``None`` = it has not been looked for on the disk."""
        self._saved = 0
        """Number of the newest vector in the file."""
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
        """Return (lesson, cosine) of the nearest lessons as of the last :meth:`follow`, the nearest first."""
        with self.lock:
            ids, cosines = self.index.search(vector, k)
        return list(zip(ids.tolist(), cosines.tolist(), strict=True))

    def follow(self, state: LessonState | None = None) -> int:
        """Take in what any process has added to and removed from the tables; return how many lessons there are.

        0 if their vectors are of another model now: then nothing can be found by meaning. With the ``state`` of a
        moment ago, what was added or removed since may be left out.
        """
        if state is not None and self._mark == self._mark_of(state):
            return state.count
        with self.lock:
            state = read_state(self.store)
            if not self.serves(state):
                self._mark = None
                return 0
            mark = self._mark
            if mark is None or not self._fits(mark, state):
                mark = self._load(state)
            newest, before = mark.lesson, mark
            if newest < state.newest:
                newest = self._add(newest)
            if mark.removal < state.removal:
                sql = "SELECT lesson_id FROM lesson_removals WHERE number > ? AND number <= ?"
                self.index.remove([id for (id,) in self.store.fetch(sql, (mark.removal, state.removal))])
            self._mark = Mark(mark.fingerprint, mark.dimensions, max(newest, state.newest), state.removal)
            if self._mark != before:
                self._save(self._mark, state.count)
            return state.count

    def _mark_of(self, state: LessonState) -> Mark:
        """Return the mark of an index that has taken in all."""
        return Mark(f"{self.fingerprint} {state.token}", self.dimensions, state.newest, state.removal)

    def _fits(self, mark: Mark, state: LessonState) -> bool:
        """Tell whether the index, which has this mark, can go on from where it is."""
        outgrown = isinstance(self.index, ExactIndex) and state.count > MAX_EXACT
        known = mark.lesson <= state.newest and state.forgotten <= mark.removal <= state.removal
        return known and not outgrown and mark.fingerprint == self._mark_of(state).fingerprint

    def _load(self, state: LessonState) -> Mark:
        """Begin with the index that was saved, else with an empty one; return how far it is."""
        self.index = self._empty(state.count)
        nothing = msgspec.structs.replace(self._mark_of(state), lesson=0)
        mark = self.index.load(self.path, nothing.fingerprint) or nothing
        if not self._fits(mark, state):
            mark, self.index = nothing, self._empty(state.count)
        self._saved = mark.lesson
        return mark

    def _empty(self, count: int) -> VectorIndex:
        return CodedIndex(self.dimensions) if count > MAX_EXACT else ExactIndex(self.dimensions)

    def _add(self, number: int) -> int:
        """Add all vectors behind the one of this number; return the number of the newest."""
        damaged = 0
        while rows := self._page(number):
            number = rows[-1][0]
            ids, vectors, bad = _whole([row[1:] for row in rows], self.dimensions)
            damaged += len(bad)
            self.index.add(ids, vectors)
            if len(rows) < PAGE:
                break
        if damaged:
            LOG.warning("coherence: %s: %d vectors of lessons are damaged; rebuild them", self.store.path, damaged)
        return number

    def _page(self, number: int) -> list[tuple[int, int, bytes]]:
        return self.store.fetch(
            "SELECT number, lesson_id, vector FROM lesson_vectors WHERE number > ? ORDER BY number LIMIT ?",
            (number, PAGE),
        )

    def _save(self, mark: Mark, count: int) -> None:
        """Save the index if much is new."""
        if mark.lesson - self._saved < max(SAVE_EVERY, count // 20):
            return
        self._saved = mark.lesson
        try:
            if not self.index.save(self.path, mark):
                self._mark = None  # what another process has saved is loaded next time
        except OSError as error:
            LOG.warning("coherence: the index of lessons was not saved: %s", error)

    def followed(self) -> IndexStats | None:
        """Return what the index is, brought up to date; ``None`` if the vectors are of another model now."""
        with self.lock:
            self.follow()
            return self.index.stats() if self.serves(read_state(self.store)) else None

    def rebuild(self) -> int:
        """Embed every lesson anew that has no whole vector of this model, and begin a new index; return how many.

        Killed half-way, it is gone on with by calling it again.
        """
        with self.store.transaction() as transaction:
            if transaction.execute(WHOSE)[0] != (self.fingerprint, self.dimensions):
                transaction.execute("DELETE FROM lesson_vectors")
            transaction.execute(
                "UPDATE lesson_state SET fingerprint = ?, dimensions = ?, token = lower(hex(randomblob(8)))",
                (self.fingerprint, self.dimensions),
            )
        self._drop_damaged()
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

    def _drop_damaged(self) -> None:
        number = 0
        while rows := self._page(number):
            number = rows[-1][0]
            bad = _whole([row[1:] for row in rows], self.dimensions)[2]
            if bad:
                with self.store.transaction() as transaction:
                    transaction.execute_many("DELETE FROM lesson_vectors WHERE lesson_id = ?", ((id,) for id in bad))


def _whole(rows: Sequence[tuple[int, bytes]], dimensions: int) -> tuple[Ids, HalfRows, list[int]]:
    """Return ids and vectors of the (lesson, vector) that an index can take, and the lessons of the others."""
    fit = [row for row in rows if len(row[1]) == 2 * dimensions]
    ids = np.array([id for id, _ in fit], np.int64)
    vectors = np.frombuffer(b"".join(vector for _, vector in fit), "<f2").reshape(len(fit), dimensions)
    peaks = np.abs(vectors).max(axis=1, initial=0)
    whole = np.isfinite(peaks) & (peaks > 0)
    there = set(ids[whole].tolist())
    return ids[whole], vectors[whole], [id for id, _ in rows if id not in there]


_ALL: WeakSet[Searching] = WeakSet()


def _after_fork() -> None:
    for searching in list(_ALL):
        searching.begin_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
