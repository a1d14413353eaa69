"""OTLP in JSON: exported spans and log records of instrumented agents, old and new names, of any instrumentation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

import msgspec

from coherence.core import genai_names as names
from coherence.core.errors import TranscriptError
from coherence.core.readings import number_of
from coherence.providers.readers.genai_messages import SpanEvent
from coherence.providers.readers.genai_run import RunOfSpans, Span, joins
from coherence.providers.readers.otlp_claude_code import claude_code_once
from coherence.providers.readers.source import Source
from coherence.providers.readers.values import seconds_of
from coherence.providers.transcript import Step, Transcript

EXPECTED = "OTLP requests {resourceSpans: [...]} or {resourceLogs: [...]}: one, a list, or one a line"

SIGNALS = ("resourceSpans", "resourceLogs", "resourceMetrics")
"""Keys of which every OTLP request has one."""

MAX_LEVELS = 1_000
"""Spans up to the first of a trace that are asked what a span does not say itself."""

_WORK = (names.CHAT, names.TOOL)
_DEEPEST = 64
_FAILED = (2, "2", "STATUS_CODE_ERROR")
_NO_ID = frozenset({"", "0" * 16})


class Exported(NamedTuple):
    """Content of some OTLP requests."""

    spans: list[Span]
    passed_over: int
    """Entries that are no spans and no log records."""


class _Run(msgspec.Struct):
    spans: list[Span]
    conversation: str
    agent: str | None


def is_otlp(value: object) -> bool:
    """Tell whether a value is an OTLP request."""
    return isinstance(value, dict) and any(isinstance(value.get(signal), list) for signal in SIGNALS)


def read_otlp(source: Source) -> Iterator[Transcript]:
    """Yield each agent's run of each conversation, or of each trace where no conversation is named."""
    requests: list[Any] = []
    for document in source.documents:
        held = document.value if isinstance(document.value, list) else [document.value]
        if not held or not all(map(is_otlp, held)):
            raise TranscriptError(source.path, f"not OTLP, expected {EXPECTED}", document.line)
        requests += held
    found = read_requests(requests)
    kinds = sorted({signal for request in requests for signal in SIGNALS if request.get(signal)})
    signals = " and ".join(kinds) or "it"
    yield from runs_of_spans(source, found.spans, found.passed_over, signals, "traces or logs of an instrumented agent")


def runs_of_spans(
    source: Source, spans: Sequence[Span], passed_over: int, held: str, expected: str
) -> Iterator[Transcript]:
    """Yield each agent's run of each conversation, or of each trace where no conversation is named.

    Parameters
    ----------
    source : Source
        The file.
    spans : sequence of Span
        All that it holds, in any order.
    passed_over : int
        Records of it that are none; a warning of the first run tells of them.
    held, expected : str
        What the file holds, and should hold, in the error for one without a step.

    Raises
    ------
    TranscriptError
        If no span is one of a model, a tool or an agent.
    """
    warnings = []
    if passed_over:
        warnings.append(f"{number_of(passed_over, 'record')} left out: no span or log record")
    is_empty = True
    for run in _runs(spans):
        steps, memories, success = _steps(run)
        if not steps:
            continue
        is_empty = False
        begun = list(takewhile(lambda step: step.role == "system", steps))
        goals = (span.attributes.get(names.OWN_GOAL) for span in run.spans)
        made = source.transcript(
            steps[len(begun) :] or begun,
            id=run.conversation,
            goal=next((goal for goal in goals if isinstance(goal, str)), None),
            system="\n".join(step.content for step in begun) if len(begun) < len(steps) else None,
            memories=[(max(at - len(begun), 0), text) for at, text in memories],
            warnings=warnings,
        )
        yield msgspec.structs.replace(made, success=success)
        warnings = []
    if is_empty:
        raise TranscriptError(
            source.path,
            f"no span or event of a model, a tool or an agent in {held} ({number_of(len(spans), 'span')}), "
            f"expected {expected}",
        )


