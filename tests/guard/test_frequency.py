import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.guard.frequency import CRITICAL, PROFILES, AdaptiveThresholds, Override, Thresholds, frequency

HIGH, MEDIUM, LOW = Thresholds(5, 48, 3), Thresholds(3, 24, 6), Thresholds(2, 72, 12)
PLAIN = AdaptiveThresholds()


def test_thresholds_profiles() -> None:
    assert PROFILES == {"high": HIGH, "medium": MEDIUM, "low": LOW}
    assert Thresholds(1, 24, 6) == CRITICAL


@pytest.mark.parametrize(
    ("calls", "expected"), [(1, "low"), (2, "low"), (3, "medium"), (10, "medium"), (11, "high"), (10**9, "high")]
)
def test_frequency_by_calls_of_a_day(calls: Any, expected: Any) -> None:
    assert frequency(calls) == expected


def test_frequency_an_agent_never_called_is_medium_and_one_that_rests_is_low() -> None:
    assert frequency(0, called_before=False) == "medium"
    assert frequency(0) == "low"
    assert PLAIN.of("a", calls_24h=0) == LOW


@pytest.mark.parametrize(
    "agent", ["critical-x", "PROD", "prod-eu", "eu_prod_2", "PROD2", "monitor-1", "my production agent"]
)
def test_frequency_critical_by_an_exact_word(agent: str) -> None:
    assert PLAIN.of(agent, calls_24h=20) == CRITICAL


@pytest.mark.parametrize(
    "agent",
    ["a", "", "product-search", "reproduce", "monitoring", "uncritical", "\ud800", "x" * 10**6],
)
def test_frequency_not_critical_by_a_part_of_a_word(agent: str) -> None:
    assert PLAIN.of(agent, calls_24h=20) == HIGH


def test_frequency_only_the_first_500_characters_of_a_name_are_read() -> None:
    assert PLAIN.of("x " * 248 + "prod", calls_24h=20) == CRITICAL
    assert PLAIN.of("x " * 250 + "prod", calls_24h=20) == HIGH


def test_an_override_takes_what_it_leaves_out_from_the_profile_in_force() -> None:
    thresholds = AdaptiveThresholds(
        {
            "support": Override(critical=True),
            "prod-x": Override(cooldown_h=1),
            "busy": Override(window_h=10),
            "all": Override(failures=7, window_h=8, cooldown_h=0),
        }
    )
    assert thresholds.of("support", calls_24h=20) == Thresholds(1, 24, 6)
    assert thresholds.of("prod-x", calls_24h=20) == Thresholds(1, 24, 1)
    assert thresholds.of("busy", calls_24h=20) == Thresholds(5, 10, 3)
    assert thresholds.of("busy", calls_24h=1) == Thresholds(2, 10, 12)
    assert thresholds.of("all", calls_24h=1) == Thresholds(7, 8, 0)
    assert thresholds.of("other", calls_24h=20) == HIGH


def test_an_override_can_say_that_a_name_is_not_critical() -> None:
    assert AdaptiveThresholds({"prod-eu": Override(critical=False)}).of("prod-eu", calls_24h=20) == HIGH


def test_is_critical_own_words() -> None:
    thresholds = AdaptiveThresholds(critical_words=["Zahlung"])
    assert thresholds.is_critical("zahlung-1")
    assert not thresholds.is_critical("prod-1")
    assert not thresholds.is_critical("zahlungen")
    assert not AdaptiveThresholds(critical_words=()).is_critical("prod")


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"failures": 0}, ValueError),
        ({"failures": -1}, ValueError),
        ({"failures": 1001}, ValueError),
        ({"failures": 2.0}, TypeError),
        ({"failures": True}, TypeError),
        ({"window_h": 0}, ValueError),
        ({"window_h": 169}, ValueError),
        ({"window_h": math.nan}, ValueError),
        ({"window_h": "24"}, TypeError),
        ({"cooldown_h": -1}, ValueError),
        ({"cooldown_h": math.inf}, ValueError),
        ({"critical": "false"}, TypeError),
        ({"critical": 1}, TypeError),
    ],
)
def test_every_field_of_an_override_is_checked(fields: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match=next(iter(fields))):
        Override(**fields)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(fields, Override)


def test_override_an_unknown_field_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="cooldown"):
        msgspec.convert({"cooldown": 3}, Override)


def test_adaptive_thresholds_wrong_overrides_and_words_are_refused() -> None:
    with pytest.raises(TypeError, match="override of 'a'"):
        AdaptiveThresholds({"a": {"failures": 3}})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="critical_words"):
        AdaptiveThresholds(critical_words="prod")
    with pytest.raises(ValueError, match="runs of letters"):
        AdaptiveThresholds(critical_words=["prod-eu"])


@given(st.text(), st.integers(0, 100), st.booleans())
def test_frequency_every_name_has_thresholds(agent: str, calls: Any, before: Any) -> None:
    assert PLAIN.of(agent, calls_24h=calls, called_before=before) in (HIGH, MEDIUM, LOW, CRITICAL)
