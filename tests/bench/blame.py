"""Which step decided a failed run: ``coherence.blame`` against people's labels (Who&When), and what each cue is worth.

Run as ``python tests/bench/blame.py``. No score knows where in a run a step stands, but the two that are named for it.
"""

from __future__ import annotations

import gzip
import json
import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from coherence.detect.assumption import CODE_WEIGHT, FALLBACK_WEIGHT, HALF_NEW, NEW_WEIGHT, TOTAL, AssumedStep
from coherence.evaluation.blame import DECIDED, ORIGIN_WEIGHT, TEMPERATURE, _judged, _origins, _text, blame
from coherence.providers.readers import read_transcripts
from coherence.providers.transcript import Transcript

DATA = Path(__file__).parents[1] / "data" / "runs" / "whowhen.jsonl.gz"
SOURCES = ("whowhen_algorithm", "whowhen_handcrafted")
FOLDS, DRAWS = 5, 2_000
Scores = dict[int, float]


class Run(NamedTuple):
    source: str
    group: str
    transcript: Transcript
    error_step: int
    error_agent: str
    cues: dict[int, AssumedStep]
    origins: dict[int, float]


class Hit(NamedTuple):
    group: str
    top: float
    reciprocal: float
    agent: float


def load() -> list[Run]:
    with gzip.open(DATA, "rt", encoding="utf-8") as file:
        labelled = [json.loads(line) for line in file]
    runs: list[Run] = []
    for one, transcript in zip(labelled, read_transcripts(DATA), strict=True):
        texts = [_text(step) for step in transcript.steps]
        cues, origins = _judged(transcript, texts), _origins(transcript, texts)
        labels = one["labels"]
        runs.append(
            Run(one["source"], one["group"], transcript, labels["error_step"], labels["error_agent"], cues, origins)
        )
    return runs


def say(name: str, *cells: str) -> None:
    print(f"{name:<42}", *(f"{cell:>10}" for cell in cells))


def hit(run: Run, scores: Scores) -> Hit:
    """Judge one ranking; steps of equal score share a place."""
    highest = max(scores.values())
    best = [at for at, score in scores.items() if score == highest]
    agents = [run.transcript.steps[at].agent == run.error_agent for at in best]
    wanted = scores.get(run.error_step)
    if wanted is None:
        return Hit(run.group, 0.0, 0.0, float(np.mean(agents)))
    above = sum(score > wanted for score in scores.values())
    equal = sum(score == wanted for score in scores.values())
    top = (run.error_step in best) / len(best)
    return Hit(run.group, top, 1 / (1 + above + (equal - 1) / 2), float(np.mean(agents)))


def interval(hits: Sequence[Hit]) -> str:
    """Return the 95 % interval of the first place, tasks resampled."""
    groups: dict[str, list[float]] = {}
    for each in hits:
        groups.setdefault(each.group, []).append(each.top)
    names, dice = sorted(groups), random.Random(0)
    means = [np.mean([x for name in dice.choices(names, k=len(names)) for x in groups[name]]) for _ in range(DRAWS)]
    low, high = np.percentile(means, [2.5, 97.5])
    return f"{low:.2f}-{high:.2f}"


def fold_of(group: str) -> int:
    return int(group.split(":")[1][:6], 16) % FOLDS


def cue_score(
    step: AssumedStep,
    origin: float,
    *,
    fallback: float = 1.0,
    new: float = 1.0,
    code: float = 1.0,
    source: float = 1.0,
    briefs: bool = True,
) -> float:
    """Return the score with the weights of some cues changed."""
    if briefs and step.briefs:
        return ORIGIN_WEIGHT * source * origin
    count = step.fallbacks + step.works_around
    value = FALLBACK_WEIGHT * fallback * count / (count + 1) + NEW_WEIGHT * new * step.new / (step.new + HALF_NEW)
    return (value + CODE_WEIGHT * code * step.code) / TOTAL + ORIGIN_WEIGHT * source * origin


def without(**weights: Any) -> Callable[[Run], Scores]:
    return lambda run: {at: cue_score(step, run.origins.get(at, 0.0), **weights) for at, step in run.cues.items()}


