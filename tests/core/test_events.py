"""Events and their one codec."""

from __future__ import annotations

import json
import math
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.core import events
from coherence.core.events import (
    Compaction,
    Correction,
    Event,
    Fault,
    Feedback,
    Goal,
    Logprobs,
    Memory,
    Message,
    Outcome,
    Span,
    Spent,
    Ticked,
    ToolCall,
    ToolResult,
    Usage,
    decode_event,
    encode_event,
    ends_step,
    kind_of,
    summarise_logprobs,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
MAYBE = st.none() | TEXT
FINITE = st.floats(allow_nan=False, allow_infinity=False)
COUNT = st.integers(0, 2**53)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | FINITE | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
).map(lambda value: msgspec.Raw(msgspec.json.encode(value)))
SPENT = st.builds(Spent, tokens=COUNT, cost_usd=FINITE, calls=COUNT, wall_s=FINITE, unpriced=COUNT)
SPANS = st.lists(st.builds(Span, first=COUNT, count=COUNT, mean=FINITE), max_size=3).map(tuple)
LOGPROBS = st.builds(Logprobs, count=COUNT, mean=FINITE, lowest=FINITE, low=COUNT, spans=SPANS)

KINDS: dict[type, st.SearchStrategy[Event]] = {
    Goal: st.builds(Goal, TEXT),
    Message: st.builds(Message, st.sampled_from(get_args(events.Role)), TEXT, MAYBE, MAYBE, st.none() | LOGPROBS),
    ToolCall: st.builds(ToolCall, TEXT, JSON, TEXT),
    ToolResult: st.builds(ToolResult, TEXT, st.booleans(), MAYBE, MAYBE, MAYBE, st.none() | FINITE),
    Usage: st.builds(Usage, st.none() | COUNT, st.none() | COUNT, st.none() | FINITE, MAYBE),
    Feedback: st.builds(Feedback, st.none() | FINITE, TEXT),
    Correction: st.builds(Correction, TEXT),
    Memory: st.builds(Memory, TEXT, MAYBE, st.booleans()),
    Compaction: st.builds(Compaction, TEXT),
    Outcome: st.builds(Outcome, st.none() | st.booleans(), st.none() | FINITE, TEXT),
    Ticked: st.builds(Ticked, TEXT, MAYBE, st.just(msgspec.UNSET) | JSON, st.none() | SPENT),
    Fault: st.builds(Fault, TEXT, TEXT, TEXT),
}


def test_events_there_are_at_most_a_dozen_kinds_and_all_are_tried_here() -> None:
    assert set(KINDS) == set(get_args(Event))
    assert len(KINDS) == 12


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_decode_event_every_event_comes_back_as_it_was(kind: type, data: st.DataObject) -> None:
    event = data.draw(KINDS[kind])
    text = encode_event(event)
    back = decode_event(text)
    assert type(back) is kind
    assert back == event
    assert encode_event(back) == text
    assert decode_event(text.encode()) == event
    assert json.loads(text)["kind"] == kind_of(event)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"kind": "thought", "text": "hm"}', r"not an event: Invalid value 'thought' - at `\$.kind`"),
        ('{"text": "hm"}', "not an event: Object missing required field `kind`"),
        ('{"kind": "goal"}', "not an event: Object missing required field `text`"),
        ('{"kind": "goal", "text": 5}', r"not an event: Expected `str`, got `int` - at `\$.text`"),
        ('{"kind": "message", "role": "robot", "content": ""}', "not an event: Invalid enum value 'robot'"),
        ('{"kind": "goal", "text": "x"', "not an event: Input data was truncated"),
        ("[]", "not an event: Expected `object`, got `array`"),
        ("", "not an event: Input data was truncated"),
        ("NaN", "not an event: JSON is malformed"),
        (b"\xff", "not an event: JSON is malformed"),
    ],
)
def test_decode_event_what_is_no_event_is_a_clear_value_error(text: str | bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decode_event(text)


def test_encode_event_names_on_disk_are_those_of_opentelemetry() -> None:
    call = json.loads(encode_event(ToolCall("Bash", msgspec.Raw(b'{"command":"ls"}'), "c1")))
    assert call == {
        "kind": "tool_call",
        "gen_ai.tool.name": "Bash",
        "gen_ai.tool.call.arguments": {"command": "ls"},
        "gen_ai.tool.call.id": "c1",
    }
    usage = json.loads(encode_event(Usage(1, 2, 0.5, "m")))
    assert usage.keys() == {
        "kind",
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.output_tokens",
        "coherence.cost_usd",
        "gen_ai.response.model",
    }
    assert json.loads(encode_event(ToolResult("x", True, error_type="timeout")))["error.type"] == "timeout"


def test_decode_event_fields_of_a_later_version_are_passed_over() -> None:
    assert decode_event('{"kind": "goal", "text": "x", "urgency": 3}') == Goal("x")


def test_ends_step_a_result_and_an_assistants_message_end_a_step() -> None:
    assert ends_step(ToolResult("x")) and ends_step(Message("assistant", ""))
    others: list[Event] = [Message("user", "x"), Message("tool", "x"), Goal("x"), Usage(), Ticked()]
    assert not any(ends_step(event) for event in others)


def test_logprobs_are_reduced_to_the_least_likely_runs() -> None:
    # 12 runs of one token at -3.0, -3.1, …: the eight least likely stay, in order
    values = [value for number in range(12) for value in (-3.0 - number / 10, -0.1)]
    kept = summarise_logprobs(values)
    assert kept is not None
    assert (kept.count, kept.low, kept.lowest) == (24, 12, -4.1)
    assert [span.first for span in kept.spans] == [8, 10, 12, 14, 16, 18, 20, 22]
    assert kept.mean == pytest.approx((sum(-3.0 - n / 10 for n in range(12)) - 1.2) / 24)
    assert summarise_logprobs([]) is None
    assert summarise_logprobs([0, -1]) == Logprobs(2, -0.5, -1.0)


@pytest.mark.parametrize("values", ["-1", b"-1", -1.0, None, {-1.0}, [math.nan], [0.1], [True], [-1e10], ["-1"]])
def test_summarise_logprobs_what_is_no_list_of_logprobs_is_refused(values: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="logprobs must be"):
        summarise_logprobs(values)
