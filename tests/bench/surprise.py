"""Curves of signs before any label: the rarer a value is in good steps, the more it adds.

The slopes are ``STEEP`` times the fall of the log share of good steps that reach a value. So a kind of trouble that no
label speaks of is told by how seldom its signs are in good runs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coherence.evaluation.ranking import Flags, Floats
from coherence.evaluation.scale_fit import Start

SHARES = (0.5, 0.75, 0.9, 0.97, 0.99, 0.997, 0.9995)
"""Shares of good steps below the points of a curve."""

STEEP = 0.7

STATED = 1e3
"""Strength with which a curve is held that is not to be moved."""

FEWEST = 50
"""Good steps with a known value below which nothing is known of a sign."""

RAREST = 1e-4
"""Least share of good steps that is believed."""

SELDOM = 2e-4
"""The same for a sign with hinges of its own."""


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
