"""Labelled runs, and how well a score ranks them: what the benchmarks of metrics share."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from coherence.core.events import Event, Goal, Message, Ticked, ToolCall, ToolResult
from coherence.core.validation import to_json
from coherence.state.reducer import AgentState

RUNS = Path(__file__).resolve().parents[1] / "data" / "runs"
SILENT = -1.0
"""Score of a run whose score is unknown: lower than any."""

Run = dict[str, Any]
Floats = npt.NDArray[np.float64]


class Scored(NamedTuple):
    """One run's score, whether it is a bad one, its steps and its task."""

    score: float
    bad: bool
    steps: int
    task: str


def load(name: str) -> list[Run]:
    with gzip.open(RUNS / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def folded(run: Run) -> Iterator[AgentState]:
    """Yield the state after each step, as at a tick."""
    state, seq = AgentState(), 0
    for events in steps_of(run):
        for event in events:
            seq += 1
            state.fold(seq, float(seq), event)
        yield state


def steps_of(run: Run) -> Iterator[list[Event]]:
    """Yield the events of each step, with the tick that ends it; the goal belongs to the first."""
    events: list[Event] = [Goal(run["goal"])]
    if run.get("system"):
        events.append(Message("system", run["system"]))
    for at, step in enumerate(run["steps"]):
        text = step.get("tool_result") or step.get("content") or ""
        if step["role"] == "tool":
            events.append(ToolResult(text, error=bool(step.get("is_error")), tool_name=step.get("tool_name")))
        else:
            events.append(Message(step["role"], text))
            for number, call in enumerate(step.get("tool_calls") or []):
                arguments = msgspec.Raw(to_json("arguments", call["arguments"]))
                events.append(ToolCall(call["name"], arguments, f"c{at}-{number}"))
        yield [*events, Ticked("decide")]
        events = []


def auroc(rows: Sequence[Scored]) -> float:
    """Return the chance that a bad run scores above a good one; ties count half."""
    bad = np.array([row.score for row in rows if row.bad])
    good = np.sort([row.score for row in rows if not row.bad])
    if not bad.size or not good.size:
        return float("nan")
    return float((np.searchsorted(good, bad, "left") + np.searchsorted(good, bad, "right")).mean() / 2 / good.size)


def equal_length(rows: Sequence[Scored]) -> float:
    """Return the same over pairs whose numbers of steps differ by at most one or 10 %."""
    bad, good = [row for row in rows if row.bad], [row for row in rows if not row.bad]
    if not bad or not good:
        return float("nan")
    long, other = np.array([row.steps for row in bad])[:, None], np.array([row.steps for row in good])[None]
    alike = np.abs(long - other) <= np.maximum(1, 0.1 * np.maximum(long, other))
    one, two = np.array([row.score for row in bad])[:, None], np.array([row.score for row in good])[None]
    won = (one > two) + 0.5 * (one == two)
    return float(won[alike].mean()) if alike.any() else float("nan")


def interval(
    rows: Sequence[Scored], figure: Callable[[Sequence[Scored]], float], draws: int = 400
) -> tuple[float, float]:
    """Return the 95 % interval of a figure, tasks resampled."""
    by: dict[str, list[Scored]] = {}
    for row in rows:
        by.setdefault(row.task, []).append(row)
    tasks, rng = sorted(by), np.random.default_rng(0)
    found = [
        figure([row for at in rng.integers(0, len(tasks), len(tasks)) for row in by[tasks[at]]]) for _ in range(draws)
    ]
    low, high = np.nanpercentile(found, [2.5, 97.5])
    return float(low), float(high)


def paired(
    ours: Sequence[Scored], theirs: Sequence[Scored], figure: Callable[[Sequence[Scored]], float], draws: int = 400
) -> tuple[float, float]:
    """Return the 95 % interval of the difference of a figure for two scores of the same runs, tasks resampled."""
    by: dict[str, list[int]] = {}
    for at, row in enumerate(ours):
        by.setdefault(row.task, []).append(at)
    tasks, rng, found = sorted(by), np.random.default_rng(0), []
    for _ in range(draws):
        drawn = [at for place in rng.integers(0, len(tasks), len(tasks)) for at in by[tasks[place]]]
        found.append(figure([ours[at] for at in drawn]) - figure([theirs[at] for at in drawn]))
    low, high = np.nanpercentile(found, [2.5, 97.5])
    return float(low), float(high)
