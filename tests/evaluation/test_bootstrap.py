"""Intervals come from tasks, not from runs."""

from __future__ import annotations

import numpy as np
import pytest

from coherence.evaluation.bootstrap import Estimate, Figure, Resamples, folds_of
from coherence.evaluation.ranking import Floats, mean


def share(values: list[float], groups: list[str], draws: int = 1000) -> Estimate:
    return Resamples(groups, draws=draws).estimate(groups, lambda weights: mean(np.array(values), weights))


def test_estimate_an_interval_is_that_of_tasks_however_often_each_was_run() -> None:
    few = share([1.0] * 5 + [0.0] * 5, [f"t{task}" for task in range(10)])
    repeated = share([1.0] * 50 + [0.0] * 50, [f"t{task // 10}" for task in range(100)])
    separate = share([1.0] * 50 + [0.0] * 50, [f"t{task}" for task in range(100)])
    assert few.value == repeated.value == separate.value == 0.5
    # The mean of ten coin flips has a deviation of 0.16, that of a hundred 0.05.
    assert (
        float(np.std(repeated.draws))
        == pytest.approx(float(np.std(few.draws)), rel=0.01)
        == pytest.approx(0.16, abs=0.01)
    )
    assert float(np.std(separate.draws)) == pytest.approx(0.05, abs=0.005)


def test_figure_the_interval_holds_the_truth_about_95_times_of_100() -> None:
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(80):
        figure = share(list(rng.normal(0.3, 1.0, 40)), [f"t{task}" for task in range(40)], draws=300).figure()
        assert figure.low is not None and figure.high is not None
        held += figure.low <= 0.3 <= figure.high
    assert held >= 68  # binomial, n 80, p 0.94 (a percentile interval of 40 is a little short), less 3 deviations of 2


def test_minus_a_paired_difference_is_surer_than_its_parts() -> None:
    groups = [f"t{task}" for task in range(30)]
    values = [task % 7 for task in range(30)]
    better = share([value + 1.0 for value in values], groups)
    worse = share([float(value) for value in values], groups)
    difference = better.minus(worse).figure()
    assert difference.low == pytest.approx(1.0) == difference.high  # each task is better by one


def test_figure_draws_without_a_value_are_left_out_and_too_many_of_them_leave_no_interval() -> None:
    def some(weights: Floats) -> Floats:
        return np.where(np.arange(len(weights)) % 3 == 0, np.nan, 1.0)

    def few(weights: Floats) -> Floats:
        return np.where(np.arange(len(weights)) == 0, 1.0, np.nan)

    assert Estimate(1.0, some(np.ones((99, 1)))).figure() == Figure(1.0, 1.0, 1.0)
    assert Estimate(1.0, few(np.ones((99, 1)))).figure() == Figure(1.0)
    assert Estimate(float("nan"), np.ones(9)).figure() == Figure(None)


def test_folds_of_folds_keep_tasks_together_and_are_even() -> None:
    groups = [f"t{run % 23}" for run in range(230)]
    folds = folds_of(groups)
    assert len({(group, fold) for group, fold in zip(groups, folds, strict=True)}) == 23
    assert sorted(len({g for g, at in zip(groups, folds, strict=True) if at == fold}) for fold in range(5)) == [
        4,
        4,
        5,
        5,
        5,
    ]
    assert folds_of(groups[::-1]) == folds[::-1]
