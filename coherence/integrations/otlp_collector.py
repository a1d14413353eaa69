"""Agents that export OTLP, recorded in a store and measured as they work."""

from __future__ import annotations

from typing import Any

from coherence.core import genai_names as names
from coherence.integrations.live_monitors import LiveMonitors
from coherence.integrations.span_feed import SpanFeed
from coherence.providers.readers.otlp import names_around, read_requests


class OtlpCollector:
    """Record what OTLP requests tell of agents: a session of the store for each agent's conversation.

    Claude Code is recorded from its log records alone, which tell more than its spans.

    Parameters
    ----------
    monitors : LiveMonitors
        Who records; to be closed by the caller.
    """

    def __init__(self, monitors: LiveMonitors) -> None:
        self._monitors = monitors
        self._feed = SpanFeed(monitors.of)

    def take(self, request: dict[str, Any]) -> None:
        """Record the spans and log records of a request."""
        spans = [
            span
            for span in read_requests([request]).spans
            if span.name not in names.CLAUDE_CODE or span.name in names.CLAUDE_CODE_EVENTS
        ]
        with self._monitors.lock:  # so that none is closed between two of its spans
            for span, agent, conversation in names_around(spans):
                self._feed.add(span, agent, conversation)
