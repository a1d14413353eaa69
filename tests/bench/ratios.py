"""Costs of this version in units that were measured beside them: ratios, which mean the same on another machine.

Run ``python tests/bench/ratios.py``. Processor time of all threads, but for ``record an event``, which is that of the
caller. Each round measures every cost and every unit once; a ratio is the median of those of the rounds. Units are

- ``embedding``: a text of about 100 tokens by the shipped model, on one thread;
- ``json.dumps``: of a text of 1,000 characters;
- ``insert``: a row of an event of 120 characters (agent, number, time, kind, JSON), one of 50 that ``executemany`` puts
  into a table without an index but its key, with the commit in WAL mode without waiting for the disk;
- ``noos turn``: its turn of 100 characters; ``soma record``: its ``record_action`` of 120 characters, with its audit.
"""

from __future__ import annotations

import json
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from column import SOMA, words
from decide import NOOS, texts
from peers.client import Peer
from regression import costs, text
from showing import say

from coherence import Monitor
from coherence.providers import MiniLMEmbedder

HERE = Path(__file__).parent
ROUNDS = 3
CENTRAL = (
    "an event of 120 characters, with a store",
    "an event of 6,000 characters, with a store",
    "decide() after usage",
    "decide() after a message",
    "1,000 characters redacted",
    "check() of a command",
    "a turn of 100 characters by words alone",
)
"""Those of the costs that are shown; the others are compared with an earlier version only."""

Measure = Callable[[], float]
"""Takes a measurement; returns the microseconds of one."""


def cpu_of(count: int, do: Callable[[], object], clock: Callable[[], float] = time.process_time) -> float:
    """Return the microseconds of each of so many."""
    began = clock()
    do()
    return (clock() - began) / count * 1e6


def record_us(count: int = 300) -> float:
    """Return what recording an event costs its caller."""
    said = [text(120, seed) for seed in range(count)]
    with tempfile.TemporaryDirectory() as folder, Monitor(store=f"{folder}/a.db", embedder=False) as monitor:

        def record() -> None:
            for each in said:
                monitor.tool_result(each)

        return cpu_of(count, record, time.thread_time)


def insert_us(batches: int = 40, size: int = 50) -> float:
    """Return what a bare insert costs."""
    with tempfile.TemporaryDirectory() as folder, closing(sqlite3.connect(f"{folder}/a.db")) as base:
        base.execute("PRAGMA journal_mode=WAL")
        base.execute("PRAGMA synchronous=NORMAL")
        base.execute("CREATE TABLE events (seq INTEGER PRIMARY KEY, agent TEXT, ts REAL, kind TEXT, data TEXT)")
        rows = [
            (seq, "main", 1.8e9 + seq, "tool_result", json.dumps({"type": "tool_result", "content": text(120, seed)}))
            for seq, seed in enumerate(range(batches * size))
        ]

        def insert() -> None:
            for at in range(0, len(rows), size):
                with base:
                    base.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?)", rows[at : at + size])

        return cpu_of(len(rows), insert)


def units(stack: ExitStack) -> dict[str, Measure]:
    """Return the units that can be measured here."""
    model, said = MiniLMEmbedder(), text(1_000, 0)
    model.embed("load the model")
    seeds = iter(range(1_000_000))
    found: dict[str, Measure] = {
        "embedding": lambda: cpu_of(10, lambda: [model.embed(words(next(seeds))) for _ in range(10)]),
        "json.dumps": lambda: cpu_of(5_000, lambda: [json.dumps(said) for _ in range(5_000)]),
        "insert": insert_us,
    }
    if NOOS.exists():
        noos, turns = stack.enter_context(Peer(NOOS, HERE / "peers" / "noos.py")), texts(100, 300)
        found["noos turn"] = lambda: float(noos.ask(op="turns", texts=turns)["cpu_us"])
    if SOMA.exists():
        soma = stack.enter_context(Peer(SOMA, HERE / "peers" / "soma.py"))
        found["soma record"] = lambda: float(soma.ask(op="record", chars=120, n=50, warm=20, audit=True)["cpu_us"])
    return found


def ratios(
    costs_us: Mapping[str, Sequence[float]], units_us: Mapping[str, Sequence[float]]
) -> dict[str, dict[str, float]]:
    """Return each cost over each unit: the median of the ratios of the rounds.

    Examples
    --------
    >>> ratios({"a": [10.0, 30.0, 12.0]}, {"unit": [10.0, 10.0, 12.0]})
    {'a': {'unit': 1.0}}
    """
    return {
        name: {
            unit: statistics.median(cost / one for cost, one in zip(took, ones, strict=True))
            for unit, ones in units_us.items()
        }
        for name, took in costs_us.items()
    }


def main() -> dict[str, dict[str, float]]:
    """Print and return the ratios."""
    with ExitStack() as stack:
        measured: dict[str, Measure] = {"record an event": record_us}
        for name, count, do in costs():
            if name in CENTRAL:
                measured[name] = lambda count=count, do=do: cpu_of(count, do)  # type: ignore[misc]
        by = units(stack)
        took: dict[str, list[float]] = {name: [] for name in (*measured, *by)}
        for _ in range(ROUNDS + 1):
            for name, measure in (*measured.items(), *by.items()):
                took[name].append(measure())
    kept = {name: each[1:] for name, each in took.items()}  # the first round warms up
    found = ratios({name: kept[name] for name in measured}, {name: kept[name] for name in by})
    say("CPU of all threads, in units measured beside it", *by)
    say("  microseconds of the unit", *(f"{statistics.median(kept[name]):,.1f}" for name in by))
    for name, row in found.items():
        say(f"  {name}", *(f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.3g}" for ratio in row.values()))
    return found


if __name__ == "__main__":
    main()
