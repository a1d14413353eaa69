"""A host's function that this package calls: on a worker, for a limited time; whatever it does becomes a failure."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from coherence.core.calls import Breaker, PluginCall
from coherence.core.plugin_calls import run_calls
from coherence.core.strangers import LEAST_S
from coherence.core.validation import check_number

T = TypeVar("T")

LATEST_S = 1e11
"""Readings of a wall clock lie in ``[-LATEST_S, LATEST_S]``, Unix seconds (the years -1199 to 5138)."""

BACK_S = 60.0
"""Seconds that a wall clock may go back without a failure: it is corrected, and threads read it at once."""


class Callback(Generic[T]):
    """A function of the host. One that hangs is left out while it does so, and then for 1, 2, 4, … calls.

    Parameters
    ----------
    name : str
        Its name in failures.
    report : callable
        Takes a call that failed.

    Examples
    --------
    >>> cost = Callback("cost_of", lambda call: print(call.source, call.failure.kind))
    >>> cost.ask(lambda: 1 / 0, 0.0, 1.0), cost.ask(lambda: 0.5, 0.0, 1.0)
    cost_of ZeroDivisionError
    (0.0, 0.5)
    """

    def __init__(self, name: str, report: Callable[[PluginCall], object]) -> None:
        self.name = name
        self._report = report
        self._breaker = Breaker()

    def ask(self, function: Callable[[], T], default: T, wait_s: float) -> T:
        """Return what the function returns, which is plain data; the default if it fails or takes longer."""
        call = PluginCall(self.name, function, self._breaker)
        run_calls([call], max(wait_s, LEAST_S))
        if call.failure is None:
            found: T = call.value
            return found
        self._report(call)
        return default


class WallClock:
    """A host's clock that is always answered: where it fails, its time goes on from its newest reading.

    Parameters
    ----------
    clock : callable
        Returns Unix seconds.
    wait_s : float
        Seconds that a reading may take.
    report : callable
        Takes the call that failed, or a text.
    """

    def __init__(self, clock: Callable[[], float], wait_s: float, report: Callable[[PluginCall | str], object]) -> None:
        self._clock = clock
        self._wait_s = wait_s
        self._report = report
        self._callback: Callback[float | None] = Callback("clock", report)
        self._newest: tuple[float, float] | None = None
        """The newest reading, and the monotonic time at which it was taken."""

    def __call__(self) -> float:
        """Return Unix seconds."""
        newest = self._newest
        found = self._callback.ask(self._read, None, self._wait_s)
        if found is None:
            return time.time() if newest is None else newest[0] + time.monotonic() - newest[1]
        if newest is not None and found < newest[0] - BACK_S:
            self._report("the clock went back")
        self._newest = found, time.monotonic()
        return found

    def _read(self) -> float:
        return check_number("clock", self._clock(), least=-LATEST_S, most=LATEST_S)


def wall_clock(
    clock: Callable[[], Any], wait_s: float, report: Callable[[PluginCall | str], object]
) -> Callable[[], float]:
    """Return a clock that never fails; the system's own costs no more than it does."""
    return time.time if clock is time.time else WallClock(clock, wait_s, report)
