"""Breakdown of a step: the time of its parts, the memory of an agent, the threads, and the cost of each part.

Run ``python tests/bench/breakdown.py``, or with ``steps``, ``named``, ``memory``, ``threads`` or ``ablations`` for
one of its tables. A step is a call and its result, with a store on a disk, a measurement and a decision. Processor time
is counted, that of a part without the parts that it calls.
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any
from unittest.mock import patch

from regression import text
from showing import ablation, resident_mb, say

from coherence import Monitor
from coherence.baseline.vitals import metric_set
from coherence.core.config import MonitorConfig
from coherence.core.protocols import Embedder
from coherence.core.redact import Redactor
from coherence.core.registry import create_rule, shipped
from coherence.detect.detector import DetectorTable
from coherence.monitor.host_events import HostEvents
from coherence.monitor.pipeline import AgentPipeline
from coherence.monitor.recorder import Recorder
from coherence.providers import HashingEmbedder, MiniLMEmbedder
from coherence.sensor.sensor import CoherenceSensor
from coherence.state.reducer import AgentState

LENGTHS = (100, 1_000, 10_000)
STEPS = 30
WARM = 10
"""Steps that are not counted."""
ROUNDS = 3
"""Times that each variant is measured; the least counts."""

Methods = Sequence[tuple[Any, str]]
"""Owners of functions, and the names of these."""

PARTS: Mapping[str, Methods] = {
    "record: the two calls of the host": [(HostEvents, "tool_call"), (HostEvents, "tool_result")],
    "redact": [(Redactor, "prepare")],
    "fold, beside the detectors": [(AgentState, "fold")],
    "detectors": [(DetectorTable, "observe")],
    "embed (MiniLM)": [(MiniLMEmbedder, "embed"), (MiniLMEmbedder, "embed_batch")],
    "tick: metrics": [(CoherenceSensor, "measure_sync")],
    "tick: findings, light, decision": [(AgentPipeline, "_judge")],
    "write to the store": [(Recorder, "add"), (Recorder, "_save")],
}
"""Parts of a step. What is in none of them is shown as the rest."""


@contextmanager
def timed(parts: Mapping[str, Methods], spent: dict[str, float]) -> Iterator[None]:
    """Add the processor time of functions to their part, in microseconds, without that of others among them."""
    here = threading.local()

    def wrapped(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*args: Any, **named: Any) -> Any:
            outer, here.inner = getattr(here, "inner", 0), 0
            began = time.thread_time_ns()
            try:
                return function(*args, **named)
            finally:
                took = time.thread_time_ns() - began
                spent[name] += (took - here.inner) / 1e3
                here.inner = outer + took

        return call

    with ExitStack() as stack:
        for name, methods in parts.items():
            for owner, method in methods:
                stack.enter_context(patch.object(owner, method, wrapped(name, getattr(owner, method))))
        yield


def step(monitor: Monitor, length: int, seed: int) -> None:
    """Record a call and its result of so many characters."""
    call = monitor.tool_call("Bash", {"command": f"cd src && pytest -q tests/test_{seed}.py"})
    monitor.tool_result(text(length, seed), call=call)


def profile(parts: Mapping[str, Methods], length: int, embedder: Embedder | None = None) -> dict[str, float]:
    """Return the microseconds of each part for a step, and of the whole process under ``all``."""
    spent: dict[str, float] = defaultdict(float)
    with tempfile.TemporaryDirectory() as folder, timed(parts, spent):
        given: dict[str, Any] = {"store": f"{folder}/a.db", "embedder": embedder, "config": {"tick": "manual"}}
        with Monitor(goal="make the tests pass", **given) as monitor:
            for seed in range(WARM + STEPS):
                if seed == WARM:
                    monitor.flush()
                    spent.clear()
                    began = time.process_time()
                step(monitor, length, seed)
                monitor.decide()
            monitor.flush()
            whole = time.process_time() - began
        found = {name: us / STEPS for name, us in spent.items()}
    return {**found, "all": whole / STEPS * 1e6}


def steps() -> None:
    """Show the parts of a step by the length of its result."""
    found = [profile(PARTS, length) for length in LENGTHS]
    say("a step, us of CPU; characters of the result", *(f"{length:,}" for length in LENGTHS))
    for name in PARTS:
        say(f"  {name}", *(f"{each.get(name, 0.0):,.0f}" for each in found))
    rest = [each["all"] - sum(each.get(name, 0.0) for name in PARTS) for each in found]
    say("  the rest: waking, locks, threads", *(f"{us:,.0f}" for us in rest))
    say("  together", *(f"{each['all']:,.0f}" for each in found))


def named_parts() -> dict[str, Methods]:
    """Return the methods of every detector, metric and rule of a pipeline."""
    pipeline = AgentPipeline(MonitorConfig(), None)
    measured = metric_set(pipeline.config, pipeline.state, None)
    found: dict[str, Methods] = {}

    def add(name: str, cls: type, *methods: str) -> None:
        found[name] = [(cls, method) for method in methods if callable(getattr(cls, method, None))]

    for name, detector in pipeline.state.detectors._detectors.items():
        handlers = [method for method in dir(detector) if method.startswith("on_")]
        add(f"detector {name}", type(detector), *(handlers or ["observe"]), "findings")
    metrics: list[Any] = [*measured.vectors, *measured.scalars]
    for metric in metrics:
        add(f"metric {metric.name}", type(metric), "compute", "explain")
    for name in shipped("rules"):
        add(f"rule {name}", type(create_rule(name)), "__call__")
    return found


def named(most: int = 15) -> None:
    """Show what costs most among detectors, metrics and rules; who first looks at a text pays for its analysis."""
    found = [profile(named_parts(), length, HashingEmbedder(384)) for length in LENGTHS]
    names = sorted(set().union(*found) - {"all"}, key=lambda name: -found[1].get(name, 0.0))
    say("of these, us of CPU a step; characters of the result", *(f"{length:,}" for length in LENGTHS))
    for name in names[:most]:
        say(f"  {name}", *(f"{each.get(name, 0.0):,.0f}" for each in found))
    others = [sum(each.get(name, 0.0) for name in names[most:]) for each in found]
    say(f"  {len(names) - most} others", *(f"{us:,.0f}" for us in others))


AGENTS = {"idle": (100, 0), "after 1,000 events": (2, 250)}
"""What a monitor has seen -> how many monitors, and steps of each."""


def grown_kb(folder: str | None, many: int, count: int) -> float:
    """Return the resident memory that a monitor adds to a process that has some already, in kilobytes."""

    def fill(name: str) -> Monitor:
        store = None if folder is None else f"{folder}/{name}.db"
        monitor = Monitor(agent=name, goal="make the tests pass", store=store, embedder=HashingEmbedder(384))
        for seed in range(count):
            step(monitor, 300, seed)
            monitor.message("assistant", text(200, seed))
            monitor.usage(tokens_in=900, tokens_out=100)
        monitor.flush()
        return monitor

    kept = [fill("warm")]
    gc.collect()
    before = resident_mb()
    kept += [fill(f"agent{at}") for at in range(many)]
    gc.collect()
    grown = (resident_mb() - before) / many * 1e3
    for monitor in kept:
        monitor.close()
    return grown


def memory() -> None:
    """Show the memory of an agent, each figure of a process of its own."""
    say("resident memory a monitor adds", "in memory", "with a store")
    for name, (many, count) in AGENTS.items():
        found = []
        for stored in ("", "stored"):
            command = [sys.executable, __file__, "--grown", str(many), str(count), stored]
            found.append(float(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
        say(f"  {name}", *(f"{kb:,.0f} kB" for kb in found))


THREADS = """
import sys, threading
from pathlib import Path

