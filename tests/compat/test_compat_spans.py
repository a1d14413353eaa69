"""Spans of both conventions become events."""

from __future__ import annotations

import json
from typing import Any

import pytest

from coherence.compat.events import LLMEvent
from coherence.compat.regulator import Regulator

ASKED = {"role": "user", "parts": [{"type": "text", "content": "Weather in Paris?"}]}
CALLED = {
    "role": "assistant",
    "parts": [{"type": "tool_call", "id": "1", "name": "weather", "arguments": {"at": "Paris"}}],
}
CAME = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "1", "result": "rainy"}]}
SAID = {"role": "assistant", "parts": [{"type": "text", "content": "It rains."}], "finish_reason": "stop"}

START = LLMEvent.turn_start("Weather in Paris?")
CALL = LLMEvent.tool_call("weather", '{"at":"Paris"}')
END = LLMEvent.turn_complete("It rains.")


def read(span: Any) -> list[LLMEvent]:
    return LLMEvent.from_otel_span_json(json.dumps(span))


def new_span(came_in: list[Any], came_out: list[Any], **more: Any) -> dict[str, Any]:
    messages = {"gen_ai.input.messages": json.dumps(came_in), "gen_ai.output.messages": json.dumps(came_out)}
    return {"attributes": messages | more}


def test_compat_spans_a_span_with_messages_as_attributes() -> None:
    span = new_span([ASKED], [SAID], **{"gen_ai.usage.input_tokens": 9, "gen_ai.usage.output_tokens": 4})
    span |= {"startTimeUnixNano": "1000000000", "endTimeUnixNano": "1250000000"}
    span["attributes"]["gen_ai.provider.name"] = "acme"
    assert read(span) == [START, END, LLMEvent.cost(9, 4, 250.0, "acme")]


def test_compat_spans_only_what_is_new_in_a_span_counts() -> None:
    assert read(new_span([ASKED], [CALLED])) == [START, CALL]
    assert read(new_span([ASKED, CALLED, CAME], [SAID])) == [LLMEvent.tool_result("weather", True), END]
    assert read(new_span([ASKED, SAID, {**ASKED, "parts": [{"type": "text", "content": "And now?"}]}], [SAID])) == [
        LLMEvent.turn_start("And now?"),
        END,
    ]


def otlp(value: Any) -> Any:
    if isinstance(value, dict):
        return {"kvlistValue": {"values": attributes(value)}}
    if isinstance(value, list):
        return {"arrayValue": {"values": [otlp(item) for item in value]}}
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}


def attributes(values: dict[str, Any]) -> list[Any]:
    return [{"key": key, "value": otlp(value)} for key, value in values.items()]


def test_compat_spans_a_span_as_otlp_writes_it() -> None:
    span = new_span([], [SAID], **{"gen_ai.usage.output_tokens": 4})
    span["attributes"]["gen_ai.input.messages"] = [ASKED]
    assert read({"attributes": attributes(span["attributes"])}) == [START, END, LLMEvent.cost(0, 4)]


@pytest.mark.parametrize(
    "events",
    [
        [
            {"name": "gen_ai.system.message", "attributes": {"content": "Be brief."}},
            {"name": "gen_ai.user.message", "attributes": {"content": "Weather in Paris?"}},
            {"name": "gen_ai.choice", "attributes": {"message": '{"role": "assistant", "content": "It rains."}'}},
        ],
        [
            {"name": "gen_ai.user.message", "body": {"content": "Weather in Paris?"}},
            {"name": "gen_ai.choice", "body": {"index": 0, "message": {"content": "It rains."}}},
        ],
        [
            {
                "name": "gen_ai.content.prompt",
                "attributes": {"gen_ai.prompt": '[{"role":"user","content":"Weather in Paris?"}]'},
            },
            {"name": "gen_ai.content.completion", "attributes": {"gen_ai.completion": '[{"content": "It rains."}]'}},
        ],
    ],
    ids=["attributes", "bodies", "content"],
)
def test_compat_spans_a_span_with_an_event_a_message(events: list[Any]) -> None:
    assert read({"events": events}) == [START, END]


def test_compat_spans_tool_calls_of_a_choice() -> None:
    function = {"name": "weather", "arguments": '{"at":"Paris"}'}
    choice = {"message": {"tool_calls": [{"id": "1", "type": "function", "function": function}]}}
    assert read({"events": [{"name": "gen_ai.choice", "attributes": choice}]}) == [CALL]


@pytest.mark.parametrize(
    "span", [{}, {"events": 5, "attributes": "x"}, {"events": [1, {"attributes": [2]}]}, {"name": "x"}]
)
def test_compat_spans_a_span_that_tells_nothing_gives_nothing(span: Any) -> None:
    assert read(span) == []


