"""Plug-ins that misbehave outside the plain call: in what they return, in their attributes, in their timing."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import hostile
import numpy as np
import pytest
from hostile import RAISES, hang, lying_number, lying_text, speaking, touchy

from coherence import CoherenceSensor, EmbeddingCache, Evidence, Reading, Tick
from coherence.metrics import GoalDrift, SemanticDiffusion
from coherence.providers import CallableState, HashingEmbedder, StaticState
from coherence.testing import TableEmbedder

LIMIT = 0.4
PATIENCE = LIMIT + 1.5


class Fatal(BaseException):
    """Not an Exception."""


class Named:
    """A metric whose compute is given."""

    name = "bad"
    inverted = True

    def __init__(self, compute: Callable[[], Any]) -> None:
        self._compute = compute

    def compute(self, data: object) -> Any:
        return self._compute()


class Scalar(Named):
    """A scalar whose compute is given."""

    def compute(self) -> Any:  # type: ignore[override]
        return self._compute()


@pytest.fixture
def forever() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def state() -> StaticState:
    return StaticState(goals=["fix the login"], context=["reading login.py", "the test fails"], memories=["login"])


def probe(provider: object = None, **options: Any) -> CoherenceSensor:
    return CoherenceSensor(provider or state(), **{"embedder": HashingEmbedder(), "timeout_s": LIMIT, **options})  # type: ignore[arg-type]


def both_ways(make: Callable[[], CoherenceSensor]) -> list[Reading]:
    readings = []
    for start in (CoherenceSensor.measure_sync, lambda sensor: asyncio.run(sensor.measure())):
        started = time.monotonic()
        readings.append(start(make()))
        assert time.monotonic() - started < PATIENCE
    return readings


def raising(error: BaseException) -> Callable[..., Any]:
    def act(*_: object) -> Any:
        raise error

    return act


def waiting(event: threading.Event) -> Callable[..., Any]:
    def act(*_: object) -> Any:
        event.wait()

    return act


@pytest.mark.parametrize(
    ("where", "act"),
    [
        ("__class__", raising),  # and nothing to hang: isinstance looks at the type first
        *itertools.product(["__float__", "__iter__", "__str__ of the error", "generator"], [raising, waiting]),
    ],
)
def test_attacks_what_a_plug_in_returns_may_misbehave_when_it_is_read(
    where: str, act: Callable[..., Callable[..., Any]], forever: threading.Event
) -> None:
    do = act(Fatal("out")) if act is raising else act(forever)

    class Thing:
        __float__ = do
        __iter__ = do

    class Proxy:
        __class__ = property(do)

    class Wordless(Exception):
        __str__ = do

    def generator() -> Iterator[str]:
        yield "a"
        do()

    if where == "generator":
        readings = both_ways(lambda: probe(CallableState(goals=lambda: ["g"], context=generator)))  # type: ignore[arg-type]
    elif where == "__iter__":
        readings = both_ways(lambda: probe(CallableState(goals=lambda: ["g"], context=Thing)))  # type: ignore[arg-type]
    else:
        compute = {"__float__": Thing, "__class__": Proxy, "__str__ of the error": raising(Wordless())}[where]
        readings = both_ways(lambda: probe(metrics=[Named(compute), GoalDrift()]))
    for reading in readings:
        assert len(reading.errors) == 1
        assert reading.coverage < 1


def test_attacks_an_endless_iterator_is_cut_off() -> None:
    reading = probe(CallableState(context=lambda: itertools.repeat("x")), timeout_s=20).measure_sync()  # type: ignore[arg-type, return-value]
    assert "more than 2,000,000 texts" in reading.errors[0].message


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), Fatal(), GeneratorExit(), StopIteration()])
def test_attacks_no_exception_of_an_async_plug_in_ends_the_hosts_loop(error: BaseException) -> None:
    async def fail() -> Any:
        raise error

    for reading in both_ways(
        lambda: probe(
            scalar_metrics=[
                Scalar(fail),
            ]
        )
    ):
        assert reading.metrics["goal_drift"] is not None
        assert reading.errors[0].source == "metric bad"


def test_attacks_a_future_of_another_loop_is_named() -> None:
    loop = asyncio.new_event_loop()
    future = loop.create_future()
    loop.close()
    for reading in both_ways(lambda: probe(scalar_metrics=[Scalar(lambda: future)])):
        assert "another event loop" in reading.errors[0].message


@pytest.mark.slow
def test_attacks_the_hosts_own_task_is_not_cancelled() -> None:
    async def main() -> tuple[Reading, str]:
        async def slow() -> float:
            await asyncio.sleep(LIMIT * 2)
            return 0.5

        task = asyncio.create_task(slow())
        reading = await probe(scalar_metrics=[Scalar(lambda: task)]).measure()
        return reading, str(await task)

    reading, result = asyncio.run(main())
    assert reading.errors[0].kind == "timeout"
    assert result == "0.5"


@pytest.mark.slow
@pytest.mark.parametrize("act", [raising, waiting], ids=["raises", "hangs"])
def test_attacks_a_fingerprint_may_misbehave(act: Callable[..., Callable[..., Any]], forever: threading.Event) -> None:
    do = act(Fatal()) if act is raising else act(forever)

    class Odd(TableEmbedder):
        fingerprint = property(do)

    for reading in both_ways(lambda: probe(embedder=Odd({}))):
        assert reading.errors[0].source == "embedder"
        assert reading.coverage == 0.0


def test_attacks_a_compute_that_cannot_be_reached_costs_its_value_only() -> None:
    class Odd:
        """Its method breaks after the sensor was made."""

        name = "odd"
        inverted = True
        broken = False

        @property
        def compute(self) -> Callable[[], float]:
            if self.broken:
                raise RuntimeError("gone")
            return lambda: 0.5

    odd = Odd()
    sensor = probe(scalar_metrics=[odd])
    odd.broken = True
    reading = sensor.measure_sync()
    assert reading.errors[0].message == "gone"
    assert reading.metrics["goal_drift"] is not None


def test_attacks_texts_of_a_subclass_of_str_are_taken_by_their_characters() -> None:
    class Evil(str):
        def __hash__(self) -> int:
            raise Fatal

        def __eq__(self, other: object) -> bool:
            raise Fatal

    reading = probe(CallableState(goals=lambda: [Evil("g")], context=lambda: [Evil("a"), Evil("b")])).measure_sync()
    assert reading.errors == ()
    assert reading.metrics["goal_drift"] is not None


def test_attacks_a_fault_of_this_package_is_a_reading_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coherence.core.plugin_calls.submit", raising(RuntimeError("can't start new thread")))
    reading = probe(CallableState(goals=lambda: ["g"])).measure_sync()
    assert (reading.coverage, reading.errors[0].message) == (0.0, "can't start new thread")


@pytest.mark.slow
def test_attacks_many_skipped_calls_do_not_start_a_second_worker() -> None:
    texts = [f"m{n}" for n in range(50_000)]
    sensor = probe(CallableState(goals=lambda: ["g"], memories=lambda: texts), timeout_s=0.05)
    for _ in range(10):
        sensor.measure_sync()
    assert [reading.tick_seq for reading in sensor.history()] == list(range(10, 0, -1))


@pytest.mark.slow
def test_attacks_a_turn_that_is_never_given_back_is_taken_away() -> None:
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


@pytest.mark.slow
def test_attacks_cancelling_leaves_no_coroutine_behind() -> None:
    code = """
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
    run = [sys.executable, "-X", "dev", "-W", "error", "-c", code]
    result = subprocess.run(run, capture_output=True, text=True, timeout=120)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.slow
