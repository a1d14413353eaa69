"""A sensor never hurts its host: what fails, hangs or returns nonsense becomes an entry in ``reading.errors``."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from coherence import CoherenceSensor, Reading, Tick
from coherence.metrics import GoalDrift, SemanticDiffusion
from coherence.providers import CallableState, HashingEmbedder, StaticState

LIMIT = 0.4
"""``timeout_s`` in these tests."""

PATIENCE = LIMIT + 1.5
"""Seconds that a measurement may take on a busy machine; a hang would take for ever."""


class Named:
    """A plug-in whose compute is given."""

    inverted = True

    def __init__(self, compute: Callable[..., object], name: str = "bad") -> None:
        self.name = name
        self._compute = compute

    def compute(self, data: object) -> float:
        return self._compute()  # type: ignore[return-value]


class NamedScalar(Named):
    """A scalar whose compute is given."""

    def compute(self) -> float:  # type: ignore[override]
        return self._compute()  # type: ignore[return-value]


def state() -> StaticState:
    return StaticState(goals=["fix the login"], context=["reading login.py", "the test fails"], memories=["login"])


def probe(provider: object = None, **options: object) -> CoherenceSensor:
    settings = {"embedder": HashingEmbedder(), "timeout_s": LIMIT, **options}
    return CoherenceSensor(provider or state(), **settings)  # type: ignore[arg-type]


@contextmanager
def bounded() -> Iterator[None]:
    started = time.monotonic()
    yield
    assert time.monotonic() - started < PATIENCE


@pytest.fixture
def forever() -> Iterator[threading.Event]:
    """An event that is never set while the test runs, so that what waits for it hangs."""
    event = threading.Event()
    yield event
    event.set()


def measure_async(sensor: CoherenceSensor) -> Reading:
    return asyncio.run(sensor.measure())


def both_ways(make: Callable[[], CoherenceSensor]) -> list[Reading]:
    """Measure with a thread and with an event loop."""
    with bounded():
        first = make().measure_sync()
    with bounded():
        second = asyncio.run(make().measure())
    return [first, second]


def boom() -> object:
    raise RuntimeError("boom")


async def async_boom() -> object:
    raise RuntimeError("boom")


def leave() -> object:
    sys.exit(3)


@pytest.mark.parametrize(
    ("result", "kind", "message"),
    [
        (boom, "RuntimeError", "boom"),
        (async_boom, "RuntimeError", "boom"),
        (leave, "SystemExit", "3"),
        (lambda: "one", "ValueError", "could not convert"),
        (lambda: [0.1], "TypeError", "list"),
        (lambda: float("nan"), "ValueError", "outside"),
        (lambda: 1.5, "ValueError", r"returned 1.5, outside \[0, 1\]"),
        (lambda: -0.1, "ValueError", "outside"),
        (lambda: 1j, "TypeError", "complex"),
    ],
)
@pytest.mark.parametrize("kind_of_metric", [Named, NamedScalar])
def test_robustness_a_metric_that_fails_costs_its_own_value_only(
    kind_of_metric: type[Named], result: Callable[[], object], kind: str, message: str
) -> None:
    options = {"metrics" if kind_of_metric is Named else "scalar_metrics": [kind_of_metric(result)]}
    if kind_of_metric is Named:
        options["metrics"] = [*options["metrics"], GoalDrift()]  # type: ignore[list-item]
    for reading in both_ways(lambda: probe(**options)):
        assert reading.metrics["bad"] is None
        assert reading.unknown["bad"] == f"failed: {kind}"
        assert reading.metrics["goal_drift"] is not None
        (failure,) = reading.errors
        assert (failure.source, failure.kind) == ("metric bad", kind)
        assert pytest.importorskip("re").search(message, failure.message)
        assert 0 < reading.coverage < 1


@pytest.mark.parametrize("value", [np.float32(0.5), np.float64(0.5), np.array(0.5), True, 1, 0.5000001, 1 + 1e-9])
def test_robustness_numbers_of_any_library_are_taken(value: object) -> None:
    reading = probe(scalar_metrics=[NamedScalar(lambda: value)]).measure_sync()
    assert reading.errors == ()
    assert reading.metrics["bad"] == pytest.approx(float(value), abs=1e-6)  # type: ignore[arg-type]


@pytest.mark.parametrize("getter", ["goals", "context", "memories"])
@pytest.mark.parametrize(
    ("result", "message"),
    [
        (boom, "boom"),
        (async_boom, "boom"),
        (lambda: "one text", "returned str, expected a list of str"),
        (lambda: None, "returned NoneType"),
        (lambda: ["a", None], "item 1 is NoneType, expected str"),
        (lambda: [b"a"], "item 0 is bytes"),
    ],
)
def test_a_source_that_fails_leaves_only_its_metrics_unknown(
    getter: str, result: Callable[[], object], message: str
) -> None:
    functions = {"goals": lambda: ["g"], "context": lambda: ["c1", "c2"], "memories": lambda: ["m"], getter: result}
    for reading in both_ways(lambda: probe(CallableState(**functions))):  # type: ignore[arg-type]
        (failure,) = reading.errors
        assert message in failure.message
        touched = {
            "goals": {"goal_drift", "memory_retention"},
            "context": {"goal_drift", "contradiction_pressure", "semantic_diffusion"},
            "memories": {"memory_retention"},
        }[getter]
        assert {name for name, value in reading.metrics.items() if value is None} == touched
        assert all("failed" in reading.unknown[name] for name in touched)


def test_robustness_any_iterable_of_texts_will_do() -> None:
    provider = CallableState(goals=lambda: ("g",), context=lambda: (t for t in ("c1", "c2")))  # type: ignore[arg-type, return-value]
    assert probe(provider).measure_sync().errors == ()


class BadEmbedder:
    """Returns what it is told for one text, and a good vector otherwise."""

    dimensions = 4

    def __init__(self, answer: Callable[[], object]) -> None:
        self.answer = answer
        self.calls = 0

    def embed(self, text: str) -> object:
        self.calls += 1
        return self.answer() if text == "bad" else [1.0, len(text), 0.0, 0.0]

    def embed_batch(self, texts: list[str]) -> object:
        return [self.embed(text) for text in texts]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda: [0.0] * 4, "zero vector"),
        (lambda: [float("nan")] * 4, "NaN or infinity"),
        (lambda: [1.0] * 3, "3 dimensions, expected 4"),
        (lambda: [[1.0] * 4, [1.0] * 4], "2 vectors for one text"),
        (lambda: [], "empty vector"),
        (lambda: "vector", "not a vector of numbers"),
        (lambda: [10**400, 1], ""),
        (lambda: [1, None], ""),
        (lambda: {"a": object()}, ""),
    ],
)
def test_robustness_a_bad_vector_is_named_left_out_and_not_asked_for_again(
    answer: Callable[[], object], message: str
) -> None:
    embedder = BadEmbedder(answer)
    provider = StaticState(goals=["goal"], context=["one", "bad", "three"])
    sensor = probe(provider, embedder=embedder)
    for _ in range(3):
        reading = sensor.measure_sync()
        (failure,) = reading.errors
        assert (failure.source, failure.kind) == ("embedder", "bad vector")
        assert message in failure.message and "“bad”" in failure.message
        assert reading.metrics["semantic_diffusion"] is not None  # of the two others
    assert embedder.calls == 4


def test_robustness_a_source_without_any_usable_vector_is_unknown() -> None:
    reading = probe(StaticState(goals=["bad"], context=["a", "b"]), embedder=BadEmbedder(lambda: [])).measure_sync()
    assert reading.unknown["goal_drift"] == "no usable vector for any of the goals"
    assert reading.metrics["semantic_diffusion"] is not None


def test_robustness_a_text_the_embedder_raises_on_is_tried_again_and_the_others_go_on() -> None:
    answers = iter([boom, boom])

    def flaky() -> object:
        for answer in answers:
            answer()
        return [1.0, 1.0, 1.0, 1.0]

    sensor = probe(StaticState(goals=["bad"], context=["a", "b"]), embedder=BadEmbedder(flaky))
    first = sensor.measure_sync()
    assert first.errors[0].kind == "RuntimeError"
    assert first.metrics["semantic_diffusion"] is not None
    assert first.unknown["goal_drift"] == "1 of 1 goals have no vector yet"
    sensor.measure_sync()
    assert sensor.measure_sync().errors == ()


def test_robustness_a_dead_embedder_is_given_up_on_after_a_few_texts() -> None:
    class Dead(BadEmbedder):
        def embed(self, text: str) -> object:
            self.calls += 1
            raise ConnectionError("refused")

    embedder = Dead(lambda: [])
    sensor = probe(StaticState(goals=["g"], context=[f"c{i}" for i in range(500)]), embedder=embedder)
    reading = sensor.measure_sync()
    assert embedder.calls == 3
    assert reading.coverage == 0.0
    assert {failure.kind for failure in reading.errors} == {"ConnectionError"}


def test_robustness_a_batch_of_the_wrong_size_is_named() -> None:
    class Short(HashingEmbedder):
        batch_size = 8

        def embed_batch(self, texts: object) -> np.ndarray:
            return super().embed_batch(list(texts)[:-1])  # type: ignore[call-overload]

    reading = probe(embedder=Short()).measure_sync()
    assert "returned 3 vectors for 4 texts" in reading.errors[0].message


def test_robustness_an_async_embedder_is_awaited_text_by_text() -> None:
    class Async(HashingEmbedder):
        async def embed(self, text: str) -> np.ndarray:  # type: ignore[override]
            await asyncio.sleep(0)
            return super().embed(text)

    for reading in both_ways(lambda: probe(embedder=Async())):
        assert (reading.errors, reading.coverage) == ((), 1.0)


def hang(event: threading.Event) -> Callable[[], object]:
    def wait() -> object:
        event.wait()
        return 0.0

    return wait


async def async_hang() -> object:
    await asyncio.Event().wait()
    return 0.0


def test_robustness_a_hanging_metric_costs_at_most_the_timeout_and_is_left_out_after(forever: threading.Event) -> None:
    for make in (hang(forever), async_hang):
        for reading in both_ways(lambda make=make: probe(metrics=[Named(make), GoalDrift()])):  # type: ignore[misc]
            (failure,) = reading.errors
            assert (failure.source, failure.kind) == ("metric bad", "timeout")
            assert reading.metrics["goal_drift"] is not None


def test_robustness_a_plug_in_that_hung_is_left_out_until_its_call_has_ended(forever: threading.Event) -> None:
    sensor = probe(metrics=[Named(hang(forever)), GoalDrift()])
    sensor.measure_sync()
    threads = threading.active_count()
    for _ in range(20):
        reading = sensor.measure_sync()
        assert reading.errors[0].kind == "disabled"
        assert "still running" in reading.errors[0].message
    assert threading.active_count() <= threads
    forever.set()
    deadline = time.monotonic() + 10
    while sensor.measure_sync().errors and time.monotonic() < deadline:
        time.sleep(0.01)
    assert sensor.measure_sync().errors == ()


@pytest.mark.slow
@pytest.mark.parametrize("getter", ["goals", "context", "memories"])
def test_robustness_a_hanging_getter_leaves_the_other_sources_measured(getter: str, forever: threading.Event) -> None:
    for make in (hang(forever), async_hang):
        functions = {"goals": lambda: ["g"], "context": lambda: ["c", "d"], "memories": lambda: ["m"], getter: make}
        for reading in both_ways(lambda functions=functions: probe(CallableState(**functions))):  # type: ignore[misc]
            (failure,) = reading.errors
            assert failure.kind == "timeout"
            if getter != "context":
                assert reading.metrics["semantic_diffusion"] is not None
            else:
                assert reading.metrics["memory_retention"] is not None


@pytest.mark.slow
def test_robustness_a_hanging_embedder_costs_at_most_the_timeout(forever: threading.Event) -> None:
    class Hanging(BadEmbedder):
        def embed(self, text: str) -> object:
            return hang(forever)()

    for reading in both_ways(lambda: probe(embedder=Hanging(lambda: []))):
        assert [(failure.source, failure.kind) for failure in reading.errors] == [("embedder", "timeout")]
        assert reading.coverage == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("make", [lambda event: hang(event), lambda event: async_hang, lambda event: boom])
def test_robustness_a_bad_callback_is_an_entry_in_the_stored_reading_too(
    make: Callable[[threading.Event], Callable[[], object]], forever: threading.Event
) -> None:
    for start in (CoherenceSensor.measure_sync, measure_async):
        sensor = probe(on_reading=lambda _: make(forever)())
        with bounded():
            reading = start(sensor)
        (failure,) = reading.errors
        assert failure.source == "on_reading"
        assert sensor.latest is reading
        assert sensor.history() == [reading]


def test_robustness_the_callback_sees_its_reading_already_stored() -> None:
    seen: list[bool] = []
    sensor: CoherenceSensor = probe(on_reading=lambda reading: seen.append(sensor.latest is reading))
    sensor.measure_sync()
    assert seen == [True]


@pytest.mark.slow
def test_robustness_a_slow_embedder_measures_what_it_can_and_goes_on_at_the_next_tick() -> None:
    class Slow(HashingEmbedder):
        def embed(self, text: str) -> np.ndarray:
            time.sleep(0.02)
            return super().embed(text)

    sensor = probe(StaticState(goals=["g"], context=["a", "b"], memories=[f"m{i}" for i in range(60)]), embedder=Slow())
    with bounded():
        first = sensor.measure_sync()
    assert first.metrics["goal_drift"] is not None
    assert "memories have no vector yet" in first.unknown["memory_retention"]
    assert [failure.kind for failure in first.errors] == ["timeout"]
    assert "the rest follows at the next ticks" in first.errors[0].message
    deadline = time.monotonic() + 30
    while sensor.measure_sync().metrics["memory_retention"] is None and time.monotonic() < deadline:
        pass
    assert sensor.measure_sync().coverage == 1.0


def test_robustness_measuring_works_inside_a_running_loop_with_async_plug_ins() -> None:
    async def scalar() -> object:
        await asyncio.sleep(0)
        return 0.25

    async def main() -> Reading:
        return probe(scalar_metrics=[NamedScalar(scalar)]).measure_sync()  # as in a notebook

    assert asyncio.run(main()).metrics["bad"] == 0.25


def test_robustness_a_coroutine_that_blocks_its_loop_is_given_up_on_in_a_thread(forever: threading.Event) -> None:
    async def blocks() -> object:
        forever.wait()
        return 0.0

    sensor = probe(scalar_metrics=[NamedScalar(blocks)])
    with bounded():
        reading = sensor.measure_sync()
    assert reading.errors[0].kind == "timeout"
    other = probe(scalar_metrics=[NamedScalar(lambda: asyncio.sleep(0, 0.5))])
    assert other.measure_sync().metrics["bad"] == 0.5  # on a new loop


def test_robustness_the_event_loop_stays_free_while_a_plain_plug_in_works() -> None:
    def slow() -> float:
        time.sleep(0.15)
        return 0.5

    async def main() -> int:
        beats = 0
        sensor = probe(metrics=[Named(slow)])
        measuring = asyncio.create_task(sensor.measure())
        while not measuring.done():
            await asyncio.sleep(0.005)
            beats += 1
        return beats

    assert asyncio.run(main()) >= 5


def test_robustness_cancelling_the_caller_frees_the_sensor(forever: threading.Event) -> None:
    async def main() -> Reading:
        event = threading.Event()
        sensor = probe(metrics=[Named(hang(event)), GoalDrift()], timeout_s=30)
        task = asyncio.create_task(sensor.measure())
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        event.set()
        return await sensor.measure()

    with bounded():
        assert asyncio.run(main()).metrics["goal_drift"] is not None


def test_robustness_concurrent_measurements_take_turns_in_order() -> None:
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
    assert all(not reading.errors for reading in sensor.history())


def test_robustness_the_first_of_two_concurrent_measurements_is_the_older_one_even_if_slower() -> None:
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
def test_robustness_a_measurement_that_never_gets_its_turn_says_so_in_time(forever: threading.Event) -> None:
    sensor = probe(metrics=[Named(hang(forever))], timeout_s=LIMIT)
    sensor._turnstile.enter(time.monotonic() + 60)  # somebody is in and does not come out
    for start in (CoherenceSensor.measure_sync, measure_async):
        with bounded():
            reading = start(sensor)
        assert (reading.errors[0].source, reading.errors[0].kind) == ("sensor", "timeout")
        assert sensor.latest is reading


def test_robustness_a_metric_that_comes_back_late_cannot_touch_the_next_tick() -> None:
    release, came_back = threading.Event(), threading.Event()
    provider = state()

    class Late:
        """Asks for cosines after its tick is over."""

        name = "late"
        inverted = True

        def compute(self, data: object) -> float:
            release.wait()
            try:
                data.cosines("context", "context")  # type: ignore[attr-defined]
            finally:
                came_back.set()
            return 0.0

    sensor = probe(provider, metrics=[Late(), SemanticDiffusion()])
    sensor.measure_sync()
    provider.context.append("something new")
    expected = probe(provider, metrics=[SemanticDiffusion()]).measure_sync().metrics["semantic_diffusion"]
    assert sensor.measure_sync().metrics["semantic_diffusion"] == expected
    release.set()
    assert came_back.wait(10)
    assert sensor.measure_sync().metrics["semantic_diffusion"] == expected


def test_robustness_hostile_texts_are_measured_like_any_other() -> None:
    texts = ["\x00", "\ud800", "🙂" * 1000, "a" * 1_000_000, "\u202e", "</script>", "[SEP] [CLS]"]
    reading = probe(StaticState(goals=texts[:2], context=texts, memories=texts), timeout_s=30).measure_sync()
    assert (reading.errors, reading.coverage) == ((), 1.0)
    assert len(reading.explain()) < 5_000


def test_robustness_a_dropped_sensor_leaves_nothing_behind() -> None:
    import weakref

    sensor = probe()
    sensor.measure_sync()
    reference = weakref.ref(sensor)
    del sensor
    gc.collect()
    assert reference() is None
