"""The events of an agent's life: at most a dozen kinds, one codec.

Field names on disk follow the OpenTelemetry GenAI conventions where these have a name (``gen_ai.tool.name``,
``gen_ai.usage.input_tokens``, ``error.type``); our own stand under ``coherence.``. The classic regulator's events map
onto these: a turn's start is a user :class:`Message`, its completion an assistant one, and token log-probabilities are
summarised in it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

from coherence.core.plain import is_a, type_name
from coherence.core.strangers import error_text
from coherence.core.validation import check_items, check_number, plain_text

Role: TypeAlias = Literal["user", "assistant", "system", "tool"]
"""Speaker of a message."""

Source: TypeAlias = Literal["api", "hook", "wrap", "replay", "test"]
"""Origin of events; rows of ``test`` never reach statistics."""

SOURCES: tuple[Source, ...] = ("api", "hook", "wrap", "replay", "test")

UNCOUNTED: tuple[Source, ...] = ("test", "replay")
"""Sources of sessions whose runs are never kept."""

LOW_LOGPROB = -2.3
"""Tokens below this log-probability (10 %) count as low-confidence."""

MAX_SPANS = 8

BLOCK = "block"
"""Subject of a judgement that ends a block, or, with a score, of the judgement of a refusal."""

NOTE = "note"
"""Subject of words that judge nothing: what the host tells beside the agent's life."""


