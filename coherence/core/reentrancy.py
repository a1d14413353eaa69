"""Re-entrancy: a finalizer, a signal handler or a logging handler calls this package while its thread is inside it.

Such a call may find any of the thread's locks held and any of its data half changed. It must not wait for the first,
and must not touch the second: it only leaves what it has to say where the outermost call finds it when it leaves.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import get_ident
from typing import Any

_later: dict[int, list[Callable[[], object]]] = {}
"""Thread that is inside -> what its outermost call has to do when it leaves."""


def is_inside() -> bool:
    """Tell whether the calling thread is inside this package already."""
    return get_ident() in _later


def do_later(call: Callable[[], object]) -> None:
    """Have the thread's outermost call do something when it leaves; the thread must be inside."""
    _later[get_ident()].append(call)


class Entered:
    """Mark the calling thread as inside this package, for a ``with`` statement.

    Examples
    --------
    >>> done = []
    >>> with Entered():
    ...     with Entered():
    ...         do_later(lambda: done.append("left"))
    ...     print(is_inside(), done)
    True []
    >>> is_inside(), done
    (False, ['left'])
    """

    __slots__ = ("_is_outermost",)

    def __enter__(self) -> None:
        self._is_outermost = get_ident() not in _later
        if self._is_outermost:
            _later[get_ident()] = []

    def __exit__(self, *error: Any) -> None:
        if not self._is_outermost:
            return
        ident = get_ident()
        # Taken in one step: what a finalizer says after it finds the thread outside.
        while calls := _later.pop(ident, None):
            _later[ident] = []  # what is done now may be interrupted, too
            for call in calls:
                call()


def _after_fork() -> None:
    """Forget the parent's other threads: new threads may get their numbers."""
    ident = get_ident()
    for other in list(_later):
        if other != ident:
            del _later[other]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
