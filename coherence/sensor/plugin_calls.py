"""Calls of plug-ins that can neither raise into the host nor hold it up: the call, its thread, and waiting for it.

Waiting is written once for threads and event loops: a tick is one generator of *requests*, things to wait for with a
time limit each. :func:`drive_sync` blocks on them, :func:`drive_async` awaits them.
"""

from __future__ import annotations

import contextvars
import os
import threading
import time
from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Protocol, TypeAlias, TypeVar

from coherence.sensor.calls import PluginCall, discard

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

    def __init__(self) -> None:
        self._opened: Future[None] = Future()

    def open(self) -> None:
        """Let the waiter through."""
        self._opened.set_result(None)

    def block(self, seconds: float) -> bool:
        """Wait on the calling thread."""
        try:
            self._opened.result(max(seconds, 0.0))
        except FutureTimeoutError:
            return False
        return True

    async def pause(self, seconds: float) -> bool:
        """Wait on the running event loop."""
        import asyncio

        done, _ = await asyncio.wait([asyncio.wrap_future(self._opened)], timeout=max(seconds, 0.0))
        return bool(done)


class WorkerTurn:
    """One measurement's place in the queue."""

    __slots__ = ("gate", "until")

    def __init__(self, until: float) -> None:
        self.gate = Gate()
        self.until = until
        """Time at which it must be over (monotonic)."""


class Turnstile:
    """Lets one measurement in at a time, in the order they came.

    A turn whose time is long over is taken away: its event loop was stopped in the middle, or its thread does not exist
    in this forked process.
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._lock = threading.Lock()
        self._inside: WorkerTurn | None = None
        self._queue: deque[WorkerTurn] = deque()

    def enter(self, until: float) -> WorkerTurn:
        """Get a turn; its gate is open if it may go in at once."""
        turn = WorkerTurn(until)
        with self._lock:
            if self._inside is not None:
                self._queue.append(turn)
            else:
                self._inside = turn
                turn.gate.open()
        return turn

    def is_in(self, turn: WorkerTurn) -> bool:
        """Tell whether it is this one's turn."""
        return self._inside is turn

    def leave(self, turn: WorkerTurn, now: float) -> None:
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


MAX_IDLE = 4
"""Idle worker threads kept for the next tick; further ones end."""

BETWEEN_CALLS_S = 0.05
"""Seconds between two looks at a worker that is between calls."""


class _Worker(Thread):
    def __init__(self) -> None:
        super().__init__(name="coherence-worker", daemon=True)
        self.queue: SimpleQueue[_Batch] = SimpleQueue()

    def run(self) -> None:
        while True:
            batch = self.queue.get()
            finished = False
            try:
                finished = batch.work()
            finally:
                # Free first, signal second: the waiter's next batch then finds this thread, and starts no other.
                stay = _release(self)
                if finished:
                    batch.gate.open()
            del batch
            if not stay:
                return


_idle: list[_Worker] = []
_lock = Lock()


def submit(batch: _Batch) -> None:
    """Have calls made by an idle worker, or by a new one."""
    with _lock:
        worker = _idle.pop() if _idle else None
    if worker is None:
        worker = _Worker()
        worker.start()
    worker.queue.put(batch)


def _release(worker: _Worker) -> bool:
    with _lock:
        if len(_idle) >= MAX_IDLE:
            return False
        _idle.append(worker)
        return True


def _after_fork() -> None:
    """Forget the parent's threads: they do not exist in a forked child."""
    global _lock
    _lock = Lock()
    _idle.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class _Batch:
    """Calls that one worker makes one after the other, until they are made or one overruns.

    ``_began`` is set exactly while a call runs; only then can the batch be given up.
    """

    def __init__(self, calls: Sequence[PluginCall], until: float) -> None:
        self._calls = calls
        self._until = until
        self._at = 0
        self._began: float | None = None
        self._context = contextvars.copy_context()
        self.gate = Gate()
        self._lock = Lock()
        self._abandoned = False

    def work(self) -> bool:
        """Make the calls; return whether anybody still waits for them."""
        for at, call in enumerate(self._calls):
            with self._lock:
                if self._abandoned:
                    return False
                now = time.monotonic()
                if now >= self._until:
                    call.skip("timeout", "no time was left at this tick")
                    continue
                self._at, self._began = at, now
            outcome = self._context.run(call.attempt, call.function)
            with self._lock:
                if self._is_abandoned():
                    call.breaker.running = False
                    discard(outcome.value)
                    return False
                self._began = None
                call.settle(outcome)
        return not self._is_abandoned()

    def _is_abandoned(self) -> bool:
        return self._abandoned

    def left(self) -> float:
        """Seconds the current call may still take: half of what is left for all, the last call all of it."""
        began = self._began
        if began is None:
            return BETWEEN_CALLS_S
        left = max(self._until - began, 0.0)
        limit = began + (left if self._at == len(self._calls) - 1 else left / 2)
        return max(limit - time.monotonic(), 0.0)

    def give_up(self) -> Sequence[PluginCall] | None:
        """If a call overran, abandon it and return the calls after it."""
        with self._lock:
            if self._began is None or self.left() > 0:
                return None
            self._abandoned = True
            self._calls[self._at].time_out(time.monotonic() - self._began, running=True)
        return self._calls[self._at + 1 :]

    def abandon(self) -> None:
        """Let go without a verdict, because the caller went away."""
        with self._lock:
            self._abandoned = True
            if self._began is not None:
                self._calls[self._at].breaker.running = True


def make_calls(calls: Sequence[PluginCall], until: float, *, in_place: bool = False) -> Steps[None]:
    """Make calls one after the other, then await together what they returned, until a time (monotonic).

    A call that takes more than half of the time that is left is abandoned on its thread; the next ones go on elsewhere.

    Parameters
    ----------
    calls : sequence of PluginCall
        Each has a value or a failure afterwards.
    until : float
        Time at which they are over.
    in_place : bool
        Whether this is code on little data that has declared that it never blocks: it runs on the caller's thread.
    """
    for call in calls:
        call.admit()
    left = [call for call in calls if call.failure is None]
    if in_place:
        for call in left:
            call.settle(call.attempt(call.function))
            if isinstance(call.error, KeyboardInterrupt):  # it was meant for the host
                raise call.error
        return
    waiting: Sequence[PluginCall] | None = left
    while waiting:
        batch = _Batch(waiting, until)
        waiting = None
        try:
            submit(batch)
            while waiting is None and not (yield batch.gate, batch.left()):
                waiting = batch.give_up()
        except BaseException:
            batch.abandon()
            for call in left:
                if call.pending:
                    discard(call.value)
            raise
    pending = [call for call in left if call.pending]
    if pending:
        from coherence.sensor.awaitables import Awaiting  # which loads asyncio

        seconds = until - time.monotonic()
        yield Awaiting(pending), seconds
        for call in pending:
            if call.pending:  # the kept loop itself was blocked
                call.time_out(seconds, running=False)


def run_calls(calls: Sequence[PluginCall], timeout_s: float) -> None:
    """Make calls one after the other, off the caller's thread, and wait so many seconds at most for all of them."""
    drive_sync(make_calls(calls, time.monotonic() + timeout_s))
