"""Waiting, from a thread or from an event loop, without writing everything twice.

The sensor's tick is one generator of *requests*: things to wait for, each with a time limit. :func:`drive_sync` blocks
on them, :func:`drive_async` awaits them.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Generator
from typing import Protocol, TypeAlias, TypeVar

R = TypeVar("R")


class Request(Protocol):
    """Something to wait for; both return whether it came within the time."""

    def block(self, seconds: float) -> bool:
        """Wait on the calling thread."""
        ...

    async def pause(self, seconds: float) -> bool:
        """Wait on the running event loop."""
        ...


Steps: TypeAlias = Generator[tuple[Request, float], bool, R]
"""A generator that yields what to wait for and how long, is sent whether it came, and returns a result."""


def drive_sync(steps: Steps[R]) -> R:
    """Run the steps on the calling thread."""
    try:
        request, seconds = next(steps)
        while True:
            request, seconds = steps.send(request.block(seconds))
    except StopIteration as stop:
        result: R = stop.value
        return result
    finally:
        steps.close()


async def drive_async(steps: Steps[R]) -> R:
    """Run the steps on the running event loop; cancelling the caller ends them."""
    try:
        request, seconds = next(steps)
        while True:
            request, seconds = steps.send(await request.pause(seconds))
    except StopIteration as stop:
        result: R = stop.value
        return result
    finally:
        steps.close()


class Gate:
    """Opens once; can be waited for by one thread or one coroutine."""

    __slots__ = ("_lock", "_opened", "_wake")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()
        self._opened = False
        self._wake: Callable[[], object] | None = None

    def open(self) -> None:
        """Let the waiter through."""
        self._opened = True
        self._lock.release()
        wake = self._wake
        if wake is not None:
            wake()

    def block(self, seconds: float) -> bool:
        """Wait on the calling thread."""
        if self._lock.acquire(timeout=max(seconds, 0.0)):
            self._lock.release()
            return True
        return False

    async def pause(self, seconds: float) -> bool:
        """Wait on the running event loop."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bool] = loop.create_future()

        def settle(came: bool) -> None:
            if not future.done():
                future.set_result(came)

        def wake() -> None:
            try:
                loop.call_soon_threadsafe(settle, True)
            except RuntimeError:
                return  # the waiter's loop was closed: nobody waits any more

        # Order matters: open() sets _opened before it reads _wake, so one of the two sides always sees the other.
        self._wake = wake
        if self._opened:
            return True
        timer = loop.call_later(max(seconds, 0.0), settle, False)
        try:
            return await future or self._opened
        finally:
            timer.cancel()
            self._wake = None


class Turn:
    """One measurement's place in the queue."""

    __slots__ = ("gate", "until")

    def __init__(self, until: float) -> None:
        self.gate = Gate()
        self.until = until
        """When it must be over (monotonic)."""


class Turnstile:
    """Lets one measurement in at a time, in the order they came.

    A turn whose time is long over is taken away: its event loop was stopped in the middle, or its thread does not exist
    in this forked process.
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._lock = threading.Lock()
        self._inside: Turn | None = None
        self._queue: deque[Turn] = deque()

    def enter(self, until: float) -> Turn:
        """Get a turn; its gate is open if it may go in at once."""
        turn = Turn(until)
        with self._lock:
            if self._inside is not None:
                self._queue.append(turn)
            else:
                self._inside = turn
                turn.gate.open()
        return turn

    def is_in(self, turn: Turn) -> bool:
        """Tell whether it is this one's turn."""
        return self._inside is turn

    def leave(self, turn: Turn, now: float) -> None:
        """Let the next one in, or stop waiting."""
        with self._lock:
            if self._inside is turn:
                self._admit_next()
            elif turn in self._queue:
                self._queue.remove(turn)
                if self._inside is not None and self._inside.until + self._patience < now:
                    self._admit_next()

    def _admit_next(self) -> None:
        self._inside = self._queue.popleft() if self._queue else None
        if self._inside is not None:
            self._inside.gate.open()
