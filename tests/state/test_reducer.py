"""The fold: what an agent's state remembers, what it forgets, and that it stays small."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from coherence import AgentState, Monitor
from coherence.core.config import MonitorConfig
from coherence.core.events import (
    Compaction,
    Correction,
    Event,
    Goal,
    Memory,
    Message,
    Ticked,
    ToolCall,
    ToolResult,
    Usage,
)
from coherence.monitor.snapshots import pack
from coherence.providers import HashingEmbedder
from coherence.state.reducer import (
    CONTEXT_CHARS,
    MAX_MEMORIES,
    MAX_OPEN,
    MAX_REQUESTS,
    MAX_TOOLS,
    RECENT,
    RELEVANT_MEMORIES,
)


def fold(*given: Event, config: MonitorConfig | None = None) -> AgentState:
    state = AgentState(config)
    for seq, event in enumerate(given, 1):
        state.fold(seq, float(seq), event)
    return state


def call(name: str, arguments: object = None, id: str = "c") -> ToolCall:
    return ToolCall(name, msgspec.Raw(msgspec.json.encode(arguments)), id)


def context(state: AgentState) -> list[str]:
    return list(state.get_recent_context())


def test_get_goals_the_first_users_message_is_the_goal_where_none_is_set() -> None:
    assert list(fold(Message("user", " fix the login ")).get_goals()) == ["fix the login"]
    state = fold(Goal("ship it"), Message("user", "and the docs"), Correction("not like this"))
    assert list(state.get_goals()) == ["ship it", "and the docs", "not like this"]
    state.fold(9, 9.0, Goal("rest"))
    assert list(state.get_goals()) == ["rest"]  # a new goal ends the requests under the old one


def test_get_goals_the_latest_requests_are_kept() -> None:
    state = fold(Goal("g"), *(Message("user", f"r{number}") for number in range(6)))
    assert MAX_REQUESTS == 4
    assert list(state.get_goals()) == ["g", "r2", "r3", "r4", "r5"]


def test_get_recent_context_a_call_joins_the_message_it_follows_unless_a_tick_lies_between() -> None:
    joined = fold(Message("assistant", "I look."), call("Bash", {"command": "ls"}))
    assert context(joined) == ['I look.\nBash({"command":"ls"})']
    apart = fold(Message("assistant", "I look."), Ticked("step"), call("Bash", {"command": "ls"}))
    assert context(apart) == ["I look.", 'Bash({"command":"ls"})']
    parallel = fold(call("A", 1, "1"), call("B", 2, "2"))
    assert context(parallel) == ["A(1)", "B(2)"]
    text = fold(call("Bash", "ls -l"))
    assert context(text) == ["Bash(ls -l)"]


def test_get_recent_context_the_context_is_a_window_without_users_messages() -> None:
    given: Sequence[Event] = [Message("user", "hi"), *(ToolResult(f"r{number}") for number in range(5))]
    assert context(fold(*given, config=MonitorConfig(window=3))) == ["r2", "r3", "r4"]
    assert context(fold(Message("assistant", " "), ToolResult(""))) == []


def test_a_compaction_leaves_only_its_summary() -> None:
    state = fold(ToolResult("a"), Usage(500, 20), Compaction("we fixed a"), ToolResult("b"))
    assert context(state) == ["we fixed a", "b"]
    assert state.facts.context_used is None


def test_get_recent_context_a_long_message_is_shortened_in_the_middle() -> None:
    (kept,) = context(fold(ToolResult("a" * 50_000 + "b" * 50_000)))
    half = CONTEXT_CHARS // 2
    assert kept == f"{'a' * half}\n[…]\n{'b' * half}"


def test_get_all_memories_a_memory_is_replaced_by_id_refreshed_by_text_and_removed() -> None:
    state = fold(Memory("x is 1", "x"), Memory("sky"), Memory("sea"), Memory("x is 2", "x"), Memory("sky"))
    assert list(state.get_all_memories()) == ["sea", "x is 2", "sky"]
    state.fold(6, 6.0, Memory("sea", removed=True))
    state.fold(7, 7.0, Memory("", "x", removed=True))
    assert list(state.get_all_memories()) == ["sky"]


def test_get_goal_relevant_memories_the_newest_memories_are_relevant_and_the_oldest_are_forgotten() -> None:
    state = fold(*(Memory(f"m{number}") for number in range(MAX_MEMORIES + 5)))
    assert list(state.get_all_memories()) == [f"m{number}" for number in range(5, MAX_MEMORIES + 5)]
    assert len(state.get_goal_relevant_memories()) == RELEVANT_MEMORIES
    assert state.get_goal_relevant_memories()[-1] == f"m{MAX_MEMORIES + 4}"


def test_facts_a_result_without_its_call_counts_as_a_call() -> None:
    state = fold(call("Bash", 1, "a"), ToolResult("ok"), ToolResult("ok", tool_name="Read"), ToolResult("ok"))
    assert (state.facts.calls, state.facts.results) == (3, 3)
    assert state.facts.tools == {"Bash": 1, "Read": 1, "unknown": 1}


def test_facts_streaks_and_retries() -> None:
    same: list[Event] = [call("Bash", "pytest"), ToolResult("no module", error=True)]
    state = fold(*same, *same, *same)
    assert (state.facts.error_streak, state.facts.same_streak) == (3, 3)
    assert [action.retry for action in state.facts.actions] == [False, True, True]
    state.fold(7, 7.0, call("Bash", "ls"))
    state.fold(8, 8.0, ToolResult("a b"))
    assert (state.facts.error_streak, state.facts.same_streak) == (0, 1)
    assert state.facts.actions[-1].retry is False


def test_spent_time_that_runs_backwards_stands_still() -> None:
    state = AgentState()
    for seq, ts in enumerate((100.0, 110.0, 50.0, 112.0), 1):
        state.fold(seq, ts, ToolResult("x"))
        assert state.spent.wall_s == (0.0, 10.0, 10.0, 12.0)[seq - 1]


def test_spent_spending_adds_up_and_what_is_unknown_is_counted_as_unknown() -> None:
    state = fold(Usage(100, None, 0.5), Usage(None, 20), Usage())
    assert (state.spent.tokens, state.spent.cost_usd, state.spent.unpriced) == (120, 0.5, 2)


def vary(m: Monitor, dice: random.Random, count: int) -> None:
    """Record ``count`` events of every kind, with names and texts that never repeat."""
    for number in range(count):
        mark = dice.getrandbits(60)
        acts: list[Any] = [
            lambda mark=mark: m.tool_call(f"tool {mark}", {"x": mark}, call=f"call {mark}"),
            lambda mark=mark, number=number: m.tool_result(f"result {mark}" * 3, error=number % 3 == 0),
            lambda mark=mark, number=number: m.message("assistant", f"I think {mark}" * (number % 40)),
            lambda mark=mark: m.message("user", f"do {mark}"),
            lambda mark=mark: m.memory(f"memory {mark}", id=f"{mark}"),
            lambda mark=mark: m.usage(tokens_in=mark % 10**6, model=f"model {mark}"),
            lambda mark=mark: m.correction(f"not {mark}"),
            lambda mark=mark: m.feedback(0.5, text=f"{mark}"),
            lambda mark=mark: m.goal(f"goal {mark}"),
            lambda mark=mark: m.fault(f"place {mark}", f"{mark}"),
        ]
        dice.choices(acts, [9, 8, 5, 1, 6, 4, 1, 1, 0.1, 1])[0]()


def size(m: Monitor) -> int:
    with m._worker.settled() as pipeline:
        return len(pack(pipeline.snapshot()))


def test_facts_each_list_of_a_state_is_bounded() -> None:
    m = Monitor(embedder=HashingEmbedder(32), config={"tick": "manual"})
    vary(m, random.Random(3), 400)
    with m._worker.settled() as pipeline:
        facts = pipeline.state.facts
        assert len(facts.memories) <= MAX_MEMORIES
        assert len(facts.open_calls) <= MAX_OPEN
        assert len(facts.tools) <= MAX_TOOLS + 1
        assert (len(facts.actions), len(facts.said), len(facts.context)) == (RECENT, RECENT, 20)


@pytest.mark.torture
def test_facts_a_state_does_not_grow_with_the_length_of_a_life() -> None:
    dice = random.Random(3)
    m = Monitor(embedder=HashingEmbedder(32), config={"tick": "manual"})
    vary(m, dice, 20_000)
    m.decide()
    middle = size(m)
    vary(m, dice, 10_000)
    m.decide()
    # What is kept one by one is full after 20,000 events, the corrections last; the texts in it vary in length.
    assert size(m) == pytest.approx(middle, rel=0.1)
    assert size(m) < 750_000  # sentences of results and values given take most of it
    assert len(m.state.facts.memories) == MAX_MEMORIES


@pytest.mark.slow
def test_reducer_huge_texts_and_names_fill_a_state_only_so_far() -> None:
    m = Monitor(embedder=HashingEmbedder(32), config={"tick": "manual"})
    for number in range(30):
        name = f"{number} " + "n" * 300_000
        m.tool_call(name, {"x": name}, call=name)
        m.usage(tokens_in=1, model=name)
        m.memory(name, id=name)
        m.message("user", name)
        m.tool_result(name, error=True, error_type=name)
    # 20 messages and 30 memories of 20,000 characters, a goal and 4 requests of 200,000, names of 500
    assert size(m) < 20 * 21_000 + 30 * 21_000 + 5 * 201_000 + 300_000


def test_get_recent_context_what_the_host_says_before_the_agent_begins_is_no_context() -> None:
    state = fold(
        Goal("ship it"), Message("system", "Be brief."), Message("assistant", "a"), Message("system", "Faster.")
    )
    assert context(state) == ["a", "Faster."]
