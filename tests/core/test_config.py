from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coherence.core.config import Budget, MonitorConfig, PressureConfig, Price, Retention, disabled
from coherence.core.readings import FrozenDict
from coherence.core.scale import Curve, Scale, scale_text


def test_load_nothing_given_means_the_defaults() -> None:
    assert MonitorConfig.load(None) == MonitorConfig()
    config = MonitorConfig(window=5)
    assert MonitorConfig.load(config) is config


def test_retention_a_mapping_and_a_toml_file_are_as_good_as_code(tmp_path: Path) -> None:
    path = tmp_path / "coherence.toml"
    path.write_text(
        'tick = "event"\nwindow = 7\nweights = { goal_drift = 1.0 }\n'
        "[pressure]\nguide = 0.3\nstreak_floor = [0.1, 0.9]\n[pressure.weights]\nerror_rate = 2\n"
        '[budget]\ncalls = 9\n[prices."gpt-4o"]\ninput = 2.5\noutput = 10\n[retention]\nmax_events = 100\n'
    )
    mapping = {
        "tick": "event",
        "window": 7,
        "weights": {"goal_drift": 1.0},
        "pressure": {"guide": 0.3, "streak_floor": [0.1, 0.9], "weights": {"error_rate": 2}},
        "budget": {"calls": 9},
        "prices": {"gpt-4o": {"input": 2.5, "output": 10}},
        "retention": {"max_events": 100},
    }
    code = MonitorConfig(
        tick="event",
        window=7,
        weights={"goal_drift": 1.0},
        pressure=PressureConfig(guide=0.3, streak_floor=(0.1, 0.9), weights={"error_rate": 2}),  # type: ignore[arg-type]
        budget=Budget(calls=9),
        prices={"gpt-4o": Price(2.5, 10)},  # type: ignore[arg-type]
        retention=Retention(max_events=100),
    )
    assert MonitorConfig.load(path) == MonitorConfig.load(str(path)) == MonitorConfig.load(mapping) == code


def test_a_table_of_weights_replaces_all_of_them() -> None:
    config = MonitorConfig.load({"pressure": {"weights": {"cost": 1.0}}})
    assert config.pressure.weights == {"cost": 1.0}


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"windov": 3}, "windov"),
        ({"pressure": {"guid": 0.1}}, "guid"),
        ({"pressure": {"weights": {"eror_rate": 1.0}}}, "eror_rate"),
        ({"pressure": {"min_std": {"eror_rate": 0.1}}}, "eror_rate"),
        ({"budget": {"tokns": 1}}, "tokns"),
        ({"prices": {"gpt": {"inptu": 1, "input": 1, "output": 1}}}, "inptu"),
        ({"retention": {"max_event": 1}}, "max_event"),
        ({"window": "20"}, "window"),
        ({"window": 0}, "window"),
        ({"window": True}, "window"),
        ({"redact": "yes"}, "redact"),
        ({"tick": "sometimes"}, "tick"),
        ({"tick": 0.0}, "tick"),
        ({"bands": [0.8, 0.6]}, "bands"),
        ({"bands": [0.1, 0.5, 0.9]}, "bands"),
        ({"bands": [1.5, 0.6, 0.4]}, "bands"),
        ({"weights": {"goal_drift": "much"}}, "goal_drift"),
        ({"weights": {"goal_drift": -1}}, "goal_drift"),
        ({"weights": 3}, "weights"),
        ({"prices": {"gpt": {"input": 1}}}, "gpt"),
        ({"prices": {"gpt": {"input": -1, "output": 1}}}, "gpt"),
        ({"pressure": {"weights": {"drift": float("nan")}}}, "drift"),
        ({"pressure": {"alpha": 0}}, "alpha"),
        ({"pressure": {"min_std": {"drift": 0}}}, "drift"),
        ({"pressure": {"cold_mean": {"drift": 2}}}, "drift"),
        ({"pressure": {"guide": 0.9}}, "guide"),
        ({"pressure": {"streak_floor": [0.3, 0.2]}}, "streak_floor"),
        ({"pressure": {"repeat_floor": [1.5]}}, "repeat_floor"),
        ({"pressure": {"error_window": 31}}, "error_window"),
        ({"budget": {"tokens": 1.5}}, "tokens"),
        ({"budget": {"cost_usd": -1}}, "cost_usd"),
        ({"budget": {"cost_usd": float("inf")}}, "cost_usd"),
        ({"budget": {"wall_s": -0.5}}, "wall_s"),
        ({"budget": {"soft": 1.5}}, "soft"),
        ({"weights": {"goal_drift": 0.0}}, "no metric has a weight above 0"),
        ({"context_tokens": 0}, "context_tokens"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"missing": "maybe"}, "missing"),
        ({"output_format": "xml"}, "output_format"),
        ({"metrics": "one"}, "metrics"),
        ({"retention": {"max_age_s": 0}}, "max_age_s"),
    ],
    ids=str,
)
def test_load_what_is_wrong_is_named(given: dict[str, Any], named: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=named):
        MonitorConfig.load(given)


