"""Snapshots: lossless, deterministic, mergeable, bounded; what is none is refused."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from property_sizes import examples

from coherence.compat.events import LLMEvent
from coherence.compat.regulator import Regulator

REQUESTS = ["Refactor fetch_user to be async", "What is the weather in Oslo?", "", "\ud800 請修復登錄錯誤"]
ANSWERS = ["I refactored fetch_user, it is async.", "Peel the onions and simmer the soup for an hour.", "", "No?"]
WORDS = st.sampled_from(REQUESTS + ANSWERS)
TOOLS = st.sampled_from(["search", "Bash", "", "read\x00"])
LOGPROBS = st.sampled_from([-0.1, -3.0, -7.5, 0.0, None, float("nan")])
COUNT = st.integers(0, 4_000)

EVENTS = st.one_of(
    st.builds(LLMEvent.turn_start, WORDS),
    st.builds(LLMEvent.turn_complete, WORDS),
    st.builds(LLMEvent.token, st.just("x"), LOGPROBS, COUNT),
    st.builds(LLMEvent.cost, COUNT, COUNT, COUNT),
    st.builds(LLMEvent.quality_feedback, st.sampled_from([0.0, 0.1, 0.35, 0.5, 0.9, 1.0])),
    st.builds(LLMEvent.user_correction, WORDS, st.booleans()),
    st.builds(LLMEvent.tool_call, TOOLS, st.sampled_from([None, "{}", '{"a": [1, 2]}', "not json", "[" * 500])),
    st.builds(LLMEvent.tool_result, TOOLS, st.booleans(), COUNT, st.sampled_from([None, "no such user", "exit 1"])),
)


class Clock:
    """Goes on by a second each time; may be pickled."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def lived(events: list[LLMEvent], start: float = 0.0) -> Regulator:
    regulator = Regulator.for_user("ada", embedder=False, clock=Clock(start)).with_implicit_correction_window_secs(30.0)
    for at, event in enumerate(events):
        regulator.on_event(event)
        if at % 5 == 4:
            regulator.decide()
    return regulator


AFTER_ITS_ANSWER = [
    *[LLMEvent.turn_start("Refactor fetch_user to be async")] * 3,
    LLMEvent.turn_complete("Refactor fetch_user to be async"),
    LLMEvent.tool_call("search", None),
    LLMEvent.tool_result("search", False, 0, None),
]
"""A call fails behind an answer for which a decision was asked."""


@example(AFTER_ITS_ANSWER, [])
@examples(60)
@given(st.lists(EVENTS, max_size=40), st.lists(EVENTS, max_size=10))
def test_compat_saved_what_is_read_back_is_what_was_written(before: list[LLMEvent], after: list[LLMEvent]) -> None:
    regulator = lived(before)
    text = regulator.export_json()
    again = Regulator.from_json(text, clock=Clock(1e6), embedder=False)
    assert again.export_json() == text
    assert again.metrics_snapshot() == regulator.metrics_snapshot()
    assert again.tool_counts_by_name() == regulator.tool_counts_by_name()
    regulator._clock = Clock(1e6)
    assert again.decide() == regulator.decide()
    for event in after:
        regulator.on_event(event)
        again.on_event(event)
        assert again.decide() == regulator.decide()
    assert again.export_json() == regulator.export_json()


@examples(40)
@given(st.lists(EVENTS, max_size=25), st.lists(EVENTS, max_size=25), st.sampled_from([0.0, 7.0]))
def test_which_of_two_comes_first_in_a_merge_does_not_matter(
    one: list[LLMEvent], other: list[LLMEvent], start: float
) -> None:
    a, b = lived(one), lived(other, start)
    merged = Regulator.merge(a.export_json(), b.export_json())
    assert merged == Regulator.merge(b.export_json(), a.export_json())
    both = Regulator.from_json(merged, embedder=False)
    assert both.total_tokens_out() == a.total_tokens_out() + b.total_tokens_out()
    assert both.implicit_corrections_count() == a.implicit_corrections_count() + b.implicit_corrections_count()
    both.decide()


def corrected(regulator: Regulator, *texts: str) -> Regulator:
    for text in texts:
        regulator.on_event(LLMEvent.user_correction(text, True))
    return regulator


def test_compat_saved_two_that_went_on_from_one_state_keep_all_corrections_once() -> None:
    parent = corrected(lived([LLMEvent.turn_start(REQUESTS[1]), LLMEvent.turn_complete("Fine.")]), "Celsius")
    one, other = corrected(parent.copy(), "no wind"), corrected(parent.copy(), "name the day")
    assert not one.decide().is_procedural_warning()
    merged = Regulator.from_json(Regulator.merge(one.export_json(), other.export_json()), embedder=False)
    patterns = merged.decide().patterns
    assert patterns is not None
    assert patterns[0].learned_from_turns == 3
    assert set(patterns[0].example_corrections) == {"Celsius", "no wind", "name the day"}


def test_compat_saved_states_of_two_users_are_not_merged() -> None:
    with pytest.raises(ValueError, match=r"two users.*'ada', 'bob'"):
        Regulator.merge(
            Regulator.for_user("ada", embedder=False).export_json(),
            Regulator.for_user("bob", embedder=False).export_json(),
        )


