import math
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.guard.monotonic import LATEST_S, MAX_STEP_S, TOLERANCE_S, SteadyClock

WALL = st.floats(-LATEST_S, LATEST_S)


@given(st.lists(WALL, max_size=50))
def test_steady_clock_time_never_goes_back_and_never_leaps_more_than_a_step(walls: Any) -> None:
    clock = SteadyClock()
    times = [clock.read(wall) for wall in walls]
    for earlier, later in pairwise(times):
        assert earlier <= later <= earlier + MAX_STEP_S


def test_steady_clock_an_undisturbed_clock_is_the_wall_clock() -> None:
    clock = SteadyClock()
    assert [clock.read(wall) for wall in (5.0, 5.0, 7.5, 9000.0)] == [5.0, 5.0, 7.5, 9000.0]


def test_steady_clock_after_two_hours_back_time_goes_on_at_its_rate() -> None:
    clock = SteadyClock()
    clock.read(10_000.0)
    assert clock.read(10_000.0 - 7200) == 10_000.0
    # 600 s later by either clock
    assert clock.read(10_600.0 - 7200) == 10_600.0


def test_steady_clock_within_the_tolerance_time_waits_and_is_the_wall_clock_again() -> None:
    clock = SteadyClock()
    clock.read(1000.0)
    assert clock.read(1000.0 - TOLERANCE_S) == 1000.0
    assert clock.read(1000.0 - TOLERANCE_S + 1) == 1000.0
    assert clock.read(1001.0) == 1001.0


def test_steady_clock_just_beyond_the_tolerance_it_goes_on_at_once() -> None:
    clock = SteadyClock()
    clock.read(1000.0)
    clock.read(1000.0 - TOLERANCE_S - 1)
    assert clock.read(1000.0 - TOLERANCE_S + 9) == 1010.0


def test_steady_clock_two_writers_whose_clocks_differ_do_not_make_time_run() -> None:
    clock = SteadyClock()
    for second in range(1000):
        clock.read(1000.0 + second)
        clock.read(1000.0 + second - 30)
    assert clock.now_s == 1999.0


def test_steady_clock_ahead_and_back_again_freezes_nothing() -> None:
    clock = SteadyClock()
    clock.read(0.0)
    assert clock.read(7200.0) == 7200.0  # taken as time that passed
    assert clock.read(10.0) == 7200.0
    assert clock.read(20.0) == 7210.0


def test_steady_clock_a_wrong_century_counts_as_one_longest_step() -> None:
    clock = SteadyClock()
    clock.read(0.0)
    assert clock.read(LATEST_S) == MAX_STEP_S
    assert clock.read(LATEST_S - 1) == MAX_STEP_S
    assert clock.read(LATEST_S) == MAX_STEP_S
    assert clock.read(0.0) == MAX_STEP_S
    assert clock.read(5.0) == MAX_STEP_S + 5


@given(st.lists(WALL, min_size=2, max_size=30), st.integers(1, 29))
def test_steady_clock_it_goes_on_bit_for_bit_after_being_stored(walls: Any, at: Any) -> None:
    whole, parted = SteadyClock(), SteadyClock()
    for place, wall in enumerate(walls):
        if place == at:
            parted = msgspec.json.decode(msgspec.json.encode(parted), type=SteadyClock)
        assert whole.read(wall) == parted.read(wall)


@pytest.mark.parametrize("wall", [math.nan, math.inf, -math.inf, 2 * LATEST_S])
def test_steady_clock_a_reading_that_is_no_time_is_refused_and_changes_nothing(wall: Any) -> None:
    clock = SteadyClock()
    clock.read(1.0)
    with pytest.raises(ValueError, match="wall_s"):
        clock.read(wall)
    assert clock == SteadyClock(1.0, 0.0)


@pytest.mark.parametrize("wall", ["1", None, True])
def test_steady_clock_a_reading_of_another_type_is_refused(wall: Any) -> None:
    with pytest.raises(TypeError, match="wall_s"):
        SteadyClock().read(wall)
