from __future__ import annotations

import pytest

from coherence.core.readings import Counters
from coherence.providers import StaticState


def test_get_all_memories_all_memories_default_to_the_memories() -> None:
    assert StaticState(memories=("one", "two")).get_all_memories() == ["one", "two"]
    assert StaticState(memories=("one", "two"), all_memories=()).get_all_memories() == []


def test_get_counters_changes_between_ticks_show() -> None:
    state = StaticState(goals=["goal"])
    state.context.append("message")
    state.goals = ["another"]
    state.counters = Counters(calls=3)
    assert state.get_recent_context() == ["message"]
    assert state.get_goals() == ["another"]
    assert state.get_counters().calls == 3


@pytest.mark.parametrize("name", ["goals", "context", "memories", "all_memories"])
def test_static_one_text_instead_of_a_list_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name} must be a list of str, not a str"):
        StaticState(**{name: "book a flight"})  # type: ignore[arg-type]


def test_get_goals_what_can_be_read_only_once_is_kept() -> None:
    state = StaticState(goals=(goal for goal in ["a", "b"]))
    assert list(state.get_goals()) == list(state.get_goals()) == ["a", "b"]
