"""Bounds of the account: of claims, of judgements, of words; and what was not looked at is unknown, not wrong."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.core.config import GroundingConfig, MonitorConfig
from coherence.core.events import Event, Goal, Message, Outcome, ToolResult
from coherence.core.readings import MAX_CLAIMS, Claim
from coherence.core.registry import register, unregister
from coherence.core.validation import to_json
from coherence.detect.answer_text import without_thinking
from coherence.detect.extractors import DEFAULT, extract
from coherence.detect.grounding import MAX_JUDGED, judge
from coherence.detect.grounding_state import GroundingAccount, note_call, note_result
from coherence.detect.reckoned import Reckoning
from coherence.detect.sources import MAX_CHARS, MAX_FOLDED, MAX_PAIRS, Given, SeenNumber, take_source
from coherence.detect.text_analysis import LONG, SKIMMED
from coherence.state.reducer import AgentState
from detect.judging import CHOSEN


@pytest.mark.parametrize(("count", "flaws", "unknown"), [(1_000, 1, 0), (MAX_CLAIMS + 500, 0, 1)])
def test_judge_a_value_that_may_stand_among_those_not_looked_at_is_unknown(
    count: int, flaws: int, unknown: int
) -> None:
    known = Given()
    text = " ".join(f"{at * 7 + 100_001}" for at in range(count))
    assert len(text) < MAX_CHARS
    take_source(known, 1, text, CHOSEN)
    found = judge(known, "It is 99173.", CHOSEN)  # no value of the source is near
    assert (len(found.flaws), found.unknown) == (flaws, unknown)


def test_judge_values_of_an_answer_beyond_the_most_are_unknown() -> None:
    known = Given()
    take_source(known, 1, "nothing", CHOSEN)
    found = judge(known, " ".join(f"AB-{at}" for at in range(100, 100 + MAX_JUDGED + 7)), CHOSEN)
    assert (found.checked, found.unknown) == (MAX_JUDGED, 7)


def test_bounds_a_text_that_grows_when_it_is_folded_is_cut_again() -> None:
    known = Given()
    take_source(known, 1, "\ufdfb" * 20_000, CHOSEN)  # one character that stands for 8
    assert (known.lost, known.lost_words) == (1, 1)
    take_source(known := Given(), 1, "\ufdfb" * (MAX_FOLDED // 8), CHOSEN)
    assert (known.lost, known.lost_words) == (0, 0)


def test_bounds_calls_alone_do_not_fill_the_memory_with_names() -> None:
    account = GroundingAccount()
    for seq in range(MAX_PAIRS // 50):
        note_call(account, seq, "c", " ".join(f"t{seq}x{at}" for at in range(60)), {}, CHOSEN)
    assert len(account.given.pairs) <= MAX_PAIRS


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a <think>b</think> c", "a   c"),
        ("a <think>b</thinking> c", "a <think>b</thinking> c"),
        ("<scratchpad>b c", "<scratchpad>b c"),
        ("<think><thinking>1</thinking>2", "<think> 2"),
        ("1 < 2 <think>x</think>3<thinking>y</thinking>4", "1 < 2  3 4"),
        ("<think>" * 3, "<think>" * 3),
    ],
)
def test_bounds_what_the_agent_says_to_itself_is_left_out(text: str, left: str) -> None:
    assert without_thinking(text) == left


@given(st.lists(st.tuples(st.integers(200, 999), st.sampled_from(["", "usd", "%", "clock"])), max_size=6))
def test_bounds_what_two_numbers_of_a_line_make_follows_from_them(told: list[tuple[int, str]]) -> None:
    numbers = [SeenNumber(float(value), unit, 1, place, 0) for place, (value, unit) in enumerate(told)]
    reckoning = Reckoning(Given(numbers=numbers))
    for (one, unit), (two, other) in pairwise(told):
        said = f"{one + two} in total"
        claim = Claim("number", str(one + two), 0, (f"n:{one + two}",), (), float(one + two), 1.0, "")
        if unit == other == "" and len(told) < 4 and one != two:
            assert reckoning.reaches(said, claim, ())
    far = Claim("number", "77777777", 0, ("n:77777777",), (), 77777777.0, 1.0, "")
    assert not reckoning.reaches("77777777 in total", far, ())


BROKEN: list[Claim] = [
    Claim("id", "x", 0, ()),
    Claim("id", "x", -1, ("id:x",)),
    Claim("id", "x", 0.5, ("id:x",)),  # type: ignore[arg-type]
    Claim("id", "x", 0, (5,)),  # type: ignore[arg-type]
    Claim("id", "x", 0, ("id:\ud800",)),
    Claim("number", "x", 0, ("n:x",), (), float("nan"), 1.0),
    "x",  # type: ignore[list-item]
]


@pytest.mark.parametrize("broken", BROKEN)
def test_grounding_detector_reports_a_broken_claim_of_a_plug_in_and_goes_on(broken: Claim) -> None:
    def find(text: str) -> Sequence[Claim]:
        return [Claim("id", text[:1], 0, (f"id:{text[:1]}",)), broken]

    register(find, name="broken", group="extractors")
    try:
        state = AgentState(MonitorConfig(grounding=GroundingConfig(extractors=("broken", *DEFAULT))))
        told: list[Event] = [Goal("AB-17"), ToolResult("AB-17 x"), Message("assistant", "AB-17"), Outcome(True)]
        for seq, event in enumerate(told, 1):
            state.fold(seq, float(seq), event)
    finally:
        unregister("broken", group="extractors")
    assert "broken" in state.grounding.data.failed
    assert state.grounding.data.newest is not None and state.grounding.data.newest.value == 1.0
    assert to_json("facts", state.facts)


def test_note_result_a_long_result_is_skimmed_and_an_absence_is_unknown_then() -> None:
    account = GroundingAccount()
    text = f"CVE-2021-44228 {'x ' * (LONG // 2)} CVE-2014-0160"
    note_result(account, 2, None, text, CHOSEN, error=False)
    assert judge(account.given, "CVE-2021-44228 and CVE-2014-0160", CHOSEN).value == 1.0
    assert judge(account.given, "CVE-2019-0708", CHOSEN).unknown == 1  # it may have stood in between
    assert len(account.given.pairs) <= SKIMMED


@given(st.text(alphabet="0123456789 .,:-/$%kmab\nJuneMay", max_size=120))
def test_extract_what_is_taken_changes_no_claim(text: str) -> None:
    told_what_is_taken = AgentState().grounding._extractors
    assert extract(text, told_what_is_taken) == extract(text, CHOSEN)
