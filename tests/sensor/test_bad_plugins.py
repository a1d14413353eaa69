"""Nonsense that plug-ins return or raise becomes an entry in ``reading.errors`` and costs its own value only."""

from __future__ import annotations

import asyncio
import itertools
import re
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from coherence import Tick
from coherence.metrics import GoalDrift, SemanticDiffusion
from coherence.providers import CallableState, StaticState
from sensor.plugins import Fatal, Named, Scalar, both_ways, probe, raising, waiting

boom = raising(RuntimeError("boom"))


async def async_boom() -> object:
    raise RuntimeError("boom")


@pytest.mark.parametrize(
    ("result", "kind", "message"),
    [
        (boom, "RuntimeError", "boom"),
        (async_boom, "RuntimeError", "boom"),
        (lambda: sys.exit(3), "SystemExit", "3"),
        (lambda: "one", "ValueError", "could not convert"),
        (lambda: [0.1], "TypeError", "list"),
        (lambda: float("nan"), "ValueError", "outside"),
        (lambda: 1.5, "ValueError", r"returned 1.5, outside \[0, 1\]"),
        (lambda: -0.1, "ValueError", "outside"),
    ],
)
@pytest.mark.parametrize("scalar", [False, True], ids=["vector", "scalar"])
def test_errors_a_metric_that_fails_costs_its_own_value_only(
    scalar: bool, result: Callable[[], object], kind: str, message: str
) -> None:
    options = {"scalar_metrics": [Scalar(result)]} if scalar else {"metrics": [Named(result), GoalDrift()]}
    for reading in both_ways(lambda: probe(**options)):
        assert (reading.metrics["bad"], reading.unknown["bad"]) == (None, f"failed: {kind}")
        assert reading.metrics["goal_drift"] is not None
        (failure,) = reading.errors
        assert (failure.source, failure.kind) == ("metric bad", kind) and re.search(message, failure.message)
        assert 0 < reading.coverage < 1


@pytest.mark.parametrize("value", [np.float32(0.5), np.array(0.5), True, 1, 0.5000001, 1 + 1e-9])
def test_as_value_numbers_of_any_library_are_taken(value: object) -> None:
    reading = probe(scalar_metrics=[Scalar(lambda: value)]).measure_sync()
    assert reading.errors == ()
    assert reading.metrics["bad"] == pytest.approx(float(value), abs=1e-6)  # type: ignore[arg-type]


TOUCHED = {
    "goals": {"goal_drift", "memory_retention"},
    "context": {"goal_drift", "contradiction_pressure", "semantic_diffusion"},
    "memories": {"memory_retention"},
}


@pytest.mark.parametrize("getter", TOUCHED)
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
def test_errors_a_source_that_fails_leaves_only_its_metrics_unknown(
    getter: str, result: Callable[[], object], message: str
) -> None:
    functions = {"goals": lambda: ["g"], "context": lambda: ["c1", "c2"], "memories": lambda: ["m"], getter: result}
    for reading in both_ways(lambda: probe(CallableState(**functions))):  # type: ignore[arg-type]
        (failure,) = reading.errors
        assert message in failure.message
        unknown = {name for name, value in reading.metrics.items() if value is None}
        assert unknown == TOUCHED[getter] and all("failed" in reading.unknown[name] for name in unknown)


def test_as_texts_any_iterable_will_do_and_an_endless_one_is_cut_off() -> None:
    provider: Any = CallableState(goals=lambda: ("g",), context=lambda: (t for t in ("c1", "c2")))  # type: ignore[arg-type, return-value]
    assert probe(provider).measure_sync().errors == ()
    endless: Any = CallableState(context=lambda: itertools.repeat("x"))  # type: ignore[arg-type, return-value]
    assert "more than 2,000,000 texts" in probe(endless, timeout_s=20).measure_sync().errors[0].message