@pytest.mark.parametrize(
    "junk", [None, 1, "x", "[", [], [1], {"parts": 3}, [{"parts": [{"type": "tool_call"}]}], [[[]]]]
)
def test_compat_spans_junk_in_messages_is_passed_over(junk: Any) -> None:
    for key in ("gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.usage.input_tokens"):
        read(
            {
                "attributes": {key: junk},
                "events": [{"name": "gen_ai.choice", "body": junk, "attributes": {"message": junk}}],
            }
        )


@pytest.mark.parametrize("text", ["", "[]", "5", "{", "\ud800", "[" * 100_000])
def test_compat_spans_what_is_no_span_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="span_json"):
        LLMEvent.from_otel_span_json(text)


# What the classic regulator's own cases hold: messages and tools as span events, the whole turn in one span.

USER = {"name": "gen_ai.user.message", "attributes": {"content": "find order 42"}}
ASSISTANT = {"name": "gen_ai.assistant.message", "attributes": {"content": "order found"}}
ASKS, ANSWERS = LLMEvent.turn_start("find order 42"), LLMEvent.turn_complete("order found")


def tool(**fields: Any) -> dict[str, Any]:
    return {"name": "gen_ai.tool.message", "attributes": {f"gen_ai.tool.{key}": value for key, value in fields.items()}}


@pytest.mark.parametrize(
    ("events", "found"),
    [
        ([USER], [ASKS]),
        ([ASSISTANT], [ANSWERS]),
        ([USER, ASSISTANT], [ASKS, ANSWERS]),
        ([ASSISTANT, USER], [ASKS, ANSWERS]),
        ([tool(name="search", arguments='{"id": 42}')], [LLMEvent.tool_call("search", '{"id": 42}')]),
        ([tool(name="search", arguments={"id": 42})], [LLMEvent.tool_call("search", '{"id":42}')]),
        ([tool(name="search", duration_ms=250)], [LLMEvent.tool_result("search", True, 250)]),
        ([tool(name="search")], [LLMEvent.tool_call("search")]),
        (
            [tool(name="search", arguments="{}", duration_ms=120)],
            [LLMEvent.tool_call("search", "{}"), LLMEvent.tool_result("search", True, 120)],
        ),
        (
            [{"name": "gen_ai.tool.message", "attributes": {"gen_ai.tool.name": "db", "error.type": "timeout"}}],
            [LLMEvent.tool_result("db", False, 0, "timeout")],
        ),
    ],
)
def test_from_otel_span_json_events_of_one_turn(events: list[Any], found: list[LLMEvent]) -> None:
    assert read({"events": events}) == found


def test_from_otel_span_json_a_whole_turn_with_tools_keeps_its_beginning_and_its_end() -> None:
    span = {
        "attributes": {"gen_ai.system": "acme", "gen_ai.usage.input_tokens": 50, "gen_ai.usage.output_tokens": 400},
        "events": [USER, tool(name="search", arguments='{"id": 42}', duration_ms=80), ASSISTANT],
        "start_time_unix_nano": 2_000_000_000,
        "end_time_unix_nano": 2_750_000_000,
    }
    call, result = LLMEvent.tool_call("search", '{"id": 42}'), LLMEvent.tool_result("search", True, 80)
    assert read(span) == [ASKS, ANSWERS, LLMEvent.cost(50, 400, 750, "acme"), call, result]


def test_from_otel_span_json_messages_of_an_earlier_turn_are_not_told_again() -> None:
    later = {"name": "gen_ai.user.message", "attributes": {"content": "and order 43?"}}
    assert read({"events": [USER, ASSISTANT, later]}) == [LLMEvent.turn_start("and order 43?")]
    assert read({"events": [USER, ASSISTANT, later, ASSISTANT]}) == [LLMEvent.turn_start("and order 43?"), ANSWERS]


@pytest.mark.parametrize(
    ("more", "result"),
    [
        ({}, LLMEvent.tool_result("search", True, 500)),
        ({"status": {"code": 2, "message": "boom"}}, LLMEvent.tool_result("search", False, 500, "boom")),
        ({"status": {"code": "STATUS_CODE_ERROR"}}, LLMEvent.tool_result("search", False, 500, "error")),
    ],
)
def test_from_otel_span_json_a_span_of_a_tool(more: dict[str, Any], result: LLMEvent) -> None:
    span = {
        "attributes": {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "search",
            "gen_ai.tool.call.arguments": '{"q": 1}',
        },
        "startTimeUnixNano": "1000000000",
        "endTimeUnixNano": "1500000000",
    }
    assert read(span | more) == [LLMEvent.tool_call("search", '{"q": 1}'), result]


def test_decide_a_span_whose_tools_come_behind_its_answer_is_judged_by_the_answer() -> None:
    regulator = Regulator.for_user("ada", embedder=False)
    soup = {"name": "gen_ai.assistant.message", "attributes": {"content": "Peel the onions and simmer the soup."}}
    asked = {"name": "gen_ai.user.message", "attributes": {"content": "Refactor fetch_user to be async"}}
    for event in read({"events": [asked, tool(name="search", arguments="{}", duration_ms=8), soup]}):
        regulator.on_event(event)
    assert regulator.decide().is_scope_drift()
