from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.baseline.appraiser import SignalBaseline


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_baseline_one_impossible_sample_does_not_poison_what_is_usual(bad: float) -> None:
    baseline = SignalBaseline()
    baseline.learn(bad, alpha=0.08)
    assert baseline.count == 0
    baseline.learn(0.3, alpha=0.08)
    baseline.learn(bad, alpha=0.08)
    assert (baseline.mean, baseline.variance, baseline.count) == (0.3, 0.0, 1)


@given(st.lists(st.floats(0, 1), min_size=1), st.floats(1e-6, 1))
def test_the_mean_stays_between_the_samples_and_the_variance_within_their_range(
    samples: list[float], alpha: float
) -> None:
    baseline = SignalBaseline()
    for sample in samples:
        baseline.learn(sample, alpha)
    assert min(samples) - 1e-12 <= baseline.mean <= max(samples) + 1e-12
    assert 0.0 <= baseline.variance <= (max(samples) - min(samples)) ** 2 + 1e-12


def test_baseline_without_an_expectation_the_mean_is_trusted_at_once() -> None:
    baseline = SignalBaseline()
    baseline.learn(0.7, alpha=0.08)
    assert baseline.usual(5, None) == 0.7
    assert baseline.usual(5, 0.2) == pytest.approx(0.3)  # 1/5 of 0.7 and 4/5 of 0.2
