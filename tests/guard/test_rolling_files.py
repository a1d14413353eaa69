import math
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.guard.monotonic import SteadyClock
from coherence.guard.rolling_files import BUCKET_S, MAX_AMOUNT, MAX_WINDOW_H, NEWEST, Rolling, Summary

HOUR = 3600.0


def account(successes: Any, step_s: float = 60.0) -> Rolling:
    rolling = Rolling()
    for seq, success in enumerate(successes):
        rolling.record(seq, seq * step_s, success=bool(success))
    return rolling


def test_summary_nothing_is_unknown_not_zero() -> None:
    empty = Summary(0, 0, None, None, None, None)
    assert Rolling().over_newest() == empty == Rolling().over_hours(24)
    assert Rolling().failures_within(24) == Rolling().calls_within(24) == 0


def test_summary_counts_and_means() -> None:
    rolling = Rolling()
    rolling.record(0, 0.0, success=True, latency_s=1.0, cost=0.5, index=1.0)
    rolling.record(1, 1.0, success=False, latency_s=2.0)
    rolling.record(2, 2.0, success=True, cost=0.25, index=0.5)
    # 2 of 3 succeed; latency (1 + 2) / 2; cost .5 + .25; index (1 + .5) / 2
    expected = Summary(3, 1, 2 / 3, 1.5, 0.75, 0.75)
    assert rolling.over_newest() == expected == rolling.over_hours(1)
    assert rolling.over_newest(2) == Summary(2, 1, 0.5, 2.0, 0.25, 0.5)


def test_rolling_failures_in_a_row_begin_anew_after_a_success() -> None:
    assert account([0, 0, 1, 0, 0, 0]).failures_in_row == 3
    assert account([0, 0, 1]).failures_in_row == 0
    assert account([0] * (NEWEST + 50)).failures_in_row == NEWEST + 50


@given(st.lists(st.booleans(), max_size=40), st.randoms(use_true_random=False))
def test_over_newest_the_order_of_ending_changes_nothing(successes: Any, random: Random) -> None:
    calls = list(enumerate(successes))
    random.shuffle(calls)
    rolling = Rolling()
    for seq, success in calls:
        assert rolling.record(seq, 0.0, success=success)
    in_order = account(successes, step_s=0.0)
    assert rolling.failures_in_row == in_order.failures_in_row
    assert rolling.newest == in_order.newest
    assert rolling.succeeded_at == in_order.succeeded_at
    assert rolling.over_newest(5) == in_order.over_newest(5)


def test_rolling_a_call_that_is_told_twice_counts_once() -> None:
    rolling = account([1, 0, 1])
    before = msgspec.json.encode(rolling)
    assert rolling.record(1, 999.0, success=False) is False
    assert msgspec.json.encode(rolling) == before


def test_failures_within_a_call_older_than_all_kept_ones_is_counted_and_not_kept() -> None:
    rolling = Rolling()
    for seq in range(10, 10 + NEWEST):
        rolling.record(seq, 0.0, success=True)
    assert rolling.record(3, 0.0, success=False)
    assert (rolling.calls, rolling.failures, rolling.failures_within(1)) == (NEWEST + 1, 1, 1)
    assert rolling.failures_in_row == 0
    assert rolling.newest[0].seq == 10


def test_failures_within_a_window_ends_within_one_bucket_of_its_length() -> None:
    rolling = Rolling()
    rolling.record(0, 0.0, success=False)
    assert rolling.failures_within(24, now_s=24 * HOUR) == 1
    assert rolling.failures_within(24, now_s=24 * HOUR + BUCKET_S) == 0


@given(st.lists(st.floats(0, 200 * HOUR), min_size=1, max_size=60), st.integers(1, 168))
def test_failures_within_windows_count_at_least_their_length_and_at_most_a_bucket_more(times: Any, hours: Any) -> None:
    times.sort()
    rolling = Rolling()
    for seq, at in enumerate(times):
        rolling.record(seq, at, success=False)
    now = times[-1]
    least = sum(at >= now - hours * HOUR for at in times)
    most = sum(at > now - hours * HOUR - BUCKET_S - 1e-6 for at in times)
    assert least <= rolling.failures_within(hours) <= most


def test_calls_within_memory_is_bounded_however_long_an_agent_lives() -> None:
    rolling = Rolling()
    for seq in range(20_000):
        rolling.record(seq, seq * 300.0, success=seq % 3 > 0)
    assert len(rolling.newest) == NEWEST
    assert len(rolling.buckets) <= MAX_WINDOW_H * 3600 / BUCKET_S + 1
    assert rolling.calls_within(MAX_WINDOW_H) >= 168 * 12  # one call each five minutes
    assert rolling.calls == 20_000


