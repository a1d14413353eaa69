"""Thresholds of a stated budget: exact ranks, exact intervals, and coverage in simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.baseline.conformal import (
    conformal_threshold,
    least_runs,
    needed_runs,
    p_value,
)


@pytest.mark.parametrize(
    ("budget", "needed", "least"),
    [(0.05, 39, 19), (0.1, 19, 9), (0.01, 199, 99), (0.2, 9, 4), (0.5, 3, 1), (0.005, 399, 199), (0.03, 66, 33)],
)
def test_conformal_threshold_how_many_runs_a_budget_needs(budget: float, needed: int, least: int) -> None:
    """``needed``: the first n with floor((n + 1) a) = 2, so that one run may lie above; ``least``: with = 1."""
    assert (needed_runs(budget), least_runs(budget)) == (needed, least)
    values = [float(i) for i in range(1, needed + 1)]
    assert conformal_threshold(values, budget) == values[-2]
    assert conformal_threshold(values[:-1], budget) == values[-2], "the largest of one run fewer"
    assert conformal_threshold(values[:least], budget) == values[least - 1]
    assert conformal_threshold(values[: least - 1], budget) is None


@given(st.lists(st.floats(0, 1), min_size=39, max_size=200), st.floats(0.05, 0.5))
def test_conformal_threshold_no_more_of_all_runs_than_the_budget_lie_above_their_own_threshold(
    values: list[float], budget: float
) -> None:
    """Leaving out each run in turn is what exchangeability averages over: at most a share ``budget`` alarms."""
    alarms = 0
    for at, value in enumerate(values):
        threshold = conformal_threshold(sorted(values[:at] + values[at + 1 :]), budget)
        alarms += threshold is not None and value > threshold
    assert alarms <= budget * len(values) + 1e-6


def test_p_value_p_values_are_uniform_with_ties_and_independent() -> None:
    """Values of four kinds only; by the coin p-values are uniform all the same: mean 1/2, variance 1/12, no memory."""
    rng = np.random.default_rng(5)
    found = []
    for _ in range(400):
        values: list[float] = []
        row = []
        for value in rng.integers(0, 4, 30) / 4:
            row.append(p_value(float(value), sorted(values), float(rng.random())))
            values.append(float(value))
        found.append(row)
    shares = np.array(found)
    assert abs(shares.mean() - 0.5) < 4 / np.sqrt(12 * shares.size)
    assert abs(shares.var() - 1 / 12) < 0.003
    before, after = shares[:, :-1].ravel(), shares[:, 1:].ravel()
    assert abs(np.corrcoef(before, after)[0, 1]) < 4 / np.sqrt(before.size)
