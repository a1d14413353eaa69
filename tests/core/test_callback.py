"""Functions of the host: asked for a limited time, and a clock that is always answered."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any

import hostile
import pytest
from hostile import hang

from coherence.core.callback import Callback, WallClock, wall_clock
from coherence.core.calls import PluginCall


@pytest.fixture(autouse=True)
def end_what_hangs() -> Iterator[None]:
    yield
    hostile.let_go()


def test_callback_that_hangs_is_left_out_until_it_has_ended() -> None:
    failed: list[str] = []

    def report(call: PluginCall) -> None:
        assert call.failure is not None
        failed.append(call.failure.kind)

    callback: Callback[int] = Callback("f", report)
    assert [callback.ask(hang, 7, 0.1), *(callback.ask(lambda: 1, 7, 0.1) for _ in range(3))] == [7, 7, 7, 7]
    assert failed == ["timeout", "disabled", "disabled", "disabled"]
    hostile.let_go()
    until = time.monotonic() + 8
    while callback.ask(lambda: 1, 7, 0.1) != 1:
        assert time.monotonic() < until
        time.sleep(0.01)


def test_wall_clock_goes_on_from_its_newest_reading_at_the_normal_rate() -> None:
    readings: Iterator[Any] = iter([1_000.0, math.nan, "12:00", 900.0])
    reports: list[object] = []
    clock = WallClock(lambda: next(readings), 1.0, reports.append)
    begun = time.monotonic()
    assert clock() == 1_000.0
    first, second = clock(), clock()
    assert 1_000.0 <= first <= second <= 1_000.0 + time.monotonic() - begun
    assert clock() == 900.0  # counted, and taken: steady time is the guard's affair
    assert len(reports) == 3 and reports[-1] == "the clock went back"


def test_wall_clock_of_the_system_is_called_directly() -> None:
    assert wall_clock(time.time, 1.0, print) is time.time
