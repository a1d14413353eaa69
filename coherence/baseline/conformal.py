"""Thresholds that hold a stated budget of false alarms, whatever the distribution, from finitely many runs.

If the runs so far and the next one are exchangeable, the next one's rank among all of them is uniform. So the k-th
smallest of n runs is exceeded by the next one with a probability of at most ``1 - k / (n + 1)``: nothing about the
shape of the values is assumed, and it holds for every n.

References
----------
Vovk, Gammerman, Shafer (2005), Algorithmic Learning in a Random World: conformal p-values, and their independence.
"""

from __future__ import annotations

import hashlib
import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

ROUNDING = 1e-9
"""A product such as 20 x 0.05 may come out a hair below its whole number."""


def needed_runs(budget: float) -> int:
    """Return the number of runs from which the threshold is no longer simply the largest of them.

    Examples
    --------
    >>> needed_runs(0.05), needed_runs(0.1), needed_runs(0.01)
    (39, 19, 199)
    """
    return math.ceil(2.0 / budget - ROUNDING) - 1


def least_runs(budget: float) -> int:
    """Return the number of runs below which no threshold holds the budget: 19 for 5 %, with the largest of them."""
    return math.ceil(1.0 / budget - ROUNDING) - 1


def conformal_threshold(maxima: Sequence[float], budget: float) -> float | None:
    r"""Return the :math:`\lceil (n + 1)(1 - a) \rceil`-th smallest of n run maxima; ``None``: too few of them.

    A run alarms if its maximum lies strictly above: P(a good run alarms) <= ``budget``, over the runs that set the
    threshold and the new one together.

    Parameters
    ----------
    maxima : sequence of float
        One number a good run, in rising order: the highest risk within it. Steps of one run are not exchangeable with
        those of another, so a run counts once.
    budget : float
        In (0, 1): share of good runs that may alarm.

    Examples
    --------
    >>> conformal_threshold([i / 100 for i in range(1, 40)], 0.05)
    0.38
    >>> conformal_threshold([0.1] * 18, 0.05) is None
    True
    """
    spare = math.floor((len(maxima) + 1) * budget + ROUNDING)  # runs that may lie above it, with the new one
    return maxima[-spare] if spare else None


def p_value(value: float, earlier: Sequence[float], coin: float) -> float:
    """Return the share of runs, this one included, that are at least as bad; of equal ones as many as the coin says.

    For exchangeable runs p-values are uniform and independent of each other, ties or not.

    Parameters
    ----------
    value : float
        The new run's maximum.
    earlier : sequence of float
        The maxima before it, in rising order.
    coin : float
        In [0, 1], drawn beforehand (:func:`draw_coin`).

    Examples
    --------
    >>> p_value(0.9, [0.1, 0.2, 0.3], coin=0.5), p_value(0.2, [0.2, 0.2, 0.3], coin=1.0)
    (0.125, 1.0)
    """
    first, last = bisect_left(earlier, value), bisect_right(earlier, value)
    worse, equal = len(earlier) - last, last - first + 1
    return (worse + coin * equal) / (len(earlier) + 1)


def draw_coin(*name: str) -> float:
    """Return a number in (0, 1) that looks random and is always the same for a name.

    Examples
    --------
    >>> round(draw_coin("main", "1"), 3), draw_coin("a", "bc") == draw_coin("ab", "c")
    (0.131, False)
    """
    text = "".join(f"{len(part)}:{part}" for part in name)
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).digest()
    return (int.from_bytes(digest) + 0.5) / 2**48
