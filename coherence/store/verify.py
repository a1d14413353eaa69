"""Checking a whole file: SQLite's own check, then every hash from the beginning of the chain to its first break."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from coherence.store.connections import DAMAGED, code
from coherence.store.hash_chain import ChainFault, recomputed
from coherence.store.purge import is_tombstone, read_mark
from coherence.store.queries import AUDIT, audit_row
from coherence.store.rows import AuditRow

_LOWEST = -(2**63)

_STRAY = """
SELECT s.session, s.agent, {table}.seq, e.id FROM {table}
LEFT JOIN sessions AS s ON s.id = {table}.session_id
LEFT JOIN events AS e ON e.session_id = {table}.session_id AND e.seq = {table}.seq
WHERE e.id IS NULL OR {table}.ts IS NOT e.ts OR {table}.source IS NOT e.source
ORDER BY e.id LIMIT 1
"""
_RENAMED = """
SELECT s.session, s.agent, e.seq, e.id FROM events AS e JOIN sessions AS s ON s.id = e.session_id
WHERE e.agent IS NOT s.agent OR e.source IS NOT s.source ORDER BY e.id LIMIT 1
"""

_FIRINGS = """
SELECT s.session, s.agent, f.seq, e.id FROM firings AS f
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
ORDER BY f.event_id LIMIT 1
"""
"""Firings whose event is not what they say, as far as it is still there; its decision, which the hash covers, tells."""


def verify(connection: sqlite3.Connection) -> list[ChainFault]:
    """Return the first break of the chain and the first row beside it that does not fit; an empty list = intact."""
    text_factory = connection.text_factory
    connection.text_factory = _readable
    faults: list[ChainFault] = []
    try:
        faults += _check_file(connection)
        connection.execute("BEGIN")  # what is written meanwhile is not looked at
        broken = _check_chain(connection)
        faults += [broken] if broken is not None else _check_rest(connection)
    except sqlite3.DatabaseError as error:
        if code(error) not in DAMAGED:
            raise
        faults.append(damaged(f"the file is damaged: it cannot be read to its end ({error})"))
    finally:
        # The connection goes back to readers who expect valid text.
        connection.text_factory = text_factory
    return faults


def _check_file(connection: sqlite3.Connection) -> Iterator[ChainFault]:
    for (line,) in connection.execute("PRAGMA quick_check(100)"):
        # A value that a constraint refuses was put there by hand: its hash names it better.
        if line != "ok" and "constraint failed" not in line and "NULL value in" not in line:
            yield damaged(f"the file is damaged: {line}")


def _check_chain(connection: sqlite3.Connection) -> ChainFault | None:
    chain = connection.execute("SELECT count, head, first_id, first_prev FROM chain").fetchone()
    if chain is None:
        return damaged("the row that says where the chain begins and ends was removed")
    count, head, first_id, first_prev = chain
    walk = ChainWalk(first_id, first_prev)
    # From the lowest id there can be: a row that was put in by hand may have a negative one.
    for raw in connection.execute(AUDIT, (_LOWEST, -1)):
        found = walk.step(audit_row(raw))
        if found is not None:
            return found
    return walk.end(count, head)


def _check_rest(connection: sqlite3.Connection) -> Iterator[ChainFault]:
    """Look at what the hashes do not cover: copies of columns, and rows that belong to no event."""
    checks = [(f"a row of {table} is not that of its event", _STRAY.format(table=table)) for table in _SIDES]
    checks += [("a firing is not what its event says", _FIRINGS), ("the session has another agent or source", _RENAMED)]
    for why, query in checks:
        for session, agent, seq, number in connection.execute(query):
            yield fault(number, session, agent, seq, why)


_SIDES = ("readings", "decisions")


def damaged(message: str) -> ChainFault:
    """Return a fault that names no event."""
    return ChainFault(None, None, None, None, message)


def fault(position: int | None, session: str | None, agent: str | None, seq: int | None, why: str) -> ChainFault:
    """Return a fault that names one event."""
    name = f"event {seq} of session {session!r} (agent {agent!r}, id {position})"
    return ChainFault(session, agent, seq, position, f"{name}: {why}")


def _readable(text: bytes) -> str:
    """Decode what may have been put there by hand."""
    return text.decode("utf-8", "surrogateescape")


class ChainWalk:
    """One pass over events in the order of their positions, up to the first that breaks the chain.

    Parameters
    ----------
    first_id : int or None
        Where the chain begins; ``None`` = wherever the first event is.
    first_prev : bytes or None
        The hash that its first event follows; ``None`` = whatever the first event says.
    """

    def __init__(self, first_id: int | None = None, first_prev: bytes | None = None) -> None:
        self.expected = first_id
        self.newest = first_prev
        """Hash of the last event so far."""
        self.rows = 0
        self.purged = 0
        """Events so far whose content was purged; nothing but their place is vouched for."""
        self._unvouched: dict[int, AuditRow] = {}
        """Session -> its newest tombstone that no event has vouched for yet."""
        self._last: AuditRow | None = None

    def step(self, row: AuditRow) -> ChainFault | None:
        """Look at the next event; return the way in which it breaks the chain."""
        why = self._why(row)
        self.rows += 1
        self.expected, self.newest, self._last = row.id + 1, row.hash, row
        return None if why is None else _broken(row, why)

    def _why(self, row: AuditRow) -> str | None:
        if self.expected is not None and row.id > self.expected:
            gone = row.id - self.expected
            return f"{gone} event{'s' * (gone > 1)} before it {'are' if gone > 1 else 'is'} missing"
        if self.expected is not None and row.id < self.expected:
            return f"it does not belong after the event with id {self.expected - 1}"
        if is_tombstone(row):
            self.purged += 1
            self._unvouched[row.session_id] = row
        elif recomputed(row) != row.hash:
            return "its content, its reading or its decision is not what was written"
        if self.newest is not None and row.prev_hash != self.newest:
            return "it was not written after the event before it: one of the two was changed, added or moved"
        if (mark := read_mark(row)) is not None:
            for session in mark.sessions:
                stone = self._unvouched.get(session)
                if stone is not None and stone.id <= mark.until:
                    del self._unvouched[session]
        return None

    def end_purged(self) -> ChainFault | None:
        """Return the first event without content that was not purged by this package."""
        for stone in self._unvouched.values():
            return fault(stone.id, stone.session, stone.agent, stone.event.seq, "its content was removed by hand")
        return None

    def end(self, count: int, head: bytes) -> ChainFault | None:
        """Return what does not fit at the end of a store of ``count`` events, the newest with the hash ``head``."""
        if self.newest == head and self.rows == count:
            return self.end_purged()
        if self.rows < count:
            why = f"{count - self.rows} of the newest events are missing"
        elif self.rows > count:
            why = f"{self.rows - count} events were added by hand"
        else:
            why = "the newest event is not the one that was written last"
        return damaged(f"at the end of the chain: {why}") if self._last is None else _broken(self._last, why)


def _broken(row: AuditRow, why: str) -> ChainFault:
    return fault(row.id, row.session, row.agent, row.event.seq, f"{why}; nothing from here on is vouched for")
