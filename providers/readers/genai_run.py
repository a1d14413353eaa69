"""Spans of one agent's run, one after another as they end, made into the steps of a transcript."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

import msgspec

from coherence.core import genai_names as names
from coherence.core.readings import Counters
from coherence.core.validation import to_json
from coherence.providers.readers.genai_messages import (
    Said,
    SpanEvent,
    arguments_of,
    as_text,
    inputs_of,
    outputs_of,
    parsed,
    result_text,
)
from coherence.providers.readers.values import seconds_of
from coherence.providers.transcript import Step, TranscriptCall, add_usage

MAX_BACK = 8
"""Newest messages among which one is looked for that the next request repeats."""

MAX_OPEN = 1_000
"""Newest calls without a result for which one is waited."""

MAX_TOKENS = 1e12
"""From where on a number is no count of tokens, nor a price."""


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """One ended span, from wherever it comes."""

    trace: str = ""
    id: str = ""
    parent: str = ""
    """Empty for the first span of a trace."""
    name: str = ""
    start: float | None = None
    """Unix seconds."""
    end: float | None = None
    attributes: Mapping[str, Any] = {}
    events: tuple[SpanEvent, ...] = ()
    failed: bool = False
    """True if its status says so."""
    message: str = ""
    """Message of its status."""
    scope: str = ""
    """Name of the instrumentation."""

    def first(self, alternatives: Iterable[str]) -> Any:
        """Return the value of the first attribute that is there."""
        return next((self.attributes[name] for name in alternatives if self.attributes.get(name) is not None), None)

    def text(self, alternatives: Iterable[str]) -> str:
        """Return the first of some attributes that is a text, or a number as text; empty if none is."""
        for name in alternatives:
            value = self.attributes.get(name)
            if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
                return str(value)
        return ""

    @property
    def kind(self) -> str | None:
        """Kind of the span: a chat, a tool, an agent's run; ``None`` for anything else."""
        given = self.attributes.get(names.OPERATION)
        if isinstance(given, str) and self.name not in names.CLAUDE_CODE:
            return names.OPERATIONS.get(given)
        if self.name in names.CLAUDE_CODE:
            return names.CLAUDE_CODE[self.name]
        for name in names.KIND_ATTRIBUTES:
            kind = self.attributes.get(name)
            if isinstance(kind, str) and kind.lower() in names.KINDS:
                return names.KINDS[kind.lower()]
        has_model = "gen_ai.request.model" in self.attributes and self.first(names.PROVIDER) is not None
        return names.CHAT if has_model else None

    @property
    def is_error(self) -> bool:
        """True if what the span did failed."""
        success = self.attributes.get("success")
        return (
            self.failed
            or self.attributes.get(names.ERROR_TYPE) not in (None, "")
            or self.attributes.get(names.LANGFUSE_LEVEL) == "ERROR"
            or self.name in names.CLAUDE_CODE_FAILURES
            or success is False
            or success == "false"
        )


