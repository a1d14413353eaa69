"""Evidence: metrics with and without an input explain their values, and a bad explanation costs no value."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import numpy as np
import pytest

from coherence.core.readings import Evidence, Reading
from coherence.metrics import GoalDrift
from sensor.plugins import both_ways, probe

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
    plain, awaited = both_ways(lambda: probe(metrics=[], scalar_metrics=[scalar], weights={"queue": 1.0}))
    assert plain.evidence == awaited.evidence
    assert [str(error) for error in plain.errors] == [str(error) for error in awaited.errors]
    return plain


def test_explain_the_evidence_of_a_scalar_stands_in_the_reading() -> None:
    reading = measured(Queue())
    assert reading.evidence["queue"] == FOUND
    assert "queue 0.50 takes 0.50: “the queue grows” since the last release" in reading.explain()


@pytest.mark.parametrize("vector", [False, True])
def test_explain_an_async_metric_is_asked_after_its_value(vector: bool) -> None:
    class Later(Queue):
        ready = False

        async def _compute(self, *_: object) -> float:
            await asyncio.sleep(0)
            self.ready = True
            return 0.5

        def _explain(self, *_: object) -> Evidence:
            assert self.ready
            return FOUND

    class Scalar(Later):
        async def compute(self) -> float:
            return await self._compute()

        def explain(self) -> Evidence:
            return self._explain()

    class Vector(Later):
        async def compute(self, data: object) -> float:  # type: ignore[override]
            return await self._compute()

        def explain(self, data: object) -> Evidence:  # type: ignore[override]
            return self._explain()

    options: dict[str, Any] = {"metrics": [Vector()]} if vector else {"metrics": [], "scalar_metrics": [Scalar()]}
    for reading in both_ways(lambda: probe(weights={"queue": 1.0}, **options)):
        assert (reading.metrics["queue"], dict(reading.evidence), reading.errors) == (0.5, {"queue": FOUND}, ())


async def waits() -> None:
    """Explain nothing, later."""


@pytest.mark.parametrize("found", ["because", 7, Evidence("", "nowhere"), OSError("broken"), waits])  # type: ignore[arg-type]
def test_explain_a_bad_explanation_costs_the_explanation_only(found: object) -> None:
    class Broken(Queue):
        def explain(self) -> Any:
            if isinstance(found, Exception):
                raise found
            return found() if callable(found) else found

    reading = measured(Broken())
    assert (reading.metrics["queue"], dict(reading.evidence)) == (0.5, {})
    assert "explain failed" in str(reading.errors[0])


def test_as_evidence_a_hostile_explanation_is_cut_and_shown_on_one_line() -> None:
    class Loud(Queue):
        def explain(self) -> Evidence:
            texts = ("b\n" * 100_000,) * 100
            return Evidence("\x1b[31m" + "a\n" * 100_000, "context", tuple(np.arange(100)), texts)

    reading = measured(Loud())
    evidence = reading.evidence["queue"]
    assert len(str(evidence)) < 1_500 and not {"\n", "\x1b"} & set(str(evidence))
    assert {type(item) for item in evidence.items} == {int} and isinstance(hash(reading), int)
    reading.to_dict()


def test_told_from_a_metric_is_not_asked_to_explain_what_is_below() -> None:
    class Quiet(GoalDrift):
        told_from = 0.9

    reading = probe(metrics=[Quiet()]).measure_sync()
    assert 0.5 < (reading.metrics["goal_drift"] or 0.0) < 0.9 and "goal_drift" not in reading.evidence


@pytest.mark.parametrize("value", [None, float("nan"), 2.0, "half"])
def test_explain_a_metric_without_a_usable_value_is_not_asked(value: object) -> None:
    class Wrong(Queue):
        def compute(self) -> Any:
            return value

        def explain(self) -> None:
            raise AssertionError("asked")

    reading = measured(Wrong())
    assert reading.metrics["queue"] is None
    assert len(reading.errors) == (value is not None) and "asked" not in str(reading.errors)


def test_explain_one_that_hangs_costs_no_value_then_or_later(forever: threading.Event) -> None:
    class Hangs(Queue):
        def explain(self) -> Any:
            forever.wait()

    second = Queue()
    second.name = "second"
    sensor = probe(metrics=[], scalar_metrics=[Hangs(), second], weights={"queue": 1.0, "second": 1.0}, timeout_s=1.0)
    first, *later = (sensor.measure_sync() for _ in range(3))
    for reading in (first, *later):
        assert (reading.metrics["queue"], dict(reading.evidence)) == (0.5, {"second": FOUND})
    assert first.errors[0].kind == "timeout" and "explain failed: no result after" in first.errors[0].message
    for reading in later:
        assert reading.errors[0].kind == "disabled" and "explain failed: left out" in reading.errors[0].message
