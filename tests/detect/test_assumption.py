"""Steps that rest on assumption, and how much."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.detect.assumption import AssumedStep, AssumptionFacts
from coherence.detect.text_analysis import TextAnalysis

TASK = "How much does the annual pass of the Seattle museum cost in 2024?"


def after(*said: str, task: str = TASK) -> AssumedStep:
    """Return the cues of the last of these messages."""
    facts = AssumptionFacts()
    facts.ask(TextAnalysis(task))
    for seq, text in enumerate(said, 2):
        facts.say(seq, TextAnalysis(text))
    assert facts.step is not None
    return facts.step


def test_the_value_is_the_sum_of_its_cues() -> None:
    assert AssumedStep().value == 0
    assert AssumedStep(fallbacks=1).value == pytest.approx(0.5 / 3.25)  # f / (f + 1)
    assert AssumedStep(new=50.0).value == pytest.approx(2 * 0.5 / 3.25)  # 2 n / (n + 50)
    assert AssumedStep(code=True).value == pytest.approx(0.25 / 3.25)
    assert AssumedStep(fallbacks=10**9, new=1e12, code=True).value == pytest.approx(1.0)


def test_an_assumption_counts_and_is_quoted() -> None:
    assumed = after("The page is empty.\nLet's assume that adults pay $90.")
    stated = after("The page is empty.\nIt follows that adults pay $90.")
    assert assumed.fallbacks == 1
    assert assumed.phrase == "Let's assume that adults pay $90."
    assert stated.fallbacks == 0
    assert assumed.value > stated.value > 0


def test_assumption_facts_what_was_told_or_shown_before_is_not_new() -> None:
    facts = AssumptionFacts()
    facts.ask(TextAnalysis(TASK))
    facts.read(TextAnalysis("Adults: $1290 a year, family@museum.org"))
    facts.say(3, TextAnalysis("Adults pay $1290; write to family@museum.org."))
    assert facts.step is not None
    assert facts.step.entities == []
    told = facts.step.new
    assert after("Adults pay $1290; write to family@museum.org.").entities == ["1290", "family@museum.org"]
    assert told < after("Adults pay $1290; write to family@museum.org.").new


def test_an_inability_counts_only_where_the_step_goes_on_from_it() -> None:
    stops = after("I am unable to open the list of prices.")
    goes_on = after("I am unable to open the list of prices.\n```\nprint(1)\n```")
    assert stops.unable
    assert not stops.works_around
    assert goes_on.works_around
    assert "works around what could not be done" in goes_on.reasons()
    assert stops.phrase == "I am unable to open the list of prices."


def test_works_around_calls_belong_to_the_message_before_them() -> None:
    facts = AssumptionFacts()
    facts.say(1, TextAnalysis("I cannot open it, so I search."))
    facts.call(2, TextAnalysis('search({"query": "museum 1290"})'))
    assert facts.step is not None
    assert (facts.step.seq, facts.step.works_around, facts.step.entities) == (1, True, ["1290"])
    facts.read(TextAnalysis("nothing found"))
    facts.call(4, TextAnalysis('search({"query": "other"})'))
    assert facts.step is not None
    assert (facts.step.seq, facts.step.unable) == (4, False)


def test_a_step_that_hands_the_task_on_counts_nothing() -> None:
    plan = after(f"You are given a task: {TASK}\nFollow the plan, assume nothing, and use alternative sources.")
    assert plan.briefs
    assert plan.value == 0
    assert plan.reasons() == ["only hands the task on"]


def test_a_step_that_hands_the_task_on_and_acts_counts() -> None:
    acts = after(f"The task: {TASK}\n```python\nprice = 90\n```")
    assert acts.restates
    assert not acts.briefs
    assert acts.value > 0
    facts = AssumptionFacts()
    facts.ask(TextAnalysis(TASK))
    facts.say(1, TextAnalysis(TASK))
    facts.call(2, TextAnalysis("search(museum)"))
    assert facts.step is not None
    assert not facts.step.briefs


def test_assumed_step_a_long_task_is_known_by_its_beginning() -> None:
    long = " ".join(f"word{number}" for number in range(500))
    assert after(f"Task: {long}", task=long).restates
    assert not after(f"Task: {long[:200]}", task=long).restates


def test_assumption_facts_further_requests_do_not_replace_the_task() -> None:
    facts = AssumptionFacts()
    facts.ask(TextAnalysis(""), anew=False)
    facts.ask(TextAnalysis(TASK), anew=False)
    facts.ask(TextAnalysis("And what does a day ticket cost for two adults and a child?"), anew=False)
    facts.say(4, TextAnalysis(f"The task is: {TASK}"))
    assert facts.step is not None
    assert facts.step.restates


@given(st.lists(st.tuples(st.sampled_from(["ask", "read", "say", "call"]), st.text(max_size=80))))
def test_any_text_gives_a_value_and_the_same_one_again(told: list[tuple[str, str]]) -> None:
    one, other = AssumptionFacts(), AssumptionFacts()
    for facts in (one, other):
        for seq, (kind, text) in enumerate(told, 1):
            if kind in ("ask", "read"):
                getattr(facts, kind)(TextAnalysis(text))
            else:
                getattr(facts, kind)(seq, TextAnalysis(text))
            if facts.step is not None:
                assert 0.0 <= facts.step.value <= 1.0
                assert facts.step.reasons()
    assert one == other
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(one), type=AssumptionFacts) == one


@pytest.mark.parametrize(
    "text", ["x " * 500_000, "a1b2 " * 200_000, "\ud800" * 10_000, "\x00\u202e" * 10_000, "1." * 500_000]
)
def test_assumption_facts_hostile_texts_are_bounded(text: str) -> None:
    facts = AssumptionFacts()
    facts.ask(TextAnalysis(text))
    facts.say(1, TextAnalysis(text))
    facts.call(2, TextAnalysis(text))
    assert facts.step is not None
    assert len(facts.step.phrase) <= 200
    assert len(facts.step.entities) <= 5
    assert len(msgspec.json.encode(facts.step)) < 2_000
