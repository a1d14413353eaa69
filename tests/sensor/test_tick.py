"""Plug-ins on the caller's thread."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import pytest

from coherence import CoherenceSensor, MetricInput
from coherence.metrics import GoalDrift, MemoryRetention
from coherence.metrics.goal_drift import compute_goal_drift
from coherence.providers import HashingEmbedder, StaticState
from coherence.sensor.calls import runs_in_place


class CopiedDrift:
    """Metric of a user who copies the file of a shipped one and changes its name."""

    name = "copied_drift"
    inverted = True
    reads = ("goals", "context")
    in_place = True

    def __init__(self) -> None:
        self.threads: list[int] = []

    def compute(self, data: MetricInput) -> float | None:
        self.threads.append(threading.get_ident())
        return compute_goal_drift(data.goals, data.context)


class Changed(CopiedDrift):
    """It has a method of its own, for which nobody has promised anything."""

    def compute(self, data: MetricInput) -> float | None:
        return super().compute(data)


def sensor(metric: CopiedDrift) -> tuple[CoherenceSensor, StaticState]:
    state = StaticState(goals=["fix the parser"], context=["reading parser.py"], memories=["the parser is old"])
    return CoherenceSensor(state, embedder=HashingEmbedder(), metrics=[metric]), state


def test_tick_runs_in_place_for_a_copy_of_a_built_in_metric_that_says_so() -> None:
    metric = CopiedDrift()
    watched, _ = sensor(metric)
    reading = watched.measure_sync()
    assert reading.metrics["copied_drift"] == pytest.approx(
        CoherenceSensor(watched.provider, embedder=HashingEmbedder(), metrics=[GoalDrift()])
        .measure_sync()
        .metrics["goal_drift"]
    )
    assert metric.threads == [threading.get_ident()]


def test_runs_in_place_is_not_inherited_by_a_method_of_a_subclass() -> None:
    metric = Changed()
    watched, _ = sensor(metric)
    assert watched.measure_sync().metrics["copied_drift"] is not None
    assert len(metric.threads) == 1 and metric.threads[0] != threading.get_ident()
    assert not runs_in_place(Changed(), "compute")
    assert runs_in_place(Changed(), "explain"), "which the subclass has not changed"


@dataclass
class Leaving:
    error: type[BaseException]
    name = "leaving"
    inverted = True
    in_place = True

    def compute(self, data: MetricInput) -> float:
        raise self.error("it is time")


def test_tick_tried_reports_what_a_metric_in_place_raises_and_lets_an_interrupt_through() -> None:
    state = StaticState(goals=["a"], context=["b"], memories=["c"])
    made = CoherenceSensor(state, embedder=HashingEmbedder(), metrics=[MemoryRetention(), Leaving(SystemExit)])
    reading = made.measure_sync()
    assert [str(error.kind) for error in reading.errors] == ["SystemExit"]
    assert reading.metrics["memory_retention"] is not None
    with pytest.raises(KeyboardInterrupt):
        CoherenceSensor(state, embedder=HashingEmbedder(), metrics=[Leaving(KeyboardInterrupt)]).measure_sync()