def say(what):
    named = sorted(thread.name for thread in threading.enumerate())
    print(f"  {what}", len(list(Path("/proc/self/task").iterdir())), ", ".join(named), sep="|")

say("bare interpreter")
import numpy
say("numpy imported")
from coherence import Monitor
m = Monitor(goal="make the tests pass", store=sys.argv[1])
say("a monitor with a store")
m.message("assistant", "Now I run the tests.")
m.decide()
say("the embedding model loaded, a decision made")
others = [Monitor(agent=f"a{at}") for at in range(50)]
say("50 monitors more")
class Own:
    dimensions = 8
    def embed(self, text):
        return [1.0] * 8
    def embed_batch(self, texts):
        return [[1.0] * 8 for _ in texts]
own = Monitor(agent="own", goal="x", embedder=Own())
own.message("assistant", "Now I run the tests.")
own.decide()
say("an embedder of your own")
"""


def threads() -> None:
    """Show which threads a process has, those of Python by name."""
    say("threads, after", "all of them", "of Python")
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", THREADS, f"{folder}/a.db"]
        for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
            say(*line.split("|"))


WORDS_ALONE = {"embedder": False}
ALL_RULES = {name: {"enabled": False} for name in shipped("rules")}
VARIANTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "as shipped": ({}, {}),
    "embedder=False": (WORDS_ALONE, {}),
    'and tick="manual", no decision asked for': (WORDS_ALONE, {"tick": "manual"}),
    "and redact=false": (WORDS_ALONE, {"redact": False}),
    "and every rule off": (WORDS_ALONE, {"rules": ALL_RULES}),
    "and guidance off": (WORDS_ALONE, {"guidance": {"enabled": False}}),
    'and privacy="no-text"': (WORDS_ALONE, {"privacy": "no-text"}),
    "and store=None": ({**WORDS_ALONE, "store": None}, {}),
    'and durability="full"': ({**WORDS_ALONE, "durability": "full"}, {}),
}
"""What is switched off -> arguments of a monitor, and its settings."""


def step_us(arguments: Mapping[str, Any], settings: Mapping[str, Any], count: int) -> float:
    """Return the processor time of a step and its measurement, of all threads, in microseconds."""
    with tempfile.TemporaryDirectory() as folder:
        given: dict[str, Any] = {"store": f"{folder}/a.db", **arguments}
        with Monitor(goal="make the tests pass", config=settings, **given) as monitor:
            for seed in range(WARM + count):
                if seed == WARM:
                    monitor.flush()
                    began = time.process_time()
                step(monitor, 1_000, seed)
                if seed % 3 == 0:
                    monitor.flush()  # who is far behind measures less
            monitor.flush()
            return (time.process_time() - began) / count * 1e6


def ablations() -> None:
    """Show what a step costs with a part switched off, the variants in turns."""
    took: dict[str, list[float]] = defaultdict(list)
    for _ in range(ROUNDS):
        for name, (arguments, settings) in VARIANTS.items():
            took[name].append(step_us(arguments, settings, 8 if name == "as shipped" else STEPS))
        with patch.dict(os.environ, COHERENCE_DISABLED="1"):
            took["COHERENCE_DISABLED=1"].append(step_us({}, {}, STEPS))
    for name, found in took.items():
        ablation(f"a step of 1,000 characters, {name}", min(found), " us")


TABLES = {"steps": steps, "named": named, "memory": memory, "threads": threads, "ablations": ablations}


def main(tables: Sequence[str] = tuple(TABLES)) -> None:
    """Print the tables."""
    for name in tables:
        TABLES[name]()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", choices=[*TABLES, []], help="which; default: all")
    parser.add_argument("--grown", nargs=3, help="what a fresh process does")
    asked = parser.parse_args()
    if asked.grown:
        many, count, stored = asked.grown
        with tempfile.TemporaryDirectory() as place:
            print(grown_kb(place if stored else None, int(many), int(count)))
    else:
        main(asked.tables or tuple(TABLES))
