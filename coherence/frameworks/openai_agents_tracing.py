"""OpenAI Agents SDK: a tracing processor, which records all runs of a process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple

from agents import (
    AgentSpanData,
    FunctionSpanData,
    GenerationSpanData,
    HandoffSpanData,
    ResponseSpanData,
    Span,
    Trace,
    TracingProcessor,
)

from coherence.frameworks.agents import Agents, Watching
from coherence.integrations.conversation import Answer, plain
from coherence.integrations.openai_wire import ChatWire, ResponsesWire
from coherence.integrations.watch import Watch

_CHAT, _RESPONSES = ChatWire(), ResponsesWire()

MAX_OPEN = 10_000
"""Spans and calls that are followed at a time; the oldest are forgotten."""


class _Call(NamedTuple):
    agent: str
    tool: str
    arguments: str


class CoherenceTracing(Watching, TracingProcessor):
    """Record the runs of ``agents.Runner`` by the spans of the SDK; nothing is guided, refused or stopped.

    ``agents.add_trace_processor(CoherenceTracing(store="runs.db"))`` once, and no run has to be changed.

    Parameters
    ----------
    agents : Agents, optional
        Those of another framework or run, in place of ``options``.
    **options
        Arguments of :class:`~coherence.frameworks.agents.Agents`, but ``guide``.

    Raises
    ------
    ValueError
        For ``agents`` together with options, and for options that exclude each other.

    Notes
    -----
    Runs without tracing, or with ``trace_include_sensitive_data=False``, tell nothing. A model of your own tells only
    what spans it makes.
    """

    def __init__(self, *, agents: Agents | None = None, **options: Any) -> None:
        super().__init__(agents=agents, **options)
        self._names: dict[str, str] = {}
        self._open: dict[_Call, list[str]] = {}

    def on_trace_start(self, trace: Trace) -> None:
        """Do nothing: agents have spans of their own."""

    def on_trace_end(self, trace: Trace) -> None:
        """Do nothing."""

    def on_span_start(self, span: Span[Any]) -> None:
        """Remember whose span it is, and join an agent with the one that it works for."""
        outer = self._names.get(span.parent_id or "")
        name = outer
        if isinstance(span.span_data, AgentSpanData):
            name = span.span_data.name
            if outer is not None:
                with self.agents.at_work(outer):
                    self.agents.began(name)
        if name is not None:
            self._names[span.span_id] = name
            _bound(self._names)

    def on_span_end(self, span: Span[Any]) -> None:
        """Record an answer, a result, or a handoff."""
        name = self._names.pop(span.span_id, None)
        data: Any = span.span_data
        if isinstance(data, HandoffSpanData):
            if data.from_agent and data.to_agent:
                self.agents.taken_over(data.from_agent, data.to_agent)
            return
        if not isinstance(data, ResponseSpanData | GenerationSpanData | FunctionSpanData):
            return
        watch = self.agents.watch(name)
        try:
            if isinstance(data, FunctionSpanData):
                self._result(watch, span, data)
            else:
                self._answer(watch, span, data)
        except Exception as error:  # the host goes on
            watch.failed(error)

    def _answer(self, watch: Watch, span: Span[Any], data: ResponseSpanData | GenerationSpanData) -> None:
        if isinstance(data, ResponseSpanData):
            response = plain(data.response) or {}
            turn = watch.asked(_RESPONSES, {"instructions": response.get("instructions"), "input": plain(data.input)})
            answer = _RESPONSES.answer(response) if response else None
        else:
            turn = watch.asked(_CHAT, {"messages": plain(list(data.input or ()))})
            answer = _generated(data)
        if answer is None:
            if span.error is not None:
                watch.monitor.fault("model", f"{span.error['message']} {span.error.get('data') or ''}".strip())
            return
        watch.conversation.answered(answer._replace(duration_s=_seconds(span)), turn, checks=False)
        for call in answer.calls:
            if call.id is not None:
                key = _Call(watch.monitor.agent, call.name or "", _same(call.arguments))
                self._open.setdefault(key, []).append(call.id)
                _bound(self._open)

    def _result(self, watch: Watch, span: Span[Any], data: FunctionSpanData) -> None:
        """Record a result; its call is the oldest open one with these arguments, as the span has no id of it."""
        key = _Call(watch.monitor.agent, data.name, _same(data.input))
        calls = self._open.get(key)
        if not calls:
            return
        call = calls.pop(0)
        if not calls:
            del self._open[key]
        error = True if span.error is not None else None
        watch.result(call, str(data.output or ""), error=error, tool=data.name, duration_s=_seconds(span))

    def shutdown(self) -> None:
        """Write everything that was recorded."""
        self.agents.flush()

    def force_flush(self) -> None:
        """Write everything that was recorded."""
        self.agents.flush()


def _generated(data: GenerationSpanData) -> Answer | None:
    told = [plain(each) for each in data.output or ()]
    if not told:
        return None
    if isinstance(told[0].get("output"), list):  # a streamed completion, which the SDK makes a response of
        answer = _RESPONSES.answer(told[0])
    else:
        answer = _CHAT.answer({"choices": [{"message": message} for message in told]})
    used: Mapping[str, Any] = data.usage or {}
    if not used.get("total_tokens"):  # the SDK puts zeros where the provider tells nothing
        return answer._replace(tokens_in=None, tokens_out=None, tokens_cached=None, model=data.model)
    return answer._replace(
        tokens_in=used.get("input_tokens"),
        tokens_out=used.get("output_tokens"),
        tokens_cached=(used.get("input_tokens_details") or {}).get("cached_tokens"),
        model=data.model,
    )


def _same(arguments: Any) -> str:
    """Return arguments so that those of a span equal those of the answer that it follows."""
    with suppress(ValueError, TypeError):
        arguments = json.loads(arguments)
    return json.dumps(arguments, sort_keys=True, default=repr)


def _seconds(span: Span[Any]) -> float | None:
    if not span.started_at or not span.ended_at:
        return None
    return (datetime.fromisoformat(span.ended_at) - datetime.fromisoformat(span.started_at)).total_seconds()


def _bound(kept: dict[Any, Any]) -> None:
    if len(kept) > MAX_OPEN:
        del kept[next(iter(kept))]
