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
    recalled_in: tuple[str, ...] = ()
    """Other sessions, as ``agent/session``, that were told one of these lessons: they hold its words still."""


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


_RECALLED = (
    "SELECT DISTINCT s.agent || '/' || s.session FROM events AS e JOIN sessions AS s ON s.id = e.session_id, "
    "json_each(e.data, '$.recalled') AS r WHERE e.kind = 'tick' AND e.data LIKE '%\"recalled\":[%' "
    "AND json_extract(r.value, '$.lesson') IN (SELECT value FROM json_each(:lessons)) "
    "AND e.session_id NOT IN (SELECT value FROM json_each(:ids)) ORDER BY 1"
)


def purge(transaction: Transaction, agent: str | None, session: str | None) -> PurgeReport:
    """Wipe what is kept of an agent, of one of its sessions and those that went on from it, or of a session's agents.

    Baselines, corrections and calibration are the agent's; they go with any of its sessions. Vectors are kept by text,
    for all agents: all of them go.
    """
    execute = transaction.execute
    # Lessons may be in a file of their own, which has no sessions.
    known = [
        *execute("SELECT id, agent, session FROM sessions WHERE agent <> ?", (PURGE_AGENT,)),
        *execute("SELECT DISTINCT NULL, agent, session FROM lesson_origins"),
    ]
    meant = [
        (number, of, name)
        for number, of, name in known
        if agent in (None, of) and (session is None or _continues(name, session))
    ]
    ids = [number for number, _, _ in meant if number is not None]
    pairs = sorted({(of, name) for _, of, name in meant})
    agents = sorted({of for of, _ in pairs} | ({agent} if agent is not None else set()))
    found: dict[str, object] = {
        "ids": _json(ids),
        "pairs": _json(pairs),
        "agents": _json(agents),
    }
    of_these = "session_id IN (SELECT value FROM json_each(:ids))"
    ((until,),) = execute("SELECT coalesce(max(id), 0) FROM events")
    ((events,),) = execute(f"SELECT count(*) FROM events WHERE {of_these} AND kind <> 'purged'", found)  # noqa: S608
    with transaction.maintaining():
        for table in ("readings", "decisions", "snapshots", "tallies", "points", "marks"):
            execute(f"DELETE FROM {table} WHERE {of_these}", found)  # noqa: S608 - only constants
        execute(f"UPDATE firings SET text = '' WHERE {of_these}", found)  # noqa: S608
        wiped = {**found, "data": PURGED}
        execute(f"UPDATE events SET kind = 'purged', data = :data WHERE {of_these} AND kind <> 'purged'", wiped)  # noqa: S608
        wiped["data"] = PURGED_SESSION
        execute("UPDATE sessions SET config = :data WHERE id IN (SELECT value FROM json_each(:ids))", wiped)
        execute(f"UPDATE guard_accounts SET data = NULL, pending = 0 WHERE {of_these}", found)  # noqa: S608
    execute("DELETE FROM vectors")
    for table in ("baselines", "calibrations"):
        execute(f"DELETE FROM {table} WHERE agent IN (SELECT value FROM json_each(:agents))", found)  # noqa: S608
    of_pairs = (
        "(agent, session) IN (SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(:pairs))"
    )
    for table in ("runs", "lesson_rejected"):
        execute(f"DELETE FROM {table} WHERE {of_pairs}", found)  # noqa: S608
    lessons = execute(f"SELECT DISTINCT lesson_id FROM lesson_origins WHERE {of_pairs}", found)  # noqa: S608
    told = {"ids": found["ids"], "lessons": _json([lesson for (lesson,) in lessons])}
    recalled_in = tuple(name for (name,) in execute(_RECALLED, told)) if lessons else ()
    transaction.execute_many("DELETE FROM lessons WHERE id = ?", lessons)
    # index files of these lessons are of other tables from now on
    execute("UPDATE lesson_state SET token = lower(hex(randomblob(8)))")
    if ids:
        _vouch(transaction, PurgeMark(tuple(ids), until))
    return PurgeReport(len(ids), events, len(lessons), recalled_in)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


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
