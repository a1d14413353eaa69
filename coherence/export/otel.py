"""OpenTelemetry out: an agent's life as spans of the GenAI conventions, its readings as evaluations of them."""

from __future__ import annotations

import atexit
import os
import secrets
import threading
import time
import weakref
from contextlib import suppress
from typing import Any, NamedTuple

from coherence.core import genai_names as names
from coherence.core.errors import MissingExtraError
from coherence.core.registry import installed
from coherence.core.validation import check_count, check_flag
from coherence.core.work_queue import WorkQueue
from coherence.export.otel_spans import AgentSpans
from coherence.monitor.sinks import AgentRecord

INSTALL = '  pip install "coherence-sensor[otel]"'

EXIT_S = 3.0
"""Seconds that the end of the interpreter grants for what still waits."""

TOKEN_BUCKETS = tuple(float(4**power) for power in range(14))
"""Limits of the histogram of tokens, as the conventions advise them: 1 to 67,108,864."""

DURATION_BUCKETS = tuple(0.01 * 2**power for power in range(14))
"""Limits of the histogram of durations in seconds, as the conventions advise them: 0.01 to 81.92."""


class Instruments(NamedTuple):
    """Objects of OpenTelemetry's API that make spans and metrics."""

    api: Any
    """Its module ``trace``."""
    nowhere: Any
    """A context without a span."""
    tracer: Any
    index: Any
    pressure: Any
    decisions: Any
    tokens: Any
    durations: Any


class OtelSink:
    """Sink that exports through OpenTelemetry, with the providers that the host has set up. Needs the extra ``otel``.

    A task is a span ``invoke_agent``, each answer of the model in it a ``chat``, each call an ``execute_tool``. A
    reading is an event ``gen_ai.evaluation.result`` of the step that it measures: the index is its score, the band its
    label. Decisions other than ``continue``, and guidance, are events ``coherence.decision`` and ``coherence.firing``.
    Metrics: ``coherence.index``, ``coherence.pressure``, ``coherence.decisions`` and ``gen_ai.client.token.usage``,
    each by agent.

    :meth:`emit` only queues, and never raises; a thread does the rest. A step's span is exported when the next one
    begins. Secrets are replaced before anything is exported.

    Parameters
    ----------
    tracer_provider, meter_provider : optional
        Providers of OpenTelemetry; default: the global ones. Exporters and addresses are theirs.
    content : bool
        ``True`` exports texts too: messages, arguments and results of tools, goals, memories, and the reasons that
        quote them.
    most_waiting : int
        Records that wait at most; what comes then is dropped and counted.

    Raises
    ------
    MissingExtraError
        If OpenTelemetry is not installed.
    """

    def __init__(
        self,
        *,
        tracer_provider: Any = None,
        meter_provider: Any = None,
        content: bool = False,
        most_waiting: int = 10_000,
    ) -> None:
        try:
            from opentelemetry import context, metrics, trace
        except ImportError as error:
            raise MissingExtraError("opentelemetry", INSTALL) from error
        self.content = check_flag("content", content)
        self.most_waiting = check_count("most_waiting", most_waiting, least=1, most=10_000_000)
        version = installed("coherence-sensor")
        tracer = trace.get_tracer(names.SCOPE, version, tracer_provider, names.SCHEMA_URL)
        meter = metrics.get_meter(names.SCOPE, version, meter_provider, names.SCHEMA_URL)
        self._instruments = Instruments(
            trace,
            context.Context(),
            tracer,
            meter.create_gauge(names.INDEX_METRIC, "1", "Chance that the agent is on course"),
            meter.create_gauge(names.PRESSURE_METRIC, "1", "Pressure of the agent, 0 = calm"),
            meter.create_counter(names.DECISIONS_METRIC, "{decision}", "Decisions by kind"),
            meter.create_histogram(
                names.TOKEN_USAGE,
                "{token}",
                "Tokens of a model call",
                explicit_bucket_boundaries_advisory=TOKEN_BUCKETS,
            ),
            meter.create_histogram(
                names.OPERATION_DURATION,
                "s",
                "Time from a request to the end of the answer",
                explicit_bucket_boundaries_advisory=DURATION_BUCKETS,
            ),
        )
        self._agents: dict[tuple[str, str], AgentSpans] = {}
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._queue: WorkQueue[AgentRecord | tuple[str, str]] = WorkQueue(
            self._take, name="coherence-otel", most_waiting=self.most_waiting
        )
        # here and not at import: the end of the host's providers is registered by now, and comes after ours
        atexit.register(_close_at_exit, weakref.ref(self))

    def __repr__(self) -> str:
        return f"OtelSink(content={self.content})"

    @property
    def dropped(self) -> int:
        """Records that were not exported: too many waited, or they could not be made into spans."""
        return self._queue.dropped

    def emit(self, record: AgentRecord) -> None:
        """Queue a record; returns at once, and raises nothing."""
        self._queue.put(record)

    def ended(self, agent: str, session: str) -> None:
        """End the spans of an agent's session."""
        self._queue.put((agent, session))

    def flush(self, timeout_s: float = 5.0) -> bool:
        """Wait until all that was given so far is spans; return whether it is, in time. Steps under way stay open."""
        return self._queue.flush(timeout_s)

    def close(self, timeout_s: float = 5.0) -> bool:
        """Take no more records, and end all spans; return whether all was done in time. Providers are left open."""
        done = self._queue.close(timeout_s)
        with self._lock:
            for spans in self._agents.values():
                with suppress(Exception):  # of a stranger's processor
                    spans.end(time.time())
            self._agents.clear()
        return done

    def _take(self, told: AgentRecord | tuple[str, str]) -> None:
        name = told if isinstance(told, tuple) else (told.agent, told.session)
        with self._lock:
            if self._pid != os.getpid():  # a child: the parent ends the spans that are open
                self._pid = os.getpid()
                self._agents.clear()
            if isinstance(told, tuple):
                if (ended := self._agents.pop(name, None)) is not None:
                    ended.end(time.time())
                return
            spans = self._agents.get(name)
            if spans is None:
                conversation = _conversation(name[1])
                spans = AgentSpans(self._instruments, name[0], conversation, content=self.content)
                self._agents[name] = spans
            spans.add(told)


def _conversation(session: str) -> str:
    """Return a session's name, made unlike those of other processes where it is only a number."""
    return f"{session}-{secrets.token_hex(6)}" if session.isdigit() else session


def _close_at_exit(sink: weakref.ref[OtelSink]) -> None:
    if (alive := sink()) is not None:
        alive.close(EXIT_S)