def without_inability(run: Run) -> Scores:
    cues = {at: msgspec.structs.replace(step, unable=False) for at, step in run.cues.items()}
    return without()(run._replace(cues=cues))


def by_position(runs: Sequence[Run], run: Run) -> Scores:
    """Score a step by how often its index is the labelled one in the other folds of the same source."""
    others = [other for other in runs if other.source == run.source and fold_of(other.group) != fold_of(run.group)]
    indices = [other.error_step for other in others]
    return {at: (indices.count(at) + 0.5) / (len(indices) + 1) for at in run.cues}


def by_length(run: Run) -> Scores:
    return {at: float(len(run.transcript.steps[at].content)) for at in run.cues}


def likelihood(runs: Sequence[Run], temperature: float) -> float:
    total = 0.0
    for run in runs:
        scores = without()(run)
        if run.error_step in scores:
            highest = max(scores.values())
            whole = math.fsum(math.exp((score - highest) / temperature) for score in scores.values())
            total += (scores[run.error_step] - highest) / temperature - math.log(whole)
    return total


def fitted(runs: Sequence[Run]) -> float:
    return max((number / 100 for number in range(5, 61)), key=lambda temperature: likelihood(runs, temperature))


def table(runs: Sequence[Run], methods: dict[str, Callable[[Run], Scores]], *, fine: bool) -> None:
    heads = ("top-1", "95 %", "MRR", "agent")
    say("", *((*heads, *heads) if fine else ("top-1", "MRR") * 2))
    for name, method in methods.items():
        cells: list[str] = []
        for source in SOURCES:
            hits = [hit(run, method(run)) for run in runs if run.source == source]
            top, mrr, agent = (float(np.mean([each[at] for each in hits])) for at in (1, 2, 3))
            cells += (
                (f"{top:.3f}", interval(hits), f"{mrr:.3f}", f"{agent:.2f}") if fine else (f"{top:.3f}", f"{mrr:.3f}")
            )
        say(name, *cells)


def main() -> None:
    runs = load()
    counts = [sum(run.source == source for run in runs) for source in SOURCES]
    say(f"Who&When, development part: {counts[0]} algorithm-generated runs, then {counts[1]} hand-crafted ones")
    table(
        runs,
        {
            "random": lambda run: dict.fromkeys(run.cues, 0.0),
            "always step 1 (position)": lambda run: {at: float(at == 1) for at in run.cues},
            "usual position, by folds": lambda run: by_position(runs, run),
            "longest step": by_length,
            "unsupported_assumption (as it happens)": without(source=0.0),
            "blame (after the fact)": lambda run: {step.step: step.score for step in blame(run.transcript).steps},
        },
        fine=True,
    )
    say("\nblame without")
    table(
        runs,
        {
            "(nothing)": without(),
            "fallback phrases and inability": without(fallback=0.0),
            "inability": without_inability,
            "new material": without(new=0.0),
            "code": without(code=0.0),
            "origin of the stated answer": without(source=0.0),
            "hand-over of the task counts 0": without(briefs=False),
        },
        fine=False,
    )
    say("\nfolds by task: first place in each, temperature and verdicts of the other four")
    decided: list[float] = []
    thin: list[float] = []
    for fold in range(FOLDS):
        rest, held = [r for r in runs if fold_of(r.group) != fold], [r for r in runs if fold_of(r.group) == fold]
        temperature = fitted(rest)
        for run in held:
            scores = without()(run)
            highest = max(scores.values())
            share = 1 / math.fsum(math.exp((score - highest) / temperature) for score in scores.values())
            (decided if share >= DECIDED else thin).append(hit(run, scores).top)
        tops = [np.mean([hit(r, without()(r)).top for r in held if r.source == source]) for source in SOURCES]
        say(f"fold {fold}", *(f"{top:.2f}" for top in tops), f"T {temperature:.2f}")
    say(f"shipped temperature {TEMPERATURE}; fitted on all {fitted(runs):.2f}")
    say(f"share {DECIDED:.0%} or more: first step right in {np.mean(decided):.0%} of {len(decided)} runs")
    say(f"less (undecided): {np.mean(thin):.0%} of {len(thin)} runs")


if __name__ == "__main__":
    main()
