"""Running calls so that none can raise into, or hang, the host."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import time
from collections.abc import Generator, Sequence
from functools import partial
from threading import Lock
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from coherence.sensor.calls import Breaker, Call, Outcome, failed
from coherence.sensor.waiter import Gate, Steps
from coherence.sensor.workers import run_on_kept_loop, submit

R = TypeVar("R")

GRACE = 0.05
"""Seconds that cancelled coroutines, and the kept loop, are given beyond the limit to come to an end."""

OWN_STEP = 0.05
"""Seconds between two looks at a worker that is between calls."""


def _discard(value: object) -> None:
    if inspect.iscoroutine(value):
        value.close()


class Group(NamedTuple):
    """Calls to make one after the other, then awaitables they returned to await together, until a time (monotonic)."""

    calls: Sequence[Call]
    until: float
    own: bool = False
    """Whether this is the package's own code on little data, which cannot hang and is run on the caller's thread."""


Stages: TypeAlias = Generator[Group, None, R]
"""A generator that yields groups of calls, goes on when each has ended, and returns a result."""


class _Job(Generic[R]):
    """The stages, run on a worker thread until they end, need the caller's thread, or a call overruns.

    While a call runs the generator is suspended, so that another worker can go on with it. ``_began`` is set exactly
    while a call runs; only then can the job be given up.
    """

    def __init__(self, stages: Stages[R], group: Group, at: int = 0) -> None:
        self.group = group
        self.pending: list[Call] = []
        self.ended: StopIteration | Exception | None = None
        """How the stages ended, if they did."""
        self._stages = stages
        self._at = at
        self._began: float | None = None
        self._context = contextvars.copy_context()
        self._gate = Gate()
        self._lock = Lock()
        self._finished = self._abandoned = False

    def work(self) -> bool:
        try:
            while not self.group.own:
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
                    call.breaker.running = False
                    _discard(outcome.value)
                    return False
                self._began = None
                call.take(outcome)
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
            return OWN_STEP
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
                    _discard(call.value)
            if not self._finished:
                self._abandoned = True
                if self._began is not None:
                    self.group.calls[self._at].breaker.running = True

    def block(self, seconds: float) -> bool:
        return self._gate.block(seconds)

    async def pause(self, seconds: float) -> bool:
        return await self._gate.pause(seconds)


class _Awaiting:
    """Awaitables that calls returned, awaited together."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self._calls = calls

    def block(self, seconds: float) -> bool:
        return run_on_kept_loop(self.pause(seconds), max(seconds, 0.0) + 2 * GRACE)

    async def pause(self, seconds: float) -> bool:
        tasks = {asyncio.ensure_future(_awaited(call)): call for call in self._calls}
        try:
            done, late = await asyncio.wait(tasks, timeout=max(seconds, 0.0))
        except asyncio.CancelledError:
            for task, call in tasks.items():
                _cancel(task, call.breaker)
            raise
        for task in late:
            tasks[task].time_out(seconds, running=True)
            _cancel(task, tasks[task].breaker)
        for task in done:
            cancelled = failed(asyncio.CancelledError("the plug-in cancelled itself"))
            tasks[task].take(cancelled if task.cancelled() else task.result())
        if late:
            await asyncio.wait(late, timeout=GRACE)  # let them take their cancellation while the loop runs
        return not late


async def _awaited(call: Call) -> Outcome:
    """Await what a call returned; nothing but a cancellation comes out as an exception, or it would end the loop."""
    value = call.value
    try:
        if asyncio.isfuture(value):
            if value.get_loop() is not asyncio.get_running_loop():
                raise ValueError("returned a future of another event loop")
            value = asyncio.shield(value)  # the host's own task is not ours to cancel
        value = await value
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        return failed(error)
    outcome = call.attempt(lambda: value)
    if outcome.pending:
        _discard(outcome.value)
        return failed(TypeError("returned an awaitable of an awaitable"))
    return outcome


def _cancel(task: asyncio.Future[Any], breaker: Breaker) -> None:
    if not task.done():
        breaker.running = True
    task.add_done_callback(partial(_retrieve, breaker))
    task.cancel()


def _retrieve(breaker: Breaker, task: asyncio.Future[Any]) -> None:
    """Note that an overrunning coroutine has ended; fetch its exception, or asyncio logs it."""
    breaker.running = False
    if not task.cancelled():
        task.exception()


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
            if group.own:
                for call in group.calls:
                    if call.failure is None:
                        call.take(call.attempt(call.function))
                group = _next_group(stages)
                continue
            job = yield from _run_on_worker(_Job(stages, group))
            if job.ended is not None:
                raise job.ended
            group = job.group
            if job.pending:
                left = group.until - time.monotonic()
                yield _Awaiting(job.pending), left
                for call in job.pending:
                    if call.pending:  # the kept loop itself was blocked
                        call.time_out(left, running=False)
                group = _next_group(stages)
    except StopIteration as stop:
        result: R = stop.value
        return result


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