@pytest.mark.parametrize(
    ("where", "act"),
    [
        ("__class__", raising),  # and nothing to hang: isinstance looks at the type first
        *itertools.product(["__float__", "__iter__", "__str__ of the error", "generator"], [raising, waiting]),
    ],
)
def test_errors_what_a_plug_in_returns_may_misbehave_when_it_is_read(
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

    sources = {"generator": generator, "__iter__": Thing}
    computes = {"__float__": Thing, "__class__": Proxy, "__str__ of the error": raising(Wordless())}
    for reading in both_ways(
        lambda: (
            probe(CallableState(goals=lambda: ["g"], context=sources[where]))  # type: ignore[arg-type]
            if where in sources
            else probe(metrics=[Named(computes[where]), GoalDrift()])
        )
    ):
        assert len(reading.errors) == 1 and reading.coverage < 1


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), Fatal(), GeneratorExit(), StopIteration()])
def test_measure_no_exception_of_an_async_plug_in_ends_the_hosts_loop(error: BaseException) -> None:
    async def fail() -> Any:
        raise error

    for reading in both_ways(lambda: probe(scalar_metrics=[Scalar(fail)])):
        assert reading.metrics["goal_drift"] is not None and reading.errors[0].source == "metric bad"


def test_errors_a_future_of_another_loop_is_named() -> None:
    loop = asyncio.new_event_loop()
    future = loop.create_future()
    loop.close()
    for reading in both_ways(lambda: probe(scalar_metrics=[Scalar(lambda: future)])):
        assert "another event loop" in reading.errors[0].message


def test_errors_a_compute_that_cannot_be_reached_costs_its_value_only() -> None:
    class Odd:
        """Its method breaks after the sensor was made."""

        name, inverted, broken = "odd", True, False

        @property
        def compute(self) -> Callable[[], float]:
            if self.broken:
                raise RuntimeError("gone")
            return lambda: 0.5

    odd = Odd()
    sensor = probe(scalar_metrics=[odd])
    odd.broken = True
    reading = sensor.measure_sync()
    assert reading.errors[0].message == "gone" and reading.metrics["goal_drift"] is not None


def test_as_texts_a_subclass_of_str_is_taken_by_its_characters() -> None:
    class Evil(str):
        __hash__ = raising(Fatal())
        __eq__ = raising(Fatal())

    reading = probe(CallableState(goals=lambda: [Evil("g")], context=lambda: [Evil("a"), Evil("b")])).measure_sync()
    assert reading.errors == () and reading.metrics["goal_drift"] is not None


def test_measure_sync_a_fault_of_this_package_is_a_reading_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coherence.sensor.plugin_calls.submit", raising(RuntimeError("can't start new thread")))
    reading = probe(CallableState(goals=lambda: ["g"])).measure_sync()
    assert (reading.coverage, reading.errors[0].message) == (0.0, "can't start new thread")


def test_measure_sync_hostile_texts_are_measured_like_any_other_and_cannot_drive_a_terminal() -> None:
    texts = ["\x00", "\ud800", "🙂" * 1000, "a" * 1_000_000, "\u202e", "</script>", "[SEP] [CLS]", "\x1b]0;owned\x07"]
    reading = probe(StaticState(goals=texts[:2], context=texts, memories=texts), timeout_s=30).measure_sync()
    assert (reading.errors, reading.coverage) == ((), 1.0) and len(reading.explain()) < 5_000
    provider = StaticState(goals=["g\x1b]0;owned\x07"], context=["\x1b[2Ja", "\u202eb"])
    failing = probe(provider, metrics=[GoalDrift(), Named(raising(ValueError("\x1b[31m")))]).measure_sync()
    shown = failing.explain() + str(failing) + "".join(map(str, failing.errors))
    assert not {"\x1b", "\x07", "\u202e"} & set(shown)


def test_metric_input_a_metric_cannot_write_into_what_the_sensor_keeps() -> None:
    class Vandal:
        name, inverted = "vandal", True

        def compute(self, data: Any) -> float:
            for array in (data.context, data.cosines("context", "context")):
                with pytest.raises(ValueError, match="WRITEABLE"):
                    array.flags.writeable = True
            return 0.0

    assert probe(metrics=[Vandal(), SemanticDiffusion()]).measure_sync().errors == ()
    reading = probe().measure_sync(Tick(1))
    before = dict(reading.metrics)
    reading.metrics.__init__({"goal_drift": 0.0})  # type: ignore[misc]
    assert dict(reading.metrics) == before
