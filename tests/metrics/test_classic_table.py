"""Rows 1 to 22 of the classic test table (interoception 0.1.0): pure functions to 1e-12, through the sensor to 1e-6.

Where a row shows a fault of the original (overflow, NaN) the right behaviour is asserted.
"""

from __future__ import annotations

import math

import pytest

from coherence.core.protocols import MetricFn
from coherence.metrics import (
    ContradictionPressure,
    GoalDrift,
    MemoryRetention,
    SemanticDiffusion,
    compute_contradiction_pressure,
    compute_goal_drift,
    compute_memory_retention,
    compute_semantic_diffusion,
)
from coherence.providers import StaticState
from coherence.sensor import CoherenceSensor, classify_band, compute_coherence_index

E1, E2, DIAGONAL, THREE_FOUR = [1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [3.0, 4.0]
BACK, ZERO = [-1.0, 0.0], [0.0, 0.0]

DRIFT = [
    pytest.param([E1], [E1], 0.0, id="1 same"),
    pytest.param([E1], [E2], 1.0, id="1 orthogonal"),
    pytest.param([E1], [BACK], 1.0, id="1 opposite: 2 clamped"),
    pytest.param([E1], [E1, BACK], 1.0, id="2"),  # mean of 1 and -1 is 0
    pytest.param([E1], [DIAGONAL], 0.29289321881345254, id="3"),  # 1 - 1/sqrt(2)
    pytest.param([E1, E2], [THREE_FOUR], 0.19999999999999996, id="4"),  # 1 - 4/5
    pytest.param([E1, E2], [THREE_FOUR, E1, ZERO], 0.4, id="5"),  # 1 - (0.8 + 1 + 0)/3
    pytest.param([ZERO], [E1], 1.0, id="6 zero goal"),
    pytest.param([E1], [[]], 1.0, id="6 empty vector"),
    pytest.param([[1e200, 0.0]], [[1e200, 0.0]], 0.0, id="7 overflows in the original"),
    pytest.param([[1e-200, 0.0]], [[1e-200, 0.0]], 0.0, id="7 underflows in the original"),
]
RETENTION = [
    pytest.param([E1, E2], [E1], 0.5, id="8"),
    pytest.param([E1, E2], [THREE_FOUR], 0.7, id="8b"),  # (0.6 + 0.8)/2
    pytest.param([E1], [BACK], 0.0, id="9: -1 clamped"),
    pytest.param([E1, E2], [E1, [-1.0, -1.0]], 0.5, id="9b"),  # (1 + 0)/2
]
CONTRADICTION = [
    pytest.param([E1, E2], 0.3, 1.0, id="10"),
    pytest.param([E1, E1, E2], 0.3, 0.6666666666666666, id="10b"),  # 2 of 3 pairs
    pytest.param([E1, DIAGONAL, E2], 0.3, 0.3333333333333333, id="11"),  # only the outer pair
    pytest.param([E1, [0.3, math.sqrt(0.91)]], 0.3, 0.0, id="12: strict"),
    pytest.param([THREE_FOUR, E1], 0.8, 1.0, id="13"),
    pytest.param([THREE_FOUR, E1], 0.6, 0.0, id="13b"),
    pytest.param([ZERO, ZERO], 0.3, 1.0, id="14"),
]
DIFFUSION = [
    pytest.param([ZERO, ZERO], 1.0, id="14"),
    pytest.param([E1, DIAGONAL, E2], 0.5285954792089683, id="15"),  # 1 - (2/sqrt(2) + 0)/3
    pytest.param([E1, THREE_FOUR], 0.4, id="15b"),
    pytest.param([E1, [5.0, 0.0]], 0.0, id="15c"),
    pytest.param([E1, BACK], 1.0, id="16: 2 clamped"),
]


@pytest.mark.parametrize(("goals", "context", "expected"), DRIFT)
def test_goal_drift(goals: list[list[float]], context: list[list[float]], expected: float) -> None:
    assert compute_goal_drift(goals, context) == pytest.approx(expected, abs=1e-12)
    assert through_the_sensor(GoalDrift(), goals=goals, context=context) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("goals", "memories", "expected"), RETENTION)
def test_memory_retention(goals: list[list[float]], memories: list[list[float]], expected: float) -> None:
    assert compute_memory_retention(goals, memories) == pytest.approx(expected, abs=1e-12)
    assert through_the_sensor(MemoryRetention(), goals=goals, memories=memories) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("context", "threshold", "expected"), CONTRADICTION)
def test_contradiction_pressure(context: list[list[float]], threshold: float, expected: float) -> None:
    assert compute_contradiction_pressure(context, threshold) == pytest.approx(expected, abs=1e-12)
    metric = ContradictionPressure(threshold)
    assert through_the_sensor(metric, context=context) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("context", "expected"), DIFFUSION)
def test_semantic_diffusion(context: list[list[float]], expected: float) -> None:
    assert compute_semantic_diffusion(context) == pytest.approx(expected, abs=1e-12)
    assert through_the_sensor(SemanticDiffusion(), context=context) == pytest.approx(expected, abs=1e-6)


