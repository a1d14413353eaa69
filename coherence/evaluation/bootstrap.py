"""Confidence intervals of figures, by drawing tasks again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b

import msgspec
import numpy as np

from coherence.evaluation.ranking import Floats

DRAWS = 1000
"""Resamplings behind an interval."""

BLOCK = 100
"""Resamplings that are computed at once, which bounds the memory."""

FOLDS = 5


class Figure(msgspec.Struct, frozen=True):
    """A value and its 95 % interval; ``None`` where the labels, or one of the classes, are missing."""

    value: float | None
    low: float | None = None
    high: float | None = None


class Estimate(msgspec.Struct, frozen=True):
    """A value, and what it would have been with other tasks."""

    value: float
    draws: Floats

    def figure(self) -> Figure:
        """Return the value with the 2.5th and 97.5th percentile of the draws.

        There is no interval where fewer than half of the draws have a value.
        """
        if np.isnan(self.value):
            return Figure(None)
        known = self.draws[~np.isnan(self.draws)]
        if not len(known) or len(known) < len(self.draws) / 2:
            return Figure(self.value)
        low, high = np.percentile(known, [2.5, 97.5])
        return Figure(self.value, float(low), float(high))

    def minus(self, other: Estimate) -> Estimate:
        """Return the paired difference: both were computed on the same draws of tasks."""
        return Estimate(self.value - other.value, self.draws - other.draws)


class Resamples:
    """Draws of tasks, with replacement: as many as there are.

    Runs of one task are alike: drawing runs would call a figure surer than it is. Two systems judged with the same
    object are compared draw by draw.

    Parameters
    ----------
    groups : sequence of str
        The task of each run.
    draws : int
        Resamplings, 0 or more.
    seed : int
        Of the draws; the same seed and tasks give the same draws.

    Examples
    --------
    >>> runs = np.array([1.0, 0.0, 0.0])
    >>> tasks = Resamples(["a", "a", "b"], draws=1000)
    >>> tasks.estimate(["a", "a", "b"], lambda weights: (weights * runs).sum(axis=1) / weights.sum(axis=1)).figure()
    Figure(value=0.3333333333333333, low=0.0, high=0.5)

    References
    ----------
    B. Efron and R. Tibshirani, "An Introduction to the Bootstrap", 1993: the percentile interval.
    """

    def __init__(self, groups: Sequence[str], *, draws: int = DRAWS, seed: int = 0) -> None:
        self._place = {group: at for at, group in enumerate(sorted(set(groups)))}
        tasks = len(self._place)
        drawn = np.random.default_rng(seed).multinomial(
            # Of one task all draws are alike: an interval of no width would look sure.
            tasks,
            np.full(tasks, 1 / tasks),
            size=draws if tasks > 1 else 0,
        )
        self._counts = np.vstack([np.ones((1, tasks)), drawn.astype(np.float64)])  # row 0: what was seen

    @property
    def tasks(self) -> int:
        """The number of different tasks."""
        return len(self._place)

    def estimate(self, groups: Sequence[str], compute: Callable[[Floats], Floats]) -> Estimate:
        """Return what a function of the cases' weights gives, for what was seen and for every draw."""
        index = np.array([self._place[group] for group in groups], np.int64)
        parts = [compute(self._counts[at : at + BLOCK, index]) for at in range(0, len(self._counts), BLOCK)]
        values = np.concatenate(parts)
        return Estimate(float(values[0]), values[1:])


def folds_of(groups: Sequence[str], count: int = FOLDS) -> list[int]:
    """Return the fold of each case: all cases of a task in one, the tasks dealt out in an order that no name decides.

    Examples
    --------
    >>> folds_of(["a", "b", "a", "c"], 2)
    [0, 0, 0, 1]
    """
    tasks = sorted(set(groups), key=lambda group: (blake2b(group.encode("utf-8", "surrogatepass")).digest(), group))
    fold = {group: at % count for at, group in enumerate(tasks)}
    return [fold[group] for group in groups]
