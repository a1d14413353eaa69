"""Index, weights and bands."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.sensor.index import BandEdges, check_thresholds, check_weights, score

NAMES = ["a", "b", "c", "d"]
VALUES = st.dictionaries(st.sampled_from(NAMES), st.one_of(st.none(), st.floats(0, 1)), min_size=1)
WEIGHTS = st.fixed_dictionaries({name: st.just(0.0) | st.floats(1e-9, 100) for name in NAMES})
INVERTED = st.sets(st.sampled_from(NAMES))


@given(VALUES, WEIGHTS, INVERTED)
def test_the_index_stays_in_range_and_the_losses_add_up(
    values: dict[str, float | None], weights: dict[str, float], inverted: set[str]
) -> None:
    result = score(values, weights, inverted, "unknown")
    assert 0 <= result.index <= 1
    assert 0 <= result.coverage <= 1
    assert sum(result.losses.values()) == pytest.approx(1 - result.index, abs=1e-9)


@given(VALUES, WEIGHTS, INVERTED, st.floats(0.01, 100))
def test_score_only_the_ratio_of_weights_matters(
    values: dict[str, float | None], weights: dict[str, float], inverted: set[str], factor: float
) -> None:
    scaled = {name: weight * factor for name, weight in weights.items()}
    first, second = score(values, weights, inverted, "unknown"), score(values, scaled, inverted, "unknown")
    assert first.index == pytest.approx(second.index, abs=1e-9)
    assert first.coverage == pytest.approx(second.coverage, abs=1e-9)


@given(VALUES, WEIGHTS, INVERTED, st.sampled_from(NAMES), st.floats(0, 1))
def test_improving_a_metric_never_lowers_the_index(
    values: dict[str, float | None], weights: dict[str, float], inverted: set[str], name: str, better: float
) -> None:
    value = values.get(name)
    if value is None:
        return
    improved = min(value, better) if name in inverted else max(value, better)
    before = score(values, weights, inverted, "unknown").index
    after = score({**values, name: improved}, weights, inverted, "unknown").index
    assert after >= before - 1e-12


def test_coverage_is_the_known_share_of_the_weight() -> None:
    result = score({"a": 0.5, "b": None}, {"a": 3.0, "b": 1.0}, (), "unknown")
    assert (result.index, result.coverage) == (0.5, 0.75)  # 3 of 4


@pytest.mark.parametrize("weight", [5e-324, 1e308])
def test_score_extreme_weights_neither_vanish_nor_overflow(weight: float) -> None:
    assert score({"a": 0.5, "b": 1.0}, {"a": weight, "b": weight}, (), "unknown").index == 0.75


def test_nothing_known_gives_one_with_coverage_zero() -> None:
    result = score({"a": None}, {"a": 1.0}, (), "unknown")
    assert (result.index, result.coverage, result.losses) == (1.0, 0.0, {})


def test_in_the_classic_mode_unknown_counts_as_zero_but_coverage_still_tells() -> None:
    result = score({"a": None, "b": 1.0}, {"a": 1.0, "b": 1.0}, (), "zero")
    assert (result.index, result.coverage) == (0.5, 0.5)


def test_score_a_value_outside_the_range_is_clamped_before_it_is_weighted() -> None:
    # the classic formula gives (1.5 + 0) / 2 = 0.75 here
    assert score({"a": 1.5, "b": 0.0}, {"a": 1.0, "b": 1.0}, (), "unknown").index == 0.5


@pytest.mark.parametrize(
    ("weights", "error", "message"),
    [
        ({"gaol_drift": 1.0}, ValueError, "'gaol_drift' names no metric; metrics: goal_drift"),
        ({"goal_drift": -0.1}, ValueError, "'goal_drift' must be 0 or more"),
        ({"goal_drift": math.nan}, ValueError, "'goal_drift' must be 0 or more"),
        ({"goal_drift": math.inf}, ValueError, "at most 1e\\+09"),
        ({"goal_drift": "much"}, TypeError, "'goal_drift' must be a number"),
        ({"goal_drift": True}, TypeError, "'goal_drift' must be a number"),
    ],
)
def test_check_weights_a_bad_weight_is_named(weights: dict[str, float], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        check_weights(weights, ["goal_drift"])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, (0.8, 0.6, 0.4)),
        ({"green": 0.9}, (0.9, 0.6, 0.4)),
        ((0.9, 0.5, 0.1), (0.9, 0.5, 0.1)),
        (BandEdges(yellow=0.7), (0.8, 0.7, 0.4)),
    ],
)
def test_band_edges_thresholds_may_be_given_in_several_ways(given: object, expected: tuple[float, ...]) -> None:
    assert check_thresholds(given) == expected  # type: ignore[arg-type]  # one of each accepted form


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ((0.4, 0.6, 0.8), ValueError, "must fall from green to orange"),
        ((0.8, 0.8, 0.4), ValueError, "must fall from green to orange"),
        ((1.2, 0.6, 0.4), ValueError, "within"),
        ((0.8, math.nan, 0.4), ValueError, "must fall"),
        ((0.8, 0.6), ValueError, "three numbers"),
        ({"gren": 0.9}, ValueError, "unknown band 'gren'"),
        ({"green": "high"}, TypeError, "green must be a number"),
    ],
)
def test_check_thresholds_bad_thresholds_are_named(given: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        check_thresholds(given)  # type: ignore[arg-type]  # wrong on purpose