def test_attacks_a_blocked_kept_loop_is_replaced_and_ends_when_it_can() -> None:
    def loops() -> int:
        return sum(thread.name == "coherence-loop" for thread in threading.enumerate())

    async def blocks() -> float:
        time.sleep(0.5)  # in a coroutine, which blocks its loop
        return 0.5

    for _ in range(3):
        probe(scalar_metrics=[Scalar(blocks)], timeout_s=0.1).measure_sync()
    deadline = time.monotonic() + 20
    while loops() > 1 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert loops() <= 1


def test_attacks_another_model_may_have_another_dimension() -> None:
    class Switching(TableEmbedder):
        fingerprint = "one"

    embedder = Switching({"g": [1, 0], "c": [1, 0]})
    sensor = probe(StaticState(goals=["g"], context=["c"]), embedder=embedder, metrics=[GoalDrift()])
    assert sensor.measure_sync().metrics["goal_drift"] == 0.0
    embedder.fingerprint, embedder.dimensions = "two", 3
    embedder.table = {"g": np.array([1.0, 0, 0]), "c": np.array([0.0, 1, 0])}
    reading = sensor.measure_sync()
    assert (reading.errors, reading.metrics["goal_drift"]) == ((), 1.0)


class Picky(HashingEmbedder):
    """Refuses some texts for good."""

    def embed(self, text: str) -> np.ndarray:
        if text.startswith("too long"):
            raise ValueError("413 input too long")
        return super().embed(text)


