"""OpenTelemetry in: a span processor that feeds a monitor from the spans of other instrumentations."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from coherence.core import genai_names as names
from coherence.core.validation import check_count
from coherence.core.work_queue import WorkQueue
from coherence.integrations.span_feed import MonitorOf, SpanFeed
from coherence.monitor.monitor import Monitor
from coherence.providers.readers.genai_messages import SpanEvent
from coherence.providers.readers.genai_run import Span

MAX_OPEN = 10_000
"""Spans under way whose agent and conversation are known to the spans inside them."""


class MonitorSpanProcessor:
    """Span processor that tells a monitor what ended spans of models and tools say.

    Give it to the host's ``TracerProvider``: ``provider.add_span_processor(MonitorSpanProcessor(monitor))``. Whatever
    instrumentation records GenAI spans (the conventions, old or new, OpenLLMetry, OpenInference, Langfuse) then feeds
    the monitor. Ending a span only queues it; a thread of its own reads it. Spans of
    :class:`~coherence.export.otel.OtelSink` are passed over.

    Parameters
    ----------
    monitor : Monitor or callable
        The monitor of all spans, or a function of the names of the agent and of the conversation that returns theirs.
    most_waiting : int
        Spans that wait at most; what ends then is dropped and counted in ``dropped``.
    """

    def __init__(self, monitor: Monitor | MonitorOf, *, most_waiting: int = 10_000) -> None:
        if not isinstance(monitor, Monitor) and not callable(monitor):
            raise TypeError(f"monitor must be a Monitor or a function that returns one, not {type(monitor).__name__}")
        self._feed = SpanFeed((lambda agent, conversation: monitor) if isinstance(monitor, Monitor) else monitor)
        self._around: OrderedDict[int, tuple[str, str]] = OrderedDict()
        most = check_count("most_waiting", most_waiting, least=1, most=10_000_000)
        self._queue: WorkQueue[tuple[Any, str, str]] = WorkQueue(self._read, name="coherence-spans", most_waiting=most)

    @property
    def dropped(self) -> int:
        """Spans that were not read: too many waited, or they could not be read."""
        return self._queue.dropped

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        """Note the agent and the conversation of a span for those inside it."""
        try:
            given = span.attributes or {}
            above = self._around.get(span.parent.span_id, ("", "")) if span.parent is not None else ("", "")
            agent = next((str(given[name]) for name in names.AGENT if given.get(name)), above[0])
            conversation = next((str(given[name]) for name in names.CONVERSATION if given.get(name)), above[1])
            self._around[span.context.span_id] = agent, conversation
            while len(self._around) > MAX_OPEN:
                self._around.popitem(last=False)
        except Exception:  # the host's span goes on
            return

    def _on_ending(self, span: Any) -> None:
        """Do nothing: a span is read once it has ended."""

    def on_end(self, span: Any) -> None:
        """Queue an ended span; returns at once, and raises nothing."""
        try:
            around = self._around.pop(span.context.span_id, ("", ""))
            scope = span.instrumentation_scope
            if scope is None or scope.name != names.SCOPE:
                self._queue.put((span, *around))
        except Exception:  # the host's span has ended all the same
            return

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Wait until all ended spans are told to the monitor; return whether they are, in time."""
        return self._queue.flush(timeout_millis / 1000)

    def shutdown(self) -> None:
        """Take no more spans, and tell those that wait; the monitor is left open."""
        self._queue.close(5.0)

    def _read(self, told: tuple[Any, str, str]) -> None:
        span, agent, conversation = told
        self._feed.add(span_of(span), agent, conversation)


def span_of(span: Any) -> Span:
    """Return an ended span of OpenTelemetry's SDK (a ``ReadableSpan``) as the readers know it."""
    scope, parent, status = span.instrumentation_scope, span.parent, span.status
    about = span.resource.attributes if span.resource is not None else {}
    return Span(
        trace=f"{span.context.trace_id:032x}",
        id=f"{span.context.span_id:016x}",
        parent=f"{parent.span_id:016x}" if parent is not None else "",
        name=span.name,
        start=_seconds(span.start_time),
        end=_seconds(span.end_time),
        attributes={
            **{name: about[name] for name in names.CONVERSATION if name in about},
            **{name: _plain(value) for name, value in (span.attributes or {}).items()},
        },
        events=tuple(
            SpanEvent(event.name, {name: _plain(value) for name, value in (event.attributes or {}).items()})
            for event in span.events
        ),
        failed=not status.is_ok,
        message=status.description or "",
        scope=scope.name if scope is not None else "",
    )


def _seconds(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e9


def _plain(value: Any) -> Any:
    """Return a sequence as a list, as JSON has it, and a mapping as a dict."""
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return {str(key): _plain(each) for key, each in value.items()} if hasattr(value, "items") else value
