"""Checking a whole file: SQLite's own check, then every hash."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from coherence.store.chain import Fault
from coherence.store.connections import DAMAGED, code
from coherence.store.hash_chain import Walk
from coherence.store.missing_events import Names
from coherence.store.queries import AUDIT, audit_row

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


def verify(connection: sqlite3.Connection) -> list[Fault]:
    """Return what is not as it was written, by position; an empty list = intact."""
    text_factory = connection.text_factory
    connection.text_factory = _readable
    faults: list[Fault] = []
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


def _check_file(connection: sqlite3.Connection) -> Iterable[Fault]:
    for (line,) in connection.execute("PRAGMA quick_check(100)"):
        # A value that a constraint refuses was put there by hand: its hash names it better.
        if line != "ok" and "constraint failed" not in line and "NULL value in" not in line:
            yield _damaged(line)


def _check_chain(connection: sqlite3.Connection) -> list[Fault]:
    faults: list[Fault] = []
    chain = connection.execute("SELECT count, head, first_id, first_prev FROM chain").fetchone()
    if chain is None:
        message = "the row that says where the chain begins and ends was removed"
        faults.append(Fault(None, None, None, None, "removed", message))
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
        walk.missing.ended(number, Names(session, agent), last_seq)
    return walk.faults(find, *(chain[:2] if chain else ())) + faults


_HASHES = "SELECT id, hash FROM events"


def _check_rest(connection: sqlite3.Connection) -> Iterable[Fault]:
    """Look at what the hashes do not cover: copies of columns, and rows that belong to no event."""
    for table in ("readings", "decisions"):
        for session_id, session, agent, seq, number in connection.execute(_STRAY.format(table=table)):
            name = f"the {table[:-1]} of event {seq} of session {session!r} (agent {agent!r}, id {number})"
            if number is None:
                name = f"a {table[:-1]} for event {seq} of session {session or session_id!r}, which is not there,"
            what = "inserted" if number is None else "altered"
            yield Fault(session, agent, seq, number, what, f"{name} was {what}")  # type: ignore[arg-type]
    for session, agent, seq, number, firing in connection.execute(_FIRINGS):
        message = f"the firing {firing!r} is not what event {seq} of session {session!r} (agent {agent!r}) says"
        yield Fault(session, agent, seq, number, "altered", message)
    for session, agent, seq, number in connection.execute(_RENAMED):
        message = f"session {session!r} (agent {agent!r}) was altered: its events have another agent or source"
        yield Fault(session, agent, seq, number, "altered", message)


def _damaged(detail: str) -> Fault:
    return Fault(None, None, None, None, "damaged", f"the file is damaged: {detail}")


def _readable(text: bytes) -> str:
    """Decode what may have been put there by hand."""
    return text.decode("utf-8", "surrogateescape")
