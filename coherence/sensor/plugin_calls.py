"""Calls of plug-ins that can neither raise into the host nor hold it up: the call, its thread, and waiting for it.

Waiting is written once for threads and event loops: a tick is one generator of *requests*, things to wait for with a
time limit each. :func:`drive_sync` blocks on them, :func:`drive_async` awaits them.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Sequence
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from coherence.core.readings import Failure, one_line

R = TypeVar("R")

MAX_REST = 64
"""Most ticks a plug-in that keeps overrunning is left out for."""

PLAIN = frozenset({type(None), float, list})
"""Types that are known not to be awaitable; the look at others is slow."""


def runs_in_place(plugin: object, *methods: str) -> bool:
    """Tell whether a plug-in declares, by ``in_place = True``, that its methods are quick and never block.

    The declaration counts for methods of the class it stands in and of those above it: a subclass that has a method of
    its own has to declare it again.

    Examples
    --------
    >>> class Quick:
    ...     in_place = True
    ...     def compute(self): ...
    >>> class Changed(Quick):
    ...     def compute(self): ...
    >>> runs_in_place(Quick(), "compute"), runs_in_place(Changed(), "compute")
    (True, False)
    """
    if getattr(plugin, "in_place", False) is not True:
        return False
    order = type(plugin).__mro__
    declared = next((at for at, each in enumerate(order) if "in_place" in vars(each)), len(order))
    return not any(name in vars(each) for each in order[:declared] for name in methods)


class Breaker:
    """Leaves a plug-in out after it overran: while that call still runs, and then for 1, 2, 4, … ticks."""

    __slots__ = ("rest", "running", "strikes")

    def __init__(self) -> None:
        self.running = False
        self.strikes = 0
        self.rest = 0

    def refuses(self) -> str | None:
        """Say why the plug-in is left out at this tick; ``None`` if it may run. Asked once a tick."""
        if self.running:
            return "left out: its call from an earlier tick is still running"
        if self.rest:
            self.rest -= 1
            return (
                f"left out after {self.strikes} overrun{'s'[: self.strikes > 1]}; tried again in {self.rest + 1} ticks"
            )
        return None

    def overran(self, *, running: bool) -> None:
        """Count a call that did not end in time."""
        self.running = running
        self.strikes += 1
        self.rest = min(2 ** (self.strikes - 1), MAX_REST)

    def ended(self) -> None:
        """Count a call that ended in time, well or not."""
        self.strikes = 0


class Outcome(NamedTuple):
    """What came of a call: a value, an awaitable, or an exception."""

    value: Any = None
    pending: bool = False
    error: BaseException | None = None
    message: str = ""


class Call:
    """One call of a plug-in and what came of it.

    Parameters
    ----------
    source : str
        Name for :class:`~coherence.core.readings.Failure`.
    function : callable
        Called without arguments on a worker thread; an awaitable it returns is awaited on the caller's loop.
    breaker : Breaker
        The plug-in's.
    convert : callable, optional
        Checks and converts the final value; may raise.
    """

    __slots__ = ("breaker", "convert", "error", "failure", "function", "pending", "source", "value")

    def __init__(
        self,
        source: str,
        function: Callable[[], Any],
        breaker: Breaker,
        convert: Callable[[Any], Any] | None = None,
    ) -> None:
        self.source = source
        self.function = function
        self.breaker = breaker
        self.convert = convert
        self.value: Any = None
        self.pending = False
        self.error: BaseException | None = None
        self.failure: Failure | None = None

    def admit(self) -> None:
        """Skip the call if its plug-in is left out at this tick. Once a tick."""
        refusal = self.breaker.refuses()
        if refusal is not None:
            self.skip("disabled", refusal)

    def attempt(self, function: Callable[[], Any]) -> Outcome:
        """Call, look at, and convert; whatever the plug-in's own objects do, they do in here."""
        try:
            value = function()
            if type(value) not in PLAIN and inspect.isawaitable(value):
                return Outcome(value, pending=True)
            return Outcome(value if self.convert is None else self.convert(value))
        except BaseException as error:  # SystemExit of a plug-in must not reach the host either
            return failed(error)

    def take(self, outcome: Outcome) -> None:
        """Take what came of it."""
        self.value, self.pending, self.error = outcome.value, outcome.pending, outcome.error
        if outcome.error is not None:
            self.failure = Failure(self.source, type(outcome.error).__name__, outcome.message)
        if not outcome.pending:
            self.breaker.ended()

    def time_out(self, seconds: float, *, running: bool) -> None:
        """Take that the time is over."""
        self.breaker.overran(running=running)
        self.pending, self.value = False, None
        self.failure = Failure(self.source, "timeout", f"no result after {seconds:.2g} s; it is left out for a while")

    def skip(self, kind: str, message: str) -> None:
        """Take that the call is not made."""
        self.failure = Failure(self.source, kind, message)


def failed(error: BaseException) -> Outcome:
    """Return the outcome of an exception, whatever its text does."""
    try:
        message = one_line(str(error)[:500]) or "no message"
    except BaseException:
        message = "its message cannot be shown"
    return Outcome(error=error, message=message)


MAX_IDLE = 4
"""Idle worker threads kept for the next tick; further ones end."""


class Work(Protocol):
    """What a worker does: the work, then, when the worker is free again, the signal that it is done."""

    def work(self) -> bool:
        """Do it; return whether the signal is still wanted."""
        ...

    def done(self) -> None:
        """Signal."""
        ...


class _Worker(Thread):
    def __init__(self) -> None:
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
            del job
            if not stay:
                return


_idle: list[_Worker] = []
_lock = Lock()


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


class _KeptLoop:
    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = Thread(target=self._run, name="coherence-loop", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.loop.run_forever()
            tasks = asyncio.all_tasks(self.loop)
            for task in tasks:
                task.cancel()
            if tasks:
                self.loop.run_until_complete(asyncio.wait(tasks, timeout=0.1))
        finally:
            self.loop.close()

    def retire(self) -> None:
        """End the thread as soon as what blocks it lets go."""
        with suppress(RuntimeError):  # it is closed already
            self.loop.call_soon_threadsafe(self.loop.stop)


_kept: _KeptLoop | None = None


def run_on_kept_loop(work: Coroutine[Any, Any, bool], seconds: float) -> bool:
    """Run a coroutine on the kept loop; ``False`` if the loop itself is blocked past the time, and is then replaced."""
    global _kept
    with _lock:
        if _kept is None:
            _kept = _KeptLoop()
        kept = _kept
    future = asyncio.run_coroutine_threadsafe(work, kept.loop)
    try:
        return future.result(seconds)
    except (FutureTimeoutError, CancelledError):
        if kept.thread.is_alive():
            future.cancel()
        with _lock:
            if _kept is kept:
                _kept = None
        kept.retire()
        return False


def _after_fork() -> None:
    """Forget the parent's threads: they do not exist in a forked child."""
    global _lock, _kept
    _lock = Lock()
    _idle.clear()
    _kept = None


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


GRACE = 0.05
"""Seconds that cancelled coroutines, and the kept loop, are given beyond the limit to come to an end."""

IN_PLACE_STEP = 0.05
"""Seconds between two looks at a worker that is between calls."""


def _discard(value: object) -> None:
    if inspect.iscoroutine(value):
        value.close()


class Group(NamedTuple):
    """Calls to make one after the other, then awaitables they returned to await together, until a time (monotonic)."""

    calls: Sequence[Call]
    until: float
    in_place: bool = False
    """Whether this is code on little data that has declared that it never blocks: it runs on the caller's thread."""


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
            if group.in_place:
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