def read_requests(requests: Iterable[Any]) -> Exported:
    """Return the spans of OTLP requests, and of Claude Code's log records, in the order in which they ended.

    A log record that names a span is one more event of it.
    """
    spans: list[Span] = []
    logs: list[tuple[str, SpanEvent, str]] = []
    passed_over = 0
    for request in requests:
        for scope, resource, record in _records(request, "resourceSpans", "scopeSpans", "spans"):
            span = _span(record, scope, resource) if isinstance(record, dict) else None
            passed_over += span is None
            spans += [] if span is None else [span]
        for _, resource, record in _records(request, "resourceLogs", "scopeLogs", "logRecords"):
            if isinstance(record, dict):
                logs.append((_id(record.get("spanId")), _event(record, resource), _id(record.get("traceId"))))
            else:
                passed_over += 1
    more: dict[str, list[SpanEvent]] = {}
    for id, event, trace in logs:
        if event.name in names.CLAUDE_CODE_EVENTS:
            spans.append(Span(trace=trace, name=event.name, start=event.ts, end=event.ts, attributes=event.attributes))
        elif id not in _NO_ID:
            more.setdefault(id, []).append(event)
    if more:
        spans = [msgspec.structs.replace(span, events=(*span.events, *more.get(span.id, ()))) for span in spans]
    # sorted() keeps the order of those that ended at the same moment
    return Exported(sorted(claude_code_once(spans), key=lambda span: span.end or 0.0), passed_over)


def _records(request: Any, signal: str, scopes: str, key: str) -> Iterator[tuple[str, Mapping[str, Any], Any]]:
    """Yield the records of a request, each with the name of its instrumentation and the attributes of its resource."""
    for resource in _list(request, signal):
        about = _attributes(resource.get("resource")) if isinstance(resource, dict) else {}
        for scope in _list(resource, scopes):
            named = scope.get("scope") if isinstance(scope, dict) else None
            name = named.get("name") if isinstance(named, dict) else None
            for record in _list(scope, key):
                yield name if isinstance(name, str) else "", about, record


def _list(value: Any, key: str) -> list[Any]:
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


def _span(record: Mapping[str, Any], scope: str, resource: Mapping[str, Any]) -> Span | None:
    name = record.get("name")
    if not isinstance(name, str):
        return None
    status = record.get("status")
    status = status if isinstance(status, dict) else {}
    message = status.get("message")
    start, end = _nanoseconds(record.get("startTimeUnixNano")), _nanoseconds(record.get("endTimeUnixNano"))
    about = {key: resource[key] for key in names.CONVERSATION if key in resource}
    return Span(
        trace=_id(record.get("traceId")),
        id=_id(record.get("spanId")),
        parent=_id(record.get("parentSpanId")),
        name=name,
        start=start,
        end=start if end is None else end,
        attributes={**about, **_attributes(record)},
        events=tuple(_event(each, {}) for each in _list(record, "events") if isinstance(each, dict)),
        failed=status.get("code") in _FAILED,
        message=message if isinstance(message, str) else "",
        scope=scope,
    )


def _event(record: Mapping[str, Any], resource: Mapping[str, Any]) -> SpanEvent:
    """Return an event of a span, or a log record as one."""
    given = _attributes(record)
    body = _value(record.get("body"))
    if isinstance(body, dict):
        given["event.body"] = body
    named = (record.get("name"), record.get("eventName"), given.get("event.name"), body)
    name = next((each for each in named if isinstance(each, str) and each), "")
    if f"claude_code.{name}" in names.CLAUDE_CODE_EVENTS:
        name = f"claude_code.{name}"
    about = {key: resource[key] for key in names.CONVERSATION if key in resource}
    ts = _nanoseconds(record.get("timeUnixNano")) or _nanoseconds(record.get("observedTimeUnixNano"))
    return SpanEvent(name, {**about, **given}, ts)


def _attributes(record: Any) -> dict[str, Any]:
    pairs = [pair for pair in _list(record, "attributes") if isinstance(pair, dict)]
    return {pair["key"]: _value(pair.get("value")) for pair in pairs if isinstance(pair.get("key"), str)}


def _value(given: Any, depth: int = 0) -> Any:
    """Return a value of OTLP as a plain one; ``None`` for what is none, or is nested too deep."""
    if not isinstance(given, dict) or depth > _DEEPEST:
        return None
    for kind, value in given.items():
        match kind:
            case "stringValue" if isinstance(value, str):
                return value
            case "boolValue" if isinstance(value, bool):
                return value
            case "doubleValue" if isinstance(value, int | float) and not isinstance(value, bool):
                return value
            case "intValue" if isinstance(value, int) and not isinstance(value, bool):
                return value
            case "intValue" if isinstance(value, str) and value.lstrip("-").isdecimal() and len(value) < 21:
                return int(value) if value.isascii() and value.count("-") < 2 else None
            case "arrayValue":
                return [_value(each, depth + 1) for each in _list(value, "values")]
            case "kvlistValue":
                pairs = [pair for pair in _list(value, "values") if isinstance(pair, dict)]
                return {str(pair.get("key")): _value(pair.get("value"), depth + 1) for pair in pairs}
            case _:
                pass
    return None


