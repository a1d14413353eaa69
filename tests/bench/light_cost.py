"""Cost of the light for a step of the labelled runs: its detectors, its metrics, the run's own start, the sum itself.

Run ``python tests/bench/light_cost.py``; it takes about a minute. A step is a message with its calls, or a result, and
the decision after it. What belongs to the light is a line in ``PARTS``. Processor time of the thread is counted.
"""

from __future__ import annotations

import gzip
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias
from unittest.mock import patch

from showing import row, say

from coherence import Monitor
from coherence.detect.breakdown import BreakdownDetector
from coherence.metrics.course import Breakdown, FailureStreak, Novelty, Stall
from coherence.monitor.pipeline import AgentPipeline
from coherence.policy.danger.unasked import DangerDetector
from coherence.providers.hashing import HashingEmbedder
from coherence.providers.readers import read_transcripts
from coherence.providers.transcript import Transcript
from coherence.report.score import record_steps
from coherence.sensor.own_start import OwnStart
from coherence.state.progress import ProgressDetector

RUNS = Path(__file__).parent.parent / "data" / "runs"

MEDIAN_MS, P95_MS = 0.3, 2.0
"""What the light may cost a step."""

EACH, MAX_STEPS = 16, 80
"""Runs of a file, and steps of a run, that are looked at."""

PARTS: dict[str, tuple[type, ...]] = {
    "progress": (ProgressDetector,),
    "breakdown": (BreakdownDetector,),
    "destructive calls": (DangerDetector,),
    "metrics": (Novelty, Stall, FailureStreak, Breakdown),
    "own start": (OwnStart,),
    "sum": (AgentPipeline,),
}
"""Part -> where its methods are."""

Spent: TypeAlias = defaultdict[str, float]
"""Part -> what it took."""

METHODS = ("compute", "explain", "changes", "learn", "findings", "_lit", "_gains")
"""Methods that are timed besides those that take in events; none of them calls another one that is timed."""


@contextmanager
def timed(spent: Spent) -> Iterator[None]:
    """Let every part add what it takes, in seconds, to its name."""

    def wrapped(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def call(*args: Any, **named: Any) -> Any:
            started = time.thread_time()
            try:
                return method(*args, **named)
            finally:
                spent[name] += time.thread_time() - started

        return call

    with ExitStack() as stack:
        for name, classes in PARTS.items():
            for cls in classes:
                for method, found in list(vars(cls).items()):
                    if callable(found) and (method.startswith("on_") or method in METHODS):
                        stack.enter_context(patch.object(cls, method, wrapped(name, found)))
        yield


def costs(run: Transcript) -> list[Spent]:
    """Return the milliseconds of each part at each step."""
    spent: Spent = defaultdict(float)
    steps: list[Spent] = []
    with timed(spent), Monitor(goal=run.goal or None, embedder=HashingEmbedder(64), config={"tick": "manual"}) as m:
        for at in record_steps(m, run):
            m.decide()
            steps.append(defaultdict(float, {name: 1e3 * took for name, took in spent.items()}))
            spent.clear()
            if at + 1 == MAX_STEPS:
                break
    return steps


def p95(values: list[float]) -> float:
    """Return the value that 95 % do not exceed."""
    return sorted(values)[int(0.95 * (len(values) - 1))]


def main() -> None:
    """Print the table."""
    found: list[Spent] = []
    for file in sorted(RUNS.glob("*.jsonl.gz")):
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            many = sum(1 for _ in lines)
        for at, run in enumerate(read_transcripts(file, None)):
            if at % max(many // EACH, 1) == 0:
                found += costs(run)
    say(f"the light, CPU of {len(found):,} steps of labelled runs", "measured", "target")
    whole = [sum(step.values()) for step in found]
    row("a step, median", median(whole), MEDIAN_MS, " ms")
    row("a step, 95 %", p95(whole), P95_MS, " ms")
    for name in PARTS:
        part = [step[name] for step in found]
        say(f"  {name}: median, 95 %", f"{median(part):.3f}, {p95(part):.3f} ms", "")


if __name__ == "__main__":
    main()
