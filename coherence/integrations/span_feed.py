"""Spans that others record, told to monitors as they end."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias

from coherence.core import genai_names as names
from coherence.monitor.monitor import Monitor
from coherence.monitor.steps import record_step
from coherence.providers.readers.genai_run import RunOfSpans, Span, joins
from coherence.providers.transcript import Step

MonitorOf: TypeAlias = Callable[[str, str], Monitor]
"""Returns the monitor of an agent in a conversation, by their names; both may be empty."""

MAX_RUNS = 1_000
"""Agents' conversations that are followed at a time; the one that was silent the longest is forgotten."""


class _Followed:
    def __init__(self) -> None:
        self.run = RunOfSpans()
        self.open_calls: list[tuple[str, str]] = []
        self.newest: Step | None = None


class SpanFeed:
    """Tell monitors what spans say, each span once, in the order in which they end.

    Parameters
    ----------
    monitor_of : callable
        Takes the names of an agent and of a conversation, and returns the monitor.
    """

    def __init__(self, monitor_of: MonitorOf) -> None:
        self._monitor_of = monitor_of
        self._followed: OrderedDict[tuple[str, str], _Followed] = OrderedDict()

    def add(self, span: Span, agent: str = "", conversation: str = "") -> None:
        """Tell what an ended span adds; the names are those of spans around it, where it has none itself."""
        if span.kind is None:
            return
        key = span.text(names.AGENT) or agent, span.text(names.CONVERSATION) or conversation or span.trace
        followed = self._followed.pop(key, None) or _Followed()
        self._followed[key] = followed
        while len(self._followed) > MAX_RUNS:
            self._followed.popitem(last=False)
        steps = followed.run.add(span)
        if not steps:
            return
        monitor = self._monitor_of(*key)
        try:
            for step in steps:
                self._tell(monitor, followed, step)
        except Exception as error:  # what a span holds must not end the feed
            with suppress(Exception):
                monitor.fault("telemetry", error)

    def _tell(self, monitor: Monitor, followed: _Followed, step: Step) -> None:
        if joins(followed.newest, step):
            # no message of its own: the chat that made the call is recorded
            followed.open_calls += [
                (monitor.tool_call(call.name, call.arguments, call=call.id), call.name) for call in step.tool_calls
            ]
        else:
            record_step(monitor, step, followed.open_calls)
        followed.newest = step
