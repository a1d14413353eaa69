from __future__ import annotations

import inspect
from collections.abc import Sequence

import pytest

from coherence import CoherenceSensor
from coherence.core.readings import Counters
from coherence.providers import CallableState, HashingEmbedder


def test_callable_state_each_source_is_its_function() -> None:
    state = CallableState(
        goals=lambda: ["goal"],
        context=lambda: ["context"],
        memories=lambda: ["memory"],
        all_memories=lambda: ["memory", "another"],
        counters=lambda: Counters(calls=2),
    )
    assert state.get_goals() == ["goal"]
    assert state.get_recent_context() == ["context"]
    assert state.get_goal_relevant_memories() == ["memory"]
    assert state.get_all_memories() == ["memory", "another"]
    assert state.get_counters() == Counters(calls=2)


def test_callable_state_a_source_without_a_function_is_empty() -> None:
    state = CallableState()
    assert state.get_goals() == state.get_recent_context() == state.get_goal_relevant_memories() == ()
    assert state.get_counters() == Counters()


def test_callable_state_async_functions_are_measured_too() -> None:
    async def goals() -> Sequence[str]:
        return ["fix the login"]

    state = CallableState(goals=goals, context=lambda: ["fix the login"])
    waiting = state.get_goals()
    assert inspect.iscoroutine(waiting)
    waiting.close()
    reading = CoherenceSensor(state, embedder=HashingEmbedder()).measure_sync()
    assert reading.metrics["goal_drift"] == pytest.approx(0.0, abs=1e-6)  # the same text has cosine 1


@pytest.mark.parametrize("name", ["goals", "context", "memories", "all_memories", "counters"])
def test_callable_state_a_list_instead_of_a_function_is_refused_with_a_hint(name: str) -> None:
    with pytest.raises(TypeError, match=rf"{name} must be callable, not \['x'\]; for lists use StaticState"):
        CallableState(**{name: ["x"]})  # type: ignore[arg-type]
