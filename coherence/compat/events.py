"""The nine kinds of events of the classic contract: frozen, comparable, picklable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from coherence.core.validation import check_count, check_flag, check_number, check_text, plain_number, shown, to_json

MAX_TOKENS = 10**12
"""Tokens of one model call at most, as everywhere in this package."""


class LLMEvent(msgspec.Struct, frozen=True, tag_field="kind"):
    """Something that happened; made by one of the static methods, which check what they are given.

    All raise TypeError for a value of the wrong type (True is no number) and ValueError for one out of range; the
    message names the parameter. Any text is fine, lone surrogates and NUL included.

    Examples
    --------
    >>> LLMEvent.turn_start("Fix the login").kind
    'turn_start'
    >>> LLMEvent.cost(10, 20, 5) == LLMEvent.cost(tokens_in=10, tokens_out=20, wallclock_ms=5)
    True
    >>> LLMEvent.quality_feedback(1.5)
    Traceback (most recent call last):
    ValueError: quality must be in [0, 1], not 1.5
    """

    @property
    def kind(self) -> str:
        """The name of the static method that makes it."""
        return str(self.__struct_config__.tag)

    @staticmethod
    def turn_start(user_message: str) -> TurnStart:
        """Return: the user asked something; a turn begins."""
        return TurnStart(check_text("user_message", user_message))

    @staticmethod
    def token(token: str, logprob: float | None, index: int) -> Token:
        """Return: the model wrote a token.

        Parameters
        ----------
        token : str
            Not kept.
        logprob : float or None
            Natural logarithm of its probability, below 0. ``None``, 0, positive and not finite numbers are what
            providers send where they do not know it, and count as unavailable.
        index : int
            Its place in the answer, 0 or more.
        """
        check_text("token", token)
        number = None if logprob is None else plain_number(logprob)
        if logprob is not None and number is None:
            raise TypeError(f"logprob must be a number or None, not {shown(logprob)}")
        check_count("index", index)
        known = number is not None and -1e9 <= number < 0
        return Token(float(number) if number is not None and known else None)

    @staticmethod
    def turn_complete(full_response: str) -> TurnComplete:
        """Return: the answer is there."""
        return TurnComplete(check_text("full_response", full_response))

    @staticmethod
    def cost(tokens_in: int, tokens_out: int, wallclock_ms: float = 0, provider: str | None = None) -> Cost:
        """Return: a model call used up tokens (0 to 10**12) and milliseconds (0 or more)."""
        return Cost(
            check_count("tokens_in", tokens_in, most=MAX_TOKENS),
            check_count("tokens_out", tokens_out, most=MAX_TOKENS),
            check_number("wallclock_ms", wallclock_ms, least=0.0),
            None if provider is None else check_text("provider", provider),
        )

    @staticmethod
    def quality_feedback(quality: float, fragment_spans: Sequence[Any] | None = None) -> QualityFeedback:
        """Return: somebody judged the work, in [0, 1], 1 = good. The spans are accepted and not used."""
        if fragment_spans is not None and not isinstance(fragment_spans, list | tuple):
            raise TypeError(f"fragment_spans must be a list, not {shown(fragment_spans)}")
        return QualityFeedback(check_number("quality", quality, least=0.0, most=1.0))

    @staticmethod
    def user_correction(correction_message: str, corrects_last: bool) -> UserCorrection:
        """Return: the user said how to do it differently.

        Parameters
        ----------
        correction_message : str
            Their words; nothing is learned from empty ones.
        corrects_last : bool
            Whether it is about the newest answer. Else nothing is learned from it.
        """
        return UserCorrection(
            check_text("correction_message", correction_message), check_flag("corrects_last", corrects_last)
        )

    @staticmethod
    def tool_call(tool_name: str, args_json: str | None = None) -> ToolCall:
        """Return: the model called a tool.

        Parameters
        ----------
        tool_name : str
            The tool.
        args_json : str, optional
            Its arguments as JSON; any other text counts as one argument. Calls without are taken for equal calls.
        """
        return ToolCall(
            check_text("tool_name", tool_name), None if args_json is None else check_text("args_json", args_json)
        )

    @staticmethod
    def tool_result(
        tool_name: str, success: bool, duration_ms: float = 0, error_summary: str | None = None
    ) -> ToolResult:
        """Return: a tool answered, after so many milliseconds (0 or more), or failed with an error."""
        return ToolResult(
            check_text("tool_name", tool_name),
            check_flag("success", success),
            check_number("duration_ms", duration_ms, least=0.0),
            None if error_summary is None else check_text("error_summary", error_summary),
        )

    @staticmethod
    def from_otel_span_json(span_json: str) -> list[LLMEvent]:
        """Return the events of an OpenTelemetry GenAI span, see :func:`events_of_span`."""
        return events_of_span(span_json)


class TurnStart(LLMEvent, frozen=True, tag="turn_start"):
    """The user asked something."""

    user_message: str


class Token(LLMEvent, frozen=True, tag="token"):
    """The model wrote a token."""

    logprob: float | None
    """``None`` = unavailable."""


class TurnComplete(LLMEvent, frozen=True, tag="turn_complete"):
    """The answer is there."""

    full_response: str


class Cost(LLMEvent, frozen=True, tag="cost"):
    """A model call used something up."""

    tokens_in: int
    tokens_out: int
    wallclock_ms: float = 0.0
    provider: str | None = None


class QualityFeedback(LLMEvent, frozen=True, tag="quality_feedback"):
    """Somebody judged the work."""

    quality: float


class UserCorrection(LLMEvent, frozen=True, tag="user_correction"):
    """The user said how to do it differently."""

    correction_message: str
    corrects_last: bool


class ToolCall(LLMEvent, frozen=True, tag="tool_call"):
    """The model called a tool."""

    tool_name: str
    args_json: str | None = None

    @property
    def arguments(self) -> msgspec.Raw:
        """The arguments as JSON; a text that is none, or nested too deep, as one text."""
        if self.args_json is None:
            return msgspec.Raw(b"null")
        try:
            return msgspec.Raw(to_json("args_json", msgspec.json.decode(self.args_json)))
        except (ValueError, RecursionError):
            return msgspec.Raw(to_json("args_json", self.args_json))


class ToolResult(LLMEvent, frozen=True, tag="tool_result"):
    """A tool answered."""

    tool_name: str
    success: bool
    duration_ms: float = 0.0
    error_summary: str | None = None


OLD_MESSAGES = {
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
    "gen_ai.choice": "answer",
}
"""Names of span events -> who speaks; the choice is what the span gave."""

TOOL_NAME = "gen_ai.tool.name"
TOOL_ARGUMENTS = ("gen_ai.tool.call.arguments", "gen_ai.tool.arguments")
TOOL_TOOK = "gen_ai.tool.duration_ms"
TOOL_RESULTS = ("gen_ai.tool.call.result", "gen_ai.tool.result", TOOL_TOOK, "content")
TOOL_ERRORS = ("error.type", "gen_ai.tool.error")

INPUTS = ("gen_ai.input.messages", "gen_ai.prompt", "gen_ai.content.prompt")
OUTPUTS = ("gen_ai.output.messages", "gen_ai.completion", "gen_ai.content.completion")
USERS = frozenset({"user", "human"})


def events_of_span(span_json: str) -> list[LLMEvent]:
    """Return what one span of a model call tells, in order.

    Of the messages that went in only the newest count: a user's begins a turn, tool responses end calls; what lies
    before came with earlier spans. Of what came out: tool calls, or else the text completes the turn. Then the cost.
    Where nothing came out, span events with messages tell the whole turn: the user's message, the assistant's, the
    cost, and then calls and results. A span event with ``gen_ai.tool.name`` is a call, a result or both; a span of a
    tool (``execute_tool``) is both. A trace whose model spans hold their messages tells its calls already: leave out
    its tool spans.

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
    rows = list(_rows(span.get("events")))
    cost = _cost(span, attributes)
    ran = [event for row in rows for event in _ran(row)]
    if not ran and TOOL_NAME in attributes:
        return [*_ran(attributes, took=_took(span), status=_as_dict(span.get("status"))), *cost]
    names: dict[str, str] = {}
    messages = [_message(who, row, names) for who, row in _messages(rows, attributes)]
    if any(said.who == "answer" for said in messages) or not (ran or _is_answered(rows)):
        return [*_came_in(messages), *_came_out(messages), *cost, *ran]
    last = max((at for at, said in enumerate(messages) if said.who == "user"), default=-1)
    users = [LLMEvent.turn_start(said.text) for said in messages if said.who == "user" and said.text]
    answers = [LLMEvent.turn_complete(said.text) for said in messages if said.who == "assistant" and said.text]
    used = [event for said in messages[last + 1 :] for event in (*said.calls, *said.results)]
    return [*users[-1:], *answers[-1:], *cost, *used, *ran]