def _nanoseconds(value: Any) -> float | None:
    """Return a time in Unix seconds; ``None`` for 0, which stands for an unknown one."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 21:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0 or value >= 1 << 64:
        return None
    return seconds_of(value / 1e9)


def _id(value: Any) -> str:
    return value if isinstance(value, str) and value not in _NO_ID else ""


def names_around(spans: Sequence[Span]) -> list[tuple[Span, str, str]]:
    """Return spans with the names of their agent and conversation, empty where nothing says them, in the same order.

    What a span does not say, the one that it is part of says; a conversation also any other span of its trace.
    """
    by_id = {span.id: span for span in spans if span.id}
    said: dict[str, tuple[str, str]] = {}
    traces: dict[str, str] = {}
    for span in spans:
        if span.trace and (conversation := span.text(names.CONVERSATION)):
            traces.setdefault(span.trace, conversation)
    # parents begin before their children: most find theirs already asked
    for span in sorted(spans, key=lambda span: span.start or 0.0):
        agent, conversation = span.text(names.AGENT), span.text(names.CONVERSATION)
        at, levels = span, 0
        # a parent may be its own ancestor in a file that is damaged
        while not (agent and conversation) and at.parent in by_id and levels < MAX_LEVELS:
            if (above := said.get(at.parent)) is not None:
                agent, conversation = agent or above[0], conversation or above[1]
                break
            at, levels = by_id[at.parent], levels + 1
            agent, conversation = agent or at.text(names.AGENT), conversation or at.text(names.CONVERSATION)
        if span.id:
            said[span.id] = agent, conversation
    found = []
    for span in spans:
        agent, conversation = said.get(span.id, ("", "")) if span.id else ("", "")
        agent, conversation = agent or span.text(names.AGENT), conversation or span.text(names.CONVERSATION)
        found.append((span, agent, conversation or traces.get(span.trace, "") or span.trace))
    return found


def _runs(spans: Sequence[Span]) -> list[_Run]:
    """Return the spans by conversation and agent, in the order in which the runs begin."""
    found: dict[tuple[str, str], _Run] = {}
    agents: dict[str, set[str]] = {}
    for span, agent, conversation in sorted(names_around(spans), key=lambda item: item[0].start or 0.0):
        run = found.setdefault((conversation, agent), _Run([], conversation, agent or None))
        run.spans.append(span)
        if span.kind in _WORK:
            agents.setdefault(conversation, set()).add(agent)
    for run in found.values():
        run.spans.sort(key=lambda span: span.end or 0.0)
        if len(agents.get(run.conversation, ())) > 1:
            run.conversation = f"{run.conversation}/{run.agent or 'main'}"
    return [run for run in found.values() if any(span.kind in _WORK for span in run.spans)] or list(found.values())


def _steps(run: _Run) -> tuple[list[Step], list[tuple[int, str]], bool | None]:
    """Return the steps of a run, its memories, and whether it succeeded."""
    told = RunOfSpans(run.agent)
    steps: list[Step] = []
    memories: list[tuple[int, str]] = []
    success: bool | None = None
    work: list[tuple[float, int, Span, list[Step] | None]] = []
    for span in run.spans:
        if span.kind == names.AGENT_RUN:
            outcome = span.attributes.get(names.OWN_OUTCOME)
            success = outcome if isinstance(outcome, bool) else success
            memories += [(0, text) for text in _memories(span)]
            asked = None if span.scope == names.SCOPE else told.prompted(span)
            work.append(((span.end if asked is None else span.start) or 0.0, 1 if asked is None else 0, span, asked))
        else:
            work.append((span.end or 0.0, 1, span, None))
    work.sort(key=lambda item: item[:2])
    # asked at the beginning of an agent's run, where the requests to the model do not tell
    is_told = False
    prompts: list[tuple[int, Step]] = []
    for _, _, span, asked in work:
        if asked is not None:
            prompts += [(len(steps), step) for step in asked]
            continue
        for step in told.add(span):
            is_told |= step.role == "user"
            if joins(steps[-1] if steps else None, step):
                steps[-1] = msgspec.structs.replace(steps[-1], tool_calls=(*steps[-1].tool_calls, *step.tool_calls))
            else:
                steps.append(step)
        if span.kind != names.AGENT_RUN:
            memories += [(len(steps), text) for text in _memories(span)]
    if not is_told:
        for at, step in reversed(prompts):
            steps.insert(at, step)
        if not any(step.role == "assistant" and step.content for step in steps):
            steps += [step for span in run.spans if span.kind == names.AGENT_RUN for step in told.concluded(span)]
    return steps, memories, success


def _memories(span: Span) -> list[str]:
    found = (event.attributes.get("text") for event in span.events if event.name == names.OWN_MEMORY)
    return [text for text in found if isinstance(text, str)]
