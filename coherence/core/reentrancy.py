"""Re-entrancy: a finalizer, a signal handler or a logging handler calls this package while its thread is inside it.

Such a call may find any of the thread's locks held and any of its data half changed. It must not wait for the first,
and must not touch the second: it only leaves what it has to say where the outermost call finds it when it leaves.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Callable
from threading import get_ident

LOG = logging.getLogger("coherence")


class _Thread:
    """Depth of a thread in the package, and what it has to do when it leaves."""

    __slots__ = ("calls", "depth", "leaving")

    def __init__(self) -> None:
        self.depth = 0
        self.calls: deque[Callable[[], object]] = deque()
        self.leaving = False


_threads: dict[int, _Thread] = {}


def is_inside() -> bool:
    """Tell whether the calling thread is inside this package already."""
    thread = _threads.get(get_ident())
    return thread is not None and thread.depth > 0


def do_later(call: Callable[[], object]) -> None:
    """Have the thread's outermost call do something when it leaves; the thread must be inside."""
    _threads[get_ident()].calls.append(call)


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

    __slots__ = ()

    def __enter__(self) -> None:
        thread = _threads.get(get_ident())
        if thread is None:
            thread = _threads[get_ident()] = _Thread()
        thread.depth += 1

    def __exit__(self, *error: object) -> None:
        thread = _threads[get_ident()]
        thread.depth -= 1
        if thread.depth or thread.leaving:  # whoever leaves already does what has been put off meanwhile
            return
        thread.leaving = True
        while True:
            while thread.calls:
                _do(thread.calls.popleft())
            # First gone, then a last look: what interrupts in between has left its call here.
            del _threads[get_ident()]
            if not thread.calls:
                return
            _threads[get_ident()] = thread


def _do(call: Callable[[], object]) -> None:
    try:
        call()
    except Exception:  # whoever leaves has nothing to do with it
        LOG.exception("coherence: what was put off could not be done")


def _after_fork() -> None:
    """Forget the parent's other threads: new threads may get their numbers."""
    ident = get_ident()
    for other in list(_threads):
        if other != ident:
            del _threads[other]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
