"""Work that may wait, beside an event loop and not in its executor: that one is the host's, and may be full."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


async def aside(work: Callable[[bool], T], otherwise: T) -> T:
    """Await what some work on a thread of its own returns.

    Without an event loop of asyncio, or if no thread can be started, it is done here and must not wait.

    Parameters
    ----------
    work : callable
        Takes whether it may wait.
    otherwise : object
        What is returned if it raises.

    Examples
    --------
    >>> asyncio.run(aside(lambda may_wait: may_wait, None))
    True
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return work(False)
    done: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def settle(result: T) -> None:
        if not done.done():  # the task may have been cancelled
            done.set_result(result)

    def run() -> None:
        result = otherwise
        try:
            result = context.run(work, True)
        finally:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(settle, result)

    try:
        threading.Thread(target=run, name="coherence-guard-aside", daemon=True).start()
    except RuntimeError:  # too many threads, or the interpreter ends
        return work(False)
    return await done
