"""Writing firings, their delivery and their outcomes, in the transaction of the events that tell them."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from coherence.store.errors import StoreError
from coherence.store.rows import EventRow

_EVENT = "SELECT id FROM events WHERE session_id = :session AND seq = :seq"
INSERT_FIRING = (
    "INSERT INTO firings (firing_id, session_id, seq, event_id, agent, pattern, pair, arm, text, ts, source) "
    "SELECT :id, session_id, seq, id, agent, :pattern, :pair, :arm, :text, ts, source FROM events "
    "WHERE session_id = :session AND seq = :seq"
)
CONFIRM = (
    f"UPDATE firings SET delivered = 1, delivered_id = ({_EVENT}) "  # noqa: S608 - only constants
    "WHERE firing_id = :id AND arm = 'treatment' AND delivered = 0"
)
"""What cannot be confirmed (an unknown id, a control, a second time) is no reason to lose the event that says it."""
INSERT_OUTCOME = (
    f"INSERT INTO firing_outcomes SELECT :id, :horizon, ({_EVENT}), :pressure, :error, :switched, :task "  # noqa: S608
    "WHERE EXISTS (SELECT 1 FROM firings WHERE firing_id = :id) "
    "AND NOT EXISTS (SELECT 1 FROM firing_outcomes WHERE firing_id = :id AND horizon = :horizon)"
)
"""The first one counts: two processes that go on with one session both see what comes of a firing."""


def add_firings(connection: sqlite3.Connection, path: Path, session_id: int, rows: Sequence[EventRow]) -> None:
    """Keep what rows tell about firings; their events must be written already.

    Raises
    ------
    StoreError
        The id of a firing is there already, or the database refuses something else about it.
    """
    for row in rows:
        event = {"session": session_id, "seq": row.seq}
        if (fired := row.firing) is not None:
            values = {"pattern": fired.pattern, "pair": fired.pair, "arm": fired.arm, "text": fired.text}
            try:
                connection.execute(INSERT_FIRING, {**event, "id": fired.id, **values})
            except sqlite3.IntegrityError as error:
                raise StoreError(path, f"the store refuses the firing {fired.id!r} ({error})") from error
        if row.delivered is not None:
            connection.execute(CONFIRM, {**event, "id": row.delivered})
        for outcome in row.outcomes:
            measured = {
                "id": outcome.firing,
                "horizon": outcome.horizon,
                "pressure": outcome.pressure_change,
                "error": outcome.error_resolved,
                "switched": outcome.tool_switched,
                "task": outcome.task_success,
            }
            try:
                connection.execute(INSERT_OUTCOME, {**event, **measured})
            except sqlite3.IntegrityError as error:
                raise StoreError(path, f"the store refuses an outcome of {outcome.firing!r} ({error})") from error
