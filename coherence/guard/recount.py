"""The calls of a patch counted a second time, plainly, from the entries of a trail: a check on what decided.

Nothing here is shared with the code that decides but the data and the constants of the rules.
"""

from __future__ import annotations

import math
import operator
from collections import deque
from itertools import accumulate

from coherence.guard.account import LEAST_LATENCY_S
from coherence.guard.baseline import APART, WINDOW
from coherence.guard.classic import FAILURES_IN_A_ROW, LATENCY_RISE, LEAST_CALLS, SUCCESS_DROP, Metrics
from coherence.guard.patch_events import (
    Accepted,
    Approved,
    Asked,
    Confirmed,
    Decision,
    Dropped,
    Ending,
    GuardedCall,
    Late,
    NotApplied,
    Proposed,
    Restored,
    Resuming,
    Retrying,
    Serving,
    TrialWanted,
)
from coherence.guard.verdict import (
    ALPHA,
    FEW_CALLS,
    FIRST_RUN,
    FIRST_SHARE,
    LATER_RUN,
    LATER_SHARE,
    MAX_CALLS,
    MAX_RUN,
    UNKNOWN_RUN,
)


class Counted:
    """The calls that one patch served."""

    def __init__(self) -> None:
        self.calls = 0
        self.failures = 0
        self.latencies = 0
        self.latency_s = 0.0
        self.run = 0
        """Failures in a row now, calls without the patch included: one that fails ends a run."""
        self.longest = 0
        self.run_of_patched = 0
        """Failures in a row now among patched calls alone."""
        self.first_failures = 0
        """Failures before the first success."""
        self.newest: deque[bool] = deque(maxlen=WINDOW)

    def observe(self, call: GuardedCall) -> None:
        """Count a call that the patch served."""
        if not call.success and self.first_failures == self.calls:
            self.first_failures += 1
        self.calls += 1
        self.failures += not call.success
        self.run, self.run_of_patched = (0, 0) if call.success else (self.run + 1, self.run_of_patched + 1)
        self.longest = max(self.longest, self.run)
        if call.duration_s is not None:
            self.latencies += 1
            self.latency_s += max(call.duration_s, LEAST_LATENCY_S)
        self.newest.append(call.success)

    def classic(self, before: Metrics) -> str | None:
        """Return which classic rule rolls back now, if any."""
        if self.calls < LEAST_CALLS:
            return None
        if before.success_rate > 0 and before.success_rate - (self.calls - self.failures) / self.calls > SUCCESS_DROP:
            return "success"
        mean_s = self.latency_s / self.latencies if self.latencies else 0.0
        if before.mean_latency_s > 0 and (mean_s - before.mean_latency_s) / before.mean_latency_s > LATENCY_RISE:
            return "latency"
        return "failure_run" if self.run_of_patched >= FAILURES_IN_A_ROW else None

    def run_explains(self, evidence: float | None, limit: float | None, before: list[bool]) -> bool:
        """Tell whether a run of failures among these calls gives such an evidence, after the calls before."""
        if evidence is None or limit is None:
            return len(before) < FEW_CALLS and self.first_failures >= UNKNOWN_RUN
        failures, calls = before.count(False), len(before)
        odds = ((failures + 1 + place) / (calls + 1 + place) for place in range(MAX_RUN))
        chances = list(accumulate(odds, operator.mul))
        for least, needed in ((FIRST_RUN, 1 / (FIRST_SHARE * ALPHA)), (LATER_RUN, MAX_CALLS / (LATER_SHARE * ALPHA))):
            runs = range(least, min(self.longest, MAX_RUN) + 1)
            if math.isclose(limit, needed, rel_tol=1e-9) and any(
                math.isclose(evidence, 1 / chances[length - 1], rel_tol=1e-6) and evidence >= needed * (1 - 1e-9)
                for length in runs
            ):
                return True
        return False


class Recount:
    """Counts along a trail. A call counts if it began under the configuration that is in force when it ends."""

    def __init__(self) -> None:
        self.epoch = 0
        self.trial: Counted | None = None
        self.standing: Counted | None = None
        """The calls of the confirmed patch since."""
        self.before: list[bool] = []
        """The successes before the patch that was asked for last, without the burst that called for it."""
        self._recent: deque[bool] = deque(maxlen=WINDOW)
        self._failures = self._failures_waiting = 0
        self._switching = False
        self._pauses = False
        self._restores = self._undoes = False

    def observe(self, happening: GuardedCall | Decision) -> None:
        """Count one entry."""
        if isinstance(happening, GuardedCall):
            self._call(happening)
            return
        if isinstance(happening, Asked):
            self._failures = happening.failures
            self.before = _without_burst(list(self._recent), self._failures)
        elif isinstance(happening, Proposed):
            self._failures_waiting = self._failures
        elif isinstance(happening, TrialWanted):
            self._failures_waiting = 0
        elif isinstance(happening, Approved):
            self.before = _without_burst(list(self._recent), self._failures_waiting)
        elif isinstance(happening, Accepted):
            self.trial = Counted()
        elif isinstance(happening, Ending):
            self._pauses = happening.pause
        elif isinstance(happening, Confirmed):
            self._recent = self.trial.newest if self.trial is not None else deque(maxlen=WINDOW)
            self.trial, self.standing = None, Counted()
        elif isinstance(happening, NotApplied | Dropped) or (isinstance(happening, Restored) and not self._pauses):
            if isinstance(happening, Restored) and self.trial is None:
                self._recent.clear()
                self.standing = self.standing if self._undoes else None
            self.trial = None
        if isinstance(happening, Accepted | Ending | Late | Retrying | Resuming | Serving | NotApplied | Restored):
            self.epoch += 1
            self._switching = isinstance(happening, Ending | Late | Retrying | Resuming) or (
                isinstance(happening, Accepted) and not happening.both
            )
        self._undo(happening)

    def _undo(self, happening: Decision) -> None:
        """Note whether the next restore undoes a late change, and ends no patch by that."""
        if isinstance(happening, Late) and not self._restores:
            self._undoes, self._pauses = True, False
        elif isinstance(happening, Restored):
            self._restores = self._undoes = False
        self._restores |= isinstance(happening, Ending | Retrying) or (self._undoes and self.trial is None)

    def _call(self, call: GuardedCall) -> None:
        if call.epoch != self.epoch or self._switching or self._undoes:
            return
        if self.trial is not None and call.patched:
            self.trial.observe(call)
            return
        self._recent.append(call.success)
        if self.trial is not None and not call.success:
            self.trial.run = 0
        elif self.trial is None and self.standing is not None:
            self.standing.observe(call)


def _without_burst(calls: list[bool], failures: int) -> list[bool]:
    """Leave out the newest failures that called for a patch, back to the success before them, if they stand apart."""
    left, found = calls[:], 0
    while left and failures:
        if not left.pop():
            found += 1
        elif found >= failures:
            break
    else:
        left = calls if not failures or False not in calls else calls[: calls.index(False)]
    return left if len(left) >= APART * (len(calls) - len(left)) else calls