class RunOfSpans:
    """Take in the spans of one agent's run in the order in which they ended, and say which steps each adds.

    Most instrumentations repeat the whole conversation with each request: of it, only what is new is a step. A tool's
    span and the message with its result are one step. A chat without content, as most record it, is a step without
    words.

    Parameters
    ----------
    agent : str, optional
        Name of the agent, where several take part.
    """

    def __init__(self, agent: str | None = None) -> None:
        self.agent = agent
        self._seen: list[bytes] = []
        self._roles: list[str] = []
        self._system: set[str] = set()
        self._known: dict[str, str] = {}
        self._open: list[TranscriptCall] = []
        self._answered: set[str] = set()

    def add(self, span: Span) -> list[Step]:
        """Return the steps that an ended chat or tool adds, or a prompt that stands alone; none for any other span."""
        match span.kind:
            case names.CHAT:
                return self._chat(span)
            case names.TOOL:
                return self._tool(span)
            case names.PROMPT:
                return self.prompted(span)
            case names.AGENT_RUN if span.scope == names.SCOPE and names.INPUT_MESSAGES in span.attributes:
                # asked, and not answered any more
                return [self._step(said, span.end) for said in inputs_of(span.attributes, span.events)]
        return []

    def prompted(self, span: Span) -> list[Step]:
        """Return what the span of an agent's run was asked, for runs whose chats do not tell it."""
        said = [each for each in inputs_of(span.attributes, span.events) if each.role == "user"]
        return [self._step(each, span.start) for each in said if each.text.strip()]

    def concluded(self, span: Span) -> list[Step]:
        """Return what the span of an agent's run answered, likewise."""
        said = outputs_of(span.attributes, span.events)
        return [self._step(each, span.end) for each in said if each.role == "assistant" and each.text.strip()]

    def _chat(self, span: Span) -> list[Step]:
        given = inputs_of(span.attributes, span.events)
        steps = []
        for said in given:
            if span.scope == names.SCOPE:
                steps += self._told(said, span.start)
            elif said.role == "system" and said.text and said.text not in self._system:
                self._system.add(said.text)
                steps.append(self._step(said, span.start))
        if span.scope != names.SCOPE:
            for said in self._fresh([said for said in given if said.role != "system"]):
                steps += self._told(said, span.start)
        answer = _joined(outputs_of(span.attributes, span.events))
        if answer is None and not span.is_error:
            answer = Said("assistant")
        used, took = usage_of(span), _took(span)
        if answer is not None:
            self._note(answer)
            said_now = self._told(answer, span.end) or [self._step(Said("assistant"), span.end)]
            said_now[-1] = msgspec.structs.replace(said_now[-1], usage=used, latency_s=took)
            steps += said_now
        elif used is not None and steps:
            steps[-1] = msgspec.structs.replace(steps[-1], usage=used)
        return steps

    def _tool(self, span: Span) -> list[Step]:
        name = span.text(names.TOOL_NAME) or span.name.removeprefix("execute_tool ").removesuffix(".tool") or "unknown"
        id = span.text(names.TOOL_CALL_ID)
        if id and id in self._answered:
            return []
        steps = []
        call = self._claimed(id, name)
        if call is None:
            call = TranscriptCall(name, arguments_of(span.first(names.TOOL_ARGUMENTS)), id or None)
            # of a span the id is all there is: without one, none is made up
            steps.append(Step(role="assistant", tool_calls=(call,), agent=self.agent, ts=span.start))
            if id:
                self._known[id] = name
        if call.id is not None:
            self._answered.add(call.id)
        steps.append(
            Step(
                role="tool",
                content=_result_of(span),
                tool_name=name,
                is_error=span.is_error,
                agent=self.agent,
                ts=span.end,
                latency_s=_took(span),
            )
        )
        return steps

    def _claimed(self, id: str, name: str) -> TranscriptCall | None:
        """Take the call that the model made for a tool's span out of those that are open."""
        for at, call in enumerate(self._open):
            if (call.id == id) if id else (call.name == name):
                return self._open.pop(at)
        return None

    def _told(self, said: Said, ts: float | None) -> list[Step]:
        """Return the step of a message, none if it is known: a result that a tool's span has told, or no words."""
        if said.role == "tool":
            return self._answer(said, ts)
        fresh = []
        for call in said.calls:
            if call.id is not None and call.id in self._known:
                continue
            if call.id is not None:
                self._known[call.id] = call.name
            fresh.append(call)
            self._open.append(call)
        del self._open[:-MAX_OPEN]
        if said.role == "assistant" and not said.text and not fresh:
            return []
        return [self._step(said._replace(calls=tuple(fresh)), ts)]

    def _answer(self, said: Said, ts: float | None) -> list[Step]:
        if said.call_id is not None:
            if said.call_id in self._answered:
                return []
            self._answered.add(said.call_id)
        at = next((at for at, call in enumerate(self._open) if call.id == said.call_id), None)
        if at is None and self._open and said.call_id is None:
            at = 0
        call = self._open.pop(at) if at is not None else None
        name = said.tool_name or (call.name if call is not None else self._known.get(said.call_id or ""))
        return [self._step(said._replace(tool_name=name), ts)]

    def _step(self, said: Said, ts: float | None) -> Step:
        return Step(
            role=said.role,
            content=said.text,
            tool_calls=said.calls,
            tool_name=said.tool_name,
            agent=self.agent,
            ts=ts,
        )

    def _fresh(self, given: list[Said]) -> list[Said]:
        """Return the messages of a request that no earlier one held, and note them.

        Instrumentations do not always write an answer as the next request repeats it, so the newest messages that are
        alike count.
        """
        keys = [_key(said) for said in given]
        new = len(keys)
        if keys[: len(self._seen)] == self._seen:
            new = len(keys) - len(self._seen)
        elif keys == self._seen[: len(keys)]:  # asked once more
            new = 0
        else:
            last = {key: at for at, key in enumerate(keys)}
            for back in range(min(MAX_BACK, len(self._seen))):
                at = last.get(self._seen[-1 - back])
                # the messages behind it were written otherwise, and the request has them, too
                told = self._roles[len(self._roles) - back :]
                if at is not None and [said.role for said in given[at + 1 : at + 1 + back]] == told:
                    new = len(keys) - at - 1 - back
                    break
        fresh = given[len(given) - new :]
        for said in fresh:
            self._note(said)
        return fresh

    def _note(self, said: Said) -> None:
        self._seen.append(_key(said))
        self._roles.append(said.role)


