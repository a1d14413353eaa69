"""The figures, beside counting every pair by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.evaluation.ranking import (
    auroc,
    catching,
    equal_length,
    reciprocal_rank,
    share_reaching,
    steps_reaching,
    top_share,
)

Row = tuple[float, bool, int, int, int]
"""Score, bad, length, stratum, weight."""

ROWS = st.lists(
    st.tuples(
        st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 0.5000001, 3.0, 1e300]),
        st.booleans(),
        st.integers(1, 40),
        st.integers(0, 2),
        st.integers(0, 3),
    ),
    max_size=25,
)


def columns(rows: Sequence[Row]) -> tuple[np.ndarray, ...]:
    kinds = (float, bool, float, np.int64, float)
    return tuple(np.array([row[at] for row in rows], kind) for at, kind in enumerate(kinds))


def by_hand(rows: Sequence[Row], *, equal: bool = False) -> float:
    """Count every pair, as often as its weights say."""
    won = pairs = 0.0
    for score, _, length, stratum, weight in (row for row in rows if row[1]):
        for other, _, other_length, other_stratum, other_weight in (row for row in rows if not row[1]):
            near = abs(length - other_length) <= max(1, 0.1 * max(length, other_length))
            if stratum == other_stratum and (near or not equal):
                pairs += weight * other_weight
                won += weight * other_weight * (1.0 if score > other else 0.5 if score == other else 0.0)
    return won / pairs if pairs else float("nan")


@given(ROWS)
def test_the_auroc_is_the_share_of_pairs_won(rows: list[Row]) -> None:
    scores, bad, _, strata, weights = columns(rows)
    assert auroc(scores, bad, weights[None], strata) == pytest.approx(by_hand(rows), nan_ok=True)


@given(ROWS)
def test_equal_length_is_the_share_of_near_pairs_won(rows: list[Row]) -> None:
    scores, bad, lengths, strata, weights = columns(rows)
    found = equal_length(scores, bad, lengths, weights[None], strata)
    assert found == pytest.approx(by_hand(rows, equal=True), nan_ok=True)


@given(ROWS, st.integers(1, 5))
def test_equal_length_many_pairs_are_counted_in_pieces(rows: list[Row], size: int) -> None:
    scores, bad, lengths, _, _ = columns(rows)
    whole = equal_length(scores, bad, lengths)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("coherence.evaluation.ranking._CELLS", size)
        assert equal_length(scores, bad, lengths) == pytest.approx(whole, nan_ok=True)


@given(ROWS, st.sampled_from([0.1, 0.5, 0.8, 1.0]))
def test_catching_a_threshold_catches_enough_and_the_next_one_would_not(rows: list[Row], recall: float) -> None:
    scores, bad, _, _, weights = columns(rows)
    (threshold,) = catching(scores, bad, weights[None], recall)
    whole = weights[bad].sum()
    if not whole:
        assert np.isnan(threshold)
        return
    assert weights[bad & (scores >= threshold)].sum() >= recall * whole - 1e-9
    assert weights[bad & (scores > threshold)].sum() < recall * whole - 1e-9
    (share,) = share_reaching(scores[~bad], np.array([threshold]), weights[None][:, ~bad])
    good = weights[~bad].sum()
    expected = weights[~bad & (scores >= threshold)].sum() / good if good else float("nan")
    assert share == pytest.approx(expected, nan_ok=True)


def test_top_share_scores_that_are_all_equal_say_nothing() -> None:
    scores, bad, lengths = np.zeros(4), np.array([True, False, True, False]), np.full(4, 5.0)
    assert auroc(scores, bad).tolist() == [0.5]
    assert equal_length(scores, bad, lengths).tolist() == [0.5]
    assert share_reaching(scores[~bad], catching(scores, bad)).tolist() == [1.0]  # it would alarm always
    assert top_share(scores, 2) == 0.25
    assert reciprocal_rank(scores, 2) == 1 / 2.5


def test_equal_length_bounds() -> None:
    bad = np.array([True, False])
    for long, short, counts in ((2, 1, True), (3, 1, False), (20, 18, True), (21, 18, False)):
        # 20 and 18 differ by 2 = 10 % of 20; 21 and 18 by 3, more than 2.1; 2 and 1 by one step.
        found = equal_length(np.array([1.0, 0.0]), bad, np.array([long, short], float))
        assert np.isnan(found[0]) != counts


def test_steps_reaching_steps_of_good_runs_are_counted_by_run_and_by_weight() -> None:
    steps = [np.array([0.1, 0.9, -np.inf]), np.array([0.9])]
    # Once each: 2 of 4 steps. The first twice: 3 of 7.
    found = steps_reaching(steps, np.array([0.9, 0.9]), np.array([[1.0, 1.0], [2.0, 1.0]]))
    assert found.tolist() == pytest.approx([50.0, 300 / 7])
