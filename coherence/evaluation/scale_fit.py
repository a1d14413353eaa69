"""Fit the curves of a scale to steps that are known to be on their course or off it.

Each sign has a curve of hinges whose slopes are 0 or more. Before any label it has the slopes of surprise: ``STEEP``
times the fall of the log share of good steps that reach a value. Labels move it by logistic regression, and a ridge
holds it back. So a kind of trouble that no label speaks of is told by how seldom its signs are in good runs.

References
----------
Beck, Teboulle (2009), A fast iterative shrinkage-thresholding algorithm, SIAM J. Imaging Sciences 2(1).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from coherence.core.decisions import DecisionKind
from coherence.core.readings import FrozenDict
from coherence.core.scale import Curve, Scale
from coherence.evaluation.ranking import Flags, Floats
from coherence.sensor.light import PRIOR

SHARES = (0.5, 0.75, 0.9, 0.97, 0.99, 0.997, 0.9995)
"""Shares of good steps below the points of a curve."""

STEEP, RIDGE, ROUNDS = 0.7, 3e-3, 500

STATED = 1e3
"""Strength with which a curve is held that is not to be moved."""

FEWEST = 50
"""Good steps with a known value below which nothing is known of a sign."""

RAREST = 1e-4
"""Least share of good steps that is believed."""

SELDOM = 2e-4
"""The same for a sign with hinges of its own."""

LOWEST = 0.05
"""Log odds that a curve must add at most to be kept."""


class Steps(NamedTuple):
    """Steps to fit to."""

    values: Floats
    """Of each sign, shape (steps, signs); NaN = unknown."""
    off: Floats
    """1 where a step is off its course, else 0."""
    weight: Floats
    """What each counts; 0 or more."""


class Start(NamedTuple):
    """A curve before labels, and how strongly they are held back from moving it."""

    points: Floats
    """Where its hinges are, rising; fewer than two: it has none."""
    slopes: Floats
    """Log odds that each stretch between two points adds, 0 or more."""
    hold: float = RIDGE

    @classmethod
    def of(cls, curve: Curve, hold: float = RIDGE) -> Start:
        """Begin with a curve that is there."""
        return cls(np.array(curve.values), np.diff(curve.log_odds), hold)


def surprise(values: Floats, good: Flags, weight: Floats) -> Start:
    """Return a sign's curve before any label: the rarer a value is in good steps, the more it adds.

    Parameters
    ----------
    values : array of shape (steps,)
        Of the sign; NaN = unknown.
    good : array of shape (steps,)
        Whether each step is on its course.
    weight : array of shape (steps,)
        What each counts.

    Examples
    --------
    All reach 0, half of them 0.5, one in a hundred 0.8: the slopes are 0.7 log(2) and 0.7 log(50).

    >>> values = np.array([0.0] * 50 + [0.5] * 49 + [0.8])
    >>> found = surprise(values, np.ones(100, bool), np.ones(100))
    >>> found.points.tolist(), found.slopes.round(2).tolist()
    ([0.0, 0.5, 0.8], [0.49, 2.74])
    """
    known = good & ~np.isnan(values)
    if known.sum() < FEWEST:
        return Start(np.array([]), np.array([]))
    order = np.argsort(values[known])
    ranked, below = values[known][order], np.cumsum(weight[known][order])
    below = below / below[-1]
    places = [ranked[min(int(np.searchsorted(below, share)), len(ranked) - 1)] for share in SHARES]
    points = np.unique(np.array([*places, ranked[-1]]).round(3))
    if len(points) == 1:
        points = np.array([points[0], points[0] + max(0.25, (float(np.nanmax(values)) - points[0]) / 2)])
    reached = []
    for point in points:
        first = int(np.searchsorted(ranked, point - 1e-9))
        reached.append(max(1.0 - (below[first - 1] if first else 0.0), RAREST))
    return Start(points, np.maximum(np.diff(-STEEP * np.log(reached)), 0.0))


def surprise_at(points: Sequence[float], values: Floats, good: Flags, weight: Floats) -> Start:
    """Return the curve before any label of a sign whose values mean the same in every run: with hinges of its own.

    Parameters
    ----------
    points : sequence of float
        Where the hinges are, rising. Up to the first a value means nothing.
    values, good, weight
        As :func:`surprise` takes them.

    Examples
    --------
    One good step in a hundred reaches 0.6, none 0.8, which counts as one in 5,000.

    >>> values = np.array([0.0] * 99 + [0.7])
    >>> found = surprise_at((0.4, 0.6, 0.8), values, np.ones(100, bool), np.ones(100))
    >>> found.slopes.round(2).tolist()
    [3.22, 2.74]
    """
    known = good & ~np.isnan(values)
    total = weight[known].sum()
    reached = [
        max(float(weight[known & (values >= point - 1e-9)].sum() / total), SELDOM) if total else SELDOM
        for point in points[1:]
    ]
    return Start(np.array(points), np.diff([0.0, *(-STEEP * np.log(np.minimum.accumulate(reached)))]))


def fit_scale(
    steps: Steps,
    starts: Mapping[str, Start],
    *,
    name: str,
    embedder: str = "",
    asks: Mapping[str, DecisionKind] | None = None,
) -> Scale:
    """Return the scale whose curves tell steps off course from good ones, held back towards where they start.

    Parameters
    ----------
    steps : Steps
        Some of each kind.
    starts : mapping
        Sign -> where its curve starts, in the order of the columns of ``steps.values``.
    name, embedder, asks
        As a scale has them.
    """
    hinges = hinges_of(steps.values, starts)
    start = np.concatenate([each.slopes for each in starts.values()])
    hold = np.concatenate([np.full(len(each.slopes), each.hold) for each in starts.values()])
    slopes, base = descend(hinges, steps.off, steps.weight, start, hold)
    odds = float((steps.weight * steps.off).sum() / (steps.weight * (1 - steps.off)).sum())
    base += math.log(PRIOR / (1 - PRIOR)) - math.log(odds)
    curves: dict[str, Curve] = {}
    at = 0
    for sign, each in starts.items():
        curve = curve_of(each.points, slopes[at : at + len(each.slopes)])
        at += len(each.slopes)
        if curve is not None:
            curves[sign] = curve
    return Scale(
        name=name, embedder=embedder, base=round(float(base), 4), curves=FrozenDict(curves), asks=FrozenDict(asks or {})
    )


def curve_of(points: Floats, slopes: Floats) -> Curve | None:
    """Return the curve of hinges with slopes, ``None`` if it adds next to nothing."""
    if not len(slopes) or slopes.sum() < LOWEST:
        return None
    return Curve(tuple(points.round(4).tolist()), (0.0, *np.cumsum(slopes).round(3).tolist()))


def hinges_of(values: Floats, starts: Mapping[str, Start]) -> Floats:
    """Return how far up each stretch of each curve the steps are, in [0, 1], shape (steps, stretches)."""
    columns = []
    for at, start in enumerate(starts.values()):
        for low, high in pairwise(start.points):
            columns.append(np.nan_to_num(np.clip((values[:, at] - low) / (high - low), 0.0, 1.0)))
    return np.array(columns).T


def descend(hinges: Floats, off: Floats, weight: Floats, start: Floats, hold: Floats) -> tuple[Floats, float]:
    """Minimise the logistic loss by accelerated projected gradient; return slopes and intercept.

    Parameters
    ----------
    hinges : array of shape (steps, stretches)
        As :func:`hinges_of` returns them.
    off, weight : arrays of shape (steps,)
        As in :class:`Steps`.
    start, hold : arrays of shape (stretches,)
        Slopes to start from, and how strongly they are held there; from 1 on they do not move.
    """
    weight = weight / weight.sum()
    share = float((weight * off).sum())
    slopes, base = start.copy(), math.log(share / (1 - share)) - float((hinges.T @ weight) @ start)
    free = hold < 1.0
    step = 1.0 / (0.25 * np.linalg.norm(hinges * np.sqrt(weight)[:, None], 2) ** 2 + hold[free].max() + 0.25)
    ahead, base_ahead, pace = slopes.copy(), base, 1.0
    for _ in range(ROUNDS):
        chance = 1.0 / (1.0 + np.exp(-np.clip(hinges @ ahead + base_ahead, -30, 30)))
        wrong = weight * (chance - off)
        moved = np.where(free, np.maximum(ahead - step * (hinges.T @ wrong + hold * (ahead - start)), 0.0), start)
        base_moved = base_ahead - step * float(wrong.sum())
        following = (1.0 + math.sqrt(1.0 + 4.0 * pace * pace)) / 2.0
        ahead = moved + (pace - 1.0) / following * (moved - slopes)
        base_ahead = base_moved + (pace - 1.0) / following * (base_moved - base)
        slopes, base, pace = moved, base_moved, following
    return slopes, base


class Reliability(NamedTuple):
    """Distance of risks from the shares of steps off course, both weighted so that the prior share is off."""

    error: float
    """Mean distance over bins of equal count, in [0, 1]; 0 = a risk means what it says."""
    bins: tuple[tuple[float, float], ...]
    """Mean risk and share off course of each, rising."""


def reliability(risks: Floats, off: Floats, count: int = 15) -> Reliability:
    """Judge how well risks are calibrated.

    Examples
    --------
    >>> found = reliability(np.array([0.0, 0.0, 1.0]), np.array([0.0, 0.0, 1.0]), count=2)
    >>> found.error, found.bins
    (0.0, ((0.0, 0.0), (1.0, 1.0)))
    """
    order = np.lexsort((off, risks))
    risks, off = risks[order], off[order]
    weight = np.where(off > 0, PRIOR / max(off.sum(), 1), (1 - PRIOR) / max((1 - off).sum(), 1))
    weight = weight / weight.sum()
    error, bins = 0.0, []
    for part in np.array_split(np.arange(len(risks)), count):
        mass = weight[part].sum()
        if mass > 0:
            error += abs((weight[part] * (risks[part] - off[part])).sum())
            mean = (np.average(risks[part], weights=weight[part]), np.average(off[part], weights=weight[part]))
            bins.append((float(mean[0]), float(mean[1])))
    return Reliability(float(error), tuple(bins))
