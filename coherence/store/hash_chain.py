"""The chain of hashes over all events: each hash covers one event and the hash before it.

It finds what was changed behind the store's back. It does not stop someone who rewrites the whole file and computes
every hash anew: against that, keep the newest hash (or an export) where they cannot reach it.
"""

from __future__ import annotations

import hashlib

import msgspec

from coherence.store.rows import AuditRow, EventRow

NO_HASH = bytes(32)
"""Hash that the first event of all follows."""

_encode = msgspec.json.Encoder().encode


class ChainFault(msgspec.Struct, frozen=True):
    """One thing that is not as it was written."""

    session: str | None
    agent: str | None
    seq: int | None
    id: int | None
    """The event's position in the store; ``None`` = not known."""
    message: str

    def __str__(self) -> str:
        return self.message


def digest(prev: bytes, session: str, agent: str, source: str, row: EventRow, ts: float) -> bytes:
    """Return the hash of an event that follows the hash ``prev``."""
    read, decided = row.reading, row.decision
    canonical = _encode(
        [
            session,
            agent,
            row.seq,
            ts,
            row.kind,
            source,
            row.data,
            None
            if read is None
            else [_number(read.coherence_index), read.band, _number(read.pressure), read.mode, read.data],
            None if decided is None else [decided.kind, decided.data],
        ]
    )
    return hashlib.sha256(prev + canonical).digest()


def recomputed(row: AuditRow) -> bytes | None:
    """Return the hash that a row should have after the hash that it says it follows.

    ``None``: the row holds something that was never written by this package.
    """
    try:
        return digest(row.prev_hash, row.session, row.agent, row.source, row.event, row.event.ts)
    except (TypeError, ValueError):
        return None


def _number(value: float | None) -> float | None:
    """Return a number as SQLite gives it back: a float, and no negative zero."""
    if value is None:
        return None
    if not isinstance(value, int | float):
        raise TypeError(f"this must be a number, not {value!r}")
    return float(value) + 0.0
