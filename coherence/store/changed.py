"""Sessions in which something has happened lately."""

from __future__ import annotations

from coherence.store.store import Store

_CHANGED = (
    "SELECT s.agent, s.session FROM sessions AS s WHERE s.id IN "
    "(SELECT DISTINCT session_id FROM events WHERE id > ? AND id <= ? LIMIT ?)"
)


def changed_sessions(store: Store, after: int, until: int, limit: int) -> tuple[tuple[str, str], ...]:
    """Return (agent, session) of the events with an id above ``after``, up to and including ``until``.

    At most ``limit`` sessions are returned.
    """
    return tuple(store.fetch(_CHANGED, (after, until, limit)))
