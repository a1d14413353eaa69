"""Fit the curves of a scale to steps that are known to be on their course or off it.

Each sign has a curve of hinges whose slopes are 0 or more. Labels move it by logistic regression from where it starts,
and a ridge holds it back.

References
----------
Beck, Teboulle (2009), A fast iterative shrinkage-thresholding algorithm, SIAM J. Imaging Sciences 2(1).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from coherence.core.decisions import DecisionKind
from coherence.core.readings import FrozenDict
from coherence.core.scale import Curve, Scale
from coherence.evaluation.ranking import Floats
from coherence.sensor.light import PRIOR

RIDGE, ROUNDS = 3e-3, 500

LOWEST = 0.05
"""Log odds that a curve must add at most to be kept."""


class Steps(NamedTuple):
    """Steps to fit to."""

    values: Floats
    """Of each sign, shape (steps, signs); NaN = unknown."""
    off: Floats
    """1 where a step is off its course, else 0."""
    weight: Floats
    """Weight of each; 0 or more."""


class Start(NamedTuple):
    """A curve before labels, and how strongly they are held back from moving it."""

    points: Floats
    """Values of its hinges, rising; fewer than two: it has none."""
    slopes: Floats
    """Log odds that each stretch between two points adds, 0 or more."""
    hold: float = RIDGE

    @classmethod
    def of(cls, curve: Curve, hold: float = RIDGE) -> Start:
        """Begin with a curve that is there."""
        return cls(np.array(curve.values), np.diff(curve.log_odds), hold)


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
    # Fitted to as many steps off course as their weights make, the risk is meant for the prior.
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
            # What is unknown adds nothing.
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
    # One over a bound of the curvature: that of the logistic loss is at most 1/4 a step.
    step = 1.0 / (0.25 * np.linalg.norm(hinges * np.sqrt(weight)[:, None], 2) ** 2 + hold[free].max() + 0.25)
    ahead, base_ahead, pace = slopes.copy(), base, 1.0
    for _ in range(ROUNDS):
        # Clipped where a chance is 0 or 1 in any case, before exp() overflows.
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
