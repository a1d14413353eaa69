"""Time: a measurement takes at most about ``timeout_s``, whatever hangs; measurements take turns."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from coherence import CoherenceSensor, Reading, Tick
from coherence.metrics import GoalDrift, SemanticDiffusion
from coherence.providers import CallableState, StaticState
from coherence.testing import TableEmbedder
from sensor.plugins import (
    LIMIT,
    Named,
    Scalar,
    async_hang,
    both_ways,
    bounded,
    measure_async,
    probe,
    raising,
    state,
    waiting,
)


def test_measure_a_hanging_metric_costs_at_most_the_timeout_and_its_own_value(forever: threading.Event) -> None:
    for make in (waiting(forever), async_hang):
        for reading in both_ways(lambda make=make: probe(metrics=[Named(make), GoalDrift()])):  # type: ignore[misc]
            (failure,) = reading.errors
            assert (failure.source, failure.kind) == ("metric bad", "timeout")
            assert reading.metrics["goal_drift"] is not None


def test_breaker_a_plug_in_that_hung_is_left_out_until_its_call_has_ended(forever: threading.Event) -> None:
    sensor = probe(metrics=[Named(waiting(forever)), GoalDrift()])
    sensor.measure_sync()
    threads = threading.active_count()
    for _ in range(20):
        failure = sensor.measure_sync().errors[0]
        assert failure.kind == "disabled" and "still running" in failure.message
    assert threading.active_count() <= threads
    forever.set()
    deadline = time.monotonic() + 10
    while sensor.measure_sync().errors and time.monotonic() < deadline:
        time.sleep(0.01)
    assert sensor.measure_sync().errors == ()


@pytest.mark.slow
@pytest.mark.parametrize("getter", ["goals", "context", "memories"])
def test_measure_a_hanging_getter_leaves_the_other_sources_measured(getter: str, forever: threading.Event) -> None:
    for make in (waiting(forever), async_hang):
        functions = {"goals": lambda: ["g"], "context": lambda: ["c", "d"], "memories": lambda: ["m"], getter: make}
        for reading in both_ways(lambda functions=functions: probe(CallableState(**functions))):  # type: ignore[misc]
            assert [failure.kind for failure in reading.errors] == ["timeout"]
            assert reading.metrics["memory_retention" if getter == "context" else "semantic_diffusion"] is not None


@pytest.mark.slow
@pytest.mark.parametrize("member", ["embed", "fingerprint"])
def test_measure_a_hanging_embedder_costs_at_most_the_timeout(member: str, forever: threading.Event) -> None:
    hang = waiting(forever)
    odd = type("Odd", (TableEmbedder,), {member: hang if member == "embed" else property(hang)})
    for reading in both_ways(lambda: probe(embedder=odd({}))):
        assert {(failure.source, failure.kind) for failure in reading.errors} == {("embedder", "timeout")}
        assert reading.coverage == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("make", [waiting, lambda event: async_hang, lambda event: raising(RuntimeError("boom"))])
def test_on_reading_a_bad_callback_is_an_entry_in_the_stored_reading_too(
    make: Callable[[threading.Event], Callable[..., object]], forever: threading.Event
) -> None:
    for start in (CoherenceSensor.measure_sync, measure_async):
        sensor = probe(on_reading=lambda _: make(forever)())
        with bounded():
            reading = start(sensor)
        assert [failure.source for failure in reading.errors] == ["on_reading"]
        assert sensor.latest is reading and sensor.history() == [reading]


def test_on_reading_the_callback_sees_its_reading_already_stored() -> None:
    seen: list[bool] = []
    sensor: CoherenceSensor = probe(on_reading=lambda reading: seen.append(sensor.latest is reading))
    sensor.measure_sync()
    assert seen == [True]


def test_measure_sync_works_inside_a_running_loop_with_async_plug_ins() -> None:
    async def main() -> Reading:
        return probe(scalar_metrics=[Scalar(lambda: asyncio.sleep(0, 0.25))]).measure_sync()  # as in a notebook

    assert asyncio.run(main()).metrics["bad"] == 0.25


@pytest.mark.slow
def test_measure_sync_a_loop_that_a_coroutine_blocks_is_replaced_and_ends_when_it_can() -> None:
    def loops() -> int:
        return sum(thread.name == "coherence-loop" for thread in threading.enumerate())

    async def blocks() -> float:
        time.sleep(0.5)  # in a coroutine, which blocks its loop
        return 0.5

    for _ in range(3):
        with bounded():
            assert probe(scalar_metrics=[Scalar(blocks)], timeout_s=0.1).measure_sync().errors[0].kind == "timeout"
    assert probe(scalar_metrics=[Scalar(lambda: asyncio.sleep(0, 0.5))]).measure_sync().metrics["bad"] == 0.5
    deadline = time.monotonic() + 20
    while loops() > 1 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert loops() <= 1


def test_measure_the_event_loop_stays_free_while_a_plain_plug_in_works() -> None:
    def slow() -> float:
        time.sleep(0.15)
        return 0.5

    async def main() -> int:
        beats = 0
        measuring = asyncio.create_task(probe(metrics=[Named(slow)]).measure())
        while not measuring.done():
            await asyncio.sleep(0.005)
            beats += 1
        return beats

    assert asyncio.run(main()) >= 5


@pytest.mark.slow
def test_measure_the_hosts_own_task_is_not_cancelled() -> None:
    async def main() -> tuple[Reading, float]:
        task = asyncio.create_task(asyncio.sleep(LIMIT * 2, 0.5))
        return await probe(scalar_metrics=[Scalar(lambda: task)]).measure(), await task

    reading, result = asyncio.run(main())
    assert (reading.errors[0].kind, result) == ("timeout", 0.5)


def test_measure_cancelling_the_caller_frees_the_sensor() -> None:
    async def main() -> Reading:
        event = threading.Event()
        sensor = probe(metrics=[Named(waiting(event)), GoalDrift()], timeout_s=30)
        task = asyncio.create_task(sensor.measure())
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        event.set()
        return await sensor.measure()

    with bounded():
        assert asyncio.run(main()).metrics["goal_drift"] is not None


CANCELLING = """
import asyncio
from coherence import CoherenceSensor
from coherence.providers import CallableState, HashingEmbedder