def test_summary_the_clock_set_back_two_hours_changes_nothing() -> None:
    def run(shift_s: float) -> tuple[list[tuple[int, int, Summary]], Rolling]:
        clock, rolling = SteadyClock(), Rolling()
        seen = []
        for seq in range(200):
            wall = 1e9 + 300.0 * seq + (shift_s if seq >= 100 else 0.0)
            rolling.record(seq, clock.read(wall), success=seq % 4 > 0, latency_s=1.0 + seq % 3)
            seen.append((rolling.failures_in_row, rolling.failures_within(1), rolling.over_hours(24)))
        return seen, rolling

    undisturbed, whole = run(0.0)
    disturbed, shifted = run(-7200.0 - 300.0)  # the step that falls into the jump is counted as 0 s
    assert [one[0] for one in disturbed] == [one[0] for one in undisturbed]
    assert shifted.newest == whole.newest
    assert shifted.calls == whole.calls == sum(bucket.calls for bucket in shifted.buckets)
    # one step of 300 s is lost in the jump: windows of an hour differ by at most the one failure in it
    assert all(abs(a[1] - b[1]) <= 1 for a, b in zip(disturbed, undisturbed, strict=True))
    assert shifted.at_s == 1e9 + 300.0 * 198 == (whole.at_s or 0.0) - 300.0


def test_failures_within_a_time_before_the_latest_counts_as_the_latest() -> None:
    rolling = Rolling()
    rolling.record(0, 10 * HOUR, success=False)
    rolling.record(1, 1 * HOUR, success=False)
    assert rolling.at_s == 10 * HOUR
    assert rolling.failures_within(1) == 2
    assert rolling.failures_within(1, now_s=0.0) == 2


def test_failures_within_a_window_never_ends_before_the_latest_call() -> None:
    rolling = Rolling()
    rolling.record(0, 0.0, success=False)
    rolling.record(1, 10 * HOUR, success=False)
    assert rolling.failures_within(1, now_s=0.0) == 1


def test_rolling_late_calls_of_a_long_outage() -> None:
    rolling = Rolling()
    for seq in range(10, 10 + NEWEST + 20):
        rolling.record(seq, 0.0, success=False)
    rolling.record(3, 0.0, success=False)
    assert rolling.failures_in_row == NEWEST + 21
    rolling.record(12, 0.0, success=True)  # 117 failed after it, of which the newest 100 are known
    assert rolling.failures_in_row == NEWEST


CALLS = st.tuples(
    st.integers(0, 60),
    st.floats(0, 300 * HOUR),
    st.booleans(),
    st.none() | st.floats(0, 100),
    st.none() | st.floats(0, 10),
    st.none() | st.floats(0, 1),
)


@given(st.lists(CALLS, max_size=40), st.integers(0, 40))
def test_over_hours_it_goes_on_bit_for_bit_after_being_stored(calls: Any, at: Any) -> None:
    whole, parted = Rolling(), Rolling()
    for place, (seq, at_s, success, latency, cost, index) in enumerate(calls):
        if place == at:
            parted = msgspec.json.decode(msgspec.json.encode(parted), type=Rolling)
        for one in (whole, parted):
            one.record(seq, at_s, success=success, latency_s=latency, cost=cost, index=index)
    assert msgspec.json.encode(whole) == msgspec.json.encode(parted)
    assert whole.over_hours(24) == parted.over_hours(24)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"seq": -1}, ValueError),
        ({"seq": 1.0}, TypeError),
        ({"at_s": math.nan}, ValueError),
        ({"success": "false"}, TypeError),
        ({"latency_s": -0.1}, ValueError),
        ({"latency_s": math.nan}, ValueError),
        ({"cost": 2 * MAX_AMOUNT}, ValueError),
        ({"index": 1.01}, ValueError),
    ],
)
def test_rolling_wrong_arguments_are_named_and_nothing_is_counted(change: Any, error: type[Exception]) -> None:
    rolling = account([1, 0])
    before = msgspec.json.encode(rolling)
    arguments = {"seq": 9, "at_s": 500.0, "success": True} | change
    with pytest.raises(error, match=next(iter(change)).replace("at_s", "steady time")):
        rolling.record(arguments.pop("seq"), arguments.pop("at_s"), **arguments)
    assert msgspec.json.encode(rolling) == before


@pytest.mark.parametrize("hours", [0, 0.5, MAX_WINDOW_H + 1, math.nan])
def test_failures_within_windows_have_bounds(hours: Any) -> None:
    with pytest.raises(ValueError, match="hours"):
        Rolling().failures_within(hours)


def test_over_hours_amounts_never_overflow() -> None:
    rolling = Rolling()
    for seq in range(300):
        rolling.record(seq, 0.0, success=True, latency_s=MAX_AMOUNT, cost=MAX_AMOUNT)
    assert rolling.over_hours(1).latency_mean_s == MAX_AMOUNT
    assert rolling.over_newest().cost == NEWEST * MAX_AMOUNT


def test_over_hours_what_was_never_measured_is_not_known() -> None:
    rolling = Rolling()
    rolling.record(0, 0.0, success=True)
    for found in (rolling.over_newest(), rolling.over_hours(24)):
        assert (found.latency_mean_s, found.cost, found.index_mean) == (None, None, None)
    rolling.record(1, 0.0, success=True, cost=0.0)
    assert rolling.over_hours(24).cost == rolling.over_newest().cost == 0.0