def test_load_a_bad_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"none\.toml.*path of a TOML file"):
        MonitorConfig.load(tmp_path / "none.toml")
    broken = tmp_path / "broken.toml"
    broken.write_text("window = = 3")
    with pytest.raises(ValueError, match=r"broken\.toml: not TOML"):
        MonitorConfig.load(broken)
    broken.write_text("window = 'x'")
    with pytest.raises(ValueError, match=r"broken\.toml.*window"):
        MonitorConfig.load(broken)


def test_load_a_scale_is_read_from_its_file_and_found_from_the_settings_file(tmp_path: Path) -> None:
    curves: FrozenDict[str, Curve] = FrozenDict(stall=Curve((0.0, 1.0), (0.0, 2.0)))
    scale = Scale(name="mine-1", embedder="e-1", base=-4.0, curves=curves)
    (tmp_path / "scale.json").write_text(scale_text(scale))
    (tmp_path / "settings.toml").write_text('scale = "scale.json"\nwindow = 5')
    path = tmp_path / "scale.json"
    expected = MonitorConfig(scale=scale, window=5)
    assert expected.given_scale == scale and MonitorConfig().given_scale is None
    assert MonitorConfig.load(tmp_path / "settings.toml") == expected
    assert MonitorConfig.load({"scale": path, "window": 5}) == MonitorConfig(scale=str(path), window=5) == expected
    assert MonitorConfig.load({"scale": scale}).scale == scale
    with pytest.raises(ValueError, match="leave out weights"):
        MonitorConfig(scale=scale, weights="classic")
    with pytest.raises(ValueError, match=r"gone\.json: No such file"):
        MonitorConfig.load({"scale": str(tmp_path / "gone.json")})
    (tmp_path / "settings.toml").write_text('scale = "gone.json"')
    with pytest.raises(ValueError, match=r"settings\.toml: .*gone\.json: No such file"):
        MonitorConfig.load(tmp_path / "settings.toml")


@pytest.mark.parametrize("given", [3, [("window", 3)], object])
def test_load_what_is_no_configuration_is_refused(given: Any) -> None:
    with pytest.raises(TypeError, match="config must be"):
        MonitorConfig.load(given)


@pytest.mark.parametrize(("value", "off"), [("1", True), ("yes", True), ("0", False), ("", False), ("off", False)])
def test_disabled_the_environment_switches_the_package_off(
    monkeypatch: pytest.MonkeyPatch, value: str, off: bool
) -> None:
    monkeypatch.setenv("COHERENCE_DISABLED", value)
    assert disabled() is off


def test_a_budget_lists_its_limits() -> None:
    assert Budget().limits() == {}
    assert Budget(tokens=0, wall_s=1.5).limits() == {"tokens": 0, "wall_s": 1.5}
    with pytest.raises(TypeError, match="budget calls"):
        Budget(calls=True)


def test_retention_takes_its_age_in_seconds_or_in_days() -> None:
    assert Retention(max_age_days=1.5).age_s == 129_600.0  # 1.5 times 86,400
    assert Retention(max_age_s=60.0).age_s == 60.0
    assert Retention(max_events=5).age_s is None
    with pytest.raises(ValueError, match="give max_age_s or max_age_days, not both"):
        Retention(max_age_s=60.0, max_age_days=1.0)
    with pytest.raises(ValueError, match="max_age_days"):
        Retention(max_age_days=0.0)
