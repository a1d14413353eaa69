"""Forgetting: the oldest events leave, and the chain of the rest stays whole."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from coherence.store.transaction import Transaction

BATCH = 1000
"""Events removed in one transaction, so that writers wait for a moment only."""


def prune(
    begin: Callable[[], AbstractContextManager[Transaction]], max_events: int | None, oldest_ts: float | None
) -> int:
    """Remove the oldest events until at most ``max_events`` are left and the first is not older than ``oldest_ts``.

    Returns
    -------
    int
        How many events were removed.
    """
    removed = 0
    while True:
        with begin() as transaction:
            batch = transaction.forget(max_events, oldest_ts, BATCH)
        removed += batch
        if batch < BATCH:
            return removed
