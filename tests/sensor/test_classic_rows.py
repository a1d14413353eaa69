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


@pytest.mark.parametrize(
    ("row", "context", "memories", "weights", "four", "index", "band"),
    [
        (24, ["c1"], ["m"], None, [0, 0.6, None, None], 0.9, "green"),  # (1 + 0.6 + 1 + 1) / 4
        (
            25,
            ["c1", "c2", "c3"],
            ["m"],
            None,
            [0.43096440627115085, 0.6, 0.3333333333333333, 0.5285954792089683],
            0.5767766952966369,
            "orange",
        ),
        (26, ["c3"], [], None, [1, None, None, None], 0.5, "orange"),
        (28, ["c2"], ["m"], {"goal_drift": 1}, [1 - 0.5**0.5, 0.6, None, None], 0.5**0.5, "yellow"),
    ],
)
def test_classic_rows_of_the_sensor_give_the_stated_values_index_and_band(
    row: int,
    context: list[str],
    memories: list[str],
    weights: dict[str, float] | None,
    four: list[float | None],
    index: float,
    band: str,
) -> None:
    reading = read(context, memories, weights=weights)
    assert values(reading) == pytest.approx(four, abs=1e-6)
    assert reading.coherence_index == pytest.approx(index, abs=1e-6)
    assert reading.band == band


def test_metrics_row_27_a_scalar_counts_only_with_a_weight() -> None:
    unweighted = read(["c1"], ["m"], scalar_metrics=[Budget()], weights=dict.fromkeys(FOUR, 0.25))
    assert unweighted.coherence_index == pytest.approx(0.9, abs=1e-6)
    assert unweighted.band == "green"
    assert unweighted.metrics["budget"] == 0.9
    # (1 + 0.6 + 1 + 1 + 0.1) / 5
    weighted = read(["c1"], ["m"], scalar_metrics=[Budget()], weights=dict.fromkeys((*FOUR, "budget"), 0.2))
    assert weighted.coherence_index == pytest.approx(0.74, abs=1e-6)
    assert weighted.band == "yellow"


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
