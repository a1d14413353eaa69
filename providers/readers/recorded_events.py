"""Recorded events as runs: those of an exported session, and whatever else is told as events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from coherence.core.errors import TranscriptError
from coherence.core.events import (
    Correction,
    Event,
    Goal,
    Memory,
    Message,
    Outcome,
    ToolCall,
    ToolResult,
    Usage,
    decode_event,
    is_success,
)
from coherence.core.readings import Counters, number_of
from coherence.providers.readers.detect import objects
from coherence.providers.readers.source import Document, Source
from coherence.providers.readers.values import check_depth, seconds_of
from coherence.providers.transcript import Step, Transcript, TranscriptCall, add_usage

SCHEMA = "coherence.export/1"
"""Schema of the first line of an exported session; the lines behind it are events."""

EXPECTED = "a session as coherence export writes it"


class ExportedAgent(msgspec.Struct, frozen=True):
    """One agent of an exported session."""

    agent: str
    session: str
    parent: str | None
    """Session that started this one, by name."""
    source: str
    started: float
    """Unix time in seconds."""
    events: int
    """Number of its events in the file."""
    without_text: bool
    """True if it was recorded without texts."""
    label: str | None
    """``good`` or ``bad``, as somebody has labelled its runs."""


class ExportHead(msgspec.Struct, frozen=True):
    """First line of an exported session."""

    schema: str
    version: str
    """Of the package that wrote it."""
    session: str
    """Name by which it was asked for."""
    agents: list[ExportedAgent]


class _Line(msgspec.Struct, frozen=True):
    agent: str
    session: str
    ts: float
    event: dict[str, object]


class ExportReader:
    """Sessions that ``coherence export`` wrote."""

    def matches(self, documents: Sequence[Document]) -> bool:
        """Look for the schema in the first object, of any version."""
        return any(str(value.get("schema")).startswith("coherence.export/") for value in objects(documents)[:1])

    def read(self, source: Source) -> Iterator[Transcript]:
        """Yield each agent's run."""
        return read_export(source)


def read_export(source: Source) -> Iterator[Transcript]:
    """Yield the agents of an exported session that have a step, each called ``agent/session``.

    Raises
    ------
    TranscriptError
        If a line is none of such a file, or some are missing.
    """
    head, *lines = source.documents
    told = source.convert(head, ExportHead, EXPECTED)
    if told.schema != SCHEMA:
        raise TranscriptError(source.path, f"{told.schema} is not known, expected {SCHEMA}", head.line)
    found: dict[tuple[str, str], list[tuple[float | None, Event]]] = {
        (each.agent, each.session): [] for each in told.agents
    }
    played = {(each.agent, each.session) for each in told.agents if each.source == "replay"}
    for document in lines:
        line = source.convert(document, _Line, EXPECTED)
        whose = line.agent, line.session
        if whose not in found:
            raise TranscriptError(source.path, f"the first line names no {line.agent}/{line.session}", document.line)
        try:
            check_depth(line.event)
            event = decode_event(msgspec.json.encode(line.event))
        except (ValueError, OverflowError, RecursionError) as error:
            raise TranscriptError(source.path, str(error), document.line) from error
        # a run that was played again has the times of the player, which say nothing
        found[whose].append((None if whose in played else seconds_of(line.ts), event))
    is_empty = True
    for each in told.agents:
        events = found[each.agent, each.session]
        name = f"{each.agent}/{each.session}"
        if len(events) != each.events:
            raise TranscriptError(
                source.path, f"{name} has {number_of(len(events), 'event')}, expected {each.events:,}: it was cut"
            )
        read = None if each.without_text else transcript_of_events(name, source.path, events, format="export")
        if read is None:
            continue
        is_empty = False
        if each.label is not None:
            read = msgspec.structs.replace(read, outcome=each.label, went_wrong=each.label == "bad")
        yield read
    if is_empty:
        raise TranscriptError(source.path, "a session without a step, or recorded without texts")


def transcript_of_events(
    name: str, path: str, events: Iterable[tuple[float | None, Event]], *, format: str
) -> Transcript | None:
    """Return events of one agent's session as a run, ``None`` if they hold no step.

    Parameters
    ----------
    name : str
        Id of the run.
    path : str
        File that holds the events.
    events : iterable of (float or None, Event)
        Time in Unix seconds, if it is known, and event, in order.
    format : str
        Format of the file.
    """
    steps: list[Step] = []
    tools: dict[str, str] = {}
    newest = goal = outcome = ""
    system: list[str] = []
    memories: list[tuple[int, str]] = []
    went_wrong: bool | None = None
    for ts, event in events:
        match event:
            case Goal(text=text):
                if not goal:
                    goal = text
                elif text != goal:
                    steps.append(Step(role="user", content=text, ts=ts))
            case Message(role="system", content=content, firing=None) if not steps:
                system.append(content)
            case Message(role=role, content=content) if not event.firing:
                steps.append(Step(role="system" if role == "tool" else role, content=content, ts=ts))
            case Correction(text=text, removed=False) if text:
                steps.append(Step(role="user", content=text, ts=ts))
            case ToolCall(tool_name=tool, arguments=arguments, call_id=call):
                newest = tools[call] = tool
                _join(steps, TranscriptCall(tool, msgspec.json.decode(arguments), call), ts)
            case ToolResult():
                tool = event.tool_name or tools.get(event.call_id or "", newest)
                took = event.duration_s
                said = Step(role="tool", content=event.result, tool_name=tool, is_error=event.error)
                steps.append(msgspec.structs.replace(said, ts=ts, latency_s=took))
            case Usage(input_tokens=tokens_in, output_tokens=tokens_out, cost_usd=cost):
                _spend(steps, Counters(tokens_in=tokens_in, tokens_out=tokens_out, cost_usd=cost))
            case Memory(text=text, removed=False):
                memories.append((len(steps), text))
            case Outcome():
                success = is_success(event)
                went_wrong = None if success is None else not success
                outcome = "" if success is None else "good" if success else "failed"
            case _:
                pass
    if not steps:
        return None
    return Transcript(
        id=name,
        steps=tuple(steps),
        goal=goal,
        system="\n".join(system),
        memories=tuple(memories),
        path=path,
        format=format,
        outcome=outcome,
        went_wrong=went_wrong,
    )


def _join(steps: list[Step], call: TranscriptCall, ts: float | None) -> None:
    """Add a call to the agent's newest step, or begin one."""
    if steps and steps[-1].role == "assistant":
        steps[-1] = msgspec.structs.replace(steps[-1], tool_calls=(*steps[-1].tool_calls, call))
    else:
        steps.append(Step(role="assistant", tool_calls=(call,), ts=ts))


def _spend(steps: list[Step], used: Counters) -> None:
    """Note what the agent's newest step took; of several calls of the model, their sum."""
    at = next((at for at in range(len(steps) - 1, -1, -1) if steps[at].role == "assistant"), None)
    if at is None:
        return
    steps[at] = msgspec.structs.replace(steps[at], usage=add_usage(steps[at].usage or Counters(), used))