def joins(before: Step | None, step: Step) -> bool:
    """Tell whether a step is only calls that the message before it has made, told apart."""
    return before is not None and before.role == step.role == "assistant" and not step.content and bool(step.tool_calls)


def usage_of(span: Span) -> Counters | None:
    """Return the tokens and the cost of a chat; ``None`` where its span tells neither."""
    details, cost = parsed(span.attributes.get(names.LANGFUSE_USAGE)), parsed(span.attributes.get(names.LANGFUSE_COST))
    details = details if isinstance(details, Mapping) else {}
    tokens_in = _count(span.first(names.INPUT_TOKENS), details.get("input"))
    tokens_out = _count(span.first(names.OUTPUT_TOKENS), details.get("output"))
    if span.name in names.CLAUDE_CODE:
        parts = [_count(span.attributes.get(name)) for name in names.CLAUDE_CODE_INPUT_TOKENS]
        if any(part is not None for part in parts):
            tokens_in = sum(part or 0 for part in parts)
        tokens_out = _count(span.attributes.get(names.CLAUDE_CODE_OUTPUT_TOKENS), tokens_out)
    cost_usd = _number(span.first(names.COST), cost.get("total") if isinstance(cost, Mapping) else None)
    if tokens_in is tokens_out is cost_usd is None:
        return None
    return add_usage(Counters(), Counters(tokens_in=tokens_in, tokens_out=tokens_out, cost_usd=cost_usd))


def _result_of(span: Span) -> str:
    result = span.first(names.TOOL_RESULT)
    found = parsed(result)
    if isinstance(found, Mapping):
        # what OpenLLMetry and LangChain put around it
        inner = next((found[key] for key in ("output", "content") if isinstance(found.get(key), str)), None)
        result = inner if inner is not None and len(found) <= 4 and "output" in found else result
    elif isinstance(found, list):
        result = found
    text = result_text(result)
    if text:
        return text
    for event in span.events:
        if event.name == "exception":
            return str(event.attributes.get("exception.message") or event.attributes.get("exception.type") or "")
        if event.name == "tool.output":
            return as_text(event.attributes.get("output", event.attributes.get("content")))
    if not span.is_error:
        return ""
    told = span.attributes.get("error")
    return span.message or (told if isinstance(told, str) else "") or span.text((names.ERROR_TYPE,))


def _joined(said: list[Said]) -> Said | None:
    """Return the parts of an answer as one message."""
    said = [each for each in said if each.role == "assistant"]
    if not said:
        return None
    text = "\n".join(each.text for each in said if each.text)
    return Said("assistant", text, tuple(call for each in said for call in each.calls))


def _key(said: Said) -> bytes:
    made = blake2b(to_json("message", [said.role, said.text.strip()]), digest_size=16)
    for call in said.calls:
        made.update(to_json("name", call.name) + to_json("arguments", call.arguments))
    return made.digest()


def _took(span: Span) -> float | None:
    if (duration := _number(span.attributes.get("duration_ms"))) is not None:  # of Claude Code
        return seconds_of(duration / 1000)
    return None if span.start is None or span.end is None else seconds_of(max(span.end - span.start, 0.0))


def _number(*values: Any) -> float | None:
    """Return the first value that is an amount, from a number or its text."""
    for value in values:
        if isinstance(value, str):
            try:
                value = float(value)
            except ValueError:
                continue
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < MAX_TOKENS:
            return float(value)
    return None


def _count(*values: Any) -> int | None:
    found = _number(*values)
    return None if found is None else int(found)
