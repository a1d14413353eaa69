"""Blame of a failed run: ``coherence.blame`` against people's labels (Who&When), and what each cue is worth.

Run as ``python tests/bench/blame.py``. No score knows where in a run a step stands, but the two that are named for it.
With ``--light``, which measures every step of the runs first (a minute), it shows what the light's signs and a prior by
place add to it: weights fitted on one source, judged on the other.
"""

from __future__ import annotations

import gzip
import json
import math
import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import light
import msgspec
import numpy as np

from coherence.core.scale import Scale
from coherence.detect.assumption import CODE_WEIGHT, FALLBACK_WEIGHT, HALF_NEW, NEW_WEIGHT, TOTAL, AssumedStep
from coherence.evaluation.blame import DECIDED, ORIGIN_WEIGHT, SHORT, TEMPERATURE, _judged, _origins, _text, blame
from coherence.providers.readers import read_transcripts
from coherence.providers.transcript import Transcript
from coherence.sensor.light import combine, shipped_scales

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


def difference(ours: Sequence[Hit], theirs: Sequence[Hit], at: int) -> str:
    """Return how much more often the first place is right, or the mean reciprocal rank, and its paired interval."""
    groups: dict[str, list[float]] = {}
    for one, other in zip(ours, theirs, strict=True):
        groups.setdefault(one.group, []).append(float(one[at]) - float(other[at]))
    names, dice = sorted(groups), random.Random(0)
    means = [np.mean([x for name in dice.choices(names, k=len(names)) for x in groups[name]]) for _ in range(DRAWS)]
    low, high = np.percentile(means, [2.5, 97.5])
    return f"{np.mean([x for found in groups.values() for x in found]):+.2f} ({low:+.2f} to {high:+.2f})"


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


Cues = dict[int, dict[str, float]]


def light_cues(runs: Sequence[Run]) -> list[Cues]:
    """Return what the light says of each step of the agents, in log odds, beside ``blame`` and the place."""
    rows = {run["id"]: run["rows"] for run in light.measured([DATA], embeds="minilm")}
    scale: Scale = next(scale for scale in shipped_scales().values() if scale.embedder)
    found: list[Cues] = []
    for run in runs:
        risks = [combine(signs, scale, []).risk for signs, _ in rows[run.transcript.id]]
        odds = [math.log(risk / (1 - risk)) if risk else scale.base for risk in risks]
        pulled = next((at for at in run.cues if odds[at] > scale.base + 1), None)
        own = {step.step: step.score for step in blame(run.transcript).steps}
        found.append(
            {
                at: {
                    "blame": own[at],
                    "place": math.log1p(place),
                    "step 1": float(at == 1),
                    "risk": odds[at],
                    "rise": odds[at] - (odds[at - 1] if at else scale.base),
                    "first pull": float(at == pulled),
                    "length": math.log1p(len(run.transcript.steps[at].content)),
                }
                for place, at in enumerate(run.cues)
            }
        )
    return found


def weights(runs: Sequence[Run], cues: Sequence[Cues], names: Sequence[str]) -> list[float]:
    """Fit the weights of cues by the likelihood of the labelled steps, with a ridge of one unit of their spread."""
    data = []
    for run, steps in zip(runs, cues, strict=True):
        if run.error_step in steps:
            values = np.array([[step[name] for name in names] for step in steps.values()])
            data.append((values - values.mean(0), list(steps).index(run.error_step)))
    spread = np.concatenate([values for values, _ in data]).std(0) + 1e-9
    found = np.zeros(len(names))
    for _ in range(50):
        gradient, bend = -2 * found, 2 * np.eye(len(names))
        for values, at in data:
            scaled = values / spread
            share = np.exp(scaled @ found - (scaled @ found).max())
            share /= share.sum()
            mean = share @ scaled
            gradient = gradient + scaled[at] - mean
            bend = bend + (scaled * share[:, None]).T @ scaled - np.outer(mean, mean)
        found = found + np.linalg.solve(bend, gradient)
    return [float(weight) for weight in found / spread]


def carried(runs: Sequence[Run]) -> None:
    """Show sums of cues whose weights were fitted on the other source."""
    cues = light_cues(runs)
    say("\nwith the light, weights of the other source", *("top-1", "MRR") * 2)
    for names in (
        ("blame",),
        ("blame", "place"),
        ("blame", "step 1"),
        ("blame", "risk"),
        ("blame", "rise"),
        ("blame", "first pull"),
        ("blame", "rise", "place"),
        ("blame", "first pull", "place"),
        ("risk", "place"),
        ("rise", "place"),
        ("length", "place"),
        ("blame", "length", "risk", "place"),
    ):
        cells: list[str] = []
        for source in SOURCES:
            pairs = list(zip(runs, cues, strict=True))
            rest = [(run, own) for run, own in pairs if run.source != source]
            fit = dict(zip(names, weights([r for r, _ in rest], [c for _, c in rest], names), strict=True))
            hits = [
                hit(run, {at: sum(fit[name] * step[name] for name in names) for at, step in own.items()})
                for run, own in pairs
                if run.source == source
            ]
            cells += (
                f"{np.mean([each.top for each in hits]):.3f}",
                f"{np.mean([each.reciprocal for each in hits]):.3f}",
            )
        say(" + ".join(names), *cells)


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


def against_place(runs: Sequence[Run]) -> None:
    """Show blame minus what place and length alone find, on the same draws of tasks."""
    others: dict[str, Callable[[Run], Scores]] = {
        "always step 1": lambda run: {at: float(at == 1) for at in run.cues},
        "usual position, by folds": lambda run: by_position(runs, run),
        "longest step": by_length,
    }
    for source in SOURCES:
        own = [run for run in runs if run.source == source]
        ours = [hit(run, without()(run)) for run in own]
        for name, method in others.items():
            theirs = [hit(run, method(run)) for run in own]
            told = ", ".join(f"{what} {difference(ours, theirs, at)}" for what, at in (("top-1", 1), ("MRR", 2)))
            print(f"{source}: blame minus {name}: {told}")


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
    say("")
    against_place(runs)
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
            (decided if share >= DECIDED and len(scores) <= SHORT else thin).append(hit(run, scores).top)
        tops = [np.mean([hit(r, without()(r)).top for r in held if r.source == source]) for source in SOURCES]
        say(f"fold {fold}", *(f"{top:.2f}" for top in tops), f"T {temperature:.2f}")
    say(f"shipped temperature {TEMPERATURE}; fitted on all {fitted(runs):.2f}")
    told = f"share {DECIDED:.0%} or more, {SHORT} steps of agents or fewer"
    say(f"{told}: first step right in {np.mean(decided):.0%} of {len(decided)} runs")
    say(f"others (undecided): {np.mean(thin):.0%} of {len(thin)} runs")
    short = [run for run in runs if len(run.cues) <= SHORT]
    say(f"always step 1 of the {len(short)} short ones: right in {np.mean([run.error_step == 1 for run in short]):.0%}")
    if "--light" in sys.argv[1:]:
        carried(runs)


if __name__ == "__main__":
    main()
