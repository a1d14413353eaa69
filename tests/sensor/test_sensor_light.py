"""The calibrated index of a sensor that only reads texts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from coherence import CoherenceSensor
from coherence.core.readings import Band, FrozenDict, Reading
from coherence.providers import HashingEmbedder, StaticState
from coherence.providers.minilm import MiniLMEmbedder
from coherence.sensor.light import Edges, sensor_scale_for
from coherence.sensor.sensor_light import FIRST, SensorLight

INVERTED = {"goal_drift", "contradiction_pressure", "semantic_diffusion"}
MINILM = MiniLMEmbedder.fingerprint


def light(fingerprint: str = MINILM, metrics: tuple[str, ...] = ("goal_drift",)) -> SensorLight:
    made = SensorLight(metrics, INVERTED, Edges())
    made.follow(fingerprint)
    return made


def reading(**metrics: float | None) -> Reading:
    return Reading(
        tick_seq=1, ts=0.0, metrics=FrozenDict(metrics), coherence_index=None, band=Band.UNKNOWN, coverage=0.0
    )


def bands(made: SensorLight, values: Sequence[float | None], name: str = "goal_drift") -> list[str]:
    return [str(made.lit(reading(**{name: value}), made.fingerprint).band) for value in values]


@pytest.mark.parametrize("level", [0.05, 0.5, 0.95])
def test_sensor_light_a_steady_level_is_green_wherever_it_lies(level: float) -> None:
    assert set(bands(light(), [level] * 30)) == {"green"}


def test_sensor_light_moving_away_from_the_start_leaves_green_and_is_the_cause() -> None:
    made = light()
    bands(made, [0.2] * 10)
    found = [made.lit(reading(goal_drift=0.9), MINILM) for _ in range(4)]
    assert found[-1].band != "green" and found[-1].cause == "goal_drift.change"
    assert found[-1].coherence_index == pytest.approx(1.0 - (found[-1].risk or 0.0), abs=1e-9)


def test_sensor_light_nothing_measured_is_unknown_and_not_learned() -> None:
    made = light()
    assert bands(made, [None] * 3) == ["unknown"] * 3
    assert bands(made, [0.9] * 3) == ["green"] * 3


def test_sensor_light_of_a_high_value_that_is_good_the_fall_counts() -> None:
    made = light(metrics=("memory_retention",))
    assert made.signs({"memory_retention": 0.9})["memory_retention.change"] == 0.0
    made.signs({"memory_retention": 0.9})
    # risks 0.1, 0.1, then 0.6: recent = 0.6 * 0.1 + 0.4 * 0.6 = 0.3, which is 0.2 above 0.1
    assert made.signs({"memory_retention": 0.4})["memory_retention.change"] == pytest.approx(0.2)


def test_sensor_light_another_embedder_is_calibrating_until_its_scatter_is_known() -> None:
    made = light("mine-v1")
    found = [made.lit(reading(goal_drift=0.3), "mine-v1") for _ in range(FIRST + 1)]
    assert [str(each.band) for each in found] == ["unknown"] * (FIRST - 1) + ["green"] * 2
    assert found[2].coherence_index is None and found[2].cause == "calibrating"
    assert found[2].unknown["coherence_index"].startswith(f"calibrating: 3 of {FIRST} first readings")
    assert "asks for" not in found[2].explain()
    assert "calibrating: 3 of 8 first readings; no scale was fitted for this embedder" in found[2].explain()
    for each in found:  # while it calibrates, and after
        assert "; scale minilm-sensor-1, fitted for another embedder and adjusted by this" in each.explain()


def test_sensor_light_changes_of_another_embedder_count_by_its_own_scatter() -> None:
    usual = sensor_scale_for(MINILM).scatter["goal_drift"]
    wide, narrow = light("mine-v1"), light("mine-v1")
    for at in range(FIRST):
        wide.signs({"goal_drift": 0.3 + 0.2 * (at % 2)})  # 0.1 from their mean, 0.4
        narrow.signs({"goal_drift": 0.3 + 0.04 * (at % 2)})  # 0.02 from 0.32
    far, near = wide.signs({"goal_drift": 0.8}), narrow.signs({"goal_drift": 0.8})
    assert near["goal_drift.change"] is not None and far["goal_drift.change"] is not None
    assert near["goal_drift.change"] > 3 * far["goal_drift.change"] > 0.0
    assert wide._size("goal_drift") == pytest.approx(usual / 0.1)
    assert narrow._size("goal_drift") == pytest.approx(usual / 0.02)


def test_sensor_light_another_model_begins_anew() -> None:
    made = light()
    bands(made, [0.2] * 10)
    assert made.lit(reading(goal_drift=0.9), "other-v2").cause == "calibrating"


def test_sensor_light_a_metric_of_ones_own_has_the_stated_curve() -> None:
    made = light(metrics=("goal_drift", "queue"))
    # not inverted: 0 is as bad as can be, which the default curve makes orange
    found = made.lit(reading(goal_drift=0.2, queue=0.0), MINILM)
    assert found.cause == "queue" and found.band in ("yellow", "orange")
    assert made.lit(reading(goal_drift=0.2, queue=0.9), MINILM).band == "green"


def sensor(**options: object) -> CoherenceSensor:
    state = StaticState(goals=["fix the login"], context=["reading login.py", "the test fails"])
    return CoherenceSensor(state, **{"embedder": HashingEmbedder(), **options})  # type: ignore[arg-type]


def test_sensor_light_the_first_reading_of_the_shipped_embedder_is_green() -> None:
    found = sensor(embedder=None, timeout_s=30).measure_sync()  # time to load the model
    assert (found.band, found.errors) == ("green", ())
    assert found.scale == "minilm-sensor-1"
    assert found.explain().split("\n")[0].endswith("; scale minilm-sensor-1")


def test_sensor_light_weights_ask_for_the_classic_index() -> None:
    assert sensor(weights={"goal_drift": 1.0}).measure_sync().scale == ""
    assert sensor(missing="zero").measure_sync().scale == ""
    assert sensor(index="classic").measure_sync().coherence_index is not None
    assert "; classic index: a weighted mean, without a scale" in sensor(index="classic").measure_sync().explain()
    assert sensor(index="classic").weights == dict.fromkeys(sensor().measure_sync().metrics, 0.25)
    assert sensor().weights == {}
    with pytest.raises(ValueError, match="belong to the classic index"):
        sensor(index="calibrated", weights={"goal_drift": 1.0})
    with pytest.raises(ValueError, match="index must be 'calibrated' or 'classic'"):
        sensor(index="best")
