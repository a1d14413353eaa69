"""OpenTelemetry out: an agent's life as spans of the GenAI conventions, its readings as evaluations of them."""

from __future__ import annotations

import atexit
import logging
import os
import queue
import secrets
import threading
import time
import weakref
from contextlib import suppress
from typing import Any, NamedTuple

import coherence
from coherence.core import genai_names as names
from coherence.core.errors import MissingExtraError
from coherence.core.validation import check_count, check_flag
from coherence.export.otel_spans import AgentSpans
from coherence.monitor.sinks import AgentRecord

LOG = logging.getLogger("coherence.export")
INSTALL = '  pip install "coherence-sensor[otel]"'

EXIT_S = 3.0
"""Seconds that the end of the interpreter grants for what still waits."""

LOG_EVERY = 1_000
"""Of records that are dropped or fail the first is logged, and each one after so many more."""

TOKEN_BUCKETS = tuple(float(4**power) for power in range(14))
"""Limits of the histogram of tokens, as the conventions advise them: 1 to 67,108,864."""


class Instruments(NamedTuple):
    """What spans and metrics are made with: objects of OpenTelemetry's API."""

    api: Any
    """Its module ``trace``."""
    nowhere: Any
    """A context without a span."""
    tracer: Any
    index: Any
    pressure: Any
    decisions: Any
    tokens: Any


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
        self.dropped = 0
        """Records that were not exported: too many waited, or they could not be made into spans."""
        version = coherence.__version__
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
        )
        self._begin()
        _sinks.add(self)
        # here and not at import: the end of the host's providers is registered by now, and comes after ours
        atexit.register(_close_at_exit, weakref.ref(self))

    def __repr__(self) -> str:
        return f"OtelSink(content={self.content})"

    def _begin(self) -> None:
        self._queue: queue.Queue[AgentRecord | tuple[str, str]] = queue.Queue(self.most_waiting)
        self._agents: dict[tuple[str, str], AgentSpans] = {}
        self._lock, self._starting = threading.Lock(), threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False

    def emit(self, record: AgentRecord) -> None:
        """Queue a record; returns at once, and raises nothing."""
        self._put(record)

    def ended(self, agent: str, session: str) -> None:
        """End the spans of an agent's session."""
        self._put((agent, session))

    def _put(self, told: AgentRecord | tuple[str, str]) -> None:
        try:
            if self._closed:
                raise queue.Full
            if self._thread is None:
                with self._starting:
                    if self._thread is None:
                        thread = threading.Thread(target=self._work, name="coherence-otel", daemon=True)
                        thread.start()
                        self._thread = thread
            self._queue.put_nowait(told)
        except (queue.Full, RuntimeError):  # a RuntimeError where no thread can be started
            self._drop("too many wait, or the sink is closed")

    def flush(self, timeout_s: float = 5.0) -> bool:
        """Wait until all that was given so far is spans; return whether it is, in time. Steps under way stay open."""
        with self._queue.all_tasks_done:
            return self._queue.all_tasks_done.wait_for(lambda: not self._queue.unfinished_tasks, max(timeout_s, 0.0))

    def close(self, timeout_s: float = 5.0) -> bool:
        """Take no more records, and end all spans; return whether all was done in time. Providers are left open."""
        if self._closed:
            return True
        self._closed = True
        done = self.flush(timeout_s)
        with self._lock:
            for spans in self._agents.values():
                with suppress(Exception):  # of a stranger's processor
                    spans.end(time.time())
            self._agents.clear()
        return done

    def _work(self) -> None:
        while True:
            told = self._queue.get()
            try:
                with self._lock:
                    self._take(told)
            except Exception as error:  # the thread goes on to the next record
                self._drop(f"a record could not be exported: {type(error).__name__}")
            self._queue.task_done()

    def _take(self, told: AgentRecord | tuple[str, str]) -> None:
        name = told if isinstance(told, tuple) else (told.agent, told.session)
        if isinstance(told, tuple):
            if (ended := self._agents.pop(name, None)) is not None:
                ended.end(time.time())
            return
        spans = self._agents.get(name)
        if spans is None:
            spans = self._agents[name] = AgentSpans(
                self._instruments, name[0], _conversation(name[1]), content=self.content
            )
        spans.add(told)

    def _drop(self, why: str) -> None:
        self.dropped += 1
        if self.dropped % LOG_EVERY == 1:
            with suppress(Exception):  # a stranger's handler or filter
                LOG.warning("%r: %s (%d records so far)", self, why, self.dropped)


def _conversation(session: str) -> str:
    """Return a session's name, made unlike those of other processes where it is only a number."""
    return f"{session}-{secrets.token_hex(6)}" if session.isdigit() else session


_sinks: weakref.WeakSet[OtelSink] = weakref.WeakSet()


def _after_fork() -> None:
    for sink in list(_sinks):
        sink._begin()  # the parent's thread and open spans are not here


def _close_at_exit(sink: weakref.ref[OtelSink]) -> None:
    if (alive := sink()) is not None:
        alive.close(EXIT_S)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
