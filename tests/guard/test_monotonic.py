"""Steady time: it never goes back, never freezes, and is the wall clock where nobody sets that."""

import math
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.guard.monotonic import LATEST_S, MAX_STEP_S, TOLERANCE_S, SteadyClock

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
