"""Thresholds: by calls of a day, by words of a name, and by what a person has set."""

import math
from typing import Any

import msgspec
import pytest

from coherence.guard.frequency import (
    CRITICAL,
    HIGH,
    LOW,
    MEDIUM,
    AdaptiveThresholds,
    Override,
    Thresholds,
    as_thresholds,
)

PLAIN = AdaptiveThresholds()


@pytest.mark.parametrize(
    ("calls", "expected"), [(0, LOW), (2, LOW), (3, MEDIUM), (10, MEDIUM), (11, HIGH), (10**9, HIGH)]
)
def test_adaptive_thresholds_follow_the_calls_of_a_day(calls: int, expected: Thresholds) -> None:
    assert PLAIN.of("a", calls_24h=calls) == expected
    assert PLAIN.of("a", calls_24h=0, called_before=False) == MEDIUM


@pytest.mark.parametrize(
    ("agent", "critical"),
    [
        ("critical-x", True), ("PROD", True), ("eu_prod_2", True), ("PROD2", True), ("my production agent", True),
        ("a", False), ("", False), ("product-search", False), ("reproduce", False), ("monitoring", False),
        ("\ud800", False), ("x" * 10**6, False),
        ("x " * 248 + "prod", True), ("x " * 250 + "prod", False),  # the first 500 characters of a name are read
    ],
)  # fmt: skip
def test_an_agent_is_critical_by_a_whole_word_of_its_name(agent: str, critical: bool) -> None:
    assert PLAIN.of(agent, calls_24h=20) == (CRITICAL if critical else HIGH)


def test_an_override_takes_what_it_leaves_out_from_the_profile_in_force() -> None:
    thresholds = AdaptiveThresholds(
        {
            "support": Override(critical=True),
            "prod-x": Override(cooldown_h=1),
            "prod-eu": Override(critical=False),
            "busy": Override(window_h=10),
            "all": Override(failures=7, window_h=8, cooldown_h=0),
        }
    )
    assert thresholds.of("support", calls_24h=20) == CRITICAL
    assert thresholds.of("prod-x", calls_24h=20) == Thresholds(1, 24, 1)
    assert thresholds.of("prod-eu", calls_24h=20) == HIGH
    assert thresholds.of("busy", calls_24h=20) == Thresholds(5, 10, 3)
    assert thresholds.of("busy", calls_24h=1) == Thresholds(2, 10, 12)
    assert thresholds.of("all", calls_24h=1) == Thresholds(7, 8, 0)


@pytest.mark.parametrize(
    "fields",
    [
        {"failures": 0}, {"failures": 1001}, {"failures": 2.0}, {"failures": True}, {"window_h": 0}, {"window_h": 169},
        {"window_h": math.nan}, {"window_h": "24"}, {"cooldown_h": -1}, {"cooldown_h": math.inf}, {"critical": "false"},
    ],
)  # fmt: skip
def test_every_field_of_an_override_is_checked(fields: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError), match=next(iter(fields))):
        Override(**fields)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(fields, Override)
    with pytest.raises(TypeError, match="override of 'a'"):
        AdaptiveThresholds({"a": fields})  # type: ignore[dict-item]


@pytest.mark.parametrize("given", [{"a": 3}, 7, "a", [("a", Override())]])
def test_as_thresholds_takes_nothing_but_thresholds_and_overrides_by_agent(given: Any) -> None:
    assert as_thresholds(PLAIN) is PLAIN
    with pytest.raises(TypeError, match=r"must be.* Override"):
        as_thresholds(given)
