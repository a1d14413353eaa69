"""Time that never goes back, and counts of calls by it."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.core.callback import LATEST_S
from coherence.guard.monotonic import MAX_STEP_S, TOLERANCE_S, SteadyClock
from coherence.guard.rolling import BUCKET_S, MAX_WINDOW_H, NEWEST, Rolling, Summary

HOUR = 3600.0


def test_summary_counts_and_means() -> None:
    rolling = Rolling()
    rolling.record(0, 0.0, success=True, latency_s=1.0, cost=0.5, index=1.0)
    rolling.record(1, 1.0, success=False, latency_s=2.0)
    rolling.record(2, 2.0, success=True, cost=0.25, index=0.5)
    # 2 of 3 succeed; latency (1 + 2) / 2; cost .5 + .25; index (1 + .5) / 2
    expected = Summary(3, 1, 2 / 3, 1.5, 0.75, 0.75)
    assert rolling.over_newest() == expected
    assert Rolling().over_newest() == Summary(0, 0, None, None, None, None)  # unknown, not 0


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


WALL = st.floats(-LATEST_S, LATEST_S)


@given(st.lists(WALL, max_size=50), st.integers(0, 49))
def test_steady_clock_never_goes_back_nor_leaps_and_goes_on_bit_for_bit_after_being_stored(
    walls: list[float], at: int
) -> None:
    clock, stored = SteadyClock(), SteadyClock()
    times = []
    for place, wall in enumerate(walls):
        if place == at:
            stored = msgspec.json.decode(msgspec.json.encode(stored), type=SteadyClock)
        times.append(clock.read(wall))
        assert stored.read(wall) == times[-1]
    for earlier, later in pairwise(times):
        assert earlier <= later <= earlier + MAX_STEP_S


@pytest.mark.parametrize(
    ("walls", "times"),
    [
        ([5.0, 5.0, 7.5, 9000.0], [5.0, 5.0, 7.5, 9000.0]),  # nobody sets it
        ([10_000.0, 2_800.0, 3_400.0], [10_000.0, 10_000.0, 10_600.0]),  # two hours back: it goes on at its rate
        ([1000.0, 940.0, 941.0, 1001.0], [1000.0, 1000.0, 1000.0, 1001.0]),  # by the tolerance: it waits
        ([1000.0, 939.0, 949.0], [1000.0, 1000.0, 1010.0]),  # just beyond it
        ([0.0, 7200.0, 10.0, 20.0], [0.0, 7200.0, 7200.0, 7210.0]),  # ahead, taken as time that passed, and back
        ([0.0, LATEST_S, LATEST_S - 1, 0.0, 5.0], [0.0, *[MAX_STEP_S] * 3, MAX_STEP_S + 5]),  # a wrong century
    ],
)
def test_steady_clock_of_a_wall_clock_that_is_set(walls: list[float], times: list[float]) -> None:
    assert TOLERANCE_S == 60.0
    clock = SteadyClock()
    assert [clock.read(wall) for wall in walls] == times


@pytest.mark.parametrize("wall", [math.nan, math.inf, -math.inf, 2 * LATEST_S, "1", None, True])
def test_steady_clock_refuses_a_reading_that_is_no_time_and_stays_as_it_is(wall: Any) -> None:
    clock = SteadyClock()
    clock.read(1.0)
    with pytest.raises((TypeError, ValueError), match="wall_s"):
        clock.read(wall)
    assert clock == SteadyClock(1.0, 0.0)
