"""All rules about failure patterns: laws that hold for each, whatever happens to an agent."""

from __future__ import annotations

import pickle
from copy import deepcopy

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from coherence.core.config import Budget, MonitorConfig
from coherence.core.decisions import KINDS, Appraisal, Mode
from coherence.core.events import (
    Compaction,
    Event,
    Feedback,
    Message,
    ToolCall,
    ToolResult,
    Usage,
    summarise_logprobs,
)
from coherence.policy.guidance import PRIORITY
from coherence.policy.rules import builtin_rules
from coherence.state.reducer import AgentState

CALM = Appraisal(seq=0, pressure=0.0, mode=Mode.OBSERVE)
CONFIG = MonitorConfig(context_tokens=10_000)
BUDGET = Budget(tokens=50_000, cost_usd=2.0)

TEXTS = st.sampled_from(
    ["", "error: no such file", "exit code 1", "429 too many requests", "Ошибка\u202e", "a\x00\ud800"]
)
TOOLS = st.sampled_from(["Bash", "Read", "Edit", "", "\x1b[2J\ud800" * 30])
ARGUMENTS = st.sampled_from(
    [b"null", b'"ls"', b'{"command": "ls"}', b'{"file_path": "/a.py", "new_string": "x"}', b"[1]"]
)
EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(ToolCall, TOOLS, ARGUMENTS.map(msgspec.Raw), st.sampled_from("ab")),
    st.builds(ToolResult, TEXTS, st.booleans(), st.sampled_from(["a", "b", None]), TOOLS),
    st.builds(ToolResult, TEXTS, st.just(True), st.none(), TOOLS),
    st.builds(Usage, st.integers(0, 2**53), st.integers(0, 10**6), st.floats(0.0, 1e12)),
    st.builds(Usage, st.integers(1, 5_000), st.none(), st.floats(0.0, 0.1)),
    st.builds(Feedback, st.floats(-1.0, 1.0)),
    st.builds(Message, st.sampled_from(["user", "assistant"]), TEXTS),
    st.lists(st.floats(-20.0, 0.0), min_size=1, max_size=60).map(
        lambda told: Message("assistant", "x", logprobs=summarise_logprobs(told))
    ),
    st.builds(Compaction, TEXTS),
)


@given(st.lists(EVENTS, max_size=60))
def test_failures_no_life_makes_a_rule_raise_or_break_its_laws(events: list[Event]) -> None:
    state, rules = AgentState(CONFIG), builtin_rules(CONFIG)
    state.budget = BUDGET
    for seq, event in enumerate(events, 1):
        state.fold(seq, float(seq), event)
        before = deepcopy(state.facts)
        for rule in rules:
            found = rule(state, None, CALM)
            assert rule(state, None, CALM) == found
            if found is None:
                continue
            assert found.rule == rule.name
            assert 0.0 <= found.score <= 1.0
            assert found.active == (found.score >= found.threshold)
            assert found.severity in KINDS
            assert len(found.evidence) <= 8 and all(0 < number <= seq for number in found.evidence)
            assert len(found.why) <= 600 and found.why.isprintable()
            assert not found.active or (found.why and found.action and found.evidence)
            assert found.score > 0.0 or not (found.why or found.action or found.evidence)
            msgspec.json.encode(found)  # no lone surrogate got through
        assert state.facts == before


def test_failures_every_rule_has_a_place_among_the_patterns_and_none_applies_at_the_start() -> None:
    names = [rule.name for rule in builtin_rules(CONFIG)]
    assert len(set(names)) == len(names) and set(names) <= set(PRIORITY)
    assert [rule(AgentState(CONFIG), None, CALM) for rule in builtin_rules(CONFIG)] == [None] * len(names)


def test_failures_rules_can_be_pickled() -> None:
    assert [rule.name for rule in pickle.loads(pickle.dumps(builtin_rules(CONFIG)))] == [
        rule.name for rule in builtin_rules(CONFIG)
    ]


def test_failures_a_huge_error_makes_short_sentences() -> None:
    state = AgentState()
    arguments = msgspec.Raw(msgspec.json.encode({"command": "x" * 1_000_000}))
    for seq in range(1, 13, 2):
        state.fold(seq, 0.0, ToolCall("Bash", arguments, "1"))
        state.fold(seq + 1, 0.0, ToolResult("error: " + "y" * 1_000_000, error=True))
    seen = [rule(state, None, CALM) for rule in builtin_rules(CONFIG)]
    whys = [finding.why for finding in seen if finding is not None and finding.active]
    assert len(whys) == 4 and all(len(why) < 300 for why in whys)
