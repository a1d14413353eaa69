"""The joins that more than one file reads events with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coherence.store.rows import AuditRow, DecisionRow, EventRow, ReadingRow

_EVENT = "e.seq, e.ts, e.kind, e.data, r.coherence_index, r.band, r.pressure, r.mode, r.data, d.kind, d.data"
_JOINS = (
    "LEFT JOIN readings AS r ON r.session_id = e.session_id AND r.seq = e.seq "
    "LEFT JOIN decisions AS d ON d.session_id = e.session_id AND d.seq = e.seq "
)
EVENTS = (
    f"SELECT {_EVENT} FROM events AS e {_JOINS}"  # noqa: S608 - only constants
    "WHERE e.session_id = ? AND e.seq > ? AND e.seq <= ? ORDER BY e.seq LIMIT ?"
)
"""One page of a session; parameters: session id, after, until, limit."""

# the pairs first: a plan that begins with the events would read them all
EVENTS_AT = (
    f"SELECT e.session_id, {_EVENT} FROM json_each(?) AS j CROSS JOIN events AS e "  # noqa: S608 - only constants
    f"ON e.session_id = json_extract(j.value, '$[0]') AND e.seq = json_extract(j.value, '$[1]') {_JOINS}"
)
"""Events by their places, in no order; parameter: JSON of pairs of session id and number."""

AUDIT = (
    f"SELECT e.id, e.session_id, s.session, e.agent, e.source, e.prev_hash, e.hash, {_EVENT} "  # noqa: S608
    f"FROM events AS e LEFT JOIN sessions AS s ON s.id = e.session_id {_JOINS}"
    "WHERE e.id > ? ORDER BY e.id LIMIT ?"
)
"""One page of the chain; parameters: after id, limit."""

FIRINGS = (
    "SELECT f.agent, f.pair, f.arm, f.event_id, f.delivered_id, o.event_id, "
    "o.pressure_change, o.error_resolved, o.tool_switched, o.task_success FROM statistics_firings AS f "
    "LEFT JOIN firing_outcomes AS o ON o.firing_id = f.firing_id AND o.horizon = ? "
    "WHERE f.pattern = ? ORDER BY f.event_id"
)
"""The firings of a pattern in order; parameters: horizon, pattern."""

# A pair is two firings, one of each arm: the arms of the newest pair say how far it has come.
FIRING_COUNTS = (
    "SELECT pattern, 2 * pair + count(DISTINCT arm) FROM statistics_firings AS f WHERE agent = :agent AND pair = "
    "(SELECT max(pair) FROM statistics_firings WHERE pattern = f.pattern AND agent = :agent) GROUP BY pattern"
)
"""Number of the next firing of each pattern of an agent; parameter: agent."""


def event_row(row: Sequence[Any]) -> EventRow:
    """Return one row of :data:`EVENTS`."""
    seq, ts, kind, data, index, band, pressure, mode, reading, decision, decided = row
    return EventRow(
        seq,
        ts,
        kind,
        data,
        None if reading is None else ReadingRow(index, band, pressure, mode, reading),
        None if decision is None or decided is None else DecisionRow(decision, decided),
    )


def audit_row(row: tuple[Any, ...]) -> AuditRow:
    """Return one row of :data:`AUDIT`."""
    number, session_id, session, agent, source, prev_hash, row_hash, *event = row
    return AuditRow(number, session_id, session, agent, source, event_row(event), prev_hash, row_hash)
