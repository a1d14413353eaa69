"""Steps that rest on assumption: the phrases that say how their author knows, and what is new in them."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.detect.assumption import (
    FALLBACK,
    INABILITY,
    MAX_CHARS,
    AssumedStep,
    AssumptionFacts,
    fallbacks,
    is_english,
    quoted,
    shortened,
)
from coherence.detect.text_analysis import TextAnalysis

TASK = "How much does the annual pass of the Seattle museum cost in 2024?"
PRICES = "Adults pay $1290; write to family@museum.org."


def after(*said: str, task: str = TASK, read: str = "", call: str = "") -> AssumedStep:
    """Return the cues of the last of these messages, and of the call behind it."""
    facts = AssumptionFacts()
    facts.ask(TextAnalysis(task))
    facts.read(TextAnalysis(read))
    for seq, text in enumerate(said, 2):
        facts.say(seq, TextAnalysis(text))
    if call:
        facts.call(len(said) + 2, TextAnalysis(call))
    assert facts.step is not None
    return facts.step


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Let's assume the price is 100.", ["assume"]),
        ("ASSUMING the file exists, this simulates a mock dataset.", ["ASSUMING", "simulates", "mock"]),
        ("Here is sample data, a placeholder for the key.", ["sample data", "placeholder"]),
        ("an estimated 40 %, made-up figures from general knowledge", ["estimated", "made-up", "general knowledge"]),
        ("sample size 40; we resume the search; he was hospitable; data about a smock", []),
        ("I won't assume, estimate or simulate it.", []),
        ("There is no placeholder data in it.", []),
        ("There’s no need to assume: it isn’t an estimated price.", []),
        ("NEITHER SIMULATED NOR MOCKED", []),
        ("We avoid using sample data, and go on without assuming anything.", []),
        ("I cannot open the page, so I assume it.", ["assume"]),  # what is denied is something else
        ("This is not only an estimate, I assume.", ["estimate", "assume"]),
        ("There is no alternative but to assume it.", ["assume"]),
        ("Why not assume that it is 5?", ["assume"]),
        ("I do not assume it; this is a mock.", ["mock"]),
        ("I will not assume it but estimate it.", ["estimate"]),
    ],
)
def test_fallbacks_are_phrases_in_the_place_of_evidence_that_nobody_denies(text: str, left: list[str]) -> None:
    assert [found[0] for found in fallbacks(text)] == left


@pytest.mark.parametrize(
    ("text", "unable"),
    [
        ("I am unable to open it", True),
        ("We could not find it.", True),
        ("I can't", True),
        ("is not available", True),
        ("I can open it: it is available, notable and canned.", False),
    ],
)
def test_inability_says_that_something_could_not_be_done(text: str, unable: bool) -> None:
    assert (INABILITY.search(text) is not None) is unable


@pytest.mark.parametrize(
    ("text", "english"),
    [
        ("ok", True),
        ("Datei fehlt.", True),  # too short to tell
        ("The file is missing, and none of the members of the team can say what the ticket costs.", True),
        ("The name 阿里 occurs in the table of winners.", True),
        (f"See the code:\n```\n{'wert = preis * menge ' * 20}\n```\nThat is all.", True),  # code has no language
        (
            "Die Datei wurde nicht gefunden, deshalb nehme ich an, dass der Preis in dem Katalog hundert Euro war und "
            "an den Kunden so weitergegeben wird.",
            False,
        ),
        ("Файл не найден, поэтому я предполагаю, что цена составляет сто евро.", False),
        ("文件未找到，所以我假设价格为一百欧元，并且继续进行下一步的计算工作。", False),
    ],
)
def test_is_english_tells_other_languages_apart(text: str, english: bool) -> None:
    assert is_english(text) is english


def test_quoted_stays_on_its_line_and_is_short() -> None:
    text = "first line\n" + "word " * 50 + "we assume 7 " + "word " * 50 + "\nlast line"
    [found] = fallbacks(text)
    assert "assume" in quoted(text, found) and "line" not in quoted(text, found)
    assert len(quoted(text, found)) <= 2 * 60 + len("assume")


def test_assumed_step_value_is_the_sum_of_its_cues() -> None:
    assert AssumedStep().value == 0
    assert AssumedStep(fallbacks=1).value == pytest.approx(0.5 / 3.25)  # f / (f + 1)
    assert AssumedStep(new=50.0).value == pytest.approx(2 * 0.5 / 3.25)  # 2 n / (n + 50)
    assert AssumedStep(code=True).value == pytest.approx(0.25 / 3.25)
    assert AssumedStep(fallbacks=10**9, new=1e12, code=True).value == pytest.approx(1.0)


def test_assumption_facts_an_assumption_counts_and_is_quoted() -> None:
    assumed = after("The page is empty.\nLet's assume that adults pay $90.")
    stated = after("The page is empty.\nIt follows that adults pay $90.")
    assert (assumed.fallbacks, assumed.phrase) == (1, "Let's assume that adults pay $90.")
    assert assumed.value > stated.value > 0


def test_assumption_facts_what_was_shown_before_is_not_new() -> None:
    shown = after(PRICES, read="Adults: $1290 a year, family@museum.org")
    assert (shown.entities, after(PRICES).entities) == ([], ["1290", "family@museum.org"])
    assert shown.new < after(PRICES).new


def test_works_around_is_an_inability_from_which_the_step_goes_on() -> None:
    said = "I am unable to open the list of prices."
    assert after(said).unable and not after(said).works_around
    for step in (after(f"{said}\n```\nprint(1)\n```"), after(said, call='search({"query": "museum"})')):
        assert step.works_around and "works around what could not be done" in step.reasons()
        assert (step.seq, step.phrase) == (2, said)


def test_assumption_facts_a_call_behind_a_result_begins_a_step() -> None:
    facts = AssumptionFacts()
    facts.say(1, TextAnalysis("I cannot open it, so I search."))
    facts.read(TextAnalysis("nothing found"))
    facts.call(4, TextAnalysis('search({"query": "other"})'))
    assert facts.step is not None
    assert (facts.step.seq, facts.step.unable) == (4, False)


def test_briefs_is_a_step_that_only_hands_the_task_on() -> None:
    plan = after(f"You are given a task: {TASK}\nFollow the plan, assume nothing, and use alternative sources.")
    assert (plan.briefs, plan.value, plan.reasons()) == (True, 0, ["only hands the task on"])
    for acts in (after(f"The task: {TASK}\n```python\nprice = 90\n```"), after(TASK, call="search(museum)")):
        assert acts.restates and not acts.briefs and acts.value > 0
    long = " ".join(f"word{number}" for number in range(500))
    assert after(f"Task: {long}", task=long).restates  # a long task is known by its beginning
    assert not after(f"Task: {long[:200]}", task=long).restates


def test_ask_further_requests_do_not_replace_the_task() -> None:
    facts = AssumptionFacts()
    for request in ("", TASK, "And what does a day ticket cost for two adults and a child?"):
        facts.ask(TextAnalysis(request), anew=False)
    facts.say(4, TextAnalysis(f"The task is: {TASK}"))
    assert facts.step is not None and facts.step.restates


PHRASES = st.lists(st.sampled_from(["not ", "assume ", "or ", "n't ", "to ", ", "]), max_size=400).map("".join)


@given(st.lists(st.tuples(st.sampled_from(["ask", "read", "say", "call"]), st.text(max_size=80) | PHRASES)))
def test_assumption_facts_any_text_gives_a_value_and_the_same_one_again(told: list[tuple[str, str]]) -> None:
    one, other = AssumptionFacts(), AssumptionFacts()
    for facts in (one, other):
        for seq, (kind, text) in enumerate(told, 1):
            getattr(facts, kind)(*([] if kind in ("ask", "read") else [seq]), TextAnalysis(text))
            if facts.step is not None:
                assert 0.0 <= facts.step.value <= 1.0 and facts.step.reasons()
    assert one == other
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(one), type=AssumptionFacts) == one


@pytest.mark.parametrize("piece", ["x ", "a1b2 ", "assum", "```", "\ud800", "\x00\u202e", "1."])
def test_assumption_facts_hostile_texts_are_bounded(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    assert len(shortened(text)) <= MAX_CHARS + 1
    assert (shortened(text)[0], shortened(text)[-1]) == (text[0], text[-1])
    assert not [found for found in FALLBACK.finditer(shortened(text)) if found[0] not in quoted(text, found)]
    step = after(text, task=text, call=text)
    assert (len(step.phrase) <= 200, len(step.entities) <= 5, len(msgspec.json.encode(step)) < 2_000) == (True,) * 3
