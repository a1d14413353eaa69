"""Cases 1 to 5 of the classic pressure table (soma-ai 2026.4.30), digit by digit."""

from __future__ import annotations

import msgspec
import pytest

from coherence.baseline.appraiser import MIN_STD, SignalBaseline, aggregate, mode_of, sigmoid
from coherence.core.config import PressureConfig

CLASSIC = PressureConfig.classic()
FIVE = ("uncertainty", "drift", "error_rate", "cost", "token_usage")


@pytest.mark.parametrize(
    ("z", "expected"),
    [
        (-1.0, 0.0),
        (0.0, 0.0),
        (1e-9, 0.04742587322274345),  # 1 / (1 + e^3): it jumps at 0
        (0.5, 0.07585818002124355),
        (1.0, 0.11920292202211755),
        (2.0, 0.2689414213699951),
        (3.0, 0.5),
        (4.0, 0.7310585786300049),
        (5.0, 0.8807970779778823),
        (6.0, 0.9525741268224334),
        (6.0000001, 1.0),
    ],
)
def test_case_1_sigmoid(z: float, expected: float) -> None:
    assert sigmoid(z, CLASSIC.shift, CLASSIC.clamp) == expected


@pytest.mark.parametrize(
    ("value", "usual", "std", "expected"),
    [
        (0.5, 0.05, 0.1, 0.8175744761936437),  # z = 4.5
        (0.1, 0.05, 0.0, 0.3775406687981454),  # z = 2.5: the floor of the standard deviation is 0.02
        (0.05, 0.05, 0.1, 0.0),
    ],
)
def test_case_2_signal_pressure(value: float, usual: float, std: float, expected: float) -> None:
    assert sigmoid((value - usual) / max(std, MIN_STD), CLASSIC.shift, CLASSIC.clamp) == expected


@pytest.mark.parametrize(
    ("loud", "informational", "expected"),
    [
        ({"uncertainty": 1.0}, ("drift",), 0.5641509433962264),  # 0.7 * 2 / 5.3 + 0.3
        ({"drift": 1.0}, ("drift",), 0.0),
        ({"drift": 1.0}, (), 0.47746478873239434),  # 0.7 * 1.8 / 7.1 + 0.3
        ({"error_rate": 1.0}, ("drift",), 0.7),  # the floor 0.10 + 0.60
        ({"error_rate": 0.5}, ("drift",), 0.32499999999999996),  # 0.10 + 0.60 * 0.3 / 0.8
        ({"error_rate": 0.2}, ("drift",), 0.1),
        ({"error_rate": 0.19}, ("drift",), 0.09464150943396227),  # below 0.2 there is no floor
        (dict.fromkeys(FIVE, 0.5), (), 0.5),
        ({"burn_rate": 1.0}, ("drift",), 0.0),  # has no weight
    ],
)
def test_case_3_aggregate(loud: dict[str, float], informational: tuple[str, ...], expected: float) -> None:
    pressures = dict.fromkeys(FIVE, 0.0) | loud
    assert aggregate(pressures, CLASSIC, informational=informational) == expected


@pytest.mark.parametrize(
    ("pressure", "expected"),
    [(0.0, "observe"), (0.2499, "observe"), (0.25, "guide"), (0.5, "warn"), (0.75, "block"), (1.0, "block")],
)
def test_classic_constants_case_4_modes(pressure: float, expected: str) -> None:
    assert mode_of(pressure, CLASSIC) == expected
    assert mode_of(pressure) == expected  # the default thresholds are the same


def test_classic_constants_case_5_baseline() -> None:
    baseline = SignalBaseline()
    usual, std = [], []
    for sample in (0.5, 0.5, 0.1, 0.9, 0.3, 0.3):
        baseline.learn(sample, CLASSIC.alpha)
        usual.append(baseline.usual(CLASSIC.blend, CLASSIC.cold_mean["uncertainty"]))
        std.append(baseline.std)
    # first: 1/5 of 0.5 and 4/5 of what is expected of any agent, 0.05
    assert usual == [0.14, 0.23, 0.3008, 0.41204800000000014, 0.48635520000000015, 0.4714467840000002]
    assert std == [
        1e-9,
        1e-9,
        0.11313708498984762,
        0.16341946028548743,
        0.1668888572913123,
        0.16852893009309475,
    ]
    assert SignalBaseline().usual(CLASSIC.blend, CLASSIC.cold_mean["uncertainty"]) == 0.05
    assert SignalBaseline().std == 0.1


@pytest.mark.parametrize("pressure", [float("nan"), -0.1, 1.1, float("inf")])
def test_classic_constants_a_pressure_that_is_none_has_no_mode(pressure: float) -> None:
    with pytest.raises(ValueError, match="pressure must be in"):
        mode_of(pressure)


def test_classic_constants_nan_is_no_evidence_of_pressure() -> None:
    assert sigmoid(float("nan")) == 0.0
    assert sigmoid(float("inf")) == 1.0


def test_classic_constants_an_unknown_pressure_leaves_the_mean() -> None:
    # 0.7 * 1.5 / (1.5 + 1) + 0.3: drift is not known, so it has no say
    config = msgspec.structs.replace(PressureConfig(), error_share_floor=False)
    known = {"error_rate": 1.0, "repetition": 0.0, "drift": None}
    assert aggregate(known, config) == pytest.approx(0.72)
    assert aggregate({}) == aggregate({"drift": None}) == 0.0
