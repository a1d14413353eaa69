"""What goes into the store and comes out of it. ``data`` and ``config`` are JSON texts, kept as they were given."""

from __future__ import annotations

import msgspec


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
    """What was measured at a tick. The first four are copies for statistics of what ``data`` holds."""

    coherence_index: float | None
    """In [0, 1]."""
    band: str | None
    pressure: float | None
    mode: str | None
    data: str
    """JSON text."""


class DecisionRow(msgspec.Struct, frozen=True):
    """What was decided at a tick."""

    kind: str
    """``continue``, ``guide``, ``warn`` or ``block``."""
    data: str
    """JSON text."""


class EventRow(msgspec.Struct, frozen=True):
    """One event of a session; a tick may carry its reading and its decision."""

    seq: int
    """Position in the session: 1, 2, 3, … without a gap."""
    ts: float
    """Unix time in seconds."""
    kind: str
    data: str
    """JSON text."""
    reading: ReadingRow | None = None
    decision: DecisionRow | None = None


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
