"""Rows 23 to 28 of the classic table, through the sensor with ``missing="zero"``, to 1e-6; and what differs today."""

from __future__ import annotations

import pytest

from coherence import CoherenceSensor, Reading
from coherence.providers import StaticState
from coherence.testing import CountingEmbedder, TableEmbedder

TABLE = {"g": [1, 0], "c1": [1, 0], "c2": [1, 1], "c3": [0, 1], "m": [3, 4], "z": [0, 0]}
FOUR = ("goal_drift", "memory_retention", "contradiction_pressure", "semantic_diffusion")


class Budget:
    """A scalar at 0.9, high is bad."""

    name = "budget"
    inverted = True

    def compute(self) -> float:
        return 0.9


def read(context: list[str], memories: list[str], *, goals: tuple[str, ...] = ("g",), **options: object) -> Reading:
    state = StaticState(goals=goals, context=context, memories=memories)
    return CoherenceSensor(state, embedder=TableEmbedder(TABLE), missing="zero", **options).measure_sync()  # type: ignore[arg-type]


def values(reading: Reading) -> list[float | None]:
    return [reading.metrics[name] for name in FOUR]


def test_classic_rows_row_23_empty_lists_count_as_zero_and_nothing_is_embedded() -> None:
    embedder = CountingEmbedder(TableEmbedder(TABLE))
    reading = CoherenceSensor(StaticState(), embedder=embedder, missing="zero").measure_sync()
    # drift, contradiction and diffusion 0 are good, retention 0 is bad: 3/4
    assert (reading.coherence_index, reading.band, reading.coverage) == (0.75, "yellow", 0.0)
    assert embedder.texts == []


def test_metrics_row_24() -> None:
    reading = read(["c1"], ["m"])
    assert reading.metrics["goal_drift"] == pytest.approx(0, abs=1e-6)
    assert reading.metrics["memory_retention"] == pytest.approx(0.6, abs=1e-6)
    assert reading.coherence_index == pytest.approx(0.9, abs=1e-6)  # (1 + 0.6 + 1 + 1) / 4
    assert reading.band == "green"


def test_metrics_row_25() -> None:
    reading = read(["c1", "c2", "c3"], ["m"])
    expected = [0.43096440627115085, 0.6, 0.3333333333333333, 0.5285954792089683]
    assert values(reading) == pytest.approx(expected, abs=1e-6)
    assert reading.coherence_index == pytest.approx(0.5767766952966369, abs=1e-6)
    assert reading.band == "orange"


def test_metrics_row_26() -> None:
    reading = read(["c3"], [])
    assert reading.metrics["goal_drift"] == pytest.approx(1, abs=1e-6)
    assert reading.coherence_index == pytest.approx(0.5, abs=1e-6)
    assert reading.band == "orange"


def test_metrics_row_27_a_scalar_counts_only_with_a_weight() -> None:
    unweighted = read(["c1"], ["m"], scalar_metrics=[Budget()], weights=dict.fromkeys(FOUR, 0.25))
    assert unweighted.coherence_index == pytest.approx(0.9, abs=1e-6)
    assert unweighted.band == "green"
    assert unweighted.metrics["budget"] == 0.9
    # (1 + 0.6 + 1 + 1 + 0.1) / 5
    weighted = read(["c1"], ["m"], scalar_metrics=[Budget()], weights=dict.fromkeys((*FOUR, "budget"), 0.2))
    assert weighted.coherence_index == pytest.approx(0.74, abs=1e-6)
    assert weighted.band == "yellow"


def test_classic_rows_a_metric_passed_without_any_weights_gets_the_mean_weight() -> None:
    reading = read(["c1"], ["m"], scalar_metrics=[Budget()])
    assert reading.coherence_index == pytest.approx(0.74, abs=1e-6)  # as with .2 each


def test_classic_rows_row_28_weights_replace_the_defaults() -> None:
    reading = read(["c2"], ["m"], weights={"goal_drift": 1})
    assert reading.coherence_index == pytest.approx(0.7071067811865475, abs=1e-6)
    assert reading.band == "yellow"


def test_metrics_zero_vectors_count_as_cosine_zero_in_the_classic_mode_and_are_named() -> None:
    reading = read(["z", "z"], ["m"])
    assert values(reading)[0] == 1.0
    assert values(reading)[2:] == [1.0, 1.0]  # row 14
    assert [failure.kind for failure in reading.errors] == ["bad vector"]
    assert "zero vector" in reading.errors[0].message


def test_today_unknown_leaves_the_index_and_lowers_coverage() -> None:
    state = StaticState(goals=["g"], context=["c1"])
    reading = CoherenceSensor(state, embedder=TableEmbedder(TABLE), index="classic").measure_sync()
    assert dict(reading.metrics) == {
        "goal_drift": 0.0,
        "memory_retention": None,
        "contradiction_pressure": None,
        "semantic_diffusion": None,
    }
    assert (reading.coherence_index, reading.coverage) == (1.0, 0.25)
    assert reading.unknown == {
        "memory_retention": "no memories",
        "contradiction_pressure": "only one message in the context",
        "semantic_diffusion": "only one message in the context",
    }
    assert reading.errors == ()


def test_classic_rows_a_focused_agent_scores_higher_than_a_drifting_one() -> None:
    focused, drifting = read(["c1", "c1", "c2"], ["m"]), read(["c1", "c3", "c3"], ["m"])
    assert focused.coherence_index is not None and drifting.coherence_index is not None
    assert focused.coherence_index > drifting.coherence_index
