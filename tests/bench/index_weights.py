"""Figures of the index weights on labelled runs: each metric alone, the classic index, the default index.

The classic metrics need vectors (two minutes); ``--cache FOLDER`` keeps their values for the next time.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from ranks import RUNS, SILENT, Floats, Run, Scored, auroc, equal_length, folded, load, paired

from coherence import EmbeddingCache
from coherence.baseline.vitals import DETECTORS
from coherence.core.errors import UnknownSourceError
from coherence.core.registry import create_metric
from coherence.providers import MiniLMEmbedder
from coherence.providers.readers import read_transcripts
from coherence.report.score import score_transcript
from coherence.sensor.index import DEFAULT_INVERTED, DEFAULT_WEIGHTS, INDEX_WEIGHTS, BandEdges

SOURCES = ("agentdojo", "tau_airline", "swebench_mini", "whowhen")
EVERY = {"swebench_mini": 2}
"""Source -> every how manieth run is taken: its runs are long."""

CLASSIC = tuple(DEFAULT_WEIGHTS)
NEW = DETECTORS
COLUMNS = (*CLASSIC, *NEW)
INVERTED = np.array([name in DEFAULT_INVERTED or name in NEW for name in COLUMNS])

Weights = Mapping[str, float]


class Measured(NamedTuple):
    """A run and its values, a row a step, a column a metric; NaN = unknown."""

    run: Run
    values: Floats

    def risk(self, weights: Weights) -> Floats:
        """Return one minus the index after each step."""
        weight = np.array([weights.get(name, 0.0) for name in COLUMNS])
        known = ~np.isnan(self.values)
        bad = np.where(known, np.where(INVERTED, self.values, 1 - self.values), 0.0)
        total = known @ weight
        return np.where(total > 0, bad @ weight / np.where(total > 0, total, 1.0), SILENT)


def measured(name: str, cache: Path | None) -> list[Measured]:
    runs = load(name)[:: EVERY.get(name, 1)]
    classic = _classic(name, runs, cache)
    found = []
    for run, values in zip(runs, classic, strict=True):
        new = [[_value(create_metric(name, state)) for name in DETECTORS] for state in folded(run)]
        found.append(Measured(run, np.column_stack((values, np.array(new)))))
    return found


def _value(metric: object) -> float:
    try:
        value = metric.compute()  # type: ignore[attr-defined]
    except UnknownSourceError:
        value = None
    return float("nan") if value is None else float(value)


def _classic(name: str, runs: Sequence[Run], cache: Path | None) -> list[Floats]:
    file = cache / f"classic_{name}.npz" if cache is not None else None
    if file is not None and file.exists():
        with np.load(file) as kept:
            return [kept[str(at)] for at in range(len(runs))]
    embedder, found = MiniLMEmbedder(), []
    for transcript in list(read_transcripts(RUNS / f"{name}.jsonl.gz"))[:: EVERY.get(name, 1)]:
        readings = score_transcript(transcript, embedder=EmbeddingCache(embedder)).readings
        table = [[reading.metrics[metric] for metric in CLASSIC] for reading in readings]
        found.append(np.array(table, dtype=np.float64))
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(file, **{str(at): values for at, values in enumerate(found)})  # type: ignore[arg-type]
    return found


def runs_of(data: Sequence[Measured], weights: Weights, label: str) -> list[Scored]:
    """Return each run's highest risk; failed or hijacked ones are the bad ones."""
    found = []
    for part in data:
        labels = part.run["labels"]
        bad = bool(labels.get("hijacked")) if label == "hijacked" else not labels["success"]
        found.append(Scored(float(part.risk(weights).max()), bad, len(part.values), part.run["group"]))
    return found


def calls_of(data: Sequence[Measured], weights: Weights) -> list[Scored]:
    """Return the risk at hijacking calls, and at others made after a result was read (or the injection resisted)."""
    found = []
    for part in data:
        labels, read, risk = part.run["labels"], False, part.risk(weights)
        shown = labels.get("injection_step")
        for step in part.run["steps"]:
            at = step["i"]
            read = read or step["role"] == "tool"
            if not (read and step["role"] == "assistant" and step.get("tool_calls")):
                continue
            bad = bool(labels.get("hijacked")) and at == labels.get("hijack_step")
            good = not labels.get("attacked") or (not labels.get("hijacked") and shown is not None and at > shown)
            if bad or good:
                found.append(Scored(float(risk[at]), bad, 1, part.run["group"]))
    return found


def step_rank(data: Sequence[Measured], weights: Weights, source: str) -> list[Scored]:
    """Return for each log the share of the agents' other steps that lie below the decisive one, as the score."""
    found = []
    for part in data:
        run = part.run
        if run["source"] != source:
            continue
        risk, error = part.risk(weights), run["labels"]["error_step"]
        spoken = [step["i"] for step in run["steps"] if step["role"] == "assistant" and step["i"] != error]
        if run["steps"][error]["role"] == "assistant" and spoken:
            rank = float(np.mean(risk[spoken] < risk[error]) + 0.5 * np.mean(risk[spoken] == risk[error]))
            found.append(Scored(rank, True, len(part.values), run["group"]))
    return found


def mean_score(rows: Sequence[Scored]) -> float:
    return float(np.mean([row.score for row in rows]))


Data = Mapping[str, Sequence[Measured]]
Column = tuple[str, str, Callable[[Data, Weights], list[Scored]], Callable[[Sequence[Scored]], float]]

