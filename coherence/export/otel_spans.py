"""Records of one agent's session, one after another, made into spans, events and metrics of OpenTelemetry."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import coherence.core.events as events
from coherence.core import genai_names as names
from coherence.core.decisions import Appraisal, Decision
from coherence.core.readings import Band, Reading
from coherence.monitor.sinks import AgentRecord

if TYPE_CHECKING:
    from coherence.export.otel import Instruments

PROVIDER = "_OTHER"
"""Provider of a model that nobody has named."""

MAX_OPEN = 1_000
"""Calls without a result whose spans are open; of more, the oldest are ended."""

EVALUATED = "coherence.index"
"""Name of the evaluation."""


class AgentSpans:
    """Spans of one agent's session; :meth:`add` takes its records in order.

    Parameters
    ----------
    instruments : Instruments
        Tracer and meters.
    agent, conversation : str
        Names that the spans have.
    content : bool
        Whether texts are exported.
    """

    def __init__(self, instruments: Instruments, agent: str, conversation: str, *, content: bool) -> None:
        self._by, self._api = instruments, instruments.api
        self._agent = agent
        self._content = content
        self._common = {names.AGENT[0]: agent, names.CONVERSATION[0]: conversation}
        self._root: Any = None
        self._context: Any = None
        self._asked: list[dict[str, Any]] = []
        self._answer: dict[str, Any] | None = None
        """Answer of the chat under way; ``None``: the step under way is none."""
        self._step: Any = None
        self._step_end = 0.0
        self._is_answered = False
        """True once a task has a step: the next request begins another one."""
        self._over_at: float | None = None
        """Time of the task's outcome; a reading may still come."""
        self._tools: dict[str, Any] = {}
        self._used: events.Usage | None = None
        self._is_used = False
        """True if the chat under way has its usage."""
        self._newest = 0.0

    def add(self, record: AgentRecord) -> None:
        """Take in the next record."""
        event, ts = record.event, record.ts
        match event:
            case events.Goal(text=text):
                self._next_task(ts)
                if self._content:
                    self._root.set_attribute(names.OWN_GOAL, text)
            case events.Message(firing=str() as firing):
                self._note(names.OWN_FIRING, ts, {"coherence.firing.id": firing, "coherence.firing.delivered": True})
            case events.Message(role="assistant"):
                self._begin_chat(ts, event)
            case events.Message(role=role, content=content):
                self._ask("system" if role == "tool" else role, content, ts)
            case events.Correction(text=text, removed=False) if text:
                self._ask("user", text, ts)
            case events.ToolCall():
                self._call(event, ts)
            case events.ToolResult():
                self._result(event, ts)
            case events.Usage():
                self._use(event)
            case events.Memory(text=text, removed=False):
                self._note(names.OWN_MEMORY, ts, {"text": text} if self._content else {})
            case events.Fault(where=where, error_type=kind):
                self._note(names.OWN_FAULT, ts, {"coherence.fault.where": where, names.ERROR_TYPE: kind})
            case events.Outcome():
                success = events.is_success(event)
                if success is not None:
                    self._open(ts).set_attribute(names.OWN_OUTCOME, success)
                self._over_at, self._is_answered = ts, True
            case events.Ticked() if record.result is not None:
                # a reading and a decision are of the step before
                result = record.result
                self._evaluate(result.reading, result.appraisal, ts)
                self._decide(result.decision, event, ts)
            case _:
                pass
        self._newest = ts

    def end(self, ts: float) -> None:
        """End the spans of the task under way."""
        self._end_step()
        ts = ts if self._over_at is None else self._over_at
        for span in self._tools.values():
            span.end(_ns(ts))
        self._tools.clear()
        if self._root is not None:
            if self._asked and self._content:
                self._root.set_attribute(names.INPUT_MESSAGES, _json(self._asked))
            self._root.end(_ns(ts))
        self._asked.clear()
        self._root = self._context = self._used = self._over_at = None
        self._is_answered = False

    def _open(self, ts: float) -> Any:
        """Return the span of the task, begun now if there is none."""
        if self._root is None:
            given = {names.OPERATION: names.AGENT_RUN, names.PROVIDER[0]: PROVIDER, **self._common}
            name = f"{names.AGENT_RUN} {self._agent}"
            # a trace of its own: what the host does on this thread is none of it
            self._root = self._by.tracer.start_span(name, self._by.nowhere, attributes=given, start_time=_ns(ts))
            self._context = self._api.set_span_in_context(self._root, self._by.nowhere)
        return self._root

    def _next_task(self, ts: float) -> None:
        if self._is_answered:
            self.end(ts)
        self._open(ts)

    def _start(self, name: str, kind: Any, ts: float, given: dict[str, Any]) -> Any:
        if self._over_at is not None:
            self.end(ts)
        self._open(ts)
        attributes = {**given, **self._common}
        return self._by.tracer.start_span(name, self._context, kind, attributes, start_time=_ns(ts))

    def _ask(self, role: str, text: str, ts: float) -> None:
        if role == "user":
            self._next_task(ts)
        self._end_step()
        self._asked.append({"role": role, "parts": [{"type": "text", "content": text}]})

    def _begin_chat(self, ts: float, event: events.Message | None = None) -> None:
        self._end_step()
        model = event.model if event is not None else None
        given: dict[str, Any] = {names.OPERATION: names.CHAT, names.PROVIDER[0]: PROVIDER}
        if model is not None:
            given |= {names.REQUEST_MODEL[0]: model, names.RESPONSE_MODEL: model}
        if event is not None and event.response_id is not None:
            given[names.RESPONSE_ID] = event.response_id
        if self._content:
            given[names.INPUT_MESSAGES] = _json(self._asked)
        self._asked.clear()
        name = names.CHAT if model is None else f"{names.CHAT} {model}"
        self._step = self._start(name, self._api.SpanKind.CLIENT, self._newest or ts, given)
        self._step_end, self._is_answered, self._is_used = ts, True, False
        text = event.content if event is not None else ""
        self._answer = {"role": "assistant", "parts": [{"type": "text", "content": text}] if text else []}
        if self._used is not None:
            used, self._used = self._used, None
            self._use(used)

    def _call(self, event: events.ToolCall, ts: float) -> None:
        if self._answer is None:  # a call that no message came with: the model has decided on it all the same
            self._begin_chat(ts)
        assert self._answer is not None
        arguments = json.loads(bytes(event.arguments))
        part = {"type": "tool_call", "id": event.call_id, "name": event.tool_name, "arguments": arguments}
        self._answer["parts"].append(part)
        given = {names.OPERATION: names.TOOL, names.TOOL_NAME[0]: event.tool_name, names.TOOL_CALL_ID[0]: event.call_id}
        if self._content:
            given[names.TOOL_ARGUMENTS[0]] = bytes(event.arguments).decode()
        span = self._start(f"{names.TOOL} {event.tool_name}", self._api.SpanKind.INTERNAL, ts, given)
        if len(self._tools) >= MAX_OPEN:
            self._tools.pop(next(iter(self._tools))).end(_ns(ts))
        self._tools[event.call_id] = span

    def _result(self, event: events.ToolResult, ts: float) -> None:
        self._end_step()
        id = event.call_id if event.call_id is not None else next(reversed(self._tools), "")
        span = self._tools.pop(id, None)
        if span is None:
            tool = event.tool_name or "unknown"
            given = {names.OPERATION: names.TOOL, names.TOOL_NAME[0]: tool}
            start = ts - (event.duration_s or 0.0)
            span = self._start(f"{names.TOOL} {tool}", self._api.SpanKind.INTERNAL, start, given)
        if self._content:
            span.set_attribute(names.TOOL_RESULT[0], event.result)
        if event.error:
            span.set_attribute(names.ERROR_TYPE, event.error_type or PROVIDER)
            span.set_status(self._api.StatusCode.ERROR)
        self._step, self._step_end, self._is_answered = span, ts, True

    def _end_step(self) -> None:
        """End the span of the newest step, with its own time: its reading has come since."""
        if self._step is not None:
            if self._answer is not None and self._content:
                self._step.set_attribute(names.OUTPUT_MESSAGES, _json([self._answer]))
            self._step.end(_ns(self._step_end))
        self._step = self._answer = None

    def _use(self, used: events.Usage) -> None:
        """Note what a model call took: the chat under way, or the next one where that has its usage."""
        if self._answer is None or self._is_used:
            self._used = used
            return
        self._is_used = True
        labels = {names.AGENT[0]: self._agent, names.OPERATION: names.CHAT, names.PROVIDER[0]: PROVIDER}
        if used.model is not None:
            labels[names.REQUEST_MODEL[0]] = used.model
            self._step.set_attribute(names.REQUEST_MODEL[0], used.model)
        amounts = {
            names.INPUT_TOKENS[0]: used.input_tokens,
            names.OUTPUT_TOKENS[0]: used.output_tokens,
            names.CACHE_READ_TOKENS: used.cached_tokens,
            names.COST[0]: used.cost_usd,
        }
        for name, amount in amounts.items():
            if amount is not None:
                self._step.set_attribute(name, amount)
        for kind, tokens in (("input", used.input_tokens), ("output", used.output_tokens)):
            if tokens is not None:
                self._by.tokens.record(tokens, {**labels, names.TOKEN_TYPE: kind})
        if used.duration_s is not None:
            self._by.durations.record(used.duration_s, labels)

    def _evaluate(self, reading: Reading | None, appraisal: Appraisal, ts: float) -> None:
        labels = {names.AGENT[0]: self._agent}
        self._by.pressure.set(appraisal.effective, labels)
        if reading is None:
            return
        given: dict[str, Any] = {
            names.EVALUATION_NAME: EVALUATED,
            names.EVALUATION_LABEL: str(reading.band),
            names.EVALUATION_WHY: self._why(reading),
            names.PRESSURE_METRIC: appraisal.effective,
        }
        if reading.coherence_index is not None:
            given[names.EVALUATION_SCORE] = reading.coherence_index
            self._by.index.set(reading.coherence_index, labels)
        self._note(names.EVALUATION, ts, given)

    def _why(self, reading: Reading) -> str:
        """Return what lowers the index; the texts behind it only with the content."""
        if self._content:
            return reading.explain()
        if reading.band is Band.UNKNOWN:
            return "nothing was measured"
        losses = sorted(reading.losses.items(), key=lambda item: -item[1])
        told = [f"{name} takes {loss:.2f}" for name, loss in losses if loss > 0]
        return ", ".join([*told, *([f"cause: {reading.cause}"] if reading.cause else [])]) or "nothing lowers it"

    def _decide(self, decision: Decision, tick: events.Ticked, ts: float) -> None:
        self._by.decisions.add(1, {names.AGENT[0]: self._agent, names.OWN_DECISION: decision.kind})
        if decision.kind != "continue":
            active = [finding.rule for finding in decision.findings if finding.active]
            given: dict[str, Any] = {"coherence.decision.kind": decision.kind, "coherence.decision.rules": active}
            if tick.tool_name is not None:
                given[names.TOOL_NAME[0]] = tick.tool_name
            if self._content:
                given["coherence.decision.message"] = decision.message
            self._note(names.OWN_DECISION, ts, given)
        if (guidance := decision.guidance) is not None:
            fired = {
                "coherence.firing.id": guidance.id,
                "coherence.firing.pattern": guidance.pattern,
                "coherence.firing.arm": guidance.arm,
            }
            self._note(names.OWN_FIRING, ts, fired)

    def _note(self, name: str, ts: float, given: dict[str, Any]) -> None:
        """Add an event to the span of the newest step, else to that of the task."""
        span = self._step if self._step is not None else self._open(ts)
        span.add_event(name, given, _ns(ts))


def _ns(ts: float) -> int:
    return int(ts * 1e9)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
