"""Work that may wait, beside an event loop and not in its executor: that one is the host's, and may be full."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from contextlib import suppress

from coherence.guard.threads import GuardThread


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
        GuardThread(run, "aside").start()
    except RuntimeError:  # too many threads, or the interpreter ends
        work()
        return
    await done
