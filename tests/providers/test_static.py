from __future__ import annotations

import pytest

from coherence.core.protocols import CounterSource, StateProvider
from coherence.core.readings import Counters
from coherence.providers import StaticState


def test_it_is_a_state_provider_that_counts() -> None:
    assert isinstance(StaticState(), StateProvider)
    assert isinstance(StaticState(), CounterSource)


def test_get_goal_relevant_memories_it_gives_back_its_lists() -> None:
    state = StaticState(["goal"], ["context"], ["memory"], ["memory", "another"])
    assert state.get_goals() == ["goal"]
    assert state.get_recent_context() == ["context"]
    assert state.get_goal_relevant_memories() == ["memory"]
    assert state.get_all_memories() == ["memory", "another"]


def test_get_all_memories_without_arguments_everything_is_empty_and_unknown() -> None:
    state = StaticState()
    assert state.get_goals() == state.get_recent_context() == state.get_all_memories() == []
    assert state.get_counters() == Counters(None, None, None, None, None)


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


def test_two_states_share_no_context() -> None:
    one, other = StaticState(), StaticState()
    one.context.append("message")
    assert other.get_recent_context() == []


@pytest.mark.parametrize("name", ["goals", "context", "memories", "all_memories"])
def test_static_one_text_instead_of_a_list_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name} must be a list of str, not a str"):
        StaticState(**{name: "book a flight"})  # type: ignore[arg-type]


def test_get_goals_what_can_be_read_only_once_is_kept() -> None:
    state = StaticState(goals=(goal for goal in ["a", "b"]))
    assert list(state.get_goals()) == list(state.get_goals()) == ["a", "b"]
