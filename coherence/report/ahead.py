"""Texts of a recorded run, embedded on other cores before its steps need them."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Lock, Thread

from coherence.core.config import MonitorConfig
from coherence.core.events import Event as AgentEvent
from coherence.core.events import Ticked
from coherence.core.redact import Redactor
from coherence.detect.detector import DetectorTable
from coherence.monitor.host_events import HostEvents
from coherence.monitor.steps import record_steps
from coherence.providers.minilm import MiniLMEmbedder
from coherence.providers.transcript import Transcript
from coherence.sensor.embedding_cache import EmbeddingCache
from coherence.state.reducer import AgentState

MAX_THREADS = 8
"""Threads that embed ahead of one run; each needs the interpreter for some of its time."""


def usable_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class StateAlone(HostEvents):
    """An agent's state without what follows the run beside it: it shows the same texts, and costs little."""

    def __init__(self, config: MonitorConfig) -> None:
        super().__init__()
        self.state = AgentState(config)
        self.state.detectors = DetectorTable((self.state,))
        self._redactor = Redactor(hide_secrets=config.redact)
        self._seq = 0

    def _record(self, make: Callable[[], AgentEvent]) -> None:
        self._seq += 1
        self.state.fold(self._seq, 0.0, self._redactor.prepare(make()))

    def tick(self) -> None:
        """Take in that a measurement was asked for."""
        self._record(lambda: Ticked("decide"))


def measured_texts(transcript: Transcript, config: MonitorConfig) -> Iterator[str]:
    """Yield the texts that the measurements of a run compare, each once, in the order of its steps."""
    alone, known = StateAlone(config), {""}
    if transcript.goal.strip():
        alone.goal(transcript.goal)
    for _ in record_steps(alone, transcript):
        alone.tick()
        state = alone.state
        for text in (*state.get_goals(), *state.get_recent_context(), *state.get_goal_relevant_memories()):
            if text not in known and not text.isspace():
                known.add(text)
                yield text


@contextmanager
def embedded_ahead(texts: Iterator[str], cache: EmbeddingCache, threads: int) -> Iterator[None]:
    """Embed texts on other threads while the body runs; it embeds what it needs before they have come to it.

    Only the shipped model is asked: it does not mind threads, and a text has the same vector whenever it is embedded.

    Parameters
    ----------
    texts : iterator of str
        The texts, taken one by one.
    cache : EmbeddingCache
        Where the vectors go.
    threads : int
        Number of threads.
    """
    stopped, taking = Event(), Lock()

    def work() -> None:
        # What fails here fails again, and is told, where the text is measured.
        with suppress(Exception):
            while not stopped.is_set():
                with taking:
                    text = next(texts, None)
                if text is None:
                    return
                if cache.find([text], {}):
                    cache.make_one(text, math.inf)

    count = min(threads, MAX_THREADS) if type(cache.embedder) is MiniLMEmbedder else 0
    workers = [Thread(target=work, name="coherence-ahead") for _ in range(count)]
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        stopped.set()
        for worker in workers:
            worker.join()
