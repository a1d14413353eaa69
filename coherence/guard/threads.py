"""The threads of a guard."""

from __future__ import annotations

import threading
from collections.abc import Callable


class GuardThread(threading.Thread):
    """A thread that ends with the process at the latest, and is known as a guard's own.

    Parameters
    ----------
    target : callable
        What it does.
    name : str
        Its name, after ``coherence-guard-``.
    """

    def __init__(self, target: Callable[[], object], name: str) -> None:
        super().__init__(target=target, name=f"coherence-guard-{name}", daemon=True)


def in_guard_thread() -> bool:
    """Return whether this is a thread of a guard.

    The collector of garbage may run anything there, also in the middle of a transaction.
    """
    return isinstance(threading.current_thread(), GuardThread)
