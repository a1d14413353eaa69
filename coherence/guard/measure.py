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

from coherence.core.callback import Callback
from coherence.core.plain import has_plain_text, type_name
from coherence.core.strangers import Asking, asking, error_text
from coherence.core.validation import check_number
from coherence.guard.collaborators import not_awaited
from coherence.guard.error_counts import ErrorCounts, described
from coherence.guard.patch_events import GuardedCall
from coherence.guard.patch_state import OnTrial, Phase
from coherence.guard.rolling import MAX_AMOUNT
from coherence.guard.shorten import shortened
from coherence.monitor.monitor import Monitor

LEAST_ANSWER_S = 1.0
"""Seconds that the host's functions may take at least, where a call does not wait for anything else."""

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
    wait_s : float
        Seconds that both functions may take together; at least :data:`LEAST_ANSWER_S`.
    """

    def __init__(
        self,
        monitor: Monitor | None,
        is_success: Callable[[Any], object] | None,
        cost_of: Callable[[Any], float | None] | None,
        control_flow: tuple[type[BaseException], ...],
        troubles: ErrorCounts,
        wait_s: float,
    ) -> None:
        self.monitor = monitor
        self._is_success = is_success
        self._success: Callback[bool] = Callback("is_success", troubles.failed)
        self._cost_of = cost_of
        self._cost: Callback[float | None] = Callback("cost_of", troubles.failed)
        self._wait_s = max(wait_s, LEAST_ANSWER_S)
        self._asking = Asking(self._wait_s)
        self._control_flow = control_flow
        self._troubles = troubles

    def returned(self, started: Started, result: Any, duration_s: float | None = None) -> GuardedCall | None:
        """Return what came of a call that returned; None = its work is still to be done, so nobody knows."""
        duration_s = time.perf_counter() - started.began_s if duration_s is None else duration_s
        if issubclass(type(result), _UNFINISHED):
            name = type_name(result)
            self._troubles.add("run", f"{name} was returned, so the call is not recorded: use arun or wrap")
            return None
        success, cost = True, None
        until_s = time.perf_counter() + self._wait_s
        if self._is_success is not None:
            judge = self._is_success
            success = self._success.ask(lambda: bool(not_awaited(judge(result), "is_success")), True, self._wait_s)
        if self._cost_of is not None:
            price = self._cost_of
            left_s = until_s - time.perf_counter()
            cost = self._cost.ask(lambda: _amount(not_awaited(price(result), "cost_of")), None, left_s)
        return started.ended(success, duration_s, None, cost, *self._reading(started))

    def failed(self, started: Started, error: BaseException, duration_s: float | None = None) -> GuardedCall:
        """Return what came of a call that raised."""
        duration_s = time.perf_counter() - started.began_s if duration_s is None else duration_s
        try:
            text = self._described(error)
        except Exception:  # the stack is nearly used up
            text = "unknown"
        controls = issubclass(type(error), self._control_flow)
        return started.ended(controls, duration_s, text, None, *self._reading(started))

    def _described(self, error: BaseException) -> str:
        if has_plain_text(error):
            return described(type_name(error), str(error))
        with asking(self._asking):
            text = error_text(error)
        if text is None:
            self._troubles.add("error", "the text of an exception cannot be read", kind=type_name(error))
        return described(type_name(error), text)

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


_UNFINISHED = (types.CoroutineType, types.GeneratorType, types.AsyncGeneratorType, asyncio.Future)


def _amount(cost: object) -> float | None:
    return None if cost is None else check_number("cost_of", cost, least=0, most=MAX_AMOUNT)
