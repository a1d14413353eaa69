"""Events of an agent's life that another process tells in JSON: one structure a kind, told to a monitor as they come.

A kind has the name of the monitor's method, and its fields those of the method's arguments.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

import msgspec

from coherence.core.decisions import Decision
from coherence.core.events import Role
from coherence.monitor.host_events import HostEvents
from coherence.monitor.monitor import Monitor
from coherence.providers.readers.values import check_depth, loads

Text: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"\S")]
"""A text that is not empty."""

Tokens: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=10**12)]
Amount: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1e12)]
Share: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1)]
Rating: TypeAlias = Annotated[float, msgspec.Meta(ge=-1, le=1)]


class ToldEvent(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", forbid_unknown_fields=True):
    """One event, and whose it is."""

    session: Text
    agent: Text = "main"


class Goal(ToldEvent, frozen=True, kw_only=True, tag="goal"):
    """Task of the agent from now on."""

    text: Text


class Message(ToldEvent, frozen=True, kw_only=True, tag="message"):
    """Message of a user, the agent or the system; of content blocks, only the texts count."""

    role: Role
    text: str | list[dict[str, Any]] | None
    model: str | None = None
    response_id: str | None = None


class Check(ToldEvent, frozen=True, kw_only=True, tag="check"):
    """Question whether a call may run, asked before it does."""

    tool: Text
    arguments: Any = None


class ToolCall(ToldEvent, frozen=True, kw_only=True, tag="tool_call"):
    """Call of a tool by the agent."""

    tool: Text
    arguments: Any = None
    call: Text | None = None


class ToolResult(ToldEvent, frozen=True, kw_only=True, tag="tool_result"):
    """Answer of a tool."""

    text: Any
    error: bool = False
    duration_s: Amount | None = None
    call: str | None = None
    tool: str | None = None
    error_type: str | None = None


class Usage(ToldEvent, frozen=True, kw_only=True, tag="usage"):
    """Tokens and money of one model call."""

    tokens_in: Tokens | None = None
    tokens_out: Tokens | None = None
    tokens_cached: Tokens | None = None
    cost_usd: Amount | None = None
    model: str | None = None
    response_id: str | None = None


class Memory(ToldEvent, frozen=True, kw_only=True, tag="memory"):
    """Memory that the agent keeps or forgets."""

    text: str
    id: str | None = None
    removed: bool = False


class Correction(ToldEvent, frozen=True, kw_only=True, tag="correction"):
    """Correction by a person."""

    text: Text


class Compaction(ToldEvent, frozen=True, kw_only=True, tag="compaction"):
    """Shortening of the agent's context to a summary."""

    summary: str = ""


class Feedback(ToldEvent, frozen=True, kw_only=True, tag="feedback"):
    """Judgement of the agent's work."""

    score: Rating | None = None
    text: str = ""


class Delivered(ToldEvent, frozen=True, kw_only=True, tag="delivered"):
    """News that the agent has read a hint."""

    guidance: Text


class Note(ToldEvent, frozen=True, kw_only=True, tag="note"):
    """Words of the host beside the agent's life."""

    text: Text


class Fault(ToldEvent, frozen=True, kw_only=True, tag="fault"):
    """Failure in the host that is no tool's."""

    where: Text
    message: str


class Outcome(ToldEvent, frozen=True, kw_only=True, tag="outcome"):
    """End of the task."""

    success: bool | None = None
    score: Share | None = None
    text: str = ""


AnyEvent: TypeAlias = (
    Goal
    | Message
    | Check
    | ToolCall
    | ToolResult
    | Usage
    | Memory
    | Correction
    | Compaction
    | Feedback
    | Delivered
    | Note
    | Fault
    | Outcome
)


class BadEventError(ValueError):
    """Text that holds no events; the message says what is wrong, and where."""


def read_events(text: str) -> list[ToldEvent]:
    r"""Return the events of a text: one JSON object, a list of them, or one a line.

    Raises
    ------
    BadEventError
        If anything in it is none.

    Examples
    --------
    >>> [event.agent for event in read_events('{"kind": "goal", "session": "s1", "text": "Find the bug."}')]
    ['main']
    >>> read_events('[{"kind": "goal", "session": "s1"}]')
    Traceback (most recent call last):
    ...
    coherence.integrations.told_events.BadEventError: event 1: Object missing required field `text`
    """
    told = _values(text)
    if not told:
        raise BadEventError("no event, expected a JSON object, a list of them, or one a line")
    found: list[ToldEvent] = []
    for where, value in told:
        try:
            check_depth(value)
            event: ToldEvent = msgspec.convert(value, AnyEvent)
            msgspec.json.encode(event)
        except (ValueError, OverflowError, RecursionError) as error:  # of msgspec, too
            raise BadEventError(f"{where}: {error}") from error
        found.append(event)
    return found


def _values(text: str) -> list[tuple[str, Any]]:
    """Return the JSON values of a text, and where each stands."""
    lines = [(f"line {number}", line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    try:
        whole = loads(text) if lines else []
    except json.JSONDecodeError as error:
        if len(lines) < 2 or error.msg != "Extra data":
            where = f"line {error.lineno}, column {error.colno}"
            raise BadEventError(f"not JSON at {where}: {error.msg}") from error
    except RecursionError as error:
        raise BadEventError("the JSON is nested too deep") from error
    else:
        return (
            [(f"event {at}", value) for at, value in enumerate(whole, 1)]
            if type(whole) is list
            else [("the event", whole)]
        )
    found = []
    for where, line in lines:
        try:
            found.append((where, loads(line)))
        except json.JSONDecodeError as error:
            raise BadEventError(f"not JSON at {where}, column {error.colno}: {error.msg}") from error
        except RecursionError as error:
            raise BadEventError(f"{where}: the JSON is nested too deep") from error
    return found


def tell(monitor: Monitor, told: Sequence[ToldEvent]) -> list[tuple[Check, Decision]]:
    """Tell a monitor some events of its agent; return each question among them with its answer."""
    answers = []
    for event in told:
        if isinstance(event, Check):
            answers.append((event, monitor.check(event.tool, event.arguments)))
        elif isinstance(event, Outcome):
            monitor.outcome(event.success, score=event.score, text=event.text)
        else:
            _tell_host(monitor, event)
    return answers


def _tell_host(monitor: HostEvents, told: ToldEvent) -> None:
    match told:
        case Goal():
            monitor.goal(told.text)
        case Message():
            monitor.message(told.role, told.text, model=told.model, response_id=told.response_id)
        case ToolCall():
            monitor.tool_call(told.tool, told.arguments, call=told.call)
        case ToolResult():
            monitor.tool_result(
                told.text,
                error=told.error,
                duration_s=told.duration_s,
                call=told.call,
                tool=told.tool,
                error_type=told.error_type,
            )
        case Usage():
            monitor.usage(
                tokens_in=told.tokens_in,
                tokens_out=told.tokens_out,
                tokens_cached=told.tokens_cached,
                cost_usd=told.cost_usd,
                model=told.model,
                response_id=told.response_id,
            )
        case Memory():
            monitor.memory(told.text, id=told.id, removed=told.removed)
        case Correction():
            monitor.correction(told.text)
        case Compaction():
            monitor.compaction(told.summary)
        case Feedback():
            monitor.feedback(told.score, text=told.text)
        case Delivered():
            monitor.delivered(told.guidance)
        case Note():
            monitor.note(told.text)
        case Fault():
            monitor.fault(told.where, told.message)
        case _:
            raise AssertionError(f"{type(told).__name__} is told to nobody")
