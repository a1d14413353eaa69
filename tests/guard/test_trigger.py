from itertools import pairwise
from typing import Any

from coherence.guard.frequency import AdaptiveThresholds, Override
from coherence.guard.monotonic import SteadyClock
from coherence.guard.rolling import Rolling
from coherence.guard.trigger import Due, Trigger

HOUR = 3600.0
PLAIN = AdaptiveThresholds()


def fires(
    successes: Any, *, thresholds: AdaptiveThresholds = PLAIN, step_s: float = 1.0, agent: str = "a"
) -> list[bool]:
    """Which calls trigger, when nobody improves anything."""
    rolling, trigger, fired = Rolling(), Trigger(), []
    for seq, success in enumerate(successes):
        rolling.record(seq, seq * step_s, success=bool(success))
        fired.append(not success and trigger.check(agent, rolling, thresholds, seq * step_s).fires)
    return fired


def test_trigger_a_new_agent_without_a_strategy_triggers_from_its_second_failure_on() -> None:
    assert fires([0] * 8) == [False] + [True] * 7


def test_trigger_a_critical_agent_triggers_at_its_first_failure() -> None:
    assert fires([1] * 20 + [0], agent="prod-eu")[-1]
    assert not fires([1] * 20 + [0], agent="product-search")[-1]


def test_trigger_failures_outside_the_window_do_not_count() -> None:
    # two failures, 72 h and a bucket apart: low frequency asks for 2 in 72 h
    assert not any(fires([0, 0], step_s=72 * HOUR + 900))
    assert fires([0, 0], step_s=72 * HOUR) == [False, True]


def improved_at_two() -> tuple[Rolling, Trigger]:
    rolling, trigger = Rolling(), Trigger()
    for seq in range(2):
        rolling.record(seq, 0.0, success=False)
    assert trigger.check("a", rolling, PLAIN, 0.0).fires
    trigger.improved(rolling, 0.0)
    return rolling, trigger


def fail(rolling: Rolling, trigger: Trigger, seq: int, at_s: float, thresholds: AdaptiveThresholds = PLAIN) -> Due:
    rolling.record(seq, at_s, success=False)
    return trigger.check("a", rolling, thresholds, at_s)


def test_trigger_applied_at_the_second_failure_then_cool_down() -> None:
    rolling, trigger = improved_at_two()
    found = [fail(rolling, trigger, seq, 60.0 * seq) for seq in range(2, 12)]
    assert not any(due.fires for due in found)
    assert all(due.cooldown_left_s > 0 for due in found)


SIX_HOURS = AdaptiveThresholds({"a": Override(failures=1, window_h=24, cooldown_h=6)})


def test_trigger_an_improvement_in_the_future_delays_by_one_cool_down_and_no_more() -> None:
    rolling, trigger = improved_at_two()
    trigger.improved_at_s = 1e9
    due = fail(rolling, trigger, 2, HOUR, SIX_HOURS)
    assert (due.fires, due.cooldown_left_s) == (False, 6 * HOUR)
    assert fail(rolling, trigger, 3, HOUR + 6 * HOUR, SIX_HOURS).fires


def test_trigger_the_clock_set_back_two_hours_in_a_cool_down_does_not_freeze_it() -> None:
    clock, rolling, trigger = SteadyClock(), Rolling(), Trigger()
    rolling.record(0, clock.read(1e9), success=False)
    trigger.improved(rolling, clock.read(1e9))
    clock.read(1e9 - 2 * HOUR)
    before = fail(rolling, trigger, 1, clock.read(1e9 - 2 * HOUR + 5 * HOUR), SIX_HOURS)
    after = fail(rolling, trigger, 2, clock.read(1e9 - 2 * HOUR + 6 * HOUR), SIX_HOURS)
    assert (before.fires, before.cooldown_left_s, after.fires) == (False, HOUR, True)


def test_trigger_failures_before_an_improvement_do_not_count_against_it() -> None:
    two = AdaptiveThresholds({"a": Override(failures=2, window_h=24, cooldown_h=1)})
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
