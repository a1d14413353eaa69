"""Ranking quality of scores, bad above good, for many weightings of the cases at once.

Every function takes ``weights`` of shape (rows, cases), one row a resampling (how often each case was drawn), and
returns one value a row; without it there is one row in which each case counts once. NaN = not defined, as where one of
the classes is empty. ``-inf`` is the score of a case about which nothing was said: below every other.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]
Ints: TypeAlias = npt.NDArray[np.int64]

RECALL = 0.8
"""Share of the bad that an alarm is asked to catch where false alarms are counted."""

NEARLY = 0.1
"""Two runs are of equal length if their steps differ by at most this share of the longer one, or by one."""

_CELLS = 4_000_000
"""Pairs that are compared at once."""


def auroc(scores: Floats, bad: Flags, weights: Floats | None = None, strata: Ints | None = None) -> Floats:
    """Return the share of pairs (bad, good) of which the bad one has the higher score; a tie counts one half.

    ``sum_b sum_g w_b w_g ([s_b > s_g] + [s_b = s_g] / 2) / sum_b sum_g w_b w_g``, in O(n log n). With ``strata``, only
    pairs of one stratum count. 0.5 = says nothing, 1 = perfect.

    Examples
    --------
    Of the pairs (3, 2), (3, 1), (1, 2), (1, 1) the bad one wins two and ties one: 2.5 / 4.

    >>> auroc(np.array([3.0, 1.0, 2.0, 1.0]), np.array([True, True, False, False]))
    array([0.625])

    References
    ----------
    J. A. Hanley and B. J. McNeil, "The meaning and use of the area under a ROC curve", Radiology, 1982.
    """
    weights = _ones(scores) if weights is None else weights
    if not len(scores):
        return np.full(len(weights), np.nan)
    strata = np.zeros(len(scores), np.int64) if strata is None else strata
    order = np.lexsort((scores, strata))
    scores, bad, strata = scores[order], bad[order], strata[order]
    turns = np.flatnonzero(np.diff(strata)) + 1
    ties = np.union1d(np.flatnonzero(scores[1:] != scores[:-1]) + 1, turns)
    stratum = np.concatenate([[0], turns])
    tie = np.concatenate([[0], ties, [len(scores)]])
    of_tie = np.searchsorted(tie, np.flatnonzero(bad), "right") - 1
    first, after = tie[of_tie], tie[of_tie + 1]
    base = stratum[np.searchsorted(stratum, first, "right") - 1]
    drawn = weights[:, order]
    good = np.zeros((len(weights), len(scores) + 1))
    np.cumsum(np.where(bad, 0.0, drawn), axis=1, out=good[:, 1:])
    won = (good[:, first] + good[:, after]) / 2 - good[:, base]
    bads = np.add.reduceat(np.where(bad, drawn, 0.0), stratum, axis=1)
    goods = np.add.reduceat(np.where(bad, 0.0, drawn), stratum, axis=1)
    return _ratio((drawn[:, bad] * won).sum(axis=1), (bads * goods).sum(axis=1))


def equal_length(
    scores: Floats, bad: Flags, lengths: Floats, weights: Floats | None = None, strata: Ints | None = None
) -> Floats:
    """Return the AUROC over pairs of (nearly) equal length alone.

    A pair counts if its lengths differ by at most ``max(1, 0.1 * longer)``. The highest of many values is high even
    where they mean nothing, so that a long run scores high by its length: this figure cannot be won so. O(bad * good).

    Examples
    --------
    Length as the score: over all pairs 1.0, over the one pair of equal length it says nothing.

    >>> lengths = np.array([30.0, 10.0, 9.0])
    >>> equal_length(lengths, np.array([True, True, False]), lengths)
    array([1.])
    >>> equal_length(np.array([30.0, 10.0, 10.0]), np.array([True, True, False]), np.array([30.0, 10.0, 10.0]))
    array([0.5])
    """
    weights = _ones(scores) if weights is None else weights
    strata = np.zeros(len(scores), np.int64) if strata is None else strata
    bads, goods = np.flatnonzero(bad), np.flatnonzero(~bad)
    won, all_pairs = np.zeros(len(weights)), np.zeros(len(weights))
    size = max(_CELLS // max(len(goods), 1), 1)
    for at in range(0, len(bads), size):
        part = bads[at : at + size]
        longer = np.maximum(lengths[part][:, None], lengths[goods])
        apart = np.abs(lengths[part][:, None] - lengths[goods])
        paired = (apart <= np.maximum(1.0, NEARLY * longer)) & (strata[part][:, None] == strata[goods])
        higher = (scores[part][:, None] > scores[goods]) + (scores[part][:, None] == scores[goods]) / 2
        won += np.einsum("rg,rg->r", weights[:, part] @ (paired * higher), weights[:, goods])
        all_pairs += np.einsum("rg,rg->r", weights[:, part] @ paired.astype(np.float64), weights[:, goods])
    return _ratio(won, all_pairs)


def catching(scores: Floats, bad: Flags, weights: Floats | None = None, recall: float = RECALL) -> Floats:
    """Return the highest threshold at which at least a share ``recall`` of the bad is caught (score >= threshold).

    Examples
    --------
    Four of five must be caught: the threshold is the fourth highest of the bad.

    >>> catching(np.array([5.0, 4.0, 3.0, 2.0, 1.0, 9.0]), np.array([True] * 5 + [False]))
    array([2.])
    """
    weights = _ones(scores) if weights is None else weights
    bads = np.flatnonzero(bad)
    if not len(bads):
        return np.full(len(weights), np.nan)
    bads = bads[np.argsort(-scores[bads], kind="stable")]
    caught = np.cumsum(weights[:, bads], axis=1)
    # A sum of weights may miss its share by a rounding.
    enough = caught >= recall * caught[:, -1:] - 1e-9
    return np.where(caught[:, -1] > 0, scores[bads][enough.argmax(axis=1)], np.nan)


def share_reaching(scores: Floats, thresholds: Floats, weights: Floats | None = None) -> Floats:
    """Return, for each row, the share of cases whose score is at least the row's threshold.

    Examples
    --------
    >>> share_reaching(np.array([1.0, 2.0, 2.0, 3.0]), np.array([2.0]))
    array([0.75])
    """
    weights = _ones(scores) if weights is None else weights
    order = np.argsort(scores, kind="stable")
    below = np.zeros((len(weights), len(scores) + 1))
    np.cumsum(weights[:, order], axis=1, out=below[:, 1:])
    at = np.searchsorted(scores[order], thresholds, "left")
    reaching = below[:, -1] - below[np.arange(len(weights)), at]
    return np.where(np.isnan(thresholds), np.nan, _ratio(reaching, below[:, -1]))


def steps_reaching(step_scores: list[Floats], thresholds: Floats, weights: Floats | None = None) -> Floats:
    """Return, for each row, how many of 100 steps have a score of at least the row's threshold.

    Parameters
    ----------
    step_scores : list of arrays
        One a run; every step counts, also one about which nothing was said (``-inf``).
    thresholds : array
        One a row.
    weights : array, optional
        Of the runs, shape (rows, runs).

    Examples
    --------
    >>> steps_reaching([np.array([0.1, 0.9]), np.array([0.2, 0.3])], np.array([0.9]))
    array([25.])
    """
    weights = np.ones((1, len(step_scores))) if weights is None else weights
    reaching, steps = np.zeros(len(weights)), np.zeros(len(weights))
    for run, scores in enumerate(step_scores):
        reaching += weights[:, run] * (len(scores) - np.searchsorted(np.sort(scores), thresholds, "left"))
        steps += weights[:, run] * len(scores)
    return np.where(np.isnan(thresholds), np.nan, 100.0 * _ratio(reaching, steps))


def mean(values: Floats, weights: Floats | None = None) -> Floats:
    """Return the weighted mean of one value a case.

    Examples
    --------
    >>> mean(np.array([1.0, 0.0]), np.array([[3.0, 1.0]]))
    array([0.75])
    """
    weights = _ones(values) if weights is None else weights
    return _ratio((weights * values).sum(axis=1), weights.sum(axis=1))


def top_share(scores: Floats, right: int) -> float:
    """Return the chance that the highest-scored step is the right one, ties broken at random.

    Examples
    --------
    >>> top_share(np.array([1.0, 3.0, 3.0]), 2)
    0.5
    """
    top = scores == scores.max()
    return float(top[right] / top.sum())


def reciprocal_rank(scores: Floats, right: int) -> float:
    """Return one over the rank of the right step; among ties, the middle rank.

    ``1 / (1 + [higher ones] + ([tied ones, itself included] - 1) / 2)``.

    Examples
    --------
    One is higher and one ties: ranks 2 and 3, the middle is 2.5.

    >>> reciprocal_rank(np.array([5.0, 3.0, 3.0, 1.0]), 1)
    0.4
    """
    higher, tied = (scores > scores[right]).sum(), (scores == scores[right]).sum()
    return float(1.0 / (1.0 + higher + (tied - 1) / 2))


def _ones(scores: Floats) -> Floats:
    return np.ones((1, len(scores)))


def _ratio(above: Floats, below: Floats) -> Floats:
    result: Floats = np.full(len(below), np.nan)
    np.divide(above, below, out=result, where=below > 0)
    return result
