"""Courses of the sessions of a store, read once and then followed: only what is new is read again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import RLock

from coherence.store.faces import (
    Newest,
    SessionHead,
    context_windows,
    events_at,
    marks_between,
    newest_of,
    points_after,
    session_heads,
    session_span,
    tallies_after,
)
from coherence.store.rows import SessionRow
from coherence.store.store import Store
from coherence.store.tally import MarkRow, Tally, pack
from coherence.views.words import cause_text, goal_text

HELD = 16
"""Sessions whose ticks and marks are held, those asked for last."""


WHOLE = 2_000
"""Characters of a cause as a whole."""

MARKS = 1_000
"""Marks of one answer, the newest."""


class Course:
    """Ticks and marks of one session."""

    def __init__(self, store: Store, session_id: int) -> None:
        from coherence.views.ticks import Ticks  # which needs numpy, and an overview does without

        self._store = store
        self._session_id = session_id
        self.ticks = Ticks()

    def follow(self, tally: Tally) -> None:
        """Take in what the table has got since, and then the ticks that wait in a tally that was read before."""
        self.ticks.extend(points_after(self._store, self._session_id, self.ticks.newest))
        self.ticks.extend(b"".join(map(pack, tally.pending)))

    def marks(self, kinds: Sequence[str], first: int = 0, last: int = 2**62, limit: int = MARKS) -> list[MarkRow]:
        """Return the newest marks of each of some kinds between two events, oldest first."""
        return marks_between(self._store, self._session_id, kinds, first, last, limit)


class Folded(Course):
    """Course of a session that began before the store counted what it comes to: its events are read."""

    def __init__(self, store: Store, session_id: int) -> None:
        super().__init__(store, session_id)
        self.tally = Tally()
        self._marks: list[MarkRow] = []

    def fold(self) -> None:
        """Take in the events since."""
        points, marks = self.tally.fold(self._store.events(self._session_id, after=self.tally.through))
        self._marks += marks
        self.ticks.extend(b"".join(map(pack, points)))

    def marks(self, kinds: Sequence[str], first: int = 0, last: int = 2**62, limit: int = MARKS) -> list[MarkRow]:
        """Return the newest marks of each of some kinds between two events, oldest first."""
        found = [mark for mark in self._marks if first <= mark.seq <= last]
        newest = [mark for kind in kinds for mark in [each for each in found if each.kind == kind][-limit:]]
        return sorted(newest, key=lambda mark: (mark.seq, mark.kind))


def _places(tally: Tally) -> tuple[int, int, int]:
    """Return the numbers of the events that the words of a session are from; 0 where none has to be read."""
    grave = tally.decision in ("warn", "block")
    measured = tally.measured if tally.band not in "g?" or (grave and tally.decided == tally.measured) else 0
    return tally.goal or tally.request, tally.decided if grave else 0, measured


class Courses:
    """Courses of the sessions of a store, as far as they are known. Thread-safe."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = RLock()
        self._newest = Newest(0, 0, 0, 0)
        self._heads: dict[int, SessionHead] = {}
        self._tallies: dict[int, Tally] = {}
        self._folded: dict[int, Folded] = {}
        self._held: OrderedDict[int, Course] = OrderedDict()
        self._windows: dict[int, int | None] = {}
        self._words: dict[int, tuple[tuple[int, ...], str, str]] = {}
        """Session -> numbers of the events that its words are from, its goal, and its cause."""

    def all(self) -> list[tuple[SessionRow, Tally]]:
        """Return the sessions, oldest first, and what each comes to; without those of which nothing is kept."""
        with self._lock:
            self._follow()
            return [
                (head.row, self._tally(number))
                for number, head in self._heads.items()
                if head.first is not None or not head.last
            ]

    def tally(self, row: SessionRow) -> Tally:
        """Return what a session comes to."""
        with self._lock:
            self._follow()
            return self._tally(row.id)

    def of(self, row: SessionRow) -> Course:
        """Return the ticks and marks of a session."""
        with self._lock:
            self._follow()
            if row.id in self._folded:
                return self._folded[row.id]
            course = self._held.setdefault(row.id, Course(self._store, row.id))
            course.follow(self._tally(row.id))
            self._held.move_to_end(row.id)
            while len(self._held) > HELD:
                self._held.popitem(last=False)
            return course

    def folds(self, agent: str) -> bool:
        """Tell whether the tables hold too little of an agent's sessions, so that their events are read."""
        with self._lock:
            self._follow()
            return any(self._heads[number].row.agent == agent for number in self._folded)

    def prepare(self, found: Sequence[tuple[SessionRow, Tally]]) -> None:
        """Read the words and the context windows of some sessions, those that are not known, all at once."""
        with self._lock:
            unknown = [row.id for row, _ in found if row.id not in self._windows]
            self._windows |= context_windows(self._store, unknown)
            wanted = {row.id: _places(tally) for row, tally in found}
            new = {id: places for id, places in wanted.items() if self._words.get(id, ((),))[0] != places}
            pairs = [(id, place) for id, places in new.items() for place in places if place]
            events = events_at(self._store, pairs)
            for id, places in new.items():
                goal, decided, measured = (events.get((id, place)) for place in places)
                self._words[id] = (places, goal_text(goal), cause_text(decided, measured))

    def window(self, row: SessionRow) -> int | None:
        """Return the size of the context window of a session that is prepared, in tokens, ``None`` if it is unknown."""
        return self._windows.get(row.id)

    def words(self, row: SessionRow) -> tuple[str, str]:
        """Return the newest goal of a prepared session, and why its light is what it is, each on one line."""
        # another thread may have begun anew meanwhile
        return self._words.get(row.id, ((), "", ""))[1:]

    def whole_cause(self, row: SessionRow) -> str:
        """Return why the light of a session is what it is, in at most :data:`WHOLE` characters."""
        _, *places = _places(self.tally(row))
        events = events_at(self._store, [(row.id, place) for place in places if place])
        decided, measured = (events.get((row.id, place)) for place in places)
        return cause_text(decided, measured, WHOLE)

    def _tally(self, number: int) -> Tally:
        folded = self._folded.get(number)
        return folded.tally if folded is not None else self._tallies.get(number) or Tally()

    def _follow(self) -> None:
        """Take in what is new; begin anew if something has gone, or the file is another one."""
        newest = newest_of(self._store)
        if newest == self._newest:
            return
        before = self._newest
        if newest.event < before.event or newest[2:] != before[2:]:
            for known in (self._heads, self._tallies, self._folded, self._held, self._windows, self._words):
                known.clear()
            before = Newest(0, 0, newest.first_event, newest.purges)
        # the numbers first: what is written meanwhile is taken in by the next look
        if newest.session > before.session:
            self._heads |= {head.row.id: head for head in session_heads(self._store, before.session)}
        changed = tallies_after(self._store, before.event)
        self._tallies |= changed
        for number in changed.keys() & self._heads.keys():
            self._renew(number)
        begun = {
            number for number, head in self._heads.items() if number not in self._folded and not self._covers(head)
        }
        self._folded |= {number: Folded(self._store, number) for number in begun}
        # whoever writes to a session counts it, if only in part
        for number in begun | (changed.keys() & self._folded.keys()):
            self._folded[number].fold()
        self._newest = newest

    def _renew(self, number: int) -> None:
        """Find out which events of a session are kept, if none was before."""
        head = self._heads[number]
        if head.first is None:
            first, last = session_span(self._store, number)
            self._heads[number] = head._replace(first=first or None, last=max(head.last, last))

    def _covers(self, head: SessionHead) -> bool:
        """Tell whether the tally of a session counts all of its events that are kept."""
        tally = self._tallies.get(head.row.id)
        return head.first is None or (tally is not None and 0 < tally.first <= head.first)