class _Event(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind"):
    pass


class Goal(_Event, frozen=True, tag="goal"):
    """Task of the agent from now on."""

    text: str
    """The task in words."""


class Span(msgspec.Struct, frozen=True, array_like=True):
    """A run of low-confidence tokens."""

    first: int
    """Index of its first token."""
    count: int
    mean: float
    """Mean log-probability."""


class Logprobs(msgspec.Struct, frozen=True, omit_defaults=True):
    """Summary of a message's token log-probabilities."""

    count: int
    mean: float
    lowest: float
    low: int = 0
    """Tokens below 10 % probability."""
    spans: tuple[Span, ...] = ()
    """The least likely runs of such tokens, at most eight, in order."""


class Message(
    _Event,
    frozen=True,
    tag="message",
    rename={
        "model": "gen_ai.response.model",
        "response_id": "gen_ai.response.id",
        "logprobs": "coherence.logprobs",
        "firing": "coherence.firing",
    },
):
    """Message of a user, the agent, or the system. An assistant's message completes a step."""

    role: Role
    """``user``, ``assistant``, ``system`` or ``tool``."""
    content: str
    """The text."""
    model: str | None = None
    """Model that wrote it."""
    response_id: str | None = None
    """Id of the response at the provider."""
    logprobs: Logprobs | None = None
    """Summary of the token log-probabilities."""
    firing: str | None = None
    """On a system message without content: the guidance of this firing has reached the agent."""


class ToolCall(
    _Event,
    frozen=True,
    tag="tool_call",
    rename={
        "tool_name": "gen_ai.tool.name",
        "arguments": "gen_ai.tool.call.arguments",
        "call_id": "gen_ai.tool.call.id",
    },
):
    """Call of a tool by the agent."""

    tool_name: str
    """Name of the tool."""
    arguments: msgspec.Raw
    """Arguments as JSON."""
    call_id: str
    """Id by which the result names the call."""


class ToolResult(
    _Event,
    frozen=True,
    tag="tool_result",
    rename={
        "result": "gen_ai.tool.call.result",
        "call_id": "gen_ai.tool.call.id",
        "tool_name": "gen_ai.tool.name",
        "error_type": "error.type",
        "duration_s": "coherence.duration_s",
    },
):
    """Answer of a tool. It completes a step."""

    result: str
    """The text."""
    error: bool = False
    """``True`` if the call failed."""
    call_id: str | None = None
    """Id of the call; ``None`` = the last open call."""
    tool_name: str | None = None
    """Name of the tool, for a result whose call was not recorded."""
    error_type: str | None = None
    """Class of the error."""
    duration_s: float | None = None
    """Duration of the call in seconds."""


class Usage(
    _Event,
    frozen=True,
    tag="usage",
    rename={
        "input_tokens": "gen_ai.usage.input_tokens",
        "output_tokens": "gen_ai.usage.output_tokens",
        "model": "gen_ai.response.model",
        "response_id": "gen_ai.response.id",
        "cost_usd": "coherence.cost_usd",
        "cached_tokens": "gen_ai.usage.cache_read.input_tokens",
        "duration_s": "coherence.duration_s",
    },
):
    """Tokens and money of one model call. ``None`` = unknown."""

    input_tokens: int | None = None
    """Tokens that the model read, those from a cache included."""
    output_tokens: int | None = None
    """Tokens that the model wrote."""
    cost_usd: float | None = None
    """Cost in US dollars."""
    model: str | None = None
    """Name of the model."""
    cached_tokens: int | None = None
    """Tokens that the model read from a cache; they are among the input tokens."""
    response_id: str | None = None
    """Id of the response at the provider."""
    duration_s: float | None = None
    """Time from the request to the end of the answer, in seconds."""


class Feedback(_Event, frozen=True, tag="feedback"):
    """Judgement of the agent's work, of a firing, or of a block."""

    score: float | None = None
    """Judgement in [-1, 1], 1 = good."""
    text: str = ""
    """Judgement in words."""
    about: str | None = None
    """``None`` = the agent's work, ``block`` = a block is over or, with a score, was judged, ``note`` = a note of the
    host, else the id of the judged firing."""
    decision: int | None = None
    """Number of the refusal that is answered; ``None`` = the newest one, and every block."""


class Correction(_Event, frozen=True, tag="correction"):
    """Correction by a person, or a change of an earlier one."""

    text: str
    """The correction in words."""
    id: str | None = None
    """Id of the correction, or of the group, that is changed."""
    removed: bool = False
    """``True`` if it is taken back."""


class Memory(_Event, frozen=True, tag="memory"):
    """Memory that the agent keeps or forgets."""

    text: str
    """The memory in words."""
    id: str | None = None
    """Id of the memory. A later memory of the same id replaces this one."""
    removed: bool = False
    """``True`` if it is forgotten."""


class Compaction(_Event, frozen=True, tag="compaction"):
    """Shortening of the agent's context to a summary."""

    summary: str = ""
    """The text that remains of the earlier context."""


class Outcome(_Event, frozen=True, tag="outcome"):
    """End of a task."""

    success: bool | None = None
    """``True`` if the task succeeded; ``None`` = unknown."""
    score: float | None = None
    """Quality in [0, 1], 1 = good."""
    text: str = ""
    """The outcome in words."""


class Spent(msgspec.Struct, frozen=True, omit_defaults=True):
    """Amounts used so far."""

    tokens: int = 0
    cost_usd: float | None = 0.0
    """Of the calls whose cost is known; ``None`` if there were calls and none was."""
    calls: int = 0
    wall_s: float = 0.0
    unpriced: int = 0
    """Model calls whose cost is unknown."""
    tool_calls: dict[str, int] = {}
    """Tool -> calls of it, of the tools that have a limit of their own."""


class Received(msgspec.Struct, frozen=True, omit_defaults=True):
    """Pressure that reaches an agent from another one it trusts."""

    pressure: float
    """In [0, 1]: the origin's, times the weights on the way."""
    path: tuple[str, ...]
    """From the origin to this agent."""


class FleetContext(msgspec.Struct, frozen=True):
    """State of other agents that matters to one."""

    tree: Spent | None = None
    """Amounts used by all agents under the same budget."""
    received: Received | None = None
    """The most pressure that comes from one of them."""


class Recalled(msgspec.Struct, frozen=True, omit_defaults=True):
    """A lesson that was found for an error, as it was at that moment."""

    lesson: int
    """Its id."""
    similarity: float
    """In [0, 1]: how likely it names the right fix."""
    fix: str
    ts: float
    """Time at which the error was last fixed so, Unix seconds."""
    helped: int = 0
    failed: int = 0
    refilled: bool = False
    """``True`` if names in the fix were replaced by those of this error."""
    error: int = 0
    """Number of the event that reported the error."""


class Opinion(msgspec.Struct, frozen=True, omit_defaults=True):
    """Answer of a judge about a call, asked once; a replay reads it here."""

    key: str
    """Of the call and the text it may follow."""
    probability: float | None = None
    """In [0, 1], that the call follows an order that nobody with a say gave; ``None`` = it did not answer."""
    judge: str = ""
    """Name of the judge."""
    why: str = ""
    """Reason why there is no answer."""


class Ticked(
    _Event,
    frozen=True,
    tag="tick",
    rename={"tool_name": "gen_ai.tool.name", "arguments": "gen_ai.tool.call.arguments"},
):
    """The moment of a measurement or, with ``tool_name``, of asking whether a call may run."""

    reason: str = ""
    tool_name: str | None = None
    arguments: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    tree: Spent | None = None
    """Amounts that the other agents under the same budget had spent by then."""
    received: Received | None = None
    """The most pressure that came from another agent."""
    recalled: tuple[Recalled, ...] | None = None
    """Lessons known for the newest errors, the newest error's first, of each the likeliest first; ``None`` = nobody
    looked."""
    opinion: Opinion | None = None
    """Opinion of a judge on the call in question, or on the one that stands out; ``None`` = none was asked."""


class Fault(_Event, frozen=True, tag="fault", rename={"error_type": "error.type"}):
    """Failure that was not raised: a bad argument, or an error inside the host or the monitor."""

    where: str
    """Part that failed."""
    error_type: str
    """Class of the error."""
    message: str
    """The error in words."""


Event: TypeAlias = (
    Goal
    | Message
    | ToolCall
    | ToolResult
    | Usage
    | Feedback
    | Correction
    | Memory
    | Compaction
    | Outcome
    | Ticked
    | Fault
)

TEXT_FIELDS: Mapping[type, str] = {
    Goal: "text",
    Message: "content",
    ToolResult: "result",
    Feedback: "text",
    Correction: "text",
    Memory: "text",
    Compaction: "summary",
    Outcome: "text",
    Fault: "message",
}
"""Type of an event -> the field that holds its text."""

_ENCODER = msgspec.json.Encoder()
_DECODER: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def encode_event(event: Event) -> str:
    """Return the JSON of an event, its kind included."""
    return _ENCODER.encode(event).decode()


def decode_event(data: str | bytes) -> Event:
    """Return the event of a JSON text.

    Raises
    ------
    ValueError
        If it is no event that this version knows.

    Examples
    --------
    >>> decode_event('{"kind": "goal", "text": "fix the bug"}')
    Goal(text='fix the bug')
    """
    try:
        return _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise ValueError(f"not an event: {error}") from error


def ends_step(event: Event) -> bool:
    """Tell whether an event completes a step: a tool result or an assistant's message."""
    return type(event) is ToolResult or (type(event) is Message and event.role == "assistant")


def is_success(event: Outcome) -> bool | None:
    """Return how a task ended, by its score where nothing else is known: 0.5 or more is a success."""
    if event.success is not None:
        return event.success
    return None if event.score is None else event.score >= 0.5


def kind_of(event: Event) -> str:
    """Return the kind's name on disk."""
    tag = event.__struct_config__.tag
    assert isinstance(tag, str)
    return tag


def text_of(event: Event) -> str:
    """Return the text of an event, empty for a kind that has none.

    Examples
    --------
    >>> text_of(ToolResult("3 passed")), text_of(Usage(input_tokens=5))
    ('3 passed', '')
    """
    field = TEXT_FIELDS.get(type(event))
    return getattr(event, field) if field is not None else ""


def summarise_logprobs(given: Sequence[float]) -> Logprobs | None:
    """Reduce token log-probabilities to what is kept; ``None`` for an empty list.

    Examples
    --------
    >>> summarise_logprobs([-0.1, -3.0, -3.2, -0.1])
    Logprobs(count=4, mean=-1.6, lowest=-3.2, low=2, spans=(Span(first=1, count=2, mean=-3.1),))
    """
    values = [check_number("logprobs", value, least=-1e9, most=0.0) for value in check_items("logprobs", given)]
    if not values:
        return None
    low = [value < LOW_LOGPROB for value in values]
    spans: list[Span] = []
    start: int | None = None
    # one at the end that is not low closes a span that reaches it
    for at, is_low in enumerate([*low, False]):
        if is_low and start is None:
            start = at
        elif not is_low and start is not None:
            part = values[start:at]
            spans.append(Span(start, len(part), math.fsum(part) / len(part)))
            start = None
    worst = sorted(spans, key=lambda span: span.mean * span.count)[:MAX_SPANS]
    return Logprobs(
        count=len(values),
        mean=math.fsum(values) / len(values),
        lowest=min(values),
        low=sum(low),
        spans=tuple(sorted(worst, key=lambda span: span.first)),
    )


def make_fault(where: str, error: BaseException | str) -> Fault:
    """Return the event of something that failed."""
    from coherence.core.redact import short_message  # which imports this module

    if is_a(error, BaseException):
        text = error_text(error)
        message = "its message cannot be shown" if text is None else short_message(text)
        return Fault(where, type_name(error), message)
    return Fault(where, "fault", plain_text(error) or "")
