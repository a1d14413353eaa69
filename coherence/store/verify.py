"""Checking a whole file: SQLite's own check, then every hash from the beginning of the chain to its end."""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Callable, Iterable
from itertools import combinations
from typing import NamedTuple, TypeAlias

import msgspec

from coherence.store.connections import DAMAGED, code
from coherence.store.hash_chain import ChainFault, fault, fault_at, recomputed
from coherence.store.queries import AUDIT, audit_row
from coherence.store.rows import AuditRow

_LOWEST = -(2**63)

_STRAY = """
SELECT {table}.session_id, s.session, s.agent, {table}.seq, e.id FROM {table}
LEFT JOIN sessions AS s ON s.id = {table}.session_id
LEFT JOIN events AS e ON e.session_id = {table}.session_id AND e.seq = {table}.seq
WHERE e.id IS NULL OR {table}.ts IS NOT e.ts OR {table}.source IS NOT e.source
ORDER BY e.id LIMIT 1000
"""
_RENAMED = """
SELECT s.session, s.agent, min(e.seq), min(e.id) FROM events AS e JOIN sessions AS s ON s.id = e.session_id
WHERE e.agent IS NOT s.agent OR e.source IS NOT s.source GROUP BY s.id
"""

_FIRINGS = """
SELECT s.session, s.agent, f.seq, e.id, f.firing_id FROM firings AS f
LEFT JOIN sessions AS s ON s.id = f.session_id
LEFT JOIN events AS e ON e.id = f.event_id
LEFT JOIN decisions AS d ON d.session_id = f.session_id AND d.seq = f.seq AND json_valid(d.data)
LEFT JOIN chain AS c
WHERE (e.id IS NULL AND f.event_id >= c.first_id)
  OR (e.id IS NOT NULL AND (e.session_id IS NOT f.session_id OR e.seq IS NOT f.seq OR e.agent IS NOT f.agent
    OR e.ts IS NOT f.ts OR e.source IS NOT f.source))
  OR (json_extract(d.data, '$.guidance.id') IS NOT NULL AND (json_extract(d.data, '$.guidance.id') IS NOT f.firing_id
    OR json_extract(d.data, '$.guidance.pattern') IS NOT f.pattern
    OR json_extract(d.data, '$.guidance.pair') IS NOT f.pair
    OR json_extract(d.data, '$.guidance.arm') IS NOT f.arm))
ORDER BY f.event_id LIMIT 1000
"""
"""Firings whose event is not what they say, as far as it is still there; its decision, which the hash covers, tells."""


def verify(connection: sqlite3.Connection) -> list[ChainFault]:
    """Return what is not as it was written, by position; an empty list = intact."""
    text_factory = connection.text_factory
    connection.text_factory = _readable
    faults: list[ChainFault] = []
    try:
        faults += _check_file(connection)
        connection.execute("BEGIN")  # what is written meanwhile is not looked at
        faults += _check_chain(connection)
        ids = {f.id for f in faults if f.id is not None}
        names = {(f.session, f.seq) for f in faults}
        faults += [f for f in _check_rest(connection) if f.id not in ids and (f.session, f.seq) not in names]
    except sqlite3.DatabaseError as error:
        if code(error) not in DAMAGED:
            raise
        faults.append(_damaged(f"the rest cannot be read ({error})"))
    finally:
        connection.text_factory = text_factory
    return faults


def _check_file(connection: sqlite3.Connection) -> Iterable[ChainFault]:
    for (line,) in connection.execute("PRAGMA quick_check(100)"):
        # A value that a constraint refuses was put there by hand: its hash names it better.
        if line != "ok" and "constraint failed" not in line and "NULL value in" not in line:
            yield _damaged(line)


def _check_chain(connection: sqlite3.Connection) -> list[ChainFault]:
    faults: list[ChainFault] = []
    chain = connection.execute("SELECT count, head, first_id, first_prev FROM chain").fetchone()
    if chain is None:
        message = "the row that says where the chain begins and ends was removed"
        faults.append(ChainFault(None, None, None, None, "removed", message))
    walk = Walk(*chain[2:]) if chain else Walk(None, None)
    try:
        for raw in connection.execute(AUDIT, (_LOWEST, -1)):
            walk.step(audit_row(raw), raw[1])
    except sqlite3.DatabaseError as error:
        if code(error) not in DAMAGED:
            raise
        faults.append(_damaged(f"events after the first {walk.rows} cannot be read ({error})"))
        return walk.faults(lambda _: {}) + faults

    def find(hashes: set[bytes]) -> dict[bytes, int]:
        return {row_hash: number for number, row_hash in connection.execute(_HASHES) if row_hash in hashes}

    sessions = "SELECT s.id, s.session, s.agent, h.last_seq FROM sessions AS s JOIN heads AS h ON h.session_id = s.id"
    for number, session, agent, last_seq in connection.execute(sessions):
        walk.missing.ended(number, SessionNames(session, agent), last_seq)
    return walk.faults(find, *(chain[:2] if chain else ())) + faults


_HASHES = "SELECT id, hash FROM events"


