"""Walking the chain from its beginning to its end, noting what does not fit."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

from coherence.store.chain import Fault, fault, fault_at, recomputed
from coherence.store.content_faults import explain_contents
from coherence.store.missing_events import MOST, Missing
from coherence.store.rows import AuditRow

Find: TypeAlias = Callable[[set[bytes]], dict[bytes, int]]


class _Light(NamedTuple):
    """What names a row, without its content."""

    id: int
    session: str
    agent: str
    seq: int


class _Seen(NamedTuple):
    """A row, and how it stands by itself."""

    row: AuditRow
    genuine: bool
    """Its content matches its hash."""
    computed: bytes | None
    """The hash that its content has."""


class _Break(NamedTuple):
    """A row that does not follow the row before it, and the two rows before it."""

    row: AuditRow
    before: _Seen | None
    further: _Seen | None


class Walk:
    """One pass over the rows in the order of their positions.

    Parameters
    ----------
    first_id : int or None
        Where the chain begins; ``None`` = wherever the first row is.
    first_prev : bytes or None
        What its first row follows; ``None`` = whatever the first row says.
    """

    def __init__(self, first_id: int | None, first_prev: bytes | None) -> None:
        self._first_id = first_id
        self._first_prev = first_prev
        self._before: _Seen | None = None
        self._further: _Seen | None = None
        self._highest: int | None = None
        self._breaks: list[_Break] = []
        self._altered: list[AuditRow] = []
        self._doubtful: set[int] = set()
        """Positions of rows whose hash says nothing about where other rows belong."""
        self._faults: dict[int | None, Fault] = {}
        self._tail: deque[_Light] = deque(maxlen=MOST)
        self._more = 0
        self.missing = Missing(from_start=first_id == 1)
        self.rows = 0

    def step(self, row: AuditRow, key: int | str) -> None:
        """Look at the next row; ``key`` tells sessions apart."""
        self.rows += 1
        self._tail.append(_Light(row.id, row.session, row.agent, row.event.seq))
        if self._first_id is not None and row.id < self._first_id:
            self._add(fault(row, "inserted", f"the chain begins at id {self._first_id}"))
            return
        if self._highest is not None and row.id <= self._highest:
            self._late(row, key)
            return
        before = self._before
        computed = recomputed(row)
        genuine = computed == row.hash
        if before is None:
            follows = self._first_prev is None or row.prev_hash == self._first_prev
        else:
            follows = row.prev_hash in (before.row.hash, before.computed)
        if self._highest is not None:
            expected = self._highest + 1
        else:
            expected = row.id if self._first_id is None else self._first_id
        if row.id != expected:
            if genuine and follows:
                self._add(fault(row, "altered", f"its id was {expected} when it was written"))
            else:
                self.missing.gap(expected, row.id - 1)
        if not genuine:
            self._note_altered(row, follows)
        elif not follows and len(self._breaks) < MOST:
            self._breaks.append(_Break(row, before, self._further))
        self.missing.seen(key, row, genuine)
        self._before, self._further, self._highest = _Seen(row, genuine, computed), before, row.id

    def _late(self, row: AuditRow, key: int | str) -> None:
        """Note a row whose turn was before; in a store there is none, in a file lines can be moved."""
        genuine = recomputed(row) == row.hash
        if not self.missing.fill(row.id):
            self._add(fault(row, "inserted", "there is an event with that id already"))
        elif genuine:
            self._add(fault(row, "reordered", f"it comes after the event with id {self._highest}"))
        else:
            self._note_altered(row, follows=True)
        self.missing.seen(key, row, genuine)

    def _note_altered(self, row: AuditRow, follows: bool) -> None:
        if len(self._doubtful) < MOST:
            self._doubtful.add(row.id)
        before = self._before.row.hash if self._before else self._first_prev
        if not follows and before is not None and recomputed(row, before) == row.hash:
            self._add(fault(row, "altered", "the hash it follows was changed"))
        elif row.session is None:
            self._add(fault(row, "altered", "the session that it belongs to is not there"))  # type: ignore[unreachable]
        elif len(self._altered) < MOST:
            self._altered.append(row)
        else:
            self._more += 1

    def faults(self, find: Find, count: int | None = None, head: bytes | None = None) -> list[Fault]:
        """Return everything that does not fit, by position; the walk is over then.

        Parameters
        ----------
        find : callable
            Gives the position of each hash that is there.
        count, head : int and bytes, optional
            How many rows there should be, and the newest hash.
        """
        for found in explain_contents(self._altered):
            self._add(found)
        where = find({row.prev_hash for row, _, _ in self._breaks}) if self._breaks else {}
        if self._first_prev is not None and self._first_id is not None:
            where[self._first_prev] = self._first_id - 1
        true = _true_positions(self._breaks, where)
        gone: list[Fault] = []
        for broken in self._breaks:
            gone += self._judge(broken, where, true)
        if count is not None and head is not None:
            self._judge_end(count, head, find, true)
        gone += self.missing.faults()
        if self._more:
            message = f"{self._more} more events do not match their hashes"
            gone.append(Fault(None, None, None, None, "altered", message))
        faults = list(self._faults.values()) + [f for f in gone if f.id is None or f.id not in self._faults]
        return sorted(dict.fromkeys(faults), key=lambda f: (f.id is None, f.id or 0, f.seq or 0))

    def _judge_end(self, count: int, head: bytes, find: Find, true: dict[int, int]) -> None:
        last, inserted = self._before, 0
        first = self._first_id or 1
        if head not in ((last.row.hash, last.computed) if last else (self._first_prev,)):
            at = first - 1 if head == self._first_prev else find({head}).get(head)
            lost = count - self.rows - self.missing.count
            if at is not None and true.get(at, at) == at:
                why = "it comes after the newest event that the store has written"
                for light in [light for light in self._tail if light.id > at]:
                    inserted += 1
                    self._add(fault_at(*light, "inserted", why), over=True)
            elif lost > 0:
                end = last.row.id + 1 if last else first
                self.missing.gap(end, end + lost - 1)
            elif at is None and last is not None and last.genuine:
                self._add(fault(last.row, "altered", "it is not the newest event that the store has written"))
        if self.rows - inserted + self.missing.count != count and not (self._faults or self._breaks):
            message = f"the store says that it holds {count} events, but it holds {self.rows}"
            self._add(Fault(None, None, None, None, "altered", message))

    def _judge(self, broken: _Break, where: dict[bytes, int], true: dict[int, int]) -> Iterable[Fault]:
        """Say why a row, sound in itself, does not follow the one before it."""
        row, before, further = broken
        at = where.get(row.prev_hash)
        start = self._first_prev if further is None else further.row.hash
        if (
            before is not None
            and row.prev_hash == start
            and not (before.genuine and before.row.prev_hash != start and before.row.prev_hash in where)
        ):
            self._add(fault(before.row, "inserted", f"the event with id {row.id} follows the one before it"), over=True)
        elif at is not None:
            if at not in self._doubtful and true.get(row.id, row.id) != row.id:
                self._add(fault(row, "reordered", f"it belongs at id {true[row.id]}, after the event with id {at}"))
        elif before is None:
            if row.id == self._first_id:
                message = "the store says that its chain begins with another hash than its first event does"
                self._add(Fault(row.session, row.agent, row.event.seq, row.id, "altered", message))
        elif row.id == before.row.id + 1:
            named = self.missing.named_between(before.row.id, row.id)
            if named:
                return named
            if before.genuine:
                self._add(fault(before.row, "altered", f"the event with id {row.id} followed another one"))
        return ()

    def _add(self, found: Fault, over: bool = False) -> None:
        if over or found.id is None or found.id not in self._faults:
            self._faults[found.id] = found


def _true_positions(breaks: list[_Break], where: dict[bytes, int]) -> dict[int, int]:
    """Return position -> where the row there belongs: one after the row that it follows."""
    follows = {row.id: where[row.prev_hash] for row, _, _ in breaks if row.prev_hash in where}
    true: dict[int, int] = {}
    for start in follows:
        path: list[int] = []
        at = start
        while at in follows and at not in true and at not in path:
            path.append(at)
            at = follows[at]
        position = true.get(at, at)
        for place in reversed(path):
            position += 1
            true[place] = position
    return true
