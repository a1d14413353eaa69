"""Plug-ins on the caller's thread, and metrics that are asked again."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import pytest

from coherence import CoherenceSensor, MetricInput
from coherence.core.calls import runs_in_place
from coherence.core.events import Event, Goal, Message, Ticked, ToolResult, Usage
from coherence.core.readings import Tick
from coherence.metrics import GoalDrift, MemoryRetention
from coherence.metrics.goal_drift import compute_goal_drift
from coherence.providers import HashingEmbedder, StaticState
from coherence.state.data import Facts
from coherence.state.reducer import AgentState


class CopiedDrift:
    """Metric of a user who copies the file of a shipped one and changes its name."""

    name = "copied_drift"
    inverted = True
    reads = ("goals", "context")
    in_place = True
    pure = True

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


def test_tick_a_pure_metric_is_asked_again_only_when_a_source_that_it_reads_has_changed() -> None:
    metric = CopiedDrift()
    watched, state = sensor(metric)
    first = watched.measure_sync()
    state.memories = ["the parser was written in May"]
    assert watched.measure_sync().metrics == first.metrics and len(metric.threads) == 1
    state.context = [*state.context, "now I knit a pullover"]
    assert watched.measure_sync().metrics != first.metrics and len(metric.threads) == 2


@dataclass
class Steps:
    """Number of times that it was asked, in tenths."""

    count: int = 0
    name = "steps"
    inverted = True
    in_place = True
    steady = True

    def compute(self) -> float:
        self.count += 1
        return self.count / 10


def test_tick_a_steady_metric_is_asked_again_after_anything_but_usage_and_ticks() -> None:
    state, metric = AgentState(), Steps()
    watched = CoherenceSensor(state, embedder=HashingEmbedder(), metrics=[], scalar_metrics=[metric])
    quiet: list[Event] = [Usage(input_tokens=9), Ticked("decide")]
    for seq, event in enumerate([Message("assistant", "I read it."), *quiet, ToolResult("ok"), *quiet], 1):
        state.fold(seq, float(seq), event)
        watched.measure_sync()
    assert metric.count == 2, "after the message and after the result"
    for change in (state.renumber, lambda: state.restore(Facts())):
        change()
        watched.measure_sync()
    assert metric.count == 4, "numbers and facts of another session"
    other = CoherenceSensor(StaticState(context=["b"]), embedder=HashingEmbedder(), scalar_metrics=[metric])
    assert [other.measure_sync().metrics["steps"] for _ in range(2)] == [0.5, 0.6], (
        "who is told what is not known there"
    )


def test_tick_while_nothing_is_told_only_what_may_move_is_asked_and_shown_in_its_place() -> None:
    state, asked = AgentState(), CopiedDrift()
    asked.pure = False
    moving = CoherenceSensor(state, embedder=HashingEmbedder(), metrics=[asked])
    named = ["cost_surge", "novelty", "goal_hijack"]
    still = CoherenceSensor(state, embedder=HashingEmbedder(), metrics=[GoalDrift()], scalar_metrics=named)
    events: list[Event] = [Goal("Fix the parser."), Message("assistant", "I knit a pullover.")]
    for seq, event in enumerate([*events, *[Usage(100, 10)] * 3, Usage(900, 90), Usage(900, 90)], 1):
        state.fold(seq, float(seq), event)
        again = CoherenceSensor(state, embedder=HashingEmbedder(), metrics=[GoalDrift()], scalar_metrics=named)
        found, anew = still.measure_sync(Tick(seq, 0.0)), again.measure_sync(Tick(seq, 0.0))
        assert (list(found.metrics), list(found.unknown), found.evidence) == (
            list(anew.metrics),
            list(anew.unknown),
            anew.evidence,
        )
        assert found.metrics == anew.metrics
        moving.measure_sync()
    assert found.metrics["cost_surge"] is not None and "cost_surge" not in found.unknown
    assert len(asked.threads) == 7, "nobody has said that it stands still"


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
