"""Rows that go into the store and come out of it. ``data`` and ``config`` are JSON texts, kept as they were given."""

from __future__ import annotations

import msgspec

GUARD_SESSION = "coherence.guard"
"""The session of an agent that holds its guarded calls and the decisions on its patches; not one of its runs."""

PURGE_AGENT = "coherence.purge"
"""Agent, and session, of the events that say what was purged; not one of the user's."""

PURGED = '{"kind":"purged"}'
"""Content of an event that was purged."""

PURGED_SESSION = '{"purged":true}'
"""Settings of a session that was purged."""


class SessionRow(msgspec.Struct, frozen=True):
    """One session of one agent."""

    id: int
    """The store's own number; later sessions have larger ones."""
    session: str
    agent: str
    parent: str | None
    """The session that started this one, by name."""
    source: str
    """``hook``, ``wrap``, ``replay``, ``test`` or ``api``."""
    started: float
    """Unix time in seconds."""
    config: str
    """JSON text."""


class ReadingRow(msgspec.Struct, frozen=True):
    """Reading of a tick. The first four are copies for statistics of what ``data`` holds."""

    coherence_index: float | None
    """In [0, 1]."""
    band: str | None
    pressure: float | None
    mode: str | None
    data: str
    """JSON text."""


class DecisionRow(msgspec.Struct, frozen=True):
    """Decision of a tick."""

    kind: str
    """``continue``, ``guide``, ``warn`` or ``block``."""
    data: str
    """JSON text."""


class FiringRow(msgspec.Struct, frozen=True):
    """One randomised firing of a pattern; agent, session, time and source are those of its event."""

    id: str
    """Unique in the store, not empty."""
    pattern: str
    pair: int | None
    """0 or more; ``None`` = not randomised, so it is part of no comparison."""
    arm: str
    """``treatment`` or ``control``."""
    text: str
    """Words that the agent was given, or would have been given."""


class FiringOutcomeRow(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome some actions after a firing; ``None`` = unknown."""

    firing: str
    """The firing's id."""
    horizon: int
    """1, 5 or 10 actions; 0 = the end of the task."""
    pressure_change: float | None = None
    """In [-1, 1]; higher is better."""
    error_resolved: bool | None = None
    tool_switched: bool | None = None
    task_success: bool | None = None


class FiringResult(msgspec.Struct, frozen=True):
    """A firing with its outcome at one horizon. Positions are those of events in the store."""

    agent: str
    pair: int | None
    arm: str
    event_id: int
    delivered_id: int | None
    """Position of the event that confirmed its delivery; ``None`` = not delivered."""
    outcome_id: int | None
    """Position of the event with which its outcome became known; ``None`` = unknown."""
    pressure_change: float | None
    error_resolved: int | None
    tool_switched: int | None
    task_success: int | None


class EventRow(msgspec.Struct, frozen=True):
    """One event of a session; a tick may carry its reading and its decision.

    The last three are written with the event and read with :mod:`coherence.store.firings`, not with the event: events
    leave by retention, they do not.
    """

    seq: int
    """Position in the session: 1, 2, 3, … without a gap."""
    ts: float
    """Unix time in seconds."""
    kind: str
    data: str
    """JSON text."""
    reading: ReadingRow | None = None
    decision: DecisionRow | None = None
    firing: FiringRow | None = None
    """The firing that happened with this event."""
    delivered: str | None = None
    """Id of the firing that this event confirms to have reached the agent."""
    outcomes: tuple[FiringOutcomeRow, ...] = ()
    """Outcomes of earlier firings that became known with this event."""


class AuditRow(msgspec.Struct, frozen=True):
    """One event with everything its hash covers, and the hash."""

    id: int
    """Position in the store: 1, 2, 3, … without a gap, over all sessions."""
    session_id: int
    session: str
    agent: str
    source: str
    event: EventRow
    prev_hash: bytes
    hash: bytes


class RunRow(msgspec.Struct, frozen=True):
    """State of a run."""

    run: int
    """1, 2, 3, … within its session."""
    maxima: tuple[tuple[str, str, float], ...] = ()
    """(metric, version, highest risk in [0, 1]), each metric once."""
    success: bool | None = None
    """Success or failure by its newest outcome; ``None`` = unknown."""
    mixed: bool = False
    """True if several processes reported tasks of their own as this one run: nothing can be learned from it."""
