"""A scale that has learned from an agent's labelled runs: the light follows labels, shrunk towards what is shipped.

Each sign's curve is multiplied by a weight that begins at 1; a metric that has no curve, such as one of somebody's own,
gets a straight one whose height begins at 0. Both are fitted by logistic regression on the highest values of each
labelled run, good and bad runs counting alike, with a ridge towards where they began; the level moves so far that a run
half-way between the good and the bad ones has the risk :data:`HALF_WAY`. They are used only if they
predict the labels of runs that they were not fitted on better than the shipped curves do, by two standard errors.

References
----------
Hoerl, Kennard (1970), Ridge regression: biased estimation for nonorthogonal problems, Technometrics 12(1).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from coherence.core.readings import CHANGE, FrozenDict
from coherence.core.scale import Curve, Scale
from coherence.sensor.light import DEFAULT_CURVE
from coherence.store.runs import StoredRun

NEEDED = 30
"""Good runs, and bad runs, from which a scale is learned."""

LIGHT = "light."
"""Prefix of a sign's name in the rows of runs, whose value is what its curve gave at most, by :data:`MOST`."""

MOST = 10.0
"""Log odds that count as 1 in the rows of runs."""

RIDGE = 2.0
"""Strength with which a weight is held where it began, in runs."""

LEAST, HIGHEST = 0.05, 6.0
"""Range of a weight; of a straight curve, the most log odds."""

HALF_WAY = 0.25
"""Risk at which as many bad as good labelled runs lie: in the middle of yellow."""

NARROWEST = 0.02
"""Span of a metric's values below which nothing is learned of it."""

FOLDS, ROUNDS = 5, 300

Array = npt.NDArray[np.float64]


class OwnScale(msgspec.Struct, frozen=True):
    """The lesson of an agent's labelled runs about the light; frozen for a session."""

    weights: FrozenDict[str, float] = FrozenDict()
    """Sign -> by what its shipped curve is multiplied."""
    curves: FrozenDict[str, Curve] = FrozenDict()
    """Metric -> curve, of those that have no shipped one."""
    shift: float = 0.0
    """Log odds that are added to the risk of a step without a sign."""
    good: int = 0
    bad: int = 0
    """Labelled runs that it was learned from."""
    shipped_loss: float = 0.0
    own_loss: float = 0.0
    """Mean logarithmic loss on held-out runs, of the shipped scale and of this one; 0.69 = knows nothing."""
    used: bool = False
    """True where it is better on held-out runs, and so in force."""

    def applied(self, scale: Scale) -> Scale:
        """Return a scale as labelled runs have changed it; the same where nothing is in force."""
        if not self.used:
            return scale
        curves = {
            name: Curve(curve.values, tuple(odds * self.weights.get(name, 1.0) for odds in curve.log_odds))
            for name, curve in scale.curves.items()
        }
        return msgspec.structs.replace(
            scale,
            name=f"{scale.name}+{self.good + self.bad} own runs",
            base=scale.base + self.shift,
            curves=FrozenDict({**curves, **self.curves}),
        )


def learn_own_scale(runs: Sequence[StoredRun], scale: Scale, versions: Mapping[str, str]) -> OwnScale:
    """Learn from an agent's labelled runs.

    Parameters
    ----------
    runs : sequence of StoredRun
        With the highest values of metrics and signs.
    scale : Scale
        The shipped one, with the default curves of metrics of somebody's own.
    versions : mapping
        Metric -> version of its values now; others do not count.

    Returns
    -------
    OwnScale
        ``used`` says whether it is better on runs that it was not fitted on. Without 30 good and 30 bad runs: nothing.
    """
    good = sum(run.good for run in runs)
    bad = len(runs) - good
    if min(good, bad) < NEEDED:
        return OwnScale(good=good, bad=bad)
    off = np.array([not run.good for run in runs], np.float64)
    signs = [
        name
        for name, curve in scale.curves.items()
        if curve != DEFAULT_CURVE and any(run.maxima.get((LIGHT + name, scale.name)) for run in runs)
    ]
    gains = [[MOST * run.maxima.get((LIGHT + name, scale.name), 0.0) for run in runs] for name in signs]
    straight, columns = _straight(runs, scale, versions, off)
    table = np.array([*gains, *columns], np.float64).reshape(len(signs) + len(straight), len(runs)).T
    start = np.array([1.0] * len(signs) + [0.0] * len(straight))
    least = np.array([LEAST] * len(signs) + [0.0] * len(straight))
    shipped, own = np.zeros(len(runs)), np.zeros(len(runs))
    # Each fold has its share of good and of bad runs; without dice, so that all processes learn the same.
    fold = np.zeros(len(runs), int)
    for kind in (0.0, 1.0):
        fold[off == kind] = np.arange((off == kind).sum()) % FOLDS
    for number in range(FOLDS):
        test, rest = fold == number, fold != number
        for losses, ridge in ((shipped, np.inf), (own, RIDGE)):
            weights, base = _fit(table[rest], off[rest], start, least, ridge)
            losses[test] = _losses(table[test] @ weights + base, off[test])
    better = shipped - own
    used = bool(better.mean() > 2.0 * better.std() / np.sqrt(len(runs)))
    weights, base = _fit(table, off, start, least, RIDGE)
    level = base + math.log(HALF_WAY / (1.0 - HALF_WAY))
    # Few runs hardly move the level from where it was shipped.
    shift = (level - scale.base) * len(runs) / (len(runs) + NEEDED)
    learned = dict(zip([*signs, *straight], weights.round(3).tolist(), strict=True))
    return OwnScale(
        weights=FrozenDict({name: learned[name] for name in signs}),
        curves=FrozenDict(
            {name: Curve(span, (0.0, learned[name])) for name, span in straight.items() if learned[name] >= LEAST}
        ),
        shift=round(shift, 3),
        good=good,
        bad=bad,
        shipped_loss=round(float(shipped.mean()), 4),
        own_loss=round(float(own.mean()), 4),
        used=used,
    )


