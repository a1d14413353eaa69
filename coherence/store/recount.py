"""Counting sessions that began before the store counted what they come to."""

from __future__ import annotations

import time

from coherence.store.faces import session_heads
from coherence.store.queries import EVENTS, event_row
from coherence.store.store import PAGE, Store
from coherence.store.tallies import decode_tally, insert_tally
from coherence.store.tally import Tally


def count_uncounted(store: Store, *, limit_s: float = 60.0) -> int:
    """Count sessions whose tally is missing or lacks their first events, the newest first; return how many were.

    Events are read without a lock; a session is written in a transaction of a few milliseconds.

    Parameters
    ----------
    store : Store
        Where the sessions are.
    limit_s : float
        Seconds after which no further session is begun.

    Raises
    ------
    StoreError
        The store cannot be read or written.
    """
    until, counted = time.monotonic() + limit_s, 0
    known = {number: decode_tally(data) for number, data in store.fetch("SELECT session_id, data FROM tallies")}
    for head in reversed(session_heads(store, 0)):
        tally = known.get(head.row.id)
        if head.first is None or (tally is not None and 0 < tally.first <= head.first):
            continue
        if time.monotonic() > until:
            break
        _count(store, head.row.id)
        counted += 1
    return counted


def _count(store: Store, session_id: int) -> None:
    tally = Tally()
    points, marks = tally.fold(store.events(session_id))
    with store.transaction() as transaction:
        # what was written meanwhile
        while rows := transaction.execute(EVENTS, (session_id, tally.through, 2**62, PAGE)):
            more = tally.fold(map(event_row, rows))
            points, marks = points + more[0], marks + more[1]
        for table in ("tallies", "points", "marks"):
            transaction.execute(f"DELETE FROM {table} WHERE session_id = ?", (session_id,))  # noqa: S608 - constants
        insert_tally(transaction, session_id, tally, points, marks)
