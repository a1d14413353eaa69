"""A scale for any embedder, fitted on a user's own runs, and what it is worth on runs that it was not fitted on.

The signs that no embedder has a part in keep their shipped curves. Those that compare meanings begin with the curves of
the shipped embedder, made smaller where another one is louder in good steps. From
:data:`LABELS_NEEDED` runs on whose labels say from which step on they were off their course, labels move all curves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np

from coherence.core.config import MonitorConfig
from coherence.core.decisions import DecisionKind
from coherence.core.errors import CoherenceError
from coherence.core.readings import FrozenDict, number_of
from coherence.core.scale import Scale, scale_text
from coherence.evaluation.ranking import Floats, auroc
from coherence.evaluation.scale_fit import Start, Steps, curve_of, fit_scale, hinges_of, reliability
from coherence.monitor.monitor import Monitor
from coherence.monitor.steps import record_steps
from coherence.policy.course_finding import RULE as COURSE
from coherence.providers.transcript import Transcript
from coherence.report.score import STEP_TIMEOUT_S
from coherence.sensor.embedding_cache import EmbeddingCache
from coherence.sensor.light import BANDS, Asked, Light, asks_itself, combine, scale_for, shipped_scales

RUNS_NEEDED, STEPS_NEEDED = 20, 500
"""Good runs, and good steps in all runs, from which a scale is fitted."""

LABELS_NEEDED = 10
"""Runs that are off their course from a known step on, from which labels move the curves."""

SPAN = 14
"""Steps from the known one on that count as off course; what comes later may be on it again."""

BAD_SHARE = 0.2
"""Weight of the steps off course among all that are fitted to."""

RARE, TOGETHER = 0.99, 2.2
"""Share of good steps in which the curves of one embedder add, together, no more than so many log odds before labels:
those of the shipped one add 1.6 to 2.1 in the good runs of six sources (``tests/data/runs``)."""

UNKNOWN = 0.5
"""Share of good steps in which a sign that compares meanings may be unknown."""

RIDGE = 0.02
"""Strength with which labels are held back: more than for the shipped scale, since fewer speak."""

FOLDS = 5

AskedKinds = Sequence[tuple[str, DecisionKind]]

HeldOut: TypeAlias = Literal["task", "run"]
"""Unit that is left out whole when a scale is judged: all runs of a task, or each run for itself."""


class CalibrationError(CoherenceError):
    """Runs are too few, too short or too much alike for a scale."""


class ObservedStep(NamedTuple):
    """State of a monitor after a step."""

    signs: Mapping[str, float | None]
    """Sign -> value, higher = worse; ``None`` = unknown."""
    asked: AskedKinds
    """Rule -> what its active finding asked for."""


class ObservedRun(NamedTuple):
    """A run, step by step, and what its labels say."""

    steps: Sequence[ObservedStep]
    off_course: int | None = None
    """Step from which on it was off its course; ``None`` = it never was, or nobody says when."""
    went_wrong: bool = False
    group: str = ""
    """Its task, if it names one."""

    @property
    def fits(self) -> bool:
        """True if it is known which of its steps were on course; a failure that nobody has placed is not."""
        return self.off_course is not None or not self.went_wrong

    @property
    def end(self) -> int:
        """The number of steps that count."""
        return len(self.steps) if self.off_course is None else min(len(self.steps), self.off_course + SPAN)

    def is_off(self, step: int) -> bool:
        """Tell whether the run was off its course at a step."""
        return self.off_course is not None and step >= self.off_course


class Worth(msgspec.Struct, frozen=True):
    """Figures of a scale on runs. ``None`` = nothing can be said."""

    good_steps: float
    """Share of good steps that are orange or red."""
    good_runs: float
    """Share of good runs that ever are."""
    warned: int
    """Runs off their course that are, from the known step on."""
    auroc: float | None = None
    """Chance that a step off course has a higher risk than a good one."""
    calibration: float | None = None
    """Mean distance of the risk from the share of steps off course, at the shipped prior."""


class FittedScale(msgspec.Struct, frozen=True, kw_only=True):
    """A scale from own runs."""

    scale: Scale
    replaces: str
    """Name of the shipped scale that counts without it."""
    runs: int
    steps: int
    good_runs: int
    off_course: int
    """Runs that were off their course from a known step on."""
    left_out: int
    """Runs that failed, nobody says when."""
    labels_used: bool
    before: Worth
    """Of the scale that it replaces."""
    after: Worth
    """Each run by a scale that was fitted without its fold."""
    held_out: HeldOut
    """Unit that folds are made of."""


def observe(transcript: Transcript, cache: EmbeddingCache) -> list[ObservedStep]:
    """Return what a monitor with default settings knows after every step of a run."""
    found: list[ObservedStep] = []
    goal = transcript.goal if transcript.goal.strip() else None
    config = MonitorConfig(tick="manual", timeout_s=STEP_TIMEOUT_S)
    with Monitor(goal=goal, embedder=cache, config=config, source="replay") as m:
        for _ in record_steps(m, transcript):
            m.decide()
            result = m.result
            assert result is not None
            assert result.reading is not None
            with m._worker.settled() as pipeline:
                signs = pipeline.signs(result.reading, result.decision.findings)
            asked = [(each.rule, each.acts) for each in result.decision.findings if each.active]
            found.append(ObservedStep(signs, asked))
    return found


def observe_runs(
    transcripts: Sequence[Transcript], cache: EmbeddingCache, on_run: Callable[[int], object] | None = None
) -> list[ObservedRun]:
    """Return what a monitor knows of each run; ``on_run`` is called with the number of steps of each that is done."""
    found = []
    for run in transcripts:
        found.append(ObservedRun(observe(run, cache), run.off_course, bool(run.went_wrong), run.group))
        if on_run is not None:
            on_run(len(run.steps))
    return found


def calibrate(runs: Sequence[ObservedRun], fingerprint: str, label: str = "own") -> FittedScale:
    """Fit a scale on runs, and judge it on those that it was not fitted on.

    Parameters
    ----------
    runs : sequence of ObservedRun
        At least :data:`RUNS_NEEDED` good ones. A run without a label counts as good.
    fingerprint : str
        Of the embedder that they were observed with.
    label : str
        What the scale's name begins with; a digest of what it holds follows.

    Raises
    ------
    CalibrationError
        If the runs are too few or too short; the message says how many are needed.
    """
    fitting = [run for run in runs if run.fits]
    good = sum(run.off_course is None for run in fitting)
    off = len(fitting) - good
    good_steps = sum(not run.is_off(at) for run in fitting for at in range(run.end))
    if good < RUNS_NEEDED or good_steps < STEPS_NEEDED:
        raise CalibrationError(
            f"{number_of(good, 'good run')} with {number_of(good_steps, 'good step')}; a scale needs at least "
            f"{RUNS_NEEDED} good runs and {STEPS_NEEDED} good steps (a run without a label counts as good)"
        )
    labels = off >= LABELS_NEEDED
    scale = _fit(fitting, fingerprint, labels=labels)
    shipped = scale_for(fingerprint)
    held_out, folds = _folds(fitting, labels=labels)
    digest = blake2b(scale_text(scale).encode(), digest_size=4).hexdigest()
    return FittedScale(
        scale=msgspec.structs.replace(scale, name=f"{label}-{digest}"),
        replaces=shipped.name,
        runs=len(runs),
        steps=sum(len(run.steps) for run in runs),
        good_runs=good,
        off_course=off,
        left_out=len(runs) - len(fitting),
        labels_used=labels,
        before=judge(fitting, [lights(run, shipped) for run in fitting]),
        after=judge(fitting, _held_out(fitting, folds, fingerprint, labels=labels)),
        held_out=held_out,
    )


def lights(run: ObservedRun, scale: Scale) -> list[Light]:
    """Return the light after every step of a run by a scale."""
    return [
        combine(
            step.signs,
            scale,
            [  # the course is what another scale's light said
                Asked(rule, kind) for rule, kind in step.asked if rule != COURSE and asks_itself(rule, scale)
            ],
        )
        for step in run.steps
    ]


def judge(runs: Sequence[ObservedRun], judged: Sequence[Sequence[Light]]) -> Worth:
    """Say what the lights of runs are worth by their labels."""
    ever: list[bool] = []
    alarms: list[bool] = []
    warned = 0
    risks: list[tuple[float, bool]] = []
    for run, found in zip(runs, judged, strict=True):
        alarmed = [light.band in BANDS[2:] for light in found]
        alarms += [alarm for at, alarm in enumerate(alarmed[: run.end]) if not run.is_off(at)]
        if run.off_course is None:
            ever.append(any(alarmed))
        else:
            warned += any(alarmed[run.off_course : run.end])
        risks += [(light.risk, run.is_off(at)) for at, light in enumerate(found[: run.end]) if light.risk is not None]
    scores, off = np.array([risk for risk, _ in risks]), np.array([is_off for _, is_off in risks], bool)
    told = bool(off.any())
    return Worth(
        good_steps=round(float(np.mean(alarms)), 4),
        good_runs=round(float(np.mean(ever)), 4),
        warned=warned,
        auroc=round(float(auroc(scores, off)[0]), 4) if told else None,
        calibration=round(reliability(scores, off.astype(float)).error, 4) if told else None,
    )


def _folds(runs: Sequence[ObservedRun], *, labels: bool) -> tuple[HeldOut, list[set[int]]]:
    """Part runs into folds: by task, where runs name theirs and every fold leaves some to fit to; else run by run.

    Runs of one task are alike: judged by a scale that was fitted on its twins, a run looks better than a new task will.
    """
    tasks: dict[str | int, list[int]] = {}
    for at, run in enumerate(runs):
        tasks.setdefault(run.group or at, []).append(at)
    folds = _dealt(runs, list(tasks.values()))
    rest = [[run for at, run in enumerate(runs) if at not in fold] for fold in folds]
    fits = all(any(run.off_course is None for run in left) for left in rest)
    if labels:
        fits = fits and all(any(run.off_course is not None for run in left) for left in rest)
    if fits and any(run.group for run in runs):
        return "task", folds
    return "run", _dealt(runs, [[at] for at in range(len(runs))])


def _dealt(runs: Sequence[ObservedRun], parts: Sequence[Sequence[int]]) -> list[set[int]]:
    """Deal parts of the runs out to folds, in turn: those with most runs off course first, so that each has some."""

    def rank(part: Sequence[int]) -> tuple[int, int]:
        return -sum(runs[at].off_course is not None for at in part), -len(part)

    order = sorted(parts, key=rank)
    return [{at for part in order[fold::FOLDS] for at in part} for fold in range(min(FOLDS, len(order)))]


def _held_out(
    runs: Sequence[ObservedRun], folds: Sequence[set[int]], fingerprint: str, *, labels: bool
) -> list[list[Light]]:
    """Return the lights of every run by a scale that was fitted without its fold."""
    found: dict[int, list[Light]] = {}
    for test in folds:
        scale = _fit([run for at, run in enumerate(runs) if at not in test], fingerprint, labels=labels)
        found |= {at: lights(runs[at], scale) for at in test}
    return [found[at] for at in range(len(runs))]


def _fit(runs: Sequence[ObservedRun], fingerprint: str, *, labels: bool) -> Scale:
    """Return a scale without a name; without labels nothing but what is usual in good steps is learned."""
    shipped = scale_for(None)
    names = list(dict.fromkeys(name for scale in (shipped, *shipped_scales().values()) for name in scale.curves))
    steps = _steps(runs, names)
    starts = _starts(steps, names, shipped)
    if labels:
        return fit_scale(steps, starts, name="", embedder=fingerprint, asks=shipped.asks)
    fitted = {name: start for name, start in starts.items() if name not in shipped.curves}
    curves = {name: curve_of(start.points, start.slopes) for name, start in fitted.items()}
    told = {name: curve for name, curve in curves.items() if curve is not None}
    usual = sum(float(_gains(steps, names, name, start).mean()) for name, start in fitted.items())
    return Scale(
        name="",
        embedder=fingerprint,
        base=round(shipped.base - usual, 4),  # good steps keep their usual risk
        curves=FrozenDict({**shipped.curves, **told}),
        asks=shipped.asks,
    )


def _starts(steps: Steps, names: Sequence[str], shipped: Scale) -> dict[str, Start]:
    """Return the curves before labels: the shipped ones, those of another embedder made small where they are loud."""
    good = steps.off == 0.0
    found: dict[str, Start] = {}
    meanings = {name: curve for scale in shipped_scales().values() for name, curve in scale.curves.items()}
    total = np.zeros(int(good.sum()))
    for at, name in enumerate(names):
        if name in shipped.curves:
            found[name] = Start.of(shipped.curves[name], RIDGE)
            continue
        if np.isnan(steps.values[good, at]).mean() > UNKNOWN:
            raise CalibrationError(f"{name} is not known in most good steps: the runs have no goal, or are too short")
        found[name] = Start.of(meanings[name], RIDGE)
        total += _gains(steps, names, name, found[name])
    top = float(np.quantile(total, RARE))
    share = min(1.0, TOGETHER / top) if top > 0.0 else 1.0
    for name in set(names) - set(shipped.curves):
        found[name] = Start(found[name].points, found[name].slopes * share, RIDGE)
    return found


def _gains(steps: Steps, names: Sequence[str], name: str, start: Start) -> Floats:
    """Return the log odds that a sign's curve adds in the good steps."""
    good = steps.off == 0.0
    if not len(start.slopes):
        return np.zeros(int(good.sum()))
    at = names.index(name)
    gains: Floats = hinges_of(steps.values[good, at : at + 1], {name: start}) @ start.slopes
    return gains


def _steps(runs: Sequence[ObservedRun], names: Sequence[str]) -> Steps:
    """Return the steps of runs that count, both kinds with their share of the weight."""
    values: list[list[float]] = []
    off: list[float] = []
    for run in runs:
        for at in range(run.end):
            known = (run.steps[at].signs.get(name) for name in names)
            values.append([np.nan if value is None else value for value in known])
            off.append(float(run.is_off(at)))
    truth: Floats = np.array(off)
    bad, good = max(float(truth.sum()), 1.0), max(float((1.0 - truth).sum()), 1.0)
    weight = np.where(truth == 1.0, BAD_SHARE / bad, (1.0 - BAD_SHARE) / good)
    return Steps(np.array(values), truth, weight)
