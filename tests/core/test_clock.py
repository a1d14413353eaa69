from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Coroutine
from threading import Event, Thread, Timer, current_thread
from typing import Any

import pytest

from coherence.core.clock import IntervalClock
from coherence.core.readings import Band, FrozenDict, Reading, Tick

LONG = 3600.0
"""Seconds; nothing here waits so long, so a test with such an interval ends only if something wakes the clock."""

PATIENCE = 30.0
"""Seconds until a test that waits for something is called failed."""


class FakeTime:
    """A time that moves only when someone waits or a measurement says that it took long."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.waits = 0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now + 1_700_000_000.0

    async def wait_for(self, awaitable: Coroutine[Any, Any, object], seconds: float) -> None:
        awaitable.close()
        self.waits += 1
        self.now += seconds
        raise TimeoutError


@pytest.fixture
def fake_time(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    fake = FakeTime()
    monkeypatch.setattr("coherence.core.clock.time", fake)
    monkeypatch.setattr(asyncio, "wait_for", fake.wait_for)
    return fake


class StubSensor:
    def __init__(self, on_measure: Callable[[Tick], object]) -> None:
        self.on_measure = on_measure

    def measure_sync(self, tick: Tick | None = None, /) -> Reading:
        assert tick is not None
        self.on_measure(tick)
        return Reading(tick_seq=1, ts=0.0, metrics=FrozenDict(), coherence_index=1.0, band=Band.GREEN, coverage=0.0)


def starts_with_durations(fake: FakeTime, clock: IntervalClock, durations: list[float]) -> list[float]:
    """Drive the clock with measurements that take so long; return when each began, from the start on."""
    began, begin = [], fake.now
    left = list(durations)

    async def measure(tick: Tick) -> None:
        began.append(fake.now - begin)
        fake.now += left.pop(0)

    asyncio.run(clock.drive(measure, ticks=len(durations)))
    return began


def test_interval_clock_ticks_fall_on_a_grid_however_long_measurements_take(fake_time: FakeTime) -> None:
    clock = IntervalClock(10)
    assert starts_with_durations(fake_time, clock, [3.0, 9.5, 0.0, 7.0]) == [0.0, 10.0, 20.0, 30.0]
    assert clock.missed == 0


def test_interval_clock_ticks_that_fall_into_a_long_measurement_are_counted_as_missed_and_not_made_up_for(
    fake_time: FakeTime,
) -> None:
    clock = IntervalClock(10)
    # The measurement begun at 10 ends at 35: 20 and 30 are missed. The one begun at 50 ends at 60: 60 is missed.
    assert starts_with_durations(fake_time, clock, [3.0, 25.0, 0.0, 10.0, 0.0]) == [0.0, 10.0, 40.0, 50.0, 70.0]
    assert clock.missed == 3
    assert clock.ticks == 5


def test_interval_clock_with_wait_first_the_first_tick_comes_after_one_interval(fake_time: FakeTime) -> None:
    assert starts_with_durations(fake_time, IntervalClock(10, wait_first=True), [1.0, 1.0]) == [10.0, 20.0]


def test_interval_clock_a_tick_leaves_the_number_to_the_sensor_and_tells_time_and_reason(fake_time: FakeTime) -> None:
    seen: list[Tick] = []

    async def measure(tick: Tick) -> None:
        seen.append(tick)

    asyncio.run(IntervalClock(10).drive(measure, ticks=2))
    assert seen == [Tick(None, 1_700_001_000.0, "interval"), Tick(None, 1_700_001_010.0, "interval")]


def test_interval_clock_stop_from_another_thread_ends_drive_while_it_waits() -> None:
    async def main() -> int:
        clock, measured = IntervalClock(LONG), asyncio.Event()

        async def measure(tick: Tick) -> None:
            measured.set()

        driving = asyncio.create_task(clock.drive(measure))
        await measured.wait()
        Timer(0.05, clock.stop).start()  # by then the loop sleeps, and nothing but stop() wakes it
        began = time.monotonic()
        await asyncio.wait_for(driving, PATIENCE)
        assert time.monotonic() - began < PATIENCE / 2
        return clock.ticks

    assert asyncio.run(main()) == 1


def test_interval_clock_stop_during_a_measurement_lets_it_finish() -> None:
    async def main() -> list[str]:
        clock, done = IntervalClock(0.001), []

        async def measure(tick: Tick) -> None:
            done.append("begun")
            await asyncio.to_thread(clock.stop)
            done.append("finished")

        await asyncio.wait_for(clock.drive(measure), PATIENCE)
        return done

    assert asyncio.run(main()) == ["begun", "finished"]


def test_interval_clock_a_stop_just_before_the_drive_starts_is_not_lost() -> None:
    async def measure(tick: Tick) -> None:
        pass

    async def main() -> IntervalClock:
        async with IntervalClock(0.001) as clock:
            drive = asyncio.create_task(clock.drive(measure))  # starts only when this task pauses
        await asyncio.wait_for(drive, 5)
        return clock

    clock = asyncio.run(main())
    assert clock.ticks == 0
    asyncio.run(clock.drive(measure, ticks=2))  # the stop was for that drive only
    assert clock.ticks == 2


def test_interval_clock_a_stop_after_the_end_does_no_harm_to_the_next_block() -> None:
    async def measure(tick: Tick) -> None:
        pass

    async def main(clock: IntervalClock) -> None:
        async with clock:
            await clock.drive(measure, ticks=2)

    clock = IntervalClock(0.001)
    asyncio.run(main(clock))
    clock.stop()  # its loop is closed by now
    asyncio.run(main(clock))
    assert clock.ticks == 4


def test_thread_measures_on_a_thread_that_ends_with_the_block() -> None:
    threads: list[Thread] = []
    enough = Event()

    def note(tick: Tick) -> None:
        threads.append(current_thread())
        if len(threads) == 3:
            enough.set()

    with IntervalClock(0.001).thread(StubSensor(note)) as clock:
        assert enough.wait(PATIENCE)
    assert {thread.name for thread in threads} == {"coherence-clock"}
    assert not any(thread.is_alive() for thread in threads)
    assert clock.ticks == len(threads)


def test_interval_clock_leaving_the_block_finishes_a_measurement_under_way() -> None:
    began, go_on, finished = Event(), Event(), Event()

    def slow(tick: Tick) -> None:
        began.set()
        go_on.wait(PATIENCE)
        finished.set()

    with IntervalClock(LONG).thread(StubSensor(slow)):
        assert began.wait(PATIENCE)
        Thread(target=go_on.set).start()
    assert finished.is_set()


@pytest.mark.parametrize("seconds", [0, -1.0, math.inf, math.nan, "1", True])
def test_interval_clock_an_interval_that_is_out_of_range_or_no_number_is_refused(seconds: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"seconds must be (in \[0.0001, 10000000\]|a number)"):
        IntervalClock(seconds)
