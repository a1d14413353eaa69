"""Measures of a call: success, duration, cost, and what a monitor says of the run."""

from __future__ import annotations

import asyncio
import itertools
import math
import os
import time
import types
from collections.abc import Callable
from typing import Any

from coherence.guard.collaborators import not_awaited
from coherence.guard.error_counts import ErrorCounts, describe
from coherence.guard.patch_events import GuardedCall
from coherence.guard.patch_state import OnTrial, Phase
from coherence.guard.rolling import MAX_AMOUNT
from coherence.guard.shorten import shortened
from coherence.monitor.monitor import Monitor

MAX_TASK = 2_000
"""Characters of a task that are recorded."""

_PREFIX = os.urandom(8).hex()
_NUMBERS = itertools.count(1)


class Started:
    """A call under way."""

    __slots__ = ("agent", "arguments", "began_s", "epoch", "patch", "patched", "task", "tick")

    def __init__(self, agent: str, task: str, arguments: Any) -> None:
        self.agent = agent
        self.task = shortened(task, MAX_TASK)
        self.arguments = arguments
        self.epoch = -1
        self.patched = False
        self.patch: dict[str, Any] | None = None
        """Patch that :func:`~coherence.guard.context.current_patch` shows."""
        self.tick = 0
        self.began_s = 0.0

    def serve(self, trial: OnTrial, phase: Phase, call_id: str | None) -> None:
        """Find out whether the patch on trial serves this call."""
        # unique in all processes, forked ones too, and much cheaper than a UUID
        drawn = (call_id or f"{_PREFIX}-{os.getpid()}-{next(_NUMBERS)}") if trial.both else ""
        self.patched = trial.serves(phase, drawn)
        self.patch = dict(trial.patch) if self.patched else None

    def begin(self, monitor: Monitor | None) -> None:
        """Note where things stand, at the last moment before the call."""
        if monitor is not None and (reading := monitor.latest) is not None:
            self.tick = reading.tick_seq
        self.began_s = time.perf_counter()

    def ended(
        self,
        success: bool,
        duration_s: float,
        error: str | None = None,
        cost: float | None = None,
        index: float | None = None,
        band: str | None = None,
    ) -> GuardedCall:
        """Return the call as an account takes it in."""
        return GuardedCall(
            success, duration_s, cost, index, self.epoch, self.patched, band, self.task, error, self.arguments
        )


class Measuring:
    """Measures calls; whatever fails is counted, and not known then.

    Parameters
    ----------
    monitor : Monitor or None
        Of the agent.
    is_success, cost_of : callable or None
        What the host makes of a result.
    control_flow : tuple of exception types
        What is raised without a call having failed.
    troubles : ErrorCounts
        Where failures are counted.
    """

    def __init__(
        self,
        monitor: Monitor | None,
        is_success: Callable[[Any], object] | None,
        cost_of: Callable[[Any], float | None] | None,
        control_flow: tuple[type[BaseException], ...],
        troubles: ErrorCounts,
    ) -> None:
        self.monitor = monitor
        self._is_success = is_success
        self._cost_of = cost_of
        self._control_flow = control_flow
        self._troubles = troubles

    def returned(self, started: Started, result: Any, duration_s: float | None = None) -> GuardedCall | None:
        """Return what came of a call that returned; None = its work is still to be done, so nobody knows."""
        duration_s = time.perf_counter() - started.began_s if duration_s is None else duration_s
        kind = type(result)
        if kind in _UNFINISHED or issubclass(kind, asyncio.Future):
            self._troubles.add("run", f"{kind.__name__} was returned, so the call is not recorded: use arun or wrap")
            return None
        success, cost = True, None
        if self._is_success is not None:
            try:
                success = bool(not_awaited(self._is_success(result), "is_success"))
            except Exception as error:
                self._troubles.add("is_success", error)
        if self._cost_of is not None:
            try:
                cost = self._amount(not_awaited(self._cost_of(result), "cost_of"))
            except Exception as error:
                self._troubles.add("cost_of", error)
        return started.ended(success, duration_s, None, cost, *self._reading(started))

    def failed(self, started: Started, error: BaseException, duration_s: float | None = None) -> GuardedCall:
        """Return what came of a call that raised."""
        duration_s = time.perf_counter() - started.began_s if duration_s is None else duration_s
        try:
            text = describe(error)
        except Exception:  # the stack is nearly used up
            text = "unknown"
        return started.ended(isinstance(error, self._control_flow), duration_s, text, None, *self._reading(started))

    def _amount(self, cost: object) -> float | None:
        if cost is None:
            return None
        if isinstance(cost, bool) or not isinstance(cost, int | float) or not 0 <= cost <= MAX_AMOUNT:
            self._troubles.add("cost_of", "not a number in [0, 1e12]")
            return None
        return float(cost)

    def _reading(self, started: Started) -> tuple[float | None, str | None]:
        monitor = self.monitor
        if monitor is None:
            return None, None
        try:
            monitor.decide()
            reading = monitor.latest
            # measured before this call, it says nothing about it
            if reading is None or reading.tick_seq <= started.tick or reading.coherence_index is None:
                return None, None
            index = reading.coherence_index
            return (index if math.isfinite(index) else None), reading.band.value
        except Exception as error:
            self._troubles.add("monitor", error)
            return None, None


_UNFINISHED = frozenset((types.CoroutineType, types.GeneratorType, types.AsyncGeneratorType))
