"""Agents that export OTLP, recorded in a store and measured as they work."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import Any, TypeAlias

from coherence.core import genai_names as names
from coherence.core.config import MonitorConfig
from coherence.core.readings import Reading
from coherence.core.redact import short_message
from coherence.integrations.span_feed import SpanFeed
from coherence.monitor.monitor import Monitor
from coherence.monitor.sinks import AgentRecord
from coherence.providers.readers.otlp import names_around, read_requests
from coherence.store.errors import StoreError
from coherence.store.store import Store

MAX_MONITORS = 64
"""Agents that are measured at a time; the one that was silent the longest is closed, and goes on when it is back."""

UNNAMED = "agent"
"""Name of an agent whose spans do not say it."""

OnReading: TypeAlias = Callable[[str, str, Reading], object]
"""Takes the names of an agent and of its conversation, and a reading."""


class _Readings:
    """Sink that hands on readings."""

    def __init__(self, on_reading: OnReading) -> None:
        self._on_reading = on_reading

    def emit(self, record: AgentRecord) -> None:
        if record.result is not None and record.result.reading is not None:
            self._on_reading(record.agent, record.session, record.result.reading)


class OtlpCollector:
    """Record what OTLP requests tell of agents: a session of the store for each agent's conversation.

    Claude Code is recorded from its log records alone, which tell more than its spans.

    Parameters
    ----------
    store : Store
        Where the sessions are recorded.
    config : MonitorConfig, optional
        Settings of the monitors.
    embedder : any, optional
        As a monitor takes it.
    on_reading : callable, optional
        Called with each reading, on another thread.
    """

    def __init__(
        self,
        store: Store,
        *,
        config: MonitorConfig | None = None,
        embedder: Any = None,
        on_reading: OnReading | None = None,
    ) -> None:
        self._store, self._config, self._embedder = store, config, embedder
        self._sinks = [] if on_reading is None else [_Readings(on_reading)]
        self._monitors: OrderedDict[tuple[str, str], Monitor] = OrderedDict()
        self._feed = SpanFeed(self._monitor)
        self._lock = Lock()

    def take(self, request: dict[str, Any]) -> None:
        """Record the spans and log records of a request."""
        spans = [
            span
            for span in read_requests([request]).spans
            if span.name not in names.CLAUDE_CODE or span.name in names.CLAUDE_CODE_EVENTS
        ]
        with self._lock:
            for span, agent, conversation in names_around(spans):
                self._feed.add(span, agent, conversation)

    def close(self) -> None:
        """Measure and write what waits, and end."""
        with self._lock:
            while self._monitors:
                self._monitors.popitem()[1].close()

    def _monitor(self, agent: str, conversation: str) -> Monitor:
        key = short_message(agent) or UNNAMED, short_message(conversation) or UNNAMED
        monitor = self._monitors.pop(key, None)
        if monitor is None:
            while len(self._monitors) >= MAX_MONITORS:
                with suppress(StoreError):  # what waits is told in the log
                    self._monitors.popitem(last=False)[1].close()
            monitor = Monitor(
                agent=key[0],
                session=key[1],
                store=self._store,
                config=self._config,
                embedder=self._embedder,
                sinks=self._sinks,
            )
        self._monitors[key] = monitor
        return monitor