def test_compat_saved_cap_window_and_a_cap_changed_after_the_decision_are_kept() -> None:
    regulator = lived([LLMEvent.cost(0, 500, 1)] + [LLMEvent.quality_feedback(0.4)] * 3)
    assert regulator.decide().is_continue()
    again = Regulator.from_json(regulator.with_cost_cap(500).export_json(), embedder=False)
    assert again.cost_cap_tokens() == 500
    assert again.decide().is_circuit_break()


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_compat_saved_copies_know_the_same_and_go_on_by_themselves(duplicate: Any) -> None:
    regulator = lived([LLMEvent.turn_start(REQUESTS[0]), LLMEvent.cost(0, 5, 1)])
    again = duplicate(regulator)
    assert again.export_json() == regulator.export_json()
    again.on_event(LLMEvent.cost(0, 5, 1))
    assert (again.total_tokens_out(), regulator.total_tokens_out()) == (10, 5)


def test_compat_saved_events_and_decisions_are_values() -> None:
    decision = lived([LLMEvent.turn_start(REQUESTS[0]), LLMEvent.turn_complete(ANSWERS[1])]).decide()
    assert pickle.loads(pickle.dumps(decision)) == copy.deepcopy(decision) == decision
    event = LLMEvent.tool_call("search", "{}")
    assert pickle.loads(pickle.dumps(event)) == event
    assert event != LLMEvent.tool_call("search")


FRESH = Regulator.for_user("u", embedder=False).export_json()
CLASSIC = (
    '{"user_id":"u","learned":{"gain_mode":"neutral","tick":0,"response_success":{},"response_strategies":{}},'
    '"correction_patterns":{"oslo+weather":{"user_id":"u","topic_cluster":"oslo+weather",'
    '"pattern_name":"corrections_on_oslo+weather","learned_from_turns":4,"confidence":0.2,'
    '"example_corrections":["name the day","no wind","Celsius"]}}}'
)


def test_files_of_the_classic_regulator_are_read() -> None:
    regulator = Regulator.from_json(CLASSIC, embedder=False)
    assert regulator.user_id() == "u"
    regulator.on_event(LLMEvent.turn_start(REQUESTS[1]))
    decision = regulator.decide()
    assert decision.is_procedural_warning()
    assert decision.patterns is not None
    assert decision.patterns[0].example_corrections == ("name the day", "no wind", "Celsius")
    without = CLASSIC[: CLASSIC.index(',"correction_patterns"')] + "}"
    assert Regulator.from_json(without, embedder=False).decide().is_continue()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "null",
        "[]",
        "[" * 100_000,
        "\ufeff" + FRESH,
        FRESH + " x",
        "\ud800",
        FRESH.replace('"user_id":"u",', ""),
        FRESH.replace('"user_id":"u"', '"user_id":1'),
        FRESH.replace('"cost_cap":10000', '"cost_cap":1.5'),
        FRESH.replace('"cost_cap":10000', '"cost_cap":NaN'),
        FRESH.replace('"cost_cap":10000', '"cost_cap":-1'),
        FRESH.replace('"version":1', '"version":7', 1),
        CLASSIC.replace('"tick":0', '"tick":-1'),
        CLASSIC.replace('"tick":0', '"tick":1.5'),
        CLASSIC.replace("neutral", "calm"),
        CLASSIC.replace('"tick":0', '"tick":NaN'),
        CLASSIC.replace('"user_id":"u",', "", 1),
    ],
)
def test_compat_saved_what_is_no_state_is_refused(text: str) -> None:
    assert text not in (FRESH, CLASSIC)
    with pytest.raises(ValueError, match=r"not a regulator's state: ."):
        Regulator.from_json(text, embedder=False)


@pytest.mark.parametrize("value", [None, 1, FRESH.encode(), {}])
def test_compat_saved_what_is_no_text_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="json_str must be a str"):
        Regulator.from_json(value, embedder=False)


def test_compat_saved_keys_that_nobody_knows_are_passed_over() -> None:
    data = msgspec.json.decode(FRESH) | {"more": [1, 2]}
    assert Regulator.from_json(msgspec.json.encode(data).decode(), embedder=False).export_json() == FRESH


@pytest.mark.torture
@pytest.mark.parametrize("turns", [3_000, 17_000], ids=["18,000 events", "102,000 events"])
def test_compat_saved_the_size_is_bounded(turns: int) -> None:
    """Every list of a regulator has a limit: all are full long before the last of these events."""
    regulator = Regulator.for_user("ada", embedder=False, clock=Clock())
    sizes = []
    for n in range(turns):
        for event in (
            LLMEvent.turn_start(f"request number {n} about subject{n % 977} and thing{n % 613}" + " word" * 30),
            LLMEvent.tool_call(f"tool{n}", f'{{"n": {n}}}'),
            LLMEvent.tool_result(f"tool{n}", n % 3 > 0, 1, f"error {n} of kind{n}"),
            LLMEvent.token("x", -3.0 if n % 2 else -0.1, n),
            LLMEvent.turn_complete(f"answer {n} " * 40),
            LLMEvent.user_correction(f"never do thing{n} like that again " * 4, True),
        ):
            regulator.on_event(event)
        if n in (turns // 2 - 1, turns - 1):
            sizes.append(len(regulator.export_json()))
    assert sizes[1] < 1.1 * sizes[0]


def test_compat_saved_tokens_without_an_end_are_bounded() -> None:
    regulator = Regulator.for_user("ada", embedder=False)
    for n in range(20_000):
        regulator.on_event(LLMEvent.token("x", -3.0 if n % 3 else -0.1, n))
    assert len(regulator.export_json()) < 10_000
