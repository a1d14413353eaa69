"""Fitting the weights of ``coherence/lessons/ranking.py``: what each may be, and two models of what is right.

No weight gets a sign against its feature's meaning. Both are fitted by projected gradient descent with Nesterov's
momentum, from zero, so that the same rows always give the same weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from coherence.lessons.ranking import Features

Row: TypeAlias = tuple[Features, bool]
"""A candidate's features, and whether it is right."""

_Floats = npt.NDArray[np.float64]

ANY, RISES, FALLS = (-np.inf, np.inf), (0.0, np.inf), (-np.inf, 0.0)
_NAMES = (RISES, RISES, ANY, ANY, FALLS, RISES, RISES, FALLS)
LIMITS = {
    "KIND": ((1.0, np.inf), (1.0, np.inf), RISES, RISES, RISES, RISES),
    "ORDER": _NAMES,
    "SURE": (*_NAMES, RISES),
    "PROSE": (RISES, RISES, RISES, RISES),
}
"""Between what each weight may be, without the bias. What is equal must count, even where the questions of the
evaluation set, mostly in other words, give that little to do."""

STEPS = 6_000


def logistic_regression(
    rows: Sequence[Row], limits: Sequence[tuple[float, float]], decay: float = 1e-4
) -> tuple[float, ...]:
    """Return bias and weights with which each row is right as often as its chance says."""
    given = np.array([[1.0, *features] for features, _ in rows])
    right = np.array([float(is_right) for _, is_right in rows])
    decays = np.array([0.0, *[decay] * len(limits)])

    def slope(weights: _Floats) -> _Floats:
        chance = 1.0 / (1.0 + np.exp(-np.clip(given @ weights, -30, 30)))
        found: _Floats = given.T @ (chance - right) / len(rows) + decays * weights
        return found

    return _descend(slope, [ANY, *limits], float(np.linalg.norm(given, 2)) ** 2 / (4 * len(rows)) + decay)


def conditional_logit(
    questions: Sequence[Sequence[Row]], limits: Sequence[tuple[float, float]], decay: float = 1e-3
) -> tuple[float, ...]:
    """Return weights with which a right row is likeliest to be chosen among those of its question.

    The chance of a row is the softmax of its weighted features within the question (McFadden 1974, Conditional logit
    analysis of qualitative choice behavior); of several right ones any will do, so that their chances add up.
    Questions of which no row or each is right say nothing.
    """
    telling = [rows for rows in questions if 0 < sum(right for _, right in rows) < len(rows)]
    count = len(telling)
    given = np.array([features for rows in telling for features, _ in rows])
    right = np.array([float(is_right) for rows in telling for _, is_right in rows])
    of = np.repeat(np.arange(count), [len(rows) for rows in telling])
    starts = np.searchsorted(of, np.arange(count))
    centred = given - (np.add.reduceat(given, starts) / np.bincount(of)[:, None])[of]

    def slope(weights: _Floats) -> _Floats:
        total = given @ weights
        each = np.exp(total - np.maximum.reduceat(total, starts)[of])
        chance = each / np.bincount(of, each)[of]
        share = each * right / np.bincount(of, each * right)[of]
        found: _Floats = given.T @ (chance - share) / count + decay * weights
        return found

    return _descend(slope, limits, float(np.linalg.norm(centred, 2)) ** 2 / (2 * count) + decay)


def _descend(
    slope: Callable[[_Floats], _Floats], limits: Sequence[tuple[float, float]], curvature: float
) -> tuple[float, ...]:
    """Return the weights at the bottom, within their limits; no direction is more curved than ``curvature``."""
    low, high = np.array(limits).T
    weights: _Floats = np.zeros(len(low))
    before = weights
    for step in range(STEPS):
        ahead = weights + step / (step + 3) * (weights - before)
        before, weights = weights, np.clip(ahead - slope(ahead) / curvature, low, high)
    return tuple(round(float(weight), 2) for weight in weights)
