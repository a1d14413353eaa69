"""Signs of a run that leaves its course, as metrics."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from coherence.core.events import Goal, Message, ToolCall, ToolResult, Usage
from coherence.core.readings import MetricInput
from coherence.metrics import CostSurge, FailureStreak, GoalLoss, IdenticalCalls, Reversal, Stall, StepDrift
from coherence.state.reducer import AgentState


def state_of(*calls: tuple[int, int], text: str = "") -> AgentState:
    """Return an agent after model calls of so many tokens read and written, with a text said before the last two."""
    state = AgentState()
    state.fold(1, 0.0, Goal("sort the list"))
    for seq, (read, written) in enumerate(calls, 2):
        if text and seq == len(calls):
            state.fold(100, 0.0, Message("assistant", text))
        state.fold(seq if seq < len(calls) else 100 + seq, 0.0, Usage(input_tokens=read, output_tokens=written))
    return state


def test_cost_surge_tells_how_many_times_the_usual_the_newest_two_calls_took() -> None:
    assert CostSurge(state_of((900, 100), (900, 100))).compute() is None
    surged = CostSurge(state_of((900, 100), (900, 100), (7200, 800), (9000, 1000)))
    assert surged.compute() == pytest.approx(1 - 1 / 8, abs=0.01)  # the lower one of 8 and 10 times
    evidence = surged.explain()
    assert evidence is not None and "8 times as much" in evidence.why


def test_cost_surge_a_long_text_that_was_read_explains_the_tokens_and_a_file_written_does_not_surge() -> None:
    assert CostSurge(state_of((900, 100), (900, 100), (60_000, 100), (60_000, 100))).compute() == 0.0
    assert CostSurge(state_of((900, 100), (900, 100), (900, 2000), (900, 2000))).compute() == pytest.approx(
        1 - 1000 / 2900
    )
    told = state_of((900, 100), (900, 100), (9000, 900), (9000, 900), text="x" * 30_000)  # 12,000 tokens more
    assert CostSurge(told).compute() == 0.0


def test_identical_calls_and_reversal_and_goal_loss_are_unknown_at_first() -> None:
    state = state_of()
    for metric in (IdenticalCalls(state), Reversal(state), GoalLoss(state)):
        assert metric.compute() is None
        assert metric.explain() is None


def test_identical_calls_says_how_often() -> None:
    state = state_of()
    for at in range(3):
        state.fold(10 + 2 * at, 0.0, ToolCall("get_price", msgspec.Raw(b'{"sku": "a"}'), f"c{at}"))
        state.fold(11 + 2 * at, 0.0, ToolResult(call_id=f"c{at}", result="4.10 euros, in stock"))
    metric = IdenticalCalls(state)
    assert metric.compute() == pytest.approx(2 / 3)
    evidence = metric.explain()
    assert evidence is not None and "3 times" in evidence.why and evidence.items


def test_step_drift_is_the_distance_of_the_newest_step_of_the_agent_from_the_nearest_request() -> None:
    state = AgentState()
    state.fold(1, 0.0, Goal("sort the list"))
    state.fold(2, 0.0, Message("assistant", "I sort it."))
    state.fold(3, 0.0, ToolResult(call_id="a", result="sorted", tool_name="sort"))
    goals = np.array([[1, 0], [0, 1]], dtype=np.float32)
    context = np.array([[0.6, 0.8], [1, 0]], dtype=np.float32)
    data = MetricInput(goals=goals, goals_texts=["a", "b"], context=context, context_texts=["I sort it.", "sorted"])
    assert StepDrift(state).compute(data) == pytest.approx(1 - 0.8)
    assert StepDrift(AgentState()).compute(data) is None


@pytest.mark.parametrize("amount", [0.0, 0.5, 0.85, 0.86, 0.98, 0.99, 1.0, 1.01, 3.0])
def test_what_is_below_told_from_is_not_explained(amount: float) -> None:
    state = state_of()
    state.fold(10, 0.0, ToolCall("get_price", msgspec.Raw(b'{"sku": "a"}'), "c"))
    state.fold(11, 0.0, ToolResult(call_id="c", result="4.10 euros, in stock"))
    data = state.progress.data
    data.stall = data.failures = data.repeats = data.reversals = amount
    for metric in (Stall(state), FailureStreak(state), IdenticalCalls(state), Reversal(state)):
        assert (metric.compute() or 0.0) >= metric.told_from or metric.explain() is None