class PickyBatch(Picky):
    """Refuses a batch that holds such a text."""

    batch_size = 8


@pytest.mark.parametrize("embedder", [Picky, PickyBatch])
def test_attacks_texts_that_always_fail_blind_the_sensor_for_a_few_ticks_only(embedder: type[Picky]) -> None:
    bad = [f"too long {n}" for n in range(4)]
    sensor = probe(StaticState(goals=["g"], context=[*bad, "fine", "also fine"]), embedder=embedder())
    for _ in range(8):
        reading = sensor.measure_sync()
    assert reading.metrics["semantic_diffusion"] is not None  # of the two others
    assert all("413 input too long" in failure.message for failure in reading.errors)
    assert reading.errors


def test_attacks_an_embedder_that_is_down_makes_no_text_bad() -> None:
    class Down(HashingEmbedder):
        down = True

        def embed(self, text: str) -> np.ndarray:
            if self.down:
                raise ConnectionError("refused")
            return super().embed(text)

    embedder = Down()
    sensor = probe(embedder=embedder)
    for _ in range(10):
        assert sensor.measure_sync().coverage == 0.0
    embedder.down = False
    assert sensor.measure_sync().coverage == 1.0


def test_attacks_a_text_that_several_sensors_need_at_once_is_embedded_by_one() -> None:
    embedded: list[str] = []

    class Slow(HashingEmbedder):
        def embed(self, text: str) -> np.ndarray:
            embedded.append(text)
            time.sleep(0.002)
            return super().embed(text)

    cache = EmbeddingCache(Slow())
    start = threading.Barrier(6)
    failures: list[object] = []

    def work() -> None:
        sensor = probe(StaticState(goals=["g"], context=[f"c{n}" for n in range(20)]), embedder=cache, timeout_s=30)
        start.wait()
        failures.extend(sensor.measure_sync().errors)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert sorted(embedded) == sorted(set(embedded))


def test_attacks_a_row_that_was_zero_for_want_of_a_vector_gets_it_when_there_is_one() -> None:
    embedder = TableEmbedder({"g": [1, 0], "c": [0, 0], "d": [1, 0]})
    cache = EmbeddingCache(embedder, max_texts=1)
    provider = StaticState(goals=["g"], context=["c"])
    sensor = probe(provider, embedder=cache, missing="zero", metrics=[GoalDrift()])
    assert sensor.measure_sync().metrics["goal_drift"] == 1.0
    embedder.table["c"] = embedder.table["g"]
    cache._kept.clear()  # the bad entry was least recently used
    provider.context = ["c", "d"]
    assert sensor.measure_sync().metrics["goal_drift"] == 0.0


def test_evidence_is_brought_into_a_form_that_can_be_kept() -> None:
    class Careless(GoalDrift):
        def explain(self, data: object) -> Evidence:
            return Evidence("\x1b[2J" + "why " * 1000, "context", [np.int64(1)], ["x" * 100_000])  # type: ignore[arg-type]

    reading = probe(metrics=[Careless()]).measure_sync()
    evidence = reading.evidence["goal_drift"]
    assert evidence.items == (1,)
    assert isinstance(evidence.items[0], int)
    assert len(evidence.texts[0]) < 200
    assert "\x1b" not in reading.explain()
    assert isinstance(hash(reading), int)
    reading.to_dict()


