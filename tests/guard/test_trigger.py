import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from coherence.guard.rolling import Rolling
from coherence.guard.trigger import (
    CRITICAL,
    HIGH,
    LOW,
    MEDIUM,
    Due,
    Override,
    Thresholds,
    Trigger,
    checked_overrides,
    thresholds_of,
)

HOUR = 3600.0
PLAIN: dict[str, Override] = {}


def improved_at_two() -> tuple[Rolling, Trigger]:
    rolling, trigger = Rolling(), Trigger()
    for seq in range(2):
        rolling.record(seq, 0.0, success=False)
    assert trigger.check("a", rolling, PLAIN, 0.0).fires
    trigger.improved(rolling, 0.0)
    return rolling, trigger


def fail(rolling: Rolling, trigger: Trigger, seq: int, at_s: float, thresholds: Mapping[str, Override] = PLAIN) -> Due:
    rolling.record(seq, at_s, success=False)
    return trigger.check("a", rolling, thresholds, at_s)


def test_trigger_applied_at_the_second_failure_then_cool_down() -> None:
    rolling, trigger = improved_at_two()
    found = [fail(rolling, trigger, seq, 60.0 * seq) for seq in range(2, 12)]
    assert not any(due.fires for due in found)
    assert all(due.cooldown_left_s > 0 for due in found)


SIX_HOURS = {"a": Override(failures=1, window_h=24, cooldown_h=6)}


def test_trigger_an_improvement_in_the_future_delays_by_one_cool_down_and_no_more() -> None:
    rolling, trigger = improved_at_two()
    trigger.improved_at_s = 1e9
    due = fail(rolling, trigger, 2, HOUR, SIX_HOURS)
    assert (due.fires, due.cooldown_left_s) == (False, 6 * HOUR)
    assert fail(rolling, trigger, 3, HOUR + 6 * HOUR, SIX_HOURS).fires


def test_trigger_failures_before_an_improvement_do_not_count_against_it() -> None:
    two = {"a": Override(failures=2, window_h=24, cooldown_h=1)}
    rolling, trigger = improved_at_two()
    one = fail(rolling, trigger, 2, 2 * HOUR, two)
    assert (one.fires, one.failures) == (False, 1)  # three in the window, one of them new
    assert fail(rolling, trigger, 3, 2 * HOUR, two).fires


def test_burst_of_many_failures_only_the_newest_call_for_a_patch() -> None:
    rolling, trigger = improved_at_two()
    for seq in range(2, 32):
        due = fail(rolling, trigger, seq, 60.0 * seq)
    assert (due.fires, due.failures, due.burst) == (False, 30, 5)
    due = fail(rolling, trigger, 32, 7 * HOUR)  # 31 since the improvement; more than 10 calls a day ask for 5
    assert (due.fires, due.failures, due.burst) == (True, 31, 5)


def test_answered_answers_without_a_patch_make_the_next_question_later() -> None:
    rolling, trigger = Rolling(), Trigger()
    asked_at_s, now_s, seq = [], 0.0, 0
    for seq in range(1, 21):
        rolling.record(seq, 0.0, success=True)  # more than ten calls a day: five failures, three hours
    for _ in range(800):
        seq, now_s = seq + 1, now_s + 60.0
        if fail(rolling, trigger, seq, now_s).fires:
            asked_at_s.append(now_s)
            trigger.answered(rolling, now_s)
    quiet = [round((after - before) / 60) for before, after in pairwise(asked_at_s)]
    assert quiet[:7] == [6, 12, 23, 45, 90, 180, 180]  # 3 h / 32 = 5.6 min, then twice as long, at the minute after
    trigger.improved(rolling, now_s)
    assert (trigger.answered_at_s, trigger.fruitless) == (None, 0)


@pytest.mark.parametrize(
    ("calls", "expected"), [(0, LOW), (2, LOW), (3, MEDIUM), (10, MEDIUM), (11, HIGH), (10**9, HIGH)]
)
def test_thresholds_of_an_agent_follow_the_calls_of_a_day(calls: int, expected: Thresholds) -> None:
    assert thresholds_of("a", PLAIN, calls_24h=calls) == expected
    assert thresholds_of("a", PLAIN, calls_24h=0, called_before=False) == MEDIUM


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
    assert thresholds_of(agent, PLAIN, calls_24h=20) == (CRITICAL if critical else HIGH)


def test_an_override_takes_what_it_leaves_out_from_the_profile_in_force() -> None:
    thresholds = {
        "support": Override(critical=True),
        "prod-x": Override(cooldown_h=1),
        "prod-eu": Override(critical=False),
        "busy": Override(window_h=10),
        "all": Override(failures=7, window_h=8, cooldown_h=0),
    }
    assert thresholds_of("support", thresholds, calls_24h=20) == CRITICAL
    assert thresholds_of("prod-x", thresholds, calls_24h=20) == Thresholds(1, 24, 1)
    assert thresholds_of("prod-eu", thresholds, calls_24h=20) == HIGH
    assert thresholds_of("busy", thresholds, calls_24h=20) == Thresholds(5, 10, 3)
    assert thresholds_of("busy", thresholds, calls_24h=1) == Thresholds(2, 10, 12)
    assert thresholds_of("all", thresholds, calls_24h=1) == Thresholds(7, 8, 0)


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
        checked_overrides({"a": fields})


@pytest.mark.parametrize("given", [{"a": 3}, 7, "a", [("a", Override())]])
def test_checked_overrides_takes_nothing_but_overrides_by_agent(given: Any) -> None:
    with pytest.raises(TypeError, match=r"must be.* Override"):
        checked_overrides(given)
