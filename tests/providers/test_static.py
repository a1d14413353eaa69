from __future__ import annotations

import pytest

from coherence.providers import StaticState


def test_get_goal_relevant_memories_it_gives_back_its_lists() -> None:
    state = StaticState(["goal"], ["context"], ["memory"], ["memory", "another"])
    assert state.get_goals() == ["goal"]
    assert state.get_recent_context() == ["context"]
    assert state.get_goal_relevant_memories() == ["memory"]
    assert state.get_all_memories() == ["memory", "another"]


def test_get_all_memories_all_memories_default_to_the_memories() -> None:
    assert StaticState(memories=("one", "two")).get_all_memories() == ["one", "two"]
    assert StaticState(memories=("one", "two"), all_memories=()).get_all_memories() == []


@pytest.mark.parametrize("name", ["goals", "context", "memories", "all_memories"])
def test_static_one_text_instead_of_a_list_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name} must be a list of str, not a str"):
        StaticState(**{name: "book a flight"})  # type: ignore[arg-type]


def test_get_goals_what_can_be_read_only_once_is_kept() -> None:
    state = StaticState(goals=(goal for goal in ["a", "b"]))
    assert list(state.get_goals()) == list(state.get_goals()) == ["a", "b"]
