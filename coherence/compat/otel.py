"""OpenTelemetry GenAI spans, in the older form (one span event a message) and the newer one (attributes).

Field names follow the OpenTelemetry semantic conventions for generative AI, 1.28 to 1.38.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from coherence.compat.events import MOST_TOKENS, LLMEvent
from coherence.core.validation import check_text, to_json

OLD_MESSAGES = {
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
    "gen_ai.choice": "answer",
}
"""Names of span events -> who speaks; the choice is what the span gave."""

INPUTS = ("gen_ai.input.messages", "gen_ai.prompt", "gen_ai.content.prompt")
OUTPUTS = ("gen_ai.output.messages", "gen_ai.completion", "gen_ai.content.completion")
USERS = frozenset({"user", "human"})


def events_of_span(span_json: str) -> list[LLMEvent]:
    """Return what one span of a model call tells, in order.

    Of the messages that went in only the newest count: a user's begins a turn, tool responses end calls; what lies
    before came with earlier spans. Of what came out: tool calls, or else the text completes the turn. Then the cost.
    Attributes may be plain or OTLP's list of keys and typed values, messages JSON or already decoded. What is not
    understood is passed over; a span without content gives no events.

    Raises
    ------
    TypeError
        If the span is not a str.
    ValueError
        If it is no JSON object.

    Examples
    --------
    >>> messages = '[{"role": "user", "parts": [{"type": "text", "content": "Weather in Paris?"}]}]'
    >>> span = {"attributes": {"gen_ai.input.messages": messages, "gen_ai.usage.output_tokens": 7}}
    >>> [event.kind for event in events_of_span(msgspec.json.encode(span).decode())]
    ['turn_start', 'cost']
    """
    text = check_text("span_json", span_json)
    try:
        span = msgspec.json.decode(text.encode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"span_json: {error or 'nested too deep'}") from error
    if not isinstance(span, dict):
        raise ValueError("span_json: expected an object")
    attributes = _attributes(span.get("attributes"))
    names: dict[str, str] = {}
    messages = [_message(who, row, names) for who, row in _told(span, attributes)]
    return [*_came_in(messages), *_came_out(messages), *_cost(span, attributes)]


def _told(span: dict[str, Any], attributes: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Give (who, message) in order; of what the span gave, who is ``answer``."""
    rows = span.get("events")
    for row in rows if isinstance(rows, list) else ():
        if not isinstance(row, dict):
            continue
        fields = _attributes(row.get("attributes"))
        fields |= row["body"] if isinstance(row.get("body"), dict) else {}
        who = OLD_MESSAGES.get(str(row.get("name")))
        if who is not None:
            yield who, fields.get("message", fields)
        for key, value in fields.items():
            yield from _listed(key, value)
    for key in (*INPUTS, *OUTPUTS):
        yield from _listed(key, attributes.get(key))


def _listed(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    if key not in INPUTS and key not in OUTPUTS:
        return
    rows = _decoded(value)
    if isinstance(rows, str):
        rows = [{"role": "user", "content": rows}] if rows else []
    for row in rows if isinstance(rows, list) else ():
        role = str(row.get("role")) if isinstance(row, dict) else ""
        yield ("answer" if key in OUTPUTS else role.lower()), row


class _Said(msgspec.Struct):
    """One message, read."""

    who: str
    text: str
    calls: list[LLMEvent]
    results: list[LLMEvent]


def _message(who: str, row: Any, names: dict[str, str]) -> _Said:
    """Return a message, read; ``names`` are the tools of the calls so far by the calls' ids."""
    row = _decoded(row)
    said = _Said("user" if who in USERS else who, "", [], [])
    if isinstance(row, str):
        said.text = row
        return said
    if not isinstance(row, dict):
        return said
    parts = _decoded(row.get("parts", row.get("content")))
    parts = parts if isinstance(parts, list) else [{"type": "text", "content": parts}]
    texts = []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict):
            if part.get("type") in ("tool_call", "tool_call_response"):
                _add_tool(said, part, names)
            elif isinstance(text := part.get("content", part.get("text")), str) and part.get("type") != "reasoning":
                texts.append(text)
    said.text = "\n".join(texts)
    calls = _decoded(row.get("tool_calls"))
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict):
            _add_tool(said, {**call, **_as_dict(call.get("function")), "type": "tool_call"}, names)
    if who == "tool" and not said.results:
        _add_tool(said, {"type": "tool_call_response", **row}, names)
    return said


def _add_tool(said: _Said, part: dict[str, Any], names: dict[str, str]) -> None:
    id = str(part.get("id"))
    name = str(part.get("name") or names.get(id, ""))
    if part.get("type") == "tool_call":
        names[id] = name
        arguments = part.get("arguments")
        try:
            given = arguments if isinstance(arguments, str | None) else to_json("arguments", arguments).decode()
        except (TypeError, ValueError, RecursionError):  # nested too deeply
            given = None
        said.calls.append(LLMEvent.tool_call(name, given))
    else:
        said.results.append(LLMEvent.tool_result(name, not part.get("error")))


def _came_in(messages: list[_Said]) -> list[LLMEvent]:
    found: list[LLMEvent] = []
    for said in reversed([said for said in messages if said.who != "answer"]):
        if said.who == "user" and not said.results:
            return found or [LLMEvent.turn_start(said.text)]
        if not said.results:
            break
        found = said.results + found
    return found


def _came_out(messages: list[_Said]) -> list[LLMEvent]:
    answers = [said for said in messages if said.who == "answer"]
    calls = [call for said in answers for call in said.calls]
    text = next((said.text for said in answers if said.text), "")
    return [*([LLMEvent.turn_complete(text)] if text and not calls else []), *calls]


def _cost(span: dict[str, Any], attributes: dict[str, Any]) -> list[LLMEvent]:
    used = [
        attributes.get(f"gen_ai.usage.{new}", attributes.get(f"gen_ai.usage.{old}"))
        for new, old in (("input_tokens", "prompt_tokens"), ("output_tokens", "completion_tokens"))
    ]
    if used == [None, None]:
        return []
    times = [_whole(span.get(new, span.get(old))) for new, old in _TIMES]
    took = max(times[1] - times[0], 0) / 1e6 if all(times) else 0.0
    provider = attributes.get("gen_ai.provider.name", attributes.get("gen_ai.system"))
    tokens_in, tokens_out = (min(_whole(count), MOST_TOKENS) for count in used)
    return [LLMEvent.cost(tokens_in, tokens_out, took, provider if isinstance(provider, str) else None)]


_TIMES = (("startTimeUnixNano", "start_time_unix_nano"), ("endTimeUnixNano", "end_time_unix_nano"))


def _whole(value: Any) -> int:
    """Return a count; OTLP writes large ones as text. 0 where there is none."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63 else 0


def _attributes(given: Any) -> dict[str, Any]:
    if isinstance(given, dict):
        return dict(given)
    rows = given if isinstance(given, list) else []
    return {str(row["key"]): _value(row.get("value")) for row in rows if isinstance(row, dict) and "key" in row}


def _value(typed: Any) -> Any:
    """Return an OTLP value without its type."""
    if not isinstance(typed, dict) or len(typed) != 1:
        return typed
    kind, value = next(iter(typed.items()))
    if kind == "arrayValue":
        values = _as_dict(value).get("values")
        return [_value(item) for item in values] if isinstance(values, list) else []
    return _attributes(_as_dict(value).get("values")) if kind == "kvlistValue" else value


def _decoded(value: Any) -> Any:
    """Return what a JSON text holds, any other value as it is."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("[", "{"):
        return value
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return value


def _as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
