"""How much the choice of its cues flatters ``outcome_risk``: sums of up to three cues, chosen anew in each fold.

The pool holds what the shipped cues were chosen from; a fold's sum is chosen on the other four folds of tasks by its
AUROC at the end, twice its AUROC at equal length, and its AUROC at half of the run.
"""

from __future__ import annotations

import sys
from collections import Counter
from itertools import combinations, pairwise
from math import log, log1p
from typing import Any

import numpy as np
from ranks import Floats, Scored, auroc, equal_length, folded, folds, load

from coherence.detect.text_analysis import overlap, tokens

Steps = list[dict[str, Any]]


def cues_of(run: dict[str, Any], steps: Steps) -> dict[str, float]:
    """Return the cues of a run's beginning, each about 0 to 1, higher = worse."""
    cut = {**run, "steps": steps}
    state = next(reversed(list(folded(cut))), None)
    if state is None:
        return {}
    service = state.service.data
    said = [step.get("content") or "" for step in steps]
    asked = [text for text, step in zip(said, steps, strict=True) if step["role"] == "user"]
    words = [len(text.split()) for text in asked] or [0]
    tools = [call["name"] for step in steps for call in step.get("tool_calls") or []]
    reads = sum(name.startswith(("get", "search", "list", "calculate", "think")) for name in tools)
    handed = any("human" in name for name in tools)
    writes = len(tools) - reads - handed
    texts = [tokens(f"{step.get('content')} {step.get('tool_calls')} {step.get('tool_result')}") for step in steps]
    near = [max((overlap(text, other) for other in texts[:at]), default=0.0) for at, text in enumerate(texts)]
    turns = [tokens(text) for text in asked]
    repeats = [max(overlap(turn, other) for other in turns[:at]) for at, turn in enumerate(turns) if at]
    return {
        "asked": service.asked,
        "unrefused": service.unrefused,
        "searching": service.searching,
        "first turn": min(log1p(words[0]) / 4, 1),
        "mean turn": min(log1p(float(np.mean(words))) / 4, 1),
        "reads": reads / (reads + 4),
        "writes": writes / (writes + 2),
        "calls": min(log1p(len(tools)) / log(20), 1),
        "not handed over": 1.0 - handed,
        "same calls": 1.0 - len(Counter(tools)) / max(len(tools), 1),
        "errors": min(state.facts.errors / 4, 1),
        "old ground": float(np.mean(near)) / 0.6,
        "last near": near[-1],
        "user repeats": max(repeats, default=0.0),
        "switches": sum(one != other for one, other in pairwise(tools)) / max(len(tools), 1),
    }


def main() -> None:
    runs = load("tau_airline")
    full = [cues_of(run, run["steps"]) for run in runs]
    half = [cues_of(run, run["steps"][: len(run["steps"]) // 2]) for run in runs]
    tasks = [run["group"] for run in runs]
    sums = [names for count in (1, 2, 3) for names in combinations(full[0], count)]
    table = {names: tuple(_mean(cues, names) for cues in (full, half)) for names in sums}

    def rows(scores: Floats, taken: Any) -> list[Scored]:
        return [
            Scored(float(scores[at]), not runs[at]["labels"]["success"], len(runs[at]["steps"]), tasks[at])
            for at in np.flatnonzero(taken)
        ]

    def judged(names: tuple[str, ...], taken: Any) -> float:
        end, middle = table[names]
        return auroc(rows(end, taken)) + 2 * equal_length(rows(end, taken)) + auroc(rows(middle, taken))

    sys.stdout.write(f"{len(sums)} sums of {len(full[0])} cues, {len(runs)} runs, {len(set(tasks))} tasks\n")
    everything = np.full(len(runs), fill_value=True)
    for names in sorted(sums, key=lambda names: -judged(names, everything))[:5]:
        end, middle = (rows(scores, everything) for scores in table[names])
        told = f"{auroc(end):.3f}, equal length {equal_length(end):.3f}, half {auroc(middle):.3f}"
        sys.stdout.write(f"best in-sample: {told}: {' + '.join(names)}\n")
    for seed in range(4):
        fold, found, chosen = folds(tasks, seed), np.zeros((2, len(runs))), []
        for at in range(5):
            train, test = fold != at, fold == at
            names = max(sums, key=lambda names: judged(names, train))
            chosen.append(" + ".join(names))
            for row, scores in zip(found, table[names], strict=True):  # sums of other cues are compared by their ranks
                row[test] = [
                    np.mean(scores[train] < score) + np.mean(scores[train] == score) / 2 for score in scores[test]
                ]
        end, middle = (rows(scores, everything) for scores in found)
        told = f"{auroc(end):.3f}, equal length {equal_length(end):.3f}, half {auroc(middle):.3f}"
        sys.stdout.write(f"chosen in folds {seed}: {told}: {'; '.join(chosen)}\n")


def _mean(cues: list[dict[str, float]], names: tuple[str, ...]) -> Floats:
    return np.array([sum(found.get(name, 0.0) for name in names) / len(names) for found in cues])


if __name__ == "__main__":
    main()
