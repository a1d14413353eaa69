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
from collections.abc import Callable, Generator, Sequence
from queue import SimpleQueue
from threading import RLock, Thread
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from coherence.core.calls import PluginCall, discard

R = TypeVar("R")


MAX_IDLE = 4
"""Idle worker threads kept for the next tick; further ones end."""


class Work(Protocol):
    """Job of a worker thread: the work, then, when the worker is free again, the signal that it is done."""

    def work(self) -> bool:
        """Do it; return whether the signal is still wanted."""
        ...

    def done(self) -> None:
        """Signal."""
        ...


class _Worker(Thread):
    def __init__(self) -> None:
        # daemon: a plug-in that hangs must not keep the interpreter from ending
        super().__init__(name="coherence-worker", daemon=True)
        self.queue: SimpleQueue[Work] = SimpleQueue()

    def run(self) -> None:
        while True:
            job = self.queue.get()
            wanted = True
            try:
                wanted = job.work()
            finally:
                # Free first, signal second: the waiter's next job then finds this thread instead of starting another.
                stay = _release(self)
                if wanted:
                    job.done()
            del job  # or waiting for the next one would keep this one's texts and vectors alive
            if not stay:
                return


_idle: list[_Worker] = []
_lock = RLock()


def submit(job: Work) -> None:
    """Run a job on an idle worker, or on a new one."""
    with _lock:
        worker = _idle.pop() if _idle else None
    if worker is None:
        worker = _Worker()
        worker.start()
    worker.queue.put(job)


def _release(worker: _Worker) -> bool:
    with _lock:
        if len(_idle) >= MAX_IDLE:
            return False
        _idle.append(worker)
        return True


def _after_fork() -> None:
    """Forget the parent's threads: they do not exist in a forked child."""
    global _lock
    # Another thread of the parent may have held the old one.
    _lock = RLock()
    _idle.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


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
        # After an interrupt the steps give back their turn now, not when they are collected.
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
        # After a cancellation the steps give back their turn now, not when they are collected.
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
        import asyncio

        loop = asyncio.get_running_loop()
        future: asyncio.Future[bool] = loop.create_future()

        def settle(came: bool) -> None:
            # the timer and the gate may both come
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
            # It may have opened at the moment in which the timer ran out.
            return await future or self._opened
        finally:
            timer.cancel()
            self._wake = None


class WorkerTurn:
    """One measurement's place in the queue."""

    __slots__ = ("gate", "until")

    def __init__(self, until: float) -> None:
        self.gate = Gate()
        self.until = until
        """Monotonic time at which it must be over."""


class Turnstile:
    """Lets one measurement in at a time, in the order they came.

    A turn whose time is long over is taken away: its event loop was stopped in the middle, or its thread does not exist
    in this forked process.
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._lock = threading.RLock()
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


IN_PLACE_STEP = 0.05
"""Seconds between two looks at a worker that is between calls."""


class Group(NamedTuple):
    """Calls to make one after the other, then awaitables they returned to await together, until a time (monotonic)."""

    calls: Sequence[PluginCall]
    until: float
    in_place: bool = False
    """True for code on little data that has declared that it never blocks: it runs on the caller's thread."""


Stages: TypeAlias = Generator[Group, None, R]
"""A generator that yields groups of calls, goes on when each has ended, and returns a result."""


