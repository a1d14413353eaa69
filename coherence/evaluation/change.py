"""Change between two sets of runs, measure by measure, and what of it chance alone would do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np

from coherence.core.readings import Band, Counters, number_of
from coherence.evaluation.bootstrap import DRAWS, Estimate, Figure, Resamples
from coherence.providers.transcript import add_usage
from coherence.report.score import FROM_BEST, ScoredRun
from coherence.sensor.light import BANDS

LEAST_RUNS = 10
"""Runs of known value on each side from which on there is an interval. Of fewer, drawing them again understates what
chance does: it calls five runs worse than five others of their kind up to once in fifteen times, where once in forty is
meant; ten, up to once in eighteen."""

ROUNDING = 1e-9
"""Share of a value below which a difference is that of adding up in another order."""

UNFLAGGED = ("openai", "openai-responses", "sharegpt")
"""Formats whose results do not tell whether the call failed."""

WORSE_BY = ("share.warned", "mean_index")
"""Measures that decide whether a set of runs is worse."""

Better: TypeAlias = Literal["higher", "lower", ""]
"""Direction of a measure; empty: neither is better by itself."""

Kind: TypeAlias = Literal["share", "index", "count", "usd"]

ChangeVerdict: TypeAlias = Literal["better", "worse", "changed", "within chance", "not known"]
"""On the side after: beyond chance means that the 95 % interval of the difference does not hold 0."""


class _Measure(NamedTuple):
    key: str
    title: str
    kind: Kind
    better: Better
    of: Callable[[ScoredRun], float | None]


class Side(msgspec.Struct, frozen=True):
    """Mean of a measure over the runs of one side."""

    value: float | None
    """``None``: it is known of no run."""
    runs: int
    """Number of runs of which it is known."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One measure before and after."""

    key: str
    title: str
    kind: Kind
    better: Better
    before: Side
    after: Side
    difference: Figure
    """After minus before, without an interval where a side has fewer than :data:`LEAST_RUNS` runs."""
    verdict: ChangeVerdict


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that two sets of runs show."""

    before: int
    """Runs."""
    after: int
    changes: list[Change]
    notes: list[str]
    """Reasons to read it with care, in words."""
    draws: int
    """Resamplings behind each interval."""

    @property
    def worse(self) -> list[Change]:
        """The measures of :data:`WORSE_BY` that are worse beyond chance."""
        return [change for change in self.changes if change.key in WORSE_BY and change.verdict == "worse"]

    @property
    def undecided(self) -> list[Change]:
        """The measures of :data:`WORSE_BY` of which nothing can be said."""
        return [change for change in self.changes if change.key in WORSE_BY and change.verdict == "not known"]

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts, lists, numbers and strings, ready for JSON."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain | {"worse": [change.key for change in self.worse]}


def compare_runs(before: Sequence[ScoredRun], after: Sequence[ScoredRun], *, draws: int = DRAWS) -> Comparison:
    """Compare two sets of scored runs; the same runs give the same result.

    Each measure is a number of a run, and its mean over the runs of a side is compared. The interval of the difference
    comes from drawing the runs of each side again, each side by itself.

    Parameters
    ----------
    before, after : sequence of ScoredRun
        The runs, scored with the same settings.
    draws : int
        Resamplings behind each interval.
    """
    rules = sorted({rule for run in (*before, *after) for rule in _onsets(run)})
    found = [_change(measure, before, after, draws) for measure in (*_MEASURES, *map(_of_rule, rules), *_SPENT)]
    return Comparison(
        before=len(before), after=len(after), changes=found, notes=list(_notes(before, after)), draws=draws
    )


def _change(measure: _Measure, before: Sequence[ScoredRun], after: Sequence[ScoredRun], draws: int) -> Change:
    sides = [[value for run in side if (value := measure.of(run)) is not None] for side in (before, after)]
    old, new = (Side(fmean(values) if values else None, len(values)) for values in sides)
    difference = Figure(None)
    if old.value is not None and new.value is not None:
        difference = Figure(new.value - old.value)
        if min(old.runs, new.runs) >= LEAST_RUNS:
            # Seeds of their own: the sides are drawn independently of each other.
            drawn = [_estimate(values, draws, seed) for seed, values in enumerate(sides)]
            difference = drawn[1].minus(drawn[0]).figure()
    return Change(
        key=measure.key,
        title=measure.title,
        kind=measure.kind,
        better=measure.better,
        before=old,
        after=new,
        difference=difference,
        verdict=_verdict(difference, measure.better, ROUNDING * max(abs(old.value or 0.0), abs(new.value or 0.0))),
    )


def _estimate(values: Sequence[float], draws: int, seed: int) -> Estimate:
    known, runs = np.array(values), [f"{at:09}" for at in range(len(values))]
    resamples = Resamples(runs, draws=draws, seed=seed)
    return resamples.estimate(runs, lambda weights: (weights * known).sum(axis=1) / weights.sum(axis=1))


def _verdict(difference: Figure, better: Better, rounding: float) -> ChangeVerdict:
    if difference.low is None or difference.high is None:
        return "not known"
    if difference.low <= rounding and difference.high >= -rounding:
        return "within chance"
    if not better:
        return "changed"
    return "better" if (difference.low > 0) == (better == "higher") else "worse"


def _notes(before: Sequence[ScoredRun], after: Sequence[ScoredRun]) -> list[str]:
    notes = []
    if min(len(before), len(after)) < LEAST_RUNS:
        runs = f"{number_of(len(before), 'run')} before and {len(after):,} after"
        notes.append(f"{runs} are too few: a side needs {LEAST_RUNS} to tell a difference from chance")
    tasks = [{run.transcript.group for run in side if run.transcript.group} for side in (before, after)]
    if all(tasks) and tasks[0] != tasks[1]:
        notes.append("the two sides have different tasks, and what these change counts as a difference")
    scales = [{run.scale for run in side if run.scale is not None} for side in (before, after)]
    if all(scales) and scales[0] != scales[1]:
        notes.append("the two sides were measured by different scales, so that their indexes are hard to compare")
    return notes


def _worst(run: ScoredRun) -> Band | None:
    """Return the worst light of a run, ``None`` where nothing was ever known."""
    worst = max(run.lights, key=FROM_BEST.index, default=Band.UNKNOWN)
    return None if worst is Band.UNKNOWN else worst


def _share(key: str, title: str, better: Better, bands: Sequence[Band]) -> _Measure:
    """Return the share of runs whose worst light is one of some bands, of those with a light."""

    def of(run: ScoredRun) -> float | None:
        worst = _worst(run)
        return None if worst is None else float(worst in bands)

    return _Measure(f"share.{key}", title, "share", better, of)


def _mean_index(run: ScoredRun) -> float | None:
    known = [reading.coherence_index for reading in run.comparable if reading.coherence_index is not None]
    return fmean(known) if known else None


def _final_index(run: ScoredRun) -> float | None:
    return None if run.last is None else run.last.coherence_index


def _onsets(run: ScoredRun) -> Counter[str]:
    """Count how often each rule became active."""
    counts: Counter[str] = Counter()
    before: set[str] = set()
    for decision in run.decisions:
        active = {finding.rule for finding in decision.findings if finding.active}
        counts.update(active - before)
        before = active
    return counts


def _of_rule(rule: str) -> _Measure:
    def of(run: ScoredRun) -> float | None:
        return float(_onsets(run)[rule]) if run.decisions else None

    return _Measure(f"findings.{rule}", rule, "count", "lower", of)


def _findings(run: ScoredRun) -> float | None:
    return float(_onsets(run).total()) if run.decisions else None


def _usage(run: ScoredRun) -> Counters:
    total = Counters()
    for step in run.transcript.steps:
        if step.usage is not None:
            total = add_usage(total, step.usage)
    return total


def _tokens(run: ScoredRun) -> float | None:
    used = _usage(run)
    return None if used.tokens_in is None or used.tokens_out is None else float(used.tokens_in + used.tokens_out)


def _calls(run: ScoredRun) -> float:
    return float(sum(step.role == "tool" for step in run.transcript.steps))


def _failed(run: ScoredRun) -> float | None:
    if run.transcript.format in UNFLAGGED:
        return None
    return float(sum(step.role == "tool" and step.is_error for step in run.transcript.steps))


_SIDES: Mapping[Band, Better] = {Band.GREEN: "higher", Band.YELLOW: "", Band.ORANGE: "lower", Band.RED: "lower"}

_MEASURES = (
    *(_share(band.value, f"runs at worst {band.value}", _SIDES[band], [band]) for band in BANDS),
    _share("warned", "runs warned or blocked", "lower", [Band.ORANGE, Band.RED]),
    _Measure("share.unknown", "runs without a light", "share", "", lambda run: float(_worst(run) is None)),
    _Measure("mean_index", "mean index", "index", "higher", _mean_index),
    _Measure("final_index", "final index", "index", "higher", _final_index),
    _Measure("findings", "findings a run", "count", "lower", _findings),
)

_SPENT = (
    _Measure("cost_usd", "cost a run (USD)", "usd", "lower", lambda run: _usage(run).cost_usd),
    _Measure("tokens", "tokens a run", "count", "lower", _tokens),
    _Measure("calls", "calls a run", "count", "", _calls),
    _Measure("failed_calls", "failed calls a run", "count", "lower", _failed),
    _Measure("steps", "steps a run", "count", "", lambda run: float(len(run.transcript.steps))),
)
