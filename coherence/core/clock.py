"""A clock that says when to measure: at a drift-corrected interval."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from threading import Event, Thread
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from coherence.core.readings import Tick

if TYPE_CHECKING:
    import asyncio


class Measurable(Protocol):
    """Sensor that a clock thread drives."""

    def measure_sync(self, tick: Tick | None = None, /) -> object:
        """Measure once."""
        ...


class IntervalClock:
    """Tick every ``seconds``, on a grid that does not drift.

    Ticks fall on ``start + k * seconds``. A measurement that takes longer than the interval makes the ticks it covers
    *missed*: they are counted in :attr:`missed` and not made up for.

    Parameters
    ----------
    seconds : float
        Interval, 0.0001 to 10,000,000.
    wait_first : bool
        Whether the first tick comes after one interval instead of at once.

    Examples
    --------
    >>> import asyncio
    >>> async def count():
    ...     seen = []
    ...     async def measure(tick):
    ...         seen.append(tick.reason)
    ...     async with IntervalClock(seconds=0.001) as clock:
    ...         await clock.drive(measure, ticks=2)
    ...     return seen
    >>> asyncio.run(count())
    ['interval', 'interval']
    """

    def __init__(self, seconds: float, *, wait_first: bool = False) -> None:
        if not isinstance(seconds, int | float) or isinstance(seconds, bool):
            raise TypeError(f"seconds must be a number, not {seconds!r}")
        if not 1e-4 <= seconds <= 1e7:
            raise ValueError(f"seconds must be in [0.0001, 10000000], not {seconds}")
        self.seconds = float(seconds)
        self.wait_first = wait_first
        self.ticks = 0
        """Ticks given so far."""
        self.missed = 0
        """Ticks that fell into a measurement and were left out."""
        self._stopped = False
        self._due = 0.0
        self._wake: Event | asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def _start(self) -> None:
        self._due = time.monotonic() + (self.seconds if self.wait_first else 0.0)

    def _tick(self) -> Tick:
        self.ticks += 1
        return Tick(ts=time.time(), reason="interval")

    def _advance(self) -> None:
        """Set the next due time on the grid, after now; count what is skipped."""
        behind = int((time.monotonic() - self._due) / self.seconds)
        self.missed += behind
        self._due += (behind + 1) * self.seconds

    async def drive(self, measure: Callable[[Tick], Awaitable[object]], *, ticks: int | None = None) -> None:
        """Call ``measure`` at every tick until ``ticks`` are done, :meth:`stop` is called, or the task is cancelled."""
        import asyncio

        self._loop, wake = asyncio.get_running_loop(), asyncio.Event()
        self._wake = wake
        self._start()
        last = None if ticks is None else self.ticks + ticks
        try:
            while not self._stopped and (last is None or self.ticks < last):
                pause = self._due - time.monotonic()
                if pause > 0:
                    # a time-out is the next tick; otherwise stop() has woken it
                    with suppress(TimeoutError):
                        await asyncio.wait_for(wake.wait(), pause)
                        break
                await measure(self._tick())
                self._advance()
        finally:
            # so that it can be driven again
            self._stopped = False

    def thread(self, sensor: Measurable) -> ClockThread:
        """Return a context manager that measures ``sensor`` at every tick on a thread of its own."""
        return ClockThread(self, sensor.measure_sync)

    def stop(self) -> None:
        """End :meth:`drive` or the thread, from any thread, even just before it starts.

        A measurement under way is finished.
        """
        self._stopped = True
        wake = self._wake
        if isinstance(wake, Event):
            wake.set()
        elif wake is not None and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(wake.set)

    async def __aenter__(self) -> Self:
        self._stopped = False
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self, measure: Callable[[Tick], object], wake: Event) -> None:
        self._start()
        while not self._stopped and not wake.wait(max(self._due - time.monotonic(), 0.0)):
            measure(self._tick())
            self._advance()


class ClockThread:
    """A thread that ticks between ``with`` and the end of the block."""

    def __init__(self, clock: IntervalClock, measure: Callable[[Tick], object]) -> None:
        self.clock = clock
        self._measure = measure
        self._thread: Thread | None = None

    def __enter__(self) -> IntervalClock:
        wake = Event()
        self.clock._wake, self.clock._stopped = wake, False
        self._thread = Thread(target=self.clock._run, args=(self._measure, wake), name="coherence-clock", daemon=True)
        self._thread.start()
        return self.clock

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clock.stop()
        if self._thread is not None:
            self._thread.join()