def _rows(events: Any) -> Iterator[dict[str, Any]]:
    """Give the fields of a span's events, with the event's name under a key of its own."""
    for row in events if isinstance(events, list) else ():
        if isinstance(row, dict):
            yield {**_attributes(row.get("attributes")), **_as_dict(row.get("body")), _EVENT: str(row.get("name"))}


_EVENT = "coherence.span_event"


def _messages(rows: Sequence[dict[str, Any]], attributes: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Give (who, message) in order; of what the span gave, who is ``answer``."""
    for row in rows:
        who = OLD_MESSAGES.get(row[_EVENT])
        if who is not None and TOOL_NAME not in row:
            yield who, row.get("message", row)
        for key in (*INPUTS, *OUTPUTS):
            yield from _listed(key, row.get(key))
    for key in (*INPUTS, *OUTPUTS):
        yield from _listed(key, attributes.get(key))


def _listed(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    rows = _decoded(value)
    if isinstance(rows, str):
        rows = [{"role": "user", "content": rows}] if rows else []
    for row in rows if isinstance(rows, list) else ():
        role = str(row.get("role")) if isinstance(row, dict) else ""
        yield ("answer" if key in OUTPUTS else role.lower()), row


def _ran(fields: dict[str, Any], took: float | None = None, status: dict[str, Any] | None = None) -> list[LLMEvent]:
    """Return the call and the result that fields with the name of a tool tell; a span with a status is both."""
    name = fields.get(TOOL_NAME)
    if not isinstance(name, str):
        return []
    arguments = next((fields[key] for key in TOOL_ARGUMENTS if key in fields), None)
    error = next((str(fields[key]) for key in TOOL_ERRORS if fields.get(key)), None)
    if status and error is None and status.get("code", status.get("status_code")) in FAILED:
        message = status.get("message", status.get("description"))
        error = message if isinstance(message, str) and message else "error"
    came = status is not None or error is not None or any(key in fields for key in TOOL_RESULTS)
    found: list[LLMEvent] = []
    if status is not None or arguments is not None or not came:
        found.append(LLMEvent.tool_call(name, _given(arguments)))
    if came:
        duration = _whole(fields.get(TOOL_TOOK)) if took is None else took
        found.append(LLMEvent.tool_result(name, error is None, duration, error))
    return found


FAILED = (2, "2", "ERROR", "STATUS_CODE_ERROR")
"""Codes of a span's status."""


def _given(arguments: Any) -> str | None:
    """Return arguments as JSON, ``None`` where they are nested too deeply."""
    try:
        return arguments if isinstance(arguments, str | None) else to_json("arguments", arguments).decode()
    except (TypeError, ValueError, RecursionError):
        return None


def _is_answered(rows: Sequence[dict[str, Any]]) -> bool:
    """Tell whether the last message of a span's events is the assistant's, or none of a user lies before one."""
    speakers = [OLD_MESSAGES[row[_EVENT]] for row in rows if row[_EVENT] in OLD_MESSAGES]
    if "assistant" not in speakers:
        return False
    return speakers[-1] == "assistant" or "user" not in speakers[: speakers.index("assistant")]


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
            # OpenAI's form has name and arguments one level further down
            _add_tool(said, {**call, **_as_dict(call.get("function")), "type": "tool_call"}, names)
    if who == "tool" and not said.results:
        _add_tool(said, {"type": "tool_call_response", **row}, names)
    return said


def _add_tool(said: _Said, part: dict[str, Any], names: dict[str, str]) -> None:
    id = str(part.get("id"))
    name = str(part.get("name") or names.get(id, ""))
    if part.get("type") == "tool_call":
        names[id] = name
        said.calls.append(LLMEvent.tool_call(name, _given(part.get("arguments"))))
    else:
        said.results.append(LLMEvent.tool_result(name, not part.get("error")))


def _came_in(messages: list[_Said]) -> list[LLMEvent]:
    found: list[LLMEvent] = []
    for said in reversed([said for said in messages if said.who != "answer"]):
        if said.who == "user" and not said.results:
            # with results after it, it began its turn in an earlier span
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
    provider = attributes.get("gen_ai.provider.name", attributes.get("gen_ai.system"))
    tokens_in, tokens_out = (min(_whole(count), MAX_TOKENS) for count in used)
    return [LLMEvent.cost(tokens_in, tokens_out, _took(span), provider if isinstance(provider, str) else None)]


def _took(span: dict[str, Any]) -> float:
    """Return the milliseconds from a span's start to its end, 0 where they are not known."""
    times = [_whole(span.get(new, span.get(old))) for new, old in _TIMES]
    return max(times[1] - times[0], 0) / 1e6 if all(times) else 0.0


_TIMES = (("startTimeUnixNano", "start_time_unix_nano"), ("endTimeUnixNano", "end_time_unix_nano"))


def _whole(value: Any) -> int:
    """Return a count; OTLP writes large ones as text. 0 where there is none."""
    # longer ones are above 2**63 in any case
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
    # a text such as "12" or "true" is what somebody said
    if not isinstance(value, str) or value.lstrip()[:1] not in ("[", "{"):
        return value
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return value


def _as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
