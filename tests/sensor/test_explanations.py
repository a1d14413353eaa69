"""Scalar metrics explain their values through the same door as the others."""

from __future__ import annotations

import asyncio
import math
import threading
from typing import Any

import pytest

from coherence import CoherenceSensor
from coherence.core.readings import Evidence, MetricInput, Reading
from coherence.providers import StaticState
from coherence.testing import TableEmbedder

FOUND = Evidence("since the last release", "context", (0,), ("the queue grows",))


class Queue:
    """Half, and why."""

    name = "queue"
    inverted = True

    def compute(self) -> Any:
        return 0.5

    def explain(self) -> Any:
        return FOUND


def measured(scalar: object) -> Reading:
    state = StaticState(["goal"], ["the queue grows"])
    sensor = CoherenceSensor(
        state,
        embedder=TableEmbedder({"goal": [1.0, 0.0], "the queue grows": [0.0, 1.0]}),
        metrics=[],
        scalar_metrics=[scalar],  # type: ignore[list-item]
        weights={"queue": 1.0},
    )
    plain, awaited = sensor.measure_sync(), asyncio.run(sensor.measure())
    assert plain.evidence == awaited.evidence
    assert [str(error) for error in plain.errors] == [str(error) for error in awaited.errors]
    return plain


def test_the_evidence_of_a_scalar_stands_in_the_reading() -> None:
    reading = measured(Queue())
    assert reading.evidence["queue"] == FOUND
    assert "queue 0.50 takes 0.50: “the queue grows” since the last release" in reading.explain()


def test_explanations_an_async_scalar_is_asked_after_its_value() -> None:
    class Later(Queue):
        """Waits."""

        ready = False

        async def compute(self) -> float:
            await asyncio.sleep(0)
            type(self).ready = True
            return 0.5

        def explain(self) -> Evidence:
            assert self.ready
            return FOUND

    assert measured(Later()).evidence["queue"] == FOUND


@pytest.mark.parametrize("found", ["because", 7, Evidence("", "nowhere"), OSError("broken")])  # type: ignore[arg-type]
def test_explanations_a_bad_explanation_costs_the_explanation_only(found: object) -> None:
    class Broken(Queue):
        """Half."""

        def explain(self) -> Any:
            if isinstance(found, Exception):
                raise found
            return found

    reading = measured(Broken())
    assert (reading.metrics["queue"], dict(reading.evidence)) == (0.5, {})
    assert "explain failed" in str(reading.errors[0])


def test_explanations_a_hostile_explanation_is_cut_and_shown_on_one_line() -> None:
    class Loud(Queue):
        """Half."""

        def explain(self) -> Evidence:
            return Evidence("\x1b[31m" + "a\n" * 100_000, "context", tuple(range(100)), ("b\n" * 100_000,) * 100)

    evidence = measured(Loud()).evidence["queue"]
    assert len(str(evidence)) < 1_500
    assert "\n" not in str(evidence)
    assert "\x1b" not in str(evidence)


class Vector:
    """Half, and why."""

    name = "vector"
    inverted = False
    ready = False

    async def compute(self, data: MetricInput) -> float:
        await asyncio.sleep(0)
        self.ready = True
        return 0.5

    def explain(self, data: MetricInput) -> Evidence:
        assert self.ready
        return FOUND


def test_explanations_an_async_metric_with_an_input_is_asked_after_its_value() -> None:
    state = StaticState(["goal"], ["the queue grows"])
    embedder = TableEmbedder({"goal": [1.0, 0.0], "the queue grows": [0.0, 1.0]})
    metric: Any = Vector()
    sensor = CoherenceSensor(state, embedder=embedder, metrics=[metric], weights={"vector": 1.0})
    reading = sensor.measure_sync()
    assert (reading.metrics["vector"], dict(reading.evidence), reading.errors) == (0.5, {"vector": FOUND}, ())


@pytest.mark.parametrize("value", [None, math.nan, 2.0, "half"])
def test_explanations_one_without_a_usable_value_is_not_asked(value: object) -> None:
    class Wrong(Queue):
        """No share."""

        def compute(self) -> Any:
            return value

        def explain(self) -> None:
            raise AssertionError("asked")

    reading = measured(Wrong())
    assert reading.metrics["queue"] is None
    assert len(reading.errors) == (value is not None) and "asked" not in str(reading.errors)


def test_explanations_an_explanation_that_hangs_costs_no_value_then_or_later() -> None:
    release = threading.Event()

    class Hangs(Queue):
        """Half, and after long why."""

        def explain(self) -> Any:
            release.wait(60)

    state = StaticState(["goal"], ["the queue grows"])
    embedder = TableEmbedder({"goal": [1.0, 0.0], "the queue grows": [0.0, 1.0]})
    second = Queue()
    second.name = "second"
    sensor = CoherenceSensor(
        state,
        embedder=embedder,
        metrics=[],
        scalar_metrics=[Hangs(), second],
        weights={"queue": 1.0, "second": 1.0},
        timeout_s=1.0,
    )
    try:
        readings = [sensor.measure_sync() for _ in range(3)]
    finally:
        release.set()
    for reading in readings:
        assert (reading.metrics["queue"], dict(reading.evidence)) == (0.5, {"second": FOUND})
    first, *later = [reading.errors for reading in readings]
    assert [error.kind for error in first] == ["timeout"] and "explain failed: no result after" in first[0].message
    for errors in later:
        assert [error.kind for error in errors] == ["disabled"] and "explain failed: left out" in errors[0].message
