"""Purging an agent or a session: its content is wiped, and the chain can still be checked.

An event cannot be taken out of the middle of a chain of hashes. Its row stays as a tombstone: position, number, time
and hashes, without content. An event of the chain itself says which sessions were purged, so that
:func:`~coherence.store.verify.verify` accepts these tombstones and no others.
"""

from __future__ import annotations

import time

import msgspec

from coherence.store.rows import PURGE_AGENT, PURGED, PURGED_SESSION, AuditRow, EventRow
from coherence.store.transaction import Transaction

KIND = "purge"
"""Kind of the event that vouches for tombstones."""


class PurgeReport(msgspec.Struct, frozen=True):
    """Counts of what was purged."""

    sessions: int
    events: int
    """Events that are tombstones now."""
    lessons: int
    """Lessons that were learned from these sessions, whatever else they were learned from."""


class PurgeMark(msgspec.Struct, frozen=True):
    """Content of the event that vouches for tombstones."""

    sessions: tuple[int, ...]
    """Ids of the sessions."""
    until: int
    """Position of the newest event that may be a tombstone."""
    kind: str = KIND


def read_mark(row: AuditRow) -> PurgeMark | None:
    """Return what an event vouches for, ``None`` if it is no such event."""
    if row.agent != PURGE_AGENT or row.event.kind != KIND:
        return None
    try:
        return msgspec.json.decode(row.event.data, type=PurgeMark)
    except msgspec.DecodeError:
        return None


def is_tombstone(row: AuditRow) -> bool:
    """Tell whether an event has no content any more."""
    event = row.event
    return event.kind == "purged" and event.data == PURGED and event.reading is None and event.decision is None


def purge(transaction: Transaction, agent: str, session: str | None) -> PurgeReport:
    """Wipe what is kept of an agent, or of one of its sessions and those that went on from it under its name.

    Baselines, corrections and calibration are the agent's; they go with any of its sessions. Vectors are kept by text,
    for all agents: all of them go.
    """
    execute = transaction.execute
    named = execute("SELECT id, session FROM sessions WHERE agent = ?", (agent,))
    ids = [number for number, name in named if session is None or _continues(name, session)]
    # Lessons may be in a file of their own, which has no sessions.
    origins = execute("SELECT DISTINCT session FROM lesson_origins WHERE agent = ?", (agent,))
    known = {*(name for _, name in named), *(name for (name,) in origins)}
    names = sorted(name for name in known if session is None or _continues(name, session))
    found: dict[str, object] = {
        "ids": msgspec.json.encode(ids).decode(),
        "names": msgspec.json.encode(names).decode(),
        "agent": agent,
    }
    of_these = "session_id IN (SELECT value FROM json_each(:ids))"
    ((until,),) = execute("SELECT coalesce(max(id), 0) FROM events")
    ((events,),) = execute(f"SELECT count(*) FROM events WHERE {of_these} AND kind <> 'purged'", found)  # noqa: S608
    with transaction.maintaining():
        for table in ("readings", "decisions", "snapshots"):
            execute(f"DELETE FROM {table} WHERE {of_these}", found)  # noqa: S608 - only constants
        execute(f"UPDATE firings SET text = '' WHERE {of_these}", found)  # noqa: S608
        wiped = {**found, "data": PURGED}
        execute(f"UPDATE events SET kind = 'purged', data = :data WHERE {of_these} AND kind <> 'purged'", wiped)  # noqa: S608
        wiped["data"] = PURGED_SESSION
        execute("UPDATE sessions SET config = :data WHERE id IN (SELECT value FROM json_each(:ids))", wiped)
        execute(f"UPDATE guard_accounts SET data = NULL, pending = 0 WHERE {of_these}", found)  # noqa: S608
    execute("DELETE FROM vectors")
    execute("DELETE FROM baselines WHERE agent = :agent", found)
    execute("DELETE FROM calibrations WHERE agent = :agent", found)
    of_agent = "agent = :agent AND session IN (SELECT value FROM json_each(:names))"
    for table in ("runs", "lesson_rejected"):
        execute(f"DELETE FROM {table} WHERE {of_agent}", found)  # noqa: S608
    lessons = execute(f"SELECT DISTINCT lesson_id FROM lesson_origins WHERE {of_agent}", found)  # noqa: S608
    transaction.execute_many("DELETE FROM lessons WHERE id = ?", lessons)
    # index files of these lessons are of other tables from now on
    execute("UPDATE lesson_state SET token = lower(hex(randomblob(8)))")
    if ids:
        _vouch(transaction, PurgeMark(tuple(ids), until))
    return PurgeReport(len(ids), events, len(lessons))


def _continues(name: str, session: str) -> bool:
    base, _, number = name.rpartition("~")
    return name == session or (base == session and number.isdigit())


def _vouch(transaction: Transaction, mark: PurgeMark) -> None:
    now = time.time()
    row = transaction.session(PURGE_AGENT, PURGE_AGENT) or transaction.add_session(
        session=PURGE_AGENT, agent=PURGE_AGENT, parent=None, source="api", started=now, config="{}"
    )
    data = msgspec.json.encode(mark).decode()
    transaction.add_events(row, [EventRow(transaction.last_seq(row.id) + 1, now, KIND, data)])
