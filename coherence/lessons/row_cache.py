"""Lessons that were read before, kept in memory for as long as they stand in the tables as they did."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from coherence.lessons.identifiers import Told, told_names
from coherence.lessons.records import Known
from coherence.lessons.table import AMONG, LessonState, json_ids, read_lessons
from coherence.store.store import Store

MAX_ROWS = 4_000
"""Lessons that are kept in memory; then it begins anew."""

MAX_CHANGES = 500
"""Changes of lessons that are followed one by one; after more of them the memory begins anew. The table of changes
keeps some more than so many."""

LISTED = f"SELECT id, signature, names, pattern FROM lessons WHERE {AMONG.format('id')} AND retired = 0"  # noqa: S608


class Listed(NamedTuple):
    """The fields of a lesson that decide whether it is a candidate."""

    signature: int
    kind: Hashable
    """Equal for lessons of one kind."""
    told: Told


class _Read(NamedTuple):
    """The rows read since the tables stood somewhere. Each is only added to: a newer one takes its place."""

    mark: tuple[str, int, int]
    """Token of the tables, number of the newest change, and of the newest removal."""
    listed: dict[int, Listed]
    known: dict[int, Known]


class Shelf:
    """Lessons by id, read once until any process changes them.

    Threads and forks need no lock here: whatever is put into ``_read`` was read after its mark, and whatever changed
    since a mark is left out of the next one.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._read = _Read(("", 0, 0), {}, {})

    def follow(self, state: LessonState) -> None:
        """Forget what any process has changed or removed before the tables stood here."""
        mark, read = (state.token, state.changes, state.removal), self._read
        if mark == read.mark:
            return
        token, changed, removed = read.mark
        further = (state.changes - changed, state.removal - removed)
        gone: list[tuple[int]] = []
        if token == state.token and min(further) >= 0 and max(further) <= MAX_CHANGES:
            gone = self.store.fetch(
                "SELECT lesson_id FROM lesson_changes WHERE number > ? "
                "UNION ALL SELECT lesson_id FROM lesson_removals WHERE number > ?",
                (changed, removed),
            )
        if len(gone) < max(sum(further), 1):  # some are not known any more
            self._read = _Read(mark, {}, {})
            return
        listed, known = read.listed.copy(), read.known.copy()
        for (id,) in gone:
            listed.pop(id, None)
            known.pop(id, None)
        self._read = _Read(mark, listed, known)

    def listed(self, ids: Sequence[int]) -> dict[int, Listed]:
        """Return what decides about lessons, those that are there and not retired."""
        read = self._roomy()
        missing = [id for id in ids if id not in read.listed]
        if missing:
            for id, signature, names, pattern in self.store.fetch(LISTED, (json_ids(missing),)):
                read.listed[id] = Listed(signature, pattern.casefold() or signature, told_names(names))
        return {id: read.listed[id] for id in ids if id in read.listed}

    def known(self, ids: Sequence[int]) -> dict[int, Known]:
        """Return lessons, those that are there."""
        read = self._roomy()
        missing = [id for id in ids if id not in read.known]
        if missing:
            read.known.update(read_lessons(self.store, missing))
        return {id: read.known[id] for id in ids if id in read.known}

    def _roomy(self) -> _Read:
        read = self._read
        if max(len(read.listed), len(read.known)) >= MAX_ROWS:
            read = self._read = _Read(read.mark, {}, {})
        return read