def _check_rest(connection: sqlite3.Connection) -> Iterable[ChainFault]:
    """Look at what the hashes do not cover: copies of columns, and rows that belong to no event."""
    for table in ("readings", "decisions"):
        for session_id, session, agent, seq, number in connection.execute(_STRAY.format(table=table)):
            name = f"the {table[:-1]} of event {seq} of session {session!r} (agent {agent!r}, id {number})"
            if number is None:
                name = f"a {table[:-1]} for event {seq} of session {session or session_id!r}, which is not there,"
            what = "inserted" if number is None else "altered"
            yield ChainFault(session, agent, seq, number, what, f"{name} was {what}")  # type: ignore[arg-type]
    for session, agent, seq, number, firing in connection.execute(_FIRINGS):
        message = f"the firing {firing!r} is not what event {seq} of session {session!r} (agent {agent!r}) says"
        yield ChainFault(session, agent, seq, number, "altered", message)
    for session, agent, seq, number in connection.execute(_RENAMED):
        message = f"session {session!r} (agent {agent!r}) was altered: its events have another agent or source"
        yield ChainFault(session, agent, seq, number, "altered", message)


def _damaged(detail: str) -> ChainFault:
    return ChainFault(None, None, None, None, "damaged", f"the file is damaged: {detail}")


def _readable(text: bytes) -> str:
    """Decode what may have been put there by hand."""
    return text.decode("utf-8", "surrogateescape")


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
        self._faults: dict[int | None, ChainFault] = {}
        self._tail: deque[_Light] = deque(maxlen=MAX_NAMED)
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
        elif not follows and len(self._breaks) < MAX_NAMED:
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
        if len(self._doubtful) < MAX_NAMED:
            self._doubtful.add(row.id)
        before = self._before.row.hash if self._before else self._first_prev
        if not follows and before is not None and recomputed(row, before) == row.hash:
            self._add(fault(row, "altered", "the hash it follows was changed"))
        elif row.session is None:
            self._add(fault(row, "altered", "the session that it belongs to is not there"))  # type: ignore[unreachable]
        elif len(self._altered) < MAX_NAMED:
            self._altered.append(row)
        else:
            self._more += 1

    def faults(self, find: Find, count: int | None = None, head: bytes | None = None) -> list[ChainFault]:
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
        gone: list[ChainFault] = []
        for broken in self._breaks:
            gone += self._judge(broken, where, true)
        if count is not None and head is not None:
            self._judge_end(count, head, find, true)
        gone += self.missing.faults()
        if self._more:
            message = f"{self._more} more events do not match their hashes"
            gone.append(ChainFault(None, None, None, None, "altered", message))
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
            self._add(ChainFault(None, None, None, None, "altered", message))

    def _judge(self, broken: _Break, where: dict[bytes, int], true: dict[int, int]) -> Iterable[ChainFault]:
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
                self._add(ChainFault(row.session, row.agent, row.event.seq, row.id, "altered", message))
        elif row.id == before.row.id + 1:
            named = self.missing.named_between(before.row.id, row.id)
            if named:
                return named
            if before.genuine:
                self._add(fault(before.row, "altered", f"the event with id {row.id} followed another one"))
        return ()

    def _add(self, found: ChainFault, over: bool = False) -> None:
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


MAX_NAMED = 1000
"""Removed events named one by one."""
END = 2**63


class SessionNames(NamedTuple):
    """A session, for people."""

    session: str | None
    agent: str | None


class _Absent(NamedTuple):
    session_id: int | str
    seq: int
    after: int
    """Position of the event before it in its session."""
    before: int
    """Position of the event after it in its session."""


