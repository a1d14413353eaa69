"""The threads of a guard: they end with the process at the latest, and are known by their name."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress

_NAME = "coherence-guard-"


def start_thread(work: Callable[[], object], name: str) -> threading.Thread:
    """Start a thread that does some work; its name gets the prefix ``coherence-guard-``."""
    thread = threading.Thread(target=work, name=_NAME + name, daemon=True)
    thread.start()
    return thread


def in_guard_thread() -> bool:
    """Return whether this is a thread of a guard.

    The collector of garbage may run anything there, also in the middle of a transaction.
    """
    return threading.current_thread().name.startswith(_NAME)


async def aside(work: Callable[[], object]) -> None:
    """Await the end of some work, done on a thread of its own; what it returns or raises is nobody's concern.

    Without an event loop of asyncio, or if no thread can be started, it is done here.

    Parameters
    ----------
    work : callable
        Takes nothing.

    Examples
    --------
    >>> asyncio.run(aside(lambda: print("done")))
    done
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        work()
        return
    done: asyncio.Future[None] = loop.create_future()
    context = contextvars.copy_context()

    def settle() -> None:
        if not done.done():  # the task may have been cancelled
            done.set_result(None)

    def run() -> None:
        try:
            context.run(work)
        finally:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(settle)

    try:
        start_thread(run, "aside")
    except RuntimeError:  # too many threads, or the interpreter ends
        work()
        return
    await done