def test_a_metric_in_place_is_not_asked_to_explain_what_is_below_told_from() -> None:
    class Quiet(GoalDrift):
        told_from = 0.9

    reading = probe(metrics=[Quiet()]).measure_sync()
    assert 0.5 < (reading.metrics["goal_drift"] or 0.0) < 0.9
    assert "goal_drift" not in reading.evidence


@pytest.mark.parametrize("wrong", [Evidence("why", "nowhere"), "words"])  # type: ignore[arg-type]
def test_attacks_evidence_of_another_kind_is_an_error(wrong: object) -> None:
    class Wrong(GoalDrift):
        def explain(self, data: object) -> Any:
            return wrong

    reading = probe(metrics=[Wrong()]).measure_sync()
    assert reading.metrics["goal_drift"] is not None
    assert "explain failed" in reading.errors[0].message


def test_attacks_an_async_explain_is_an_error_without_noise() -> None:
    class Async(GoalDrift):
        async def explain(self, data: object) -> Any:  # type: ignore[override]
            return None

    assert "explain failed" in probe(metrics=[Async()]).measure_sync().errors[0].message


def test_attacks_texts_of_an_agent_cannot_drive_the_terminal() -> None:
    provider = StaticState(goals=["g\x1b]0;owned\x07"], context=["\x1b[2Ja", "\u202eb"])
    reading = probe(provider, metrics=[GoalDrift(), Named(raising(ValueError("\x1b[31m")))]).measure_sync()
    shown = reading.explain() + str(reading) + "".join(map(str, reading.errors))
    assert not {"\x1b", "\x07", "\u202e"} & set(shown)


def test_attacks_a_metric_cannot_write_into_what_the_sensor_keeps() -> None:
    class Vandal:
        """Tries."""

        name = "vandal"
        inverted = True

        def compute(self, data: Any) -> float:
            for array in (data.context, data.cosines("context", "context")):
                with pytest.raises(ValueError, match="WRITEABLE"):
                    array.flags.writeable = True
            return 0.0

    assert probe(metrics=[Vandal(), SemanticDiffusion()]).measure_sync().errors == ()


def test_attacks_a_readings_parts_cannot_be_filled_again() -> None:
    reading = probe().measure_sync(Tick(1))
    before = dict(reading.metrics)
    reading.metrics.__init__({"goal_drift": 0.0})  # type: ignore[misc]
    assert dict(reading.metrics) == before


@pytest.mark.parametrize("act", [hang, *RAISES.values()], ids=["hangs", *RAISES])
def test_attacks_texts_and_values_that_lie_are_measured_as_what_they_are_or_are_errors(act: Callable[[], Any]) -> None:
    honest = probe(metrics=[GoalDrift(), Named(lambda: 0.5)]).measure_sync()
    for text in (lying_text("fix the login", act), touchy(act), speaking(act)):
        given: Any = StaticState(goals=["fix the login"], context=["reading login.py", "the test fails"])
        given.get_goals = lambda text=text: [text]
        for reading in both_ways(lambda given=given: probe(given, metrics=[GoalDrift()])):  # type: ignore[misc]
            if text is not None and issubclass(type(text), str):
                assert reading.errors == () and reading.metrics["goal_drift"] == honest.metrics["goal_drift"]
            else:
                assert len(reading.errors) == 1
    for number in (lying_number(float, 0.5, act), touchy(act), lying_text("0.5", act)):
        for reading in both_ways(lambda number=number: probe(metrics=[GoalDrift(), Named(lambda: number)])):  # type: ignore[misc]
            assert len(reading.errors) <= 1 and reading.metrics["goal_drift"] == honest.metrics["goal_drift"]
            assert reading.metrics["bad"] in (0.5, None) and type(reading.metrics["bad"]) in (float, type(None))
    hostile.let_go()


def test_attacks_a_metric_that_declares_to_be_quick_runs_under_the_timeout_on_many_texts(
    forever: threading.Event,
) -> None:
    class Quick(GoalDrift):
        name = "quick"
        in_place = True

        def compute(self, data: object) -> float:
            return 0.5 if forever.wait(5) else 1.0

    many = StaticState(goals=["g"], context=["c"], memories=["m"] * 2_001)  # one of them is embedded
    reading = probe(many, metrics=[Quick()]).measure_sync()
    assert [(failure.source, failure.kind) for failure in reading.errors] == [("metric quick", "timeout")]
