"""Where a series of positive numbers is heading: exponential growth told from linear growth, with its uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import exp, log, sqrt
from typing import NamedTuple

WINDOW = 5
"""Newest values to which the trend is fitted."""

LEAST_BEFORE = 5
"""Values before these that are needed to know what is usual."""

T_95 = 2.353
"""Student's t for ``WINDOW - 2`` degrees of freedom: its 95 % quantile."""

LEAST_RISE = 1.6
"""Times by which the window must rise from end to end: what grows more slowly is no spiral, and costs no fit."""

STEADINESS = 0.6
"""Least share of the growth (of the logarithm) in the window's first half that its second half must show. Exponential
growth keeps its rate (share 1); linear growth from near zero, or after one leap, loses it."""

LARGEST = 700.0
"""Exponents above it are cut, so that a float can hold the result."""


class Forecast(NamedTuple):
    """What a series is expected to be some steps ahead."""

    usual: float
    """What it would be without the newest growth: the highest value before, or where their straight line leads."""
    lower: float
    """Lower end of the 90 % prediction interval: 5 % of new values would lie below."""
    upper: float
    growth: float
    """Factor a step."""


def forecast(values: Sequence[float], ahead: int) -> Forecast | None:
    """Return the exponential forecast of a series, ``None`` where it does not grow like that.

    ``log y = a + b t`` is fitted by least squares to the newest five values. The interval is that of a new observation,
    ``s t sqrt(1 + 1/n + (t0 - mean t)^2 / sum (t - mean t)^2)``. A series grows so if the newest value is higher than
    all before the window, the window rises by more than any five values before it did, and the rise does not slow
    down. What is usual comes from the values before the window, and follows their straight line (slope of Theil and
    Sen), because a context grows evenly by nature.

    Parameters
    ----------
    values : sequence of float
        Above 0, oldest first.
    ahead : int
        Steps ahead of the newest value.

    Examples
    --------
    >>> forecast([1000.0 + 200.0 * step for step in range(20)], 5) is None
    True
    >>> found = forecast([1000.0] * 8 + [1500.0, 2250.0, 3375.0, 5062.5], 5)
    >>> round(found.growth, 3), found.usual, round(found.lower)  # 1000 * 1.5 ** 9
    (1.5, 1000.0, 38443)

    References
    ----------
    N. R. Draper, H. Smith: Applied Regression Analysis, 3rd ed., Wiley 1998, ch. 3 (prediction of a new observation).
    P. K. Sen: Estimates of the regression coefficient based on Kendall's tau, JASA 63 (1968), 1379-1389.
    """
    if len(values) < WINDOW + LEAST_BEFORE or values[-1] < LEAST_RISE * values[-WINDOW]:
        return None
    before = values[:-WINDOW]
    if values[-1] <= max(before) or values[-1] / values[-WINDOW] <= _steepest(before):
        return None
    logs = [log(value) for value in values[-WINDOW:]]
    half = WINDOW // 2
    rises = [two - one for one, two in pairwise(logs)]
    if min(rises[1:]) <= 0.0 or sum(rises[half:]) < STEADINESS * sum(rises[:half]):
        return None
    mean, mean_t = sum(logs) / WINDOW, (WINDOW - 1) / 2.0
    times = [at - mean_t for at in range(WINDOW)]
    spread = sum(time * time for time in times)
    slope = sum(time * value for time, value in zip(times, logs, strict=True)) / spread
    rest = sum((value - mean - slope * time) ** 2 for time, value in zip(times, logs, strict=True))
    distance = mean_t + ahead
    middle = mean + slope * distance
    margin = T_95 * sqrt(rest / (WINDOW - 2) * (1.0 + 1.0 / WINDOW + distance * distance / spread))
    return Forecast(
        usual=usual_level(before, WINDOW + ahead),
        lower=exp(min(middle - margin, LARGEST)),
        upper=exp(min(middle + margin, LARGEST)),
        growth=exp(slope),
    )


def _steepest(values: Sequence[float]) -> float:
    """Return the largest factor from end to end of a window's length, 1 if there is no such length."""
    return max((late / early for early, late in zip(values, values[WINDOW - 1 :], strict=False)), default=1.0)


def usual_level(values: Sequence[float], ahead: int) -> float:
    """Return the highest of some values, or where their rising straight line leads so many steps ahead, if higher.

    Examples
    --------
    >>> usual_level([5.0, 5.0, 6.0], 10), usual_level([1.0, 2.0, 3.0], 10)
    (10.5, 13.0)
    """
    slopes = [
        (values[late] - values[early]) / (late - early) for late in range(1, len(values)) for early in range(late)
    ]
    line = median(values) + median(slopes) * ((len(values) - 1) / 2.0 + ahead) if slopes else 0.0
    return max(max(values), line)


def median(values: Sequence[float]) -> float:
    """Return the median of at least one value.

    Examples
    --------
    >>> median([3.0, 1.0]), median([5.0, 1.0, 2.0])
    (2.0, 2.0)
    """
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2.0