def _straight(
    runs: Sequence[StoredRun], scale: Scale, versions: Mapping[str, str], off: Array
) -> tuple[dict[str, tuple[float, float]], list[Array]]:
    """Return metric -> where its straight curve begins and ends, and how far up each run is on it, in [0, 1]."""
    spans: dict[str, tuple[float, float]] = {}
    columns: list[Array] = []
    for name, version in versions.items():
        fitted = name + CHANGE in scale.curves or scale.curves.get(name, DEFAULT_CURVE) != DEFAULT_CURVE
        if fitted or name.startswith(LIGHT):
            continue
        values = np.array([run.maxima.get((name, version), np.nan) for run in runs])
        known = ~np.isnan(values)
        if (known & (off == 0.0)).sum() < NEEDED // 2 or (known & (off == 1.0)).sum() < NEEDED // 2:
            continue
        low = float(np.median(values[known & (off == 0.0)]))
        high = float(np.quantile(values[known], 0.95))
        if high - low >= NARROWEST:
            spans[name] = (round(low, 4), round(high, 4))
            columns.append(np.nan_to_num(np.clip((values - low) / (high - low), 0.0, 1.0)))
    return spans, columns


def _fit(table: Array, off: Array, start: Array, least: Array, ridge: float) -> tuple[Array, float]:
    """Return weights and intercept by projected gradient; an infinite ridge leaves the weights where they began."""
    share = np.where(off == 1.0, 0.5 / max(off.sum(), 1.0), 0.5 / max((1.0 - off).sum(), 1.0))
    middle = share @ table
    table = table - middle  # so that weights and intercept hardly pull at each other
    held = 0.0 if np.isinf(ridge) else ridge / len(off)
    # half of what each block alone would allow, since both move at once
    step = 0.5 / (0.25 * float(share @ (table**2).sum(axis=1)) + held + 1e-9)
    weights, base = start.copy(), 0.0
    for _ in range(ROUNDS):
        wrong = share * (1.0 / (1.0 + np.exp(-np.clip(table @ weights + base, -30.0, 30.0))) - off)
        base -= 2.0 * float(wrong.sum())
        if not np.isinf(ridge):
            weights = np.clip(weights - step * (table.T @ wrong + held * (weights - start)), least, HIGHEST)
    return weights, base - float(middle @ weights)


def _losses(odds: Array, off: Array) -> Array:
    odds = np.where(off == 1.0, odds, -odds)
    return np.logaddexp(0.0, -odds)


def gains_of(
    losses: Mapping[str, float], risk: float | None, scale: Scale, own: OwnScale, prior_odds: float
) -> dict[str, float]:
    """Return what each shipped curve gave at a reading, as rows of runs have it.

    Parameters
    ----------
    losses : mapping
        Sign -> its share of the risk.
    risk : float or None
        The reading's.
    scale : Scale
        The shipped one.
    own : OwnScale
        What was in force.
    prior_odds : float
        Logarithm of the odds of the expected share of off-course steps, by those of the shipped one.
    """
    if not risk or not losses:
        return {}
    total = math.log(risk / (1.0 - risk)) - scale.base - (own.shift if own.used else 0.0) - prior_odds
    found: dict[str, float] = {}
    for name, loss in losses.items():
        if name in scale.curves and name not in own.curves:
            gain = total * loss / risk / (own.weights.get(name, 1.0) if own.used else 1.0)
            found[LIGHT + name] = min(max(gain / MOST, 0.0), 1.0)
    return found
