"""The end of a guard: by its close, when nobody holds it any more, or with the process."""

from __future__ import annotations

import threading
from contextlib import suppress

from coherence.guard.error_counts import ErrorCounts
from coherence.guard.runner import Runner
from coherence.guard.threads import in_guard_thread
from coherence.store.store import Store


def end(runner: Runner, store: Store | None) -> None:
    """Write everything; close the store that a guard has opened itself."""
    try:
        runner.close()
    finally:
        if store is not None:
            store.close()


def end_quietly(troubles: ErrorCounts, runner: Runner, store: Store | None) -> None:
    """End a guard that is dropped, or open when the process ends."""

    def quietly() -> None:
        try:
            end(runner, store)
        except Exception as error:
            troubles.add("store", error)

    if in_guard_thread():  # which may be in the middle of a transaction, and would wait for itself
        with suppress(RuntimeError):  # the interpreter ends
            threading.Thread(target=quietly, name="coherence-guard-end").start()
            return
    quietly()