async def texts():
    await asyncio.sleep(0.001)
    return ["a", "b"]

async def main():
    sensor = CoherenceSensor(CallableState(goals=texts, context=texts, memories=texts), embedder=HashingEmbedder())
    for n in range(150):
        task = asyncio.create_task(sensor.measure())
        await asyncio.sleep(n * 0.00005)
        task.cancel()
        await asyncio.wait([task])
    assert not (await sensor.measure()).errors

asyncio.run(main())
"""


@pytest.mark.slow
def test_measure_cancelling_leaves_no_coroutine_behind() -> None:
    run = [sys.executable, "-X", "dev", "-W", "error", "-c", CANCELLING]
    result = subprocess.run(run, capture_output=True, text=True, timeout=120)
    assert (result.returncode, result.stderr) == (0, "")


def test_measure_concurrent_measurements_take_turns_in_order() -> None:
    running: list[int] = []
    overlaps: list[int] = []

    def slow() -> list[str]:
        running.append(1)
        overlaps.append(len(running))
        time.sleep(0.005)
        running.pop()
        return ["g"]

    async def main() -> CoherenceSensor:
        sensor = probe(CallableState(goals=slow, context=lambda: ["a", "b"]), timeout_s=30)
        threads = [threading.Thread(target=sensor.measure_sync) for _ in range(5)]
        for thread in threads:
            thread.start()
        await asyncio.gather(*(sensor.measure() for _ in range(10)))
        for thread in threads:
            await asyncio.to_thread(thread.join)
        return sensor

    sensor = asyncio.run(main())
    assert max(overlaps) == 1
    assert [reading.tick_seq for reading in sensor.history()] == list(range(15, 0, -1))
    assert not any(reading.errors for reading in sensor.history())


def test_measure_the_first_of_two_concurrent_measurements_is_the_older_one_even_if_slower() -> None:
    async def main() -> list[int]:
        pauses = iter([0.05, 0.0])

        async def goals() -> list[str]:
            await asyncio.sleep(next(pauses))
            return ["g"]

        sensor = probe(CallableState(goals=goals), timeout_s=30)
        await asyncio.gather(sensor.measure(Tick(1)), sensor.measure(Tick(2)))
        return [reading.tick_seq for reading in sensor.history()]

    assert asyncio.run(main()) == [2, 1]


@pytest.mark.slow
def test_measure_a_measurement_that_never_gets_its_turn_says_so_in_time(forever: threading.Event) -> None:
    sensor = probe(metrics=[Named(waiting(forever))])
    sensor._turnstile.enter(time.monotonic() + 60)  # somebody is in and does not come out
    for start in (CoherenceSensor.measure_sync, measure_async):
        with bounded():
            reading = start(sensor)
        assert (reading.errors[0].source, reading.errors[0].kind) == ("sensor", "timeout")
        assert sensor.latest is reading


@pytest.mark.slow
def test_turnstile_a_turn_that_is_never_given_back_is_taken_away() -> None:
    async def never() -> list[str]:
        await asyncio.Event().wait()
        return []

    sensor = probe(CallableState(goals=never), timeout_s=0.2)
    sensor._turnstile._patience = 0.0
    loop = asyncio.new_event_loop()
    task = loop.create_task(sensor.measure())
    loop.run_until_complete(asyncio.sleep(0.05))  # then the loop stops in the middle
    time.sleep(0.3)
    assert sensor.measure_sync().errors[0].source == "sensor"  # waited in vain, and took the turn away
    assert sensor.measure_sync().errors[0].source == "provider.get_goals"
    task.cancel()
    loop.run_until_complete(asyncio.wait([task]))
    loop.close()


def test_measure_sync_a_metric_that_comes_back_late_cannot_touch_the_next_tick() -> None:
    release, came_back = threading.Event(), threading.Event()

    class Late:
        """Asks for cosines after its tick is over."""

        name, inverted = "late", True

        def compute(self, data: Any) -> float:
            release.wait()
            try:
                data.cosines("context", "context")
            finally:
                came_back.set()
            return 0.0

    provider = state()
    sensor = probe(provider, metrics=[Late(), SemanticDiffusion()])
    sensor.measure_sync()
    provider.context.append("something new")
    expected = probe(provider, metrics=[SemanticDiffusion()]).measure_sync().metrics["semantic_diffusion"]
    assert sensor.measure_sync().metrics["semantic_diffusion"] == expected
    release.set()
    assert came_back.wait(10)
    assert sensor.measure_sync().metrics["semantic_diffusion"] == expected


def test_coherence_sensor_a_dropped_one_leaves_nothing_behind() -> None:
    sensor = probe(StaticState())
    sensor.measure_sync()
    reference = weakref.ref(sensor)
    del sensor
    gc.collect()
    assert reference() is None
