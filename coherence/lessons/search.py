"""Lessons by meaning: a vector index that follows the tables, in this process and on the disk beside them."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from threading import RLock
from weakref import WeakSet

import numpy as np

from coherence.core.errors import CoherenceError
from coherence.core.vectors import Half
from coherence.lessons.errors import EmbedderMismatchError
from coherence.lessons.index import files
from coherence.lessons.index.base import HalfRows, Ids, IndexMismatch, IndexStats, Mark, VectorIndex
from coherence.lessons.index.local import LocalIndex
from coherence.lessons.table import LessonState, New, add_vector, count_records, find_vector, read_state
from coherence.sensor.calls import Breaker
from coherence.sensor.embedding_cache import EmbeddingCache, embed_now
from coherence.store.store import Store
from coherence.store.transaction import Transaction

LOG = logging.getLogger("coherence")

PAGE = 2_000
"""Vectors read at once."""

SAVE_FROM = 5_000
"""Lessons from which the index is written beside the database; fewer are read from it in milliseconds."""

SAVE_EVERY = 2_000
"""New vectors after which the index is written."""

EMBEDDED_FIX = 200
"""Characters of a fix that are embedded with its error."""

WHOSE = "SELECT fingerprint, dimensions FROM lesson_state"

EMBEDDED_AT_ONCE = 64
"""Lessons that are embedded between two transactions of a rebuild."""


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
    own : VectorIndex, optional
        An index that is kept elsewhere; default: one in this process, and in files beside the database.
    timeout_s : float
        Seconds that embedding one text may take.
    """

    def __init__(self, store: Store, cache: EmbeddingCache, own: VectorIndex | None, timeout_s: float) -> None:
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
        self.index = self._empty()
        self._breaker = Breaker()
        self._mark: Mark | None = None
        """How far the index has followed the tables; ``None`` = it has not been looked for on the disk."""
        self._saved = 0
        self._told = False
        """Whether it was said that the vectors are of another model now."""

    def begin_in_child(self) -> None:
        """Forget what a fork has copied while other threads may have been at work on it."""
        self.cache = EmbeddingCache(self.cache.embedder, self.cache.max_texts)
        self._begin()

    def _empty(self) -> VectorIndex:
        return LocalIndex(self.cache.embedder.dimensions) if self._own is None else self._own

    @property
    def fingerprint(self) -> str:
        """Of the embedder."""
        return self.cache.fingerprint

    def check(self, state: LessonState) -> None:
        """Raise :class:`EmbedderMismatchError` if the kept vectors are of another model."""
        given = self.cache.embedder.dimensions
        if not self._is_ours(state.fingerprint, state.dimensions, given):
            raise self._mismatch(state.fingerprint, state.dimensions, given)

    def any_missing(self) -> bool:
        """Tell whether any lesson has no vector of this model."""
        state = read_state(self.store)
        ours = self._is_ours(state.fingerprint, state.dimensions, self.cache.embedder.dimensions)
        return not ours or count_records(self.store)[3] < state.count

    def _is_ours(self, kept: str | None, length: int | None, given: int) -> bool:
        return kept is None or (kept, length) == (self.fingerprint, given)

    def _mismatch(self, kept: str | None, length: int | None, given: int) -> EmbedderMismatchError:
        names = (str(kept), self.fingerprint)
        if kept == self.fingerprint:
            names = (f"{kept} ({length} dimensions)", f"{kept} ({given} dimensions)")
        return EmbedderMismatchError(str(self.store.path), *names)

    def serves(self, state: LessonState) -> bool:
        """Tell whether the kept vectors are still of this model; if another process has changed that, say so once."""
        ours = self._is_ours(state.fingerprint, state.dimensions, self.cache.embedder.dimensions)
        if not ours and not self._told:
            LOG.warning(
                "coherence: %s: its lessons have been embedded by %r since it was opened with %r; until it is opened "
                "with that one, lessons are found by signature and names only, and kept without a vector",
                self.store.path,
                state.fingerprint,
                self.fingerprint,
            )
        self._told = not ours
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

    def claim(self, transaction: Transaction, dimensions: int) -> bool:
        """Say, in a transaction that is to keep a vector, whose vectors these are; ``False``: another model's."""
        transaction.execute(
            "UPDATE lesson_state SET fingerprint = ?, dimensions = ? WHERE fingerprint IS NULL",
            (self.fingerprint, dimensions),
        )
        kept, length = transaction.execute(WHOSE)[0]
        return self._is_ours(kept, length, dimensions)

    def nearest(self, vector: Half, k: int) -> list[tuple[int, float]]:
        """Return (lesson, cosine) of the nearest lessons as of the last :meth:`follow`, the nearest first."""
        with self.lock:
            ids, cosines = self.index.search(vector.astype(np.float32), k)
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
                self.index, self._mark = self._empty(), None
                return 0
            mark = self._mark
            if mark is None or not self._fits(mark, state):
                mark = self._load(state)
            if mark.lesson < state.newest:
                mark = self._add(mark, state)
            if mark.removal < state.removal:
                mark = self._remove(mark, state)
            self._mark = mark
            if mark.lesson - self._saved >= SAVE_EVERY:
                self.save()
            return state.count

    def _name(self, state: LessonState) -> str:
        """Return what an index of these vectors is marked with."""
        return f"{self.fingerprint} {state.token}"

    def _mark_of(self, state: LessonState) -> Mark:
        """Return what an index that has taken in all is marked with."""
        return Mark(self._name(state), self.cache.embedder.dimensions, state.newest, state.removal)

    def _fits(self, mark: Mark, state: LessonState) -> bool:
        """Tell whether an index can go on from where it is."""
        known = mark.lesson <= state.newest and state.forgotten <= mark.removal <= state.removal
        return known and mark.fingerprint == self._name(state)

    def _load(self, state: LessonState) -> Mark:
        mark = None
        self.index = self._empty()
        if state.count >= SAVE_FROM or self._own is not None:
            try:
                mark = self.index.load(self.path, self._name(state))
            except CoherenceError as error:  # the tables say whose vectors these are, so it can be made anew
                LOG.info("coherence: the index of lessons is made anew: %s", error)
        if mark is not None and not self._fits(mark, state):
            mark, self.index = None, self._empty()
        self._saved = mark.lesson if mark is not None else 0
        return mark or Mark(self._name(state), self.index.dimensions, 0, state.removal)

    def _add(self, mark: Mark, state: LessonState) -> Mark:
        number, damaged = mark.lesson, 0
        while True:
            rows = self._page(number)
            if rows:
                number = rows[-1][0]
                ids, vectors, bad = _whole([row[1:] for row in rows], mark.dimensions)
                damaged += len(bad)
                missing = np.isin(ids, self.index.missing(ids))  # an earlier attempt may have broken off half-way
                self.index.add(ids[missing], vectors[missing])
            if len(rows) < PAGE:
                break
        if damaged:
            LOG.warning("coherence: %s: %d vectors of lessons are damaged; rebuild them", self.store.path, damaged)
        return Mark(mark.fingerprint, mark.dimensions, max(number, state.newest), mark.removal)

    def _page(self, number: int) -> list[tuple[int, int, bytes]]:
        return self.store.fetch(
            "SELECT number, lesson_id, vector FROM lesson_vectors WHERE number > ? ORDER BY number LIMIT ?",
            (number, PAGE),
        )

    def _remove(self, mark: Mark, state: LessonState) -> Mark:
        rows = self.store.fetch(
            "SELECT lesson_id FROM lesson_removals WHERE number > ? AND number <= ?", (mark.removal, state.removal)
        )
        self.index.remove([row[0] for row in rows])
        return Mark(mark.fingerprint, mark.dimensions, mark.lesson, state.removal)

    def save(self) -> None:
        """Write the index beside the database, unless it is small; without it, it is made again from the tables."""
        with self.lock:
            if self._mark is None or self._mark.lesson == self._saved:
                return
            if self._own is None and self.index.stats().count < SAVE_FROM:
                return
            try:
                self._write(self._mark)
            except (CoherenceError, OSError) as error:
                LOG.warning("coherence: the index of lessons was not saved: %s", error)
            self._saved = self._mark.lesson

    def _write(self, mark: Mark) -> None:
        try:
            self.index.save(self.path, mark)
        except IndexMismatch:  # the files are of lessons that were embedded anew since, or of a database before this
            if self._own is not None:
                raise
            if self._name(read_state(self.store)) == mark.fingerprint:  # or this index is the one of the past
                files.discard(self.path)
                self.index.save(self.path, mark)

    def followed(self) -> IndexStats | None:
        """Return what the index is, brought up to date; ``None`` if the vectors are of another model now."""
        with self.lock:
            self.follow()
            return None if self._mark is None else self.index.stats()

    def rebuild(self) -> int:
        """Embed every lesson anew that has no whole vector of this model, and begin a new index; return how many.

        Killed half-way, it is gone on with by calling it again.
        """
        with self.store.transaction() as transaction:
            dimensions = self.cache.embedder.dimensions
            whose = transaction.execute(WHOSE)[0]
            if whose != (self.fingerprint, dimensions):
                transaction.execute("DELETE FROM lesson_vectors")
            transaction.execute(
                "UPDATE lesson_state SET fingerprint = ?, dimensions = ?, token = lower(hex(randomblob(8)))",
                (self.fingerprint, dimensions),
            )
        self._drop_damaged(dimensions)
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
                        if not self.claim(transaction, len(vector)):  # somebody else has begun a rebuild
                            kept, length = transaction.execute(WHOSE)[0]
                            raise self._mismatch(kept, length, len(vector))
                        add_vector(transaction, id, vector.astype("<f2").tobytes())
                        made += 1
        with self.lock:
            self._mark = None
            self.follow()
            self.save()
        return made

    def _drop_damaged(self, dimensions: int) -> None:
        number = 0
        while rows := self._page(number):
            number = rows[-1][0]
            bad = _whole([row[1:] for row in rows], dimensions)[2]
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