class Missing:
    """What the numbers of the events seen so far say about those that were not seen.

    Parameters
    ----------
    from_start : bool
        Retention has removed nothing: every session begins with number 1.
    """

    def __init__(self, from_start: bool) -> None:
        self._from_start = from_start
        self._last: dict[int | str, tuple[int, int]] = {}
        self._absent: dict[tuple[int | str, int], _Absent] = {}
        self._names: dict[int | str, SessionNames] = {}
        self._slots: list[tuple[int, int]] = []
        self.count = 0
        """Positions without an event."""

    def seen(self, key: int | str, row: AuditRow, genuine: bool) -> None:
        """Note an event, in the order of positions; ``genuine``: its hash vouches for its number."""
        seq = row.event.seq
        self._names.setdefault(key, SessionNames(row.session, row.agent))
        before = self._last.get(key, (0, 0) if self._from_start else None)
        if before is None or seq == before[0] + 1:
            self._last[key] = (seq, row.id)
        elif genuine:
            self._absent.pop((key, seq), None)
            if seq > before[0]:
                self._expect(key, before[0] + 1, seq, before[1], row.id)
                self._last[key] = (seq, row.id)

    def ended(self, key: int | str, names: SessionNames, last_seq: int) -> None:
        """Note how far a session got."""
        if key not in self._last and not self._from_start:
            return
        self._names.setdefault(key, names)
        seq, position = self._last.get(key, (0, 0))
        self._expect(key, seq + 1, last_seq + 1, position, END)

    def gap(self, first: int, last: int) -> None:
        """Note positions, both included, at which there is no event."""
        self._slots.append((first, last))
        self.count += last - first + 1

    def fill(self, position: int) -> bool:
        """Note that there is an event at a position after all; returns whether there was a gap."""
        for index, (first, last) in enumerate(self._slots):
            if first <= position <= last:
                halves = ((first, position - 1), (position + 1, last))
                self._slots[index : index + 1] = [(a, b) for a, b in halves if a <= b]
                self.count -= 1
                return True
        return False

    def named_between(self, after: int, before: int) -> list[ChainFault]:
        """Return the events that must have been between two neighbouring positions."""
        found = [a for a in self._absent.values() if a.after <= after and a.before >= before]
        return [self._fault(absent, None) for absent in found]

    def faults(self) -> list[ChainFault]:
        """Return a fault for each removed event, as well named as can be."""
        faults: list[ChainFault] = []
        nameless: list[int] = []
        pool = sorted(
            self._absent.values(), key=lambda a: (a.session_id if isinstance(a.session_id, int) else 0, a.seq)
        )
        for slot in self._positions():
            firsts: dict[int | str, _Absent] = {}
            for absent in pool:
                if absent.after < slot < absent.before:
                    firsts.setdefault(absent.session_id, absent)
            if len(firsts) == 1:
                (absent,) = firsts.values()
                pool.remove(absent)
                faults.append(self._fault(absent, slot))
            else:
                nameless.append(slot)
        named = [a for a in pool if any(a.after < slot < a.before for slot in nameless)]
        faults += [self._fault(absent, None) for absent in named]
        if len(nameless) > len(named):
            faults += [
                ChainFault(None, None, None, slot, "removed", f"the event with id {slot} was removed")
                for slot in nameless
            ]
        if self.count > MAX_NAMED:
            faults.append(ChainFault(None, None, None, None, "removed", f"{self.count} events in all were removed"))
        return faults

    def _positions(self) -> Iterable[int]:
        left = MAX_NAMED
        for first, last in self._slots:
            yield from range(first, min(last + 1, first + left))
            left -= min(left, last + 1 - first)

    def _expect(self, key: int | str, first: int, end: int, after: int, before: int) -> None:
        room = min(MAX_NAMED, max(10 * MAX_NAMED - len(self._absent), 0))
        for seq in range(first, min(end, first + room)):
            self._absent[key, seq] = _Absent(key, seq, after, before)

    def _fault(self, absent: _Absent, position: int | None) -> ChainFault:
        session, agent = self._names[absent.session_id]
        place = "" if position is None else f", id {position}"
        message = f"event {absent.seq} of session {session!r} (agent {agent!r}{place}) was removed"
        return ChainFault(session, agent, absent.seq, position, "removed", message)


MAX_COMPARED = 24
"""Rows compared with each other; among more altered rows, exchanges are reported as alterations."""

_PARTS = ("names", "prev_hash", "seq", "ts", "kind", "data", "reading", "decision")


def explain_contents(rows: list[AuditRow]) -> list[ChainFault]:
    """Return one fault for each row, given every row whose content does not match its hash."""
    partners: dict[int, AuditRow] = {}
    for one, other in combinations(rows[:MAX_COMPARED], 2):
        if one.id not in partners and other.id not in partners and _exchanged(one, other):
            partners[one.id], partners[other.id] = other, one
    return [_explain(row, partners.get(row.id)) for row in rows]


def _explain(row: AuditRow, partner: AuditRow | None) -> ChainFault:
    if partner is not None:
        return fault(
            row, "reordered", f"it holds what belongs to the event with id {partner.id}, and the other way round"
        )
    for name, less in (("reading", {"reading": None}), ("decision", {"decision": None})):
        bare = msgspec.structs.replace(row, event=msgspec.structs.replace(row.event, **less))
        if bare.event != row.event and recomputed(bare) == row.hash:
            return fault(row, "inserted", f"its {name} was not there when the event was written")
    if row.event.reading or row.event.decision:
        return fault(row, "altered", "its content, reading or decision does not match its hash")
    return fault(row, "altered", "its content does not match its hash, or its reading or decision is gone")


def _exchanged(one: AuditRow, other: AuditRow) -> bool:
    """Return whether both rows match their hashes once some of their columns are put back."""
    for count in range(1, len(_PARTS) + 1):
        for parts in combinations(_PARTS, count):
            if recomputed(_with(one, other, parts)) == one.hash and recomputed(_with(other, one, parts)) == other.hash:
                return True
    return False


def _with(row: AuditRow, giver: AuditRow, parts: tuple[str, ...]) -> AuditRow:
    """Return a row with some columns of another one."""
    event = {part: getattr(giver.event, part) for part in parts if part not in ("names", "prev_hash")}
    outer = {"prev_hash": giver.prev_hash} if "prev_hash" in parts else {}
    names = {"session": giver.session, "agent": giver.agent, "source": giver.source} if "names" in parts else {}
    return msgspec.structs.replace(row, event=msgspec.structs.replace(row.event, **event), **outer, **names)
