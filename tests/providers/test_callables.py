from __future__ import annotations

import inspect
from collections.abc import Sequence

import pytest

from coherence import CoherenceSensor
from coherence.providers import CallableState, HashingEmbedder


def test_callable_state_functions_are_called_anew_each_time() -> None:
    messages: list[str] = []
    state = CallableState(context=lambda: messages[-2:])
    messages += ["one", "two", "three"]
    assert state.get_recent_context() == ["two", "three"]


def test_callable_state_all_memories_default_to_the_memories() -> None:
    assert CallableState(memories=lambda: ["one"]).get_all_memories() == ["one"]


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