class _Job(Generic[R]):
    """The stages, run on a worker thread until they end, need the caller's thread, or a call overruns.

    While a call runs the generator is suspended, so that another worker can go on with it. ``_began`` is set exactly
    while a call runs; only then can the job be given up.
    """

    def __init__(self, stages: Stages[R], group: Group, at: int = 0) -> None:
        self.group = group
        self.pending: list[PluginCall] = []
        self.ended: StopIteration | Exception | None = None
        """Result or exception of the stages, once they ended."""
        self._stages = stages
        self._at = at
        self._began: float | None = None
        # Plug-ins see the caller's context variables, as if they were called on its thread.
        self._context = contextvars.copy_context()
        self._gate = Gate()
        self._lock = RLock()
        self._finished = self._abandoned = False

    def work(self) -> bool:
        try:
            while not self.group.in_place:
                if not self._make_calls(self.group):
                    return False
                self.pending = [call for call in self.group.calls if call.pending]
                if self.pending:
                    break
                self.group, self._at = _next_group(self._stages), 0
        except Exception as end:  # StopIteration too: it carries the result
            self.ended = end
        with self._lock:
            self._finished = True
            return not self._abandoned

    def _make_calls(self, group: Group) -> bool:
        """Make the group's calls from the current one on; ``False`` if the job was abandoned meanwhile."""
        for at in range(self._at, len(group.calls)):
            call = group.calls[at]
            with self._lock:
                if self._abandoned:
                    return False
                now = time.monotonic()
                if call.failure is None and now >= group.until:
                    call.skip("timeout", "no time was left at this tick")
                if call.failure is not None:
                    continue
                self._at, self._began = at, now
            outcome = self._context.run(call.attempt, call.function)
            with self._lock:
                if self._is_abandoned():
                    # It ended after all: nobody waits for its value, but its plug-in may be asked again.
                    call.breaker.running = False
                    discard(outcome.value)
                    return False
                self._began = None
                call.settle(outcome)
        with self._lock:
            return not self._abandoned

    def _is_abandoned(self) -> bool:
        return self._abandoned

    def done(self) -> None:
        self._gate.open()

    def left(self) -> float:
        """Seconds the current call may still take: half of what is left for its group, the last call all of it."""
        began, group = self._began, self.group
        if began is None:
            return IN_PLACE_STEP
        left = max(group.until - began, 0.0)
        limit = began + (left if self._at == len(group.calls) - 1 else left / 2)
        return max(limit - time.monotonic(), 0.0)

    def give_up(self) -> _Job[R] | None:
        """If a call overran, abandon it and return the job that goes on after it."""
        with self._lock:
            if self._finished or self._began is None or self.left() > 0:
                return None
            self._abandoned = True
            self.group.calls[self._at].time_out(time.monotonic() - self._began, running=True)
        return _Job(self._stages, self.group, self._at + 1)

    def abandon(self) -> None:
        """Let go without a verdict, because the caller went away."""
        with self._lock:
            for call in self.group.calls:
                if call.pending:
                    discard(call.value)
            if not self._finished:
                self._abandoned = True
                if self._began is not None:
                    # Left out until work() notices that it has ended.
                    self.group.calls[self._at].breaker.running = True

    def block(self, seconds: float) -> bool:
        return self._gate.block(seconds)

    async def pause(self, seconds: float) -> bool:
        return await self._gate.pause(seconds)


def _next_group(stages: Stages[Any]) -> Group:
    group = next(stages)
    for call in group.calls:
        call.admit()
    return group


def run_stages(stages: Stages[R]) -> Steps[R]:
    """Run stages on a worker, and on the caller's thread or loop what belongs there; no call can hold them up.

    A call that takes more than half of the time left to its group is abandoned on its thread; the next ones go on
    elsewhere. Mostly this costs one change of threads.
    """
    try:
        group = _next_group(stages)
        while True:
            if group.in_place:
                for call in group.calls:
                    if call.failure is None:
                        call.settle(call.attempt(call.function))
                group = _next_group(stages)
                continue
            job = yield from _run_on_worker(_Job(stages, group))
            if job.ended is not None:
                raise job.ended
            group = job.group
            if job.pending:
                left = group.until - time.monotonic()
                from coherence.core.awaitables import Awaiting  # which loads asyncio

                yield Awaiting(job.pending), left
                for call in job.pending:
                    if call.pending:  # the kept loop itself was blocked
                        call.time_out(left, running=False)
                group = _next_group(stages)
    except StopIteration as stop:
        result: R = stop.value
        return result


def run_calls(calls: Sequence[PluginCall], timeout_s: float) -> None:
    """Make calls one after the other, off the caller's thread, and wait so many seconds at most for all of them.

    Where no thread can be started, those that were not made are failures.
    """

    def stages() -> Stages[None]:
        yield Group(calls, time.monotonic() + timeout_s)

    try:
        drive_sync(run_stages(stages()))
    except RuntimeError as error:
        for call in calls:
            if call.failure is None and call.value is None:
                call.skip("RuntimeError", str(error))


def _run_on_worker(job: _Job[R]) -> Steps[_Job[R]]:
    """Have a job done, in spite of calls that overrun; return the one that came to the end."""
    while True:
        submit(job)
        try:
            following = None
            while not (yield job, job.left()):
                following = job.give_up()
                if following is not None:
                    break
        except BaseException:
            job.abandon()
            raise
        if following is None:
            return job
        job = following
