"""The mean of bounded numbers by betting: evidence and interval stay valid however often one looks.

Somebody begins with 1 and bets, number after number, that the mean lies above ``m``. If it does not, the capital is a
nonnegative supermartingale and ever reaches ``1 / a`` with probability ``a`` at most (Ville's inequality). The values
of ``m`` against which the capital has reached that are excluded for good. The stake is spread over five fixed shares of
what can be lost, so every number counts from the first one on, no variance is estimated, and the capital falls as
``m`` rises, which makes what is left an interval.

References
----------
Waudby-Smith, Ramdas (2024), Estimating means of bounded random variables by betting, Journal of the Royal Statistical
Society B 86(1): hedged capital, and bets spread over a grid. Ville (1939), Étude critique de la notion de collectif.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SHARES = np.array([0.05, 0.15, 0.3, 0.6, 0.95])
"""Bets, as shares of the stake that the worst number would lose altogether: small ones find small effects."""

_SHARES = tuple(map(float, SHARES))

STEPS = 20
"""Halvings of [-1, 1] in search of a bound: it is exact to 2e-6, and off to the cautious side."""


MAX_EVIDENCE = 1e300
"""Evidence is not counted further than this."""


class Wager(msgspec.Struct):
    """A bet that goes on for ever, number by number, and notices what begins late.

    Money that was bet at once would be gone by the time something changes. So it is put in bit by bit: of a capital
    of 1, half before the first number, a sixth before the second, ``1 / (t (t + 1))`` before number t, each bit spread
    over :data:`SHARES`. What is kept and what is bet together are a nonnegative supermartingale that begins with 1.

    References
    ----------
    Shin, Ramdas, Rinaldo (2023), E-detectors: a nonparametric framework for sequential change detection: bets that
    begin at every time, here with weights that sum to 1, so that the probability of a false alarm stays bounded.

    Examples
    --------
    A coin that is known to show heads half of the time, and shows nothing else:

    >>> wager = Wager()
    >>> for _ in range(10):
    ...     wager.observe(1.0 / 0.5 - 1.0)
    >>> wager.count, round(wager.evidence, 1)
    (10, 115.7)
    """

    stakes: list[float] = msgspec.field(default_factory=lambda: [0.0] * len(SHARES))
    """Present value of the money bet with each share."""
    count: int = 0
    highest: float = 1.0
    """The highest capital so far."""

    def observe(self, gain: float) -> None:
        """Take in what a stake of 1 gains at the next number: -1 or more, on average 0 or less if there is nothing.

        For a number x in [0, 1] against a mean of ``m`` the gain is ``x / m - 1``.
        """
        self.count += 1
        new = 1.0 / (self.count * (self.count + 1) * len(self.stakes))
        self.stakes = [
            min((stake + new) * (1.0 + share * gain), MAX_EVIDENCE)
            for stake, share in zip(self.stakes, _SHARES, strict=True)
        ]
        self.highest = max(self.highest, 1.0 / (self.count + 1) + sum(self.stakes))

    @property
    def evidence(self) -> float:
        """The highest capital so far, 1 = none. Without any effect it ever reaches ``1 / a`` with probability ``a``."""
        return self.highest


def log_capital(numbers: Floats, mean: float) -> Floats:
    """Return the logarithm of the capital after each number, of who bets that their mean lies above ``mean``.

    Parameters
    ----------
    numbers : (n,) array
        In [-1, 1].
    mean : float
        Above -1, up to 1.

    Returns
    -------
    (n,) array
        For n numbers. It falls, or stays, as ``mean`` rises.

    Examples
    --------
    One number 1 against a mean of 0 wins each share of the stake: 1 + (0.05 + 0.15 + 0.3 + 0.6 + 0.95) / 5 = 1.41.

    >>> np.exp(log_capital(np.array([1.0]), 0.0)).round(2).tolist()
    [1.41]
    """
    gains = (numbers + 1.0) / (mean + 1.0) - 1.0
    logs = np.log1p(SHARES[:, None] * gains).cumsum(axis=1)
    # Taken out before exp(), which would overflow.
    best = logs.max(axis=0)
    total: Floats = best + np.log(np.exp(logs - best).mean(axis=0))
    return total


def first_crossing(numbers: Floats, mean: float, limit: float) -> int | None:
    """Return after how many numbers the capital against ``mean`` first reaches ``limit``; ``None`` = not yet.

    Examples
    --------
    >>> first_crossing(np.ones(20), 0.0, 40.0)
    8
    """
    reached = log_capital(numbers, mean) >= np.log(limit)
    return int(reached.argmax()) + 1 if reached.any() else None


def lower_bound(numbers: Floats, limit: float) -> float:
    """Return a value in [-1, 1] below which the mean is not: the capital against it has reached ``limit``.

    It never falls as numbers are added (a running intersection): what was excluded once stays excluded, so a bound
    that is 0 or more and a crossing against 0 are the same.

    Examples
    --------
    >>> round(lower_bound(np.ones(100), 40.0), 3)
    0.895
    >>> lower_bound(np.array([]), 40.0)
    -1.0
    """
    low, high = -1.0, 1.0
    for _ in range(STEPS if numbers.size else 0):
        middle = (low + high) / 2
        if log_capital(numbers, middle).max() >= np.log(limit):
            low = middle
        else:
            high = middle
    return low