class Given:
    """An embedder that returns for the text ``n`` the vector number ``n``, as it is."""

    dimensions = 2

    def __init__(self, vectors: list[list[float]]) -> None:
        self.vectors = vectors

    def embed(self, text: str) -> list[float]:
        return self.vectors[int(text)]

    def embed_batch(self, texts: list[str]) -> list[list[float]]:
        return [self.embed(text) for text in texts]


def through_the_sensor(
    metric: MetricFn,
    *,
    goals: list[list[float]] | None = None,
    context: list[list[float]] | None = None,
    memories: list[list[float]] | None = None,
) -> float | None:
    vectors: list[list[float]] = []
    texts: dict[str, list[str]] = {}
    for kind, rows in (("goals", goals), ("context", context), ("memories", memories)):
        texts[kind] = [str(len(vectors) + n) for n in range(len(rows or []))]
        vectors += rows or []
    sensor = CoherenceSensor(StaticState(**texts), embedder=Given(vectors), metrics=[metric], missing="zero")  # type: ignore[arg-type]  # the keys are its fields
    return sensor.measure_sync().metrics[metric.name]


FOUR = ("goal_drift", "memory_retention", "contradiction_pressure", "semantic_diffusion")
ROW_17 = dict(zip(FOUR, (0.2, 0.9, 0.1, 0.15), strict=True))


def test_classic_table_row_17_the_index_is_the_weighted_mean_with_polarity() -> None:
    # (0.8 + 0.9 + 0.9 + 0.85) / 4
    assert compute_coherence_index(ROW_17) == pytest.approx(0.8625, abs=1e-12)
    assert classify_band(compute_coherence_index(ROW_17)) == "green"


def test_classic_table_row_18_weights_are_normalised() -> None:
    # (4 * 0.8 + 3 * 0.9 + 2 * 0.9 + 1 * 0.85) / 10
    weights = dict(zip(FOUR, (4.0, 3.0, 2.0, 1.0), strict=True))
    assert compute_coherence_index(ROW_17, weights) == pytest.approx(0.855, abs=1e-12)


@pytest.mark.parametrize("weights", [{}, dict.fromkeys(FOUR, 0.0)])
def test_classic_table_row_19_without_weight_the_index_is_one(weights: dict[str, float]) -> None:
    assert compute_coherence_index(ROW_17, weights) == 1.0


def test_classic_table_row_20_a_custom_inverted_metric_counts_when_it_has_a_weight() -> None:
    values = dict(zip((*FOUR, "custom"), (0.0, 1.0, 0.0, 0.0, 0.4), strict=True))
    inverted = {"goal_drift", "contradiction_pressure", "semantic_diffusion", "custom"}
    # (1 + 1 + 1 + 1 + 0.6) / 5
    index = compute_coherence_index(values, dict.fromkeys(values, 0.25), inverted)
    assert index == pytest.approx(0.92, abs=1e-12)


def test_classic_table_row_21_nan_is_unknown_and_null_counts_as_zero_only_in_the_classic_mode() -> None:
    weights = {"a": 0.5, "b": 0.5}
    assert compute_coherence_index({"a": math.nan, "b": 1.0}, weights, ()) == 1.0
    assert compute_coherence_index({"a": None, "b": 1.0}, weights, ()) == 1.0
    assert compute_coherence_index({"a": None, "b": 1.0}, weights, (), "zero") == pytest.approx(0.5, abs=1e-12)


@pytest.mark.parametrize(
    ("index", "band"),
    [(0.8, "green"), (0.7999999, "yellow"), (0.6, "yellow"), (0.4, "orange"), (0.3999999, "red"), (0.0, "red")],
)
def test_classic_table_row_22_a_threshold_belongs_to_the_better_band(index: float, band: str) -> None:
    assert classify_band(index) == band


@pytest.mark.parametrize("index", [math.nan, -0.1, 1.1])
def test_classic_table_row_22_an_index_that_is_none_is_refused_not_called_red(index: float) -> None:
    with pytest.raises(ValueError, match="index must be in"):
        classify_band(index)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (compute_goal_drift, ([], [E1])),
        (compute_goal_drift, ([E1], [])),
        (compute_memory_retention, ([E1], [])),
        (compute_contradiction_pressure, ([E1],)),
        (compute_semantic_diffusion, ([],)),
    ],
)
def test_classic_table_what_cannot_be_measured_is_none_not_zero(
    function: object, arguments: tuple[object, ...]
) -> None:
    assert callable(function)
    assert function(*arguments) is None


@pytest.mark.parametrize("threshold", [1.1, -1.1, math.nan])
def test_classic_table_a_threshold_outside_the_cosines_is_refused(threshold: float) -> None:
    with pytest.raises(ValueError, match="threshold must be in"):
        ContradictionPressure(threshold)
    with pytest.raises(ValueError, match="threshold must be in"):
        compute_contradiction_pressure([E1, E2], threshold)
