"""Threads that read the store for an event loop, and that nobody waits for when the server ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")

THREADS = 4
"""Reads at a time; the next one waits for a turn."""


class ReadThreads:
    """A few daemon threads: those of :mod:`concurrent.futures` keep a process alive until a slow query has ended.

    Parameters
    ----------
    count : int
        Threads, each started when it is first needed.
    """

    def __init__(self, count: int = THREADS) -> None:
        self._jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._count, self._started, self._open = count, 0, 0
        self._lock = threading.Lock()

    async def run(self, action: Callable[[], T]) -> T:
        """Return what an action returns, or raise what it raises, while the loop goes on.

        An action whose caller was cancelled before its turn is not begun.
        """
        loop = asyncio.get_running_loop()
        result: asyncio.Future[T] = loop.create_future()

        def settle(value: Any, error: BaseException | None) -> None:
            if not result.done():
                result.set_result(value) if error is None else result.set_exception(error)

        def job() -> None:
            if result.cancelled():
                return
            value: Any = None
            problem: BaseException | None = None
            try:
                value = action()
            except BaseException as error:
                problem = error
            with suppress(RuntimeError):  # the loop may have ended meanwhile
                loop.call_soon_threadsafe(settle, value, problem)

        self._begin(job)
        return await result

    def _begin(self, job: Callable[[], None]) -> None:
        """Have a thread do a job: a new one if all that there are have work."""
        with self._lock:
            self._open += 1
            starts = self._started < min(self._open, self._count)
            self._started += starts
        self._jobs.put(job)
        if starts:
            threading.Thread(target=self._work, name="coherence-serve-read", daemon=True).start()

    def _work(self) -> None:
        while True:
            self._jobs.get()()
            with self._lock:
                self._open -= 1