FIGURES: tuple[Column, ...] = (
    ("hijacked", "agentdojo", lambda data, weights: runs_of(data["agentdojo"], weights, "hijacked"), auroc),
    ("equal", "agentdojo", lambda data, weights: runs_of(data["agentdojo"], weights, "hijacked"), equal_length),
    ("call", "agentdojo", lambda data, weights: calls_of(data["agentdojo"], weights), auroc),
    ("tau", "tau_airline", lambda data, weights: runs_of(data["tau_airline"], weights, "failed"), auroc),
    ("equal", "tau_airline", lambda data, weights: runs_of(data["tau_airline"], weights, "failed"), equal_length),
    ("SWE", "swebench_mini", lambda data, weights: runs_of(data["swebench_mini"], weights, "failed"), auroc),
    ("equal", "swebench_mini", lambda data, weights: runs_of(data["swebench_mini"], weights, "failed"), equal_length),
    ("W&W a", "whowhen", lambda data, weights: step_rank(data["whowhen"], weights, "whowhen_algorithm"), mean_score),
    ("W&W h", "whowhen", lambda data, weights: step_rank(data["whowhen"], weights, "whowhen_handcrafted"), mean_score),
)
JUDGED = (1, 2, 4, 6, 7, 8)
"""Of the figures, those that length cannot make."""


def figures(data: Data, weights: Weights) -> list[float]:
    return [figure(rows(data, weights)) for _, _, rows, figure in FIGURES]


def line(name: str, found: Sequence[float]) -> None:
    cells = " ".join(f"{value:>8.3f}" for value in found)
    worst = min(JUDGED, key=lambda at: found[at])
    say(f"{name:<26}{cells}   {found[worst]:.3f} {FIGURES[worst][1]}")


def say(text: str = "") -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def by_source(found: Sequence[float]) -> dict[str, float]:
    """Return one figure a source: the mean of those that length cannot make."""
    parts: dict[str, list[float]] = {}
    for at in JUDGED:
        parts.setdefault(FIGURES[at][1], []).append(found[at])
    return {source: float(np.mean(values)) for source, values in parts.items()}


def left_out(data: Data) -> None:
    """Choose the weights on all sources but one, and show what they are worth on that one."""
    grid = []
    for classic, hijack, assumed in product((0.0, 0.025, 0.05, 0.1), np.arange(0, 1.01, 0.1), np.arange(0, 1.01, 0.1)):
        risk = round(1 - 4 * classic - hijack - assumed, 3)
        if risk >= 0:
            table = {**dict.fromkeys(CLASSIC, classic), **dict(zip(NEW, (hijack, assumed, risk), strict=True))}
            grid.append((table, by_source(figures(data, table))))
    say(f"\nweights chosen on the other sources ({len(grid)} tables tried), and their figure on the one left out")
    shipped = by_source(figures(data, INDEX_WEIGHTS))
    classic_index = by_source(figures(data, DEFAULT_WEIGHTS))
    for source in SOURCES:
        table, found = max(grid, key=lambda pair: sum(value for name, value in pair[1].items() if name != source))
        told = f"classic {table['goal_drift']:g}, " + ", ".join(f"{name} {table[name]:.1f}" for name in NEW)
        others = f"(shipped {shipped[source]:.3f}, classic {classic_index[source]:.3f})"
        say(f"{source:<14} {found[source]:.3f} {others}: {told}")


def gains(data: Data) -> None:
    say("\ndefault index minus the best classic metric of that column, tasks resampled")
    for name, source, rows, figure in FIGURES:
        best = max(CLASSIC, key=lambda metric: figure(rows(data, {metric: 1.0})))
        ours, theirs = rows(data, INDEX_WEIGHTS), rows(data, {best: 1.0})
        low, high = paired(ours, theirs, figure, 200)
        gain = figure(ours) - figure(theirs)
        verdict = "" if low > 0 else "inside the noise" if high > 0 else "worse"
        say(f"{source:<14} {name:<9} {gain:+.3f} [{low:+.3f}, {high:+.3f}] over {best} {verdict}")


def bands(data: Data) -> None:
    edges = BandEdges()
    say("\nthe index after each step of good runs: 5 %, median, 95 %; share of green, yellow, orange, red")
    for name, table in (("classic", DEFAULT_WEIGHTS), ("default", INDEX_WEIGHTS)):
        for source in SOURCES[:3]:
            good = [
                part
                for part in data[source]
                if part.run["labels"]["success"] and not part.run["labels"].get("attacked")
            ]
            risk = np.concatenate([part.risk(table) for part in good])
            index = 1 - risk[risk > SILENT]
            low, middle, high = np.percentile(index, [5, 50, 95])
            place = np.digitize(index, sorted(edges))
            shares = " ".join(f"{np.mean(place == at):.2f}" for at in (3, 2, 1, 0))
            say(f"{name:<8} {source:<14} {low:.2f} {middle:.2f} {high:.2f}   {shares}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache", type=Path)
    cache: Path | None = parser.parse_known_args()[0].cache
    data = {name: measured(name, cache) for name in SOURCES}
    say(f"{'highest risk of a run':<26}" + " ".join(f"{name:>8}" for name, *_ in FIGURES) + "   worst")
    for name in COLUMNS:
        line(name, figures(data, {name: 1.0}))
    line("classic index", figures(data, DEFAULT_WEIGHTS))
    line("default index", figures(data, INDEX_WEIGHTS))
    for name in NEW:
        line(f"  without {name}", figures(data, {**INDEX_WEIGHTS, name: 0.0}))
    line("  without the classic four", figures(data, {name: INDEX_WEIGHTS[name] for name in NEW}))
    gains(data)
    left_out(data)
    bands(data)


if __name__ == "__main__":
    main()
