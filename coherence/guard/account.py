"""All that is known of one agent's calls and of its patch, made from its trail alone."""

from __future__ import annotations

import msgspec

from coherence.guard.baseline import CallOutcome, Recent
from coherence.guard.monotonic import SteadyClock
from coherence.guard.patch_events import Decision, GuardedCall
from coherence.guard.patches import Patching
from coherence.guard.rolling import Rolling
from coherence.guard.trigger import Trigger

LEAST_LATENCY_S = 0.001
"""Shorter calls count as so long when patches are judged: below it, what caches hold decides, not a configuration."""


class Account(msgspec.Struct):
    """The sum of a trail: equal trails give equal accounts, in whichever process. A call costs the same at any length.

    Examples
    --------
    >>> account = Account()
    >>> for at, success in enumerate((True, False)):
    ...     account.observe(1000.0 + at, GuardedCall(success, duration_s=0.5, epoch=0))
    >>> account.seq, account.rolling.failures, account.clock.now_s, account.patching.phase
    (2, 1, 1001.0, 'idle')
    """

    seq: int = 0
    """The number of the newest entry."""
    clock: SteadyClock = msgspec.field(default_factory=SteadyClock)
    rolling: Rolling = msgspec.field(default_factory=Rolling)
    trigger: Trigger = msgspec.field(default_factory=Trigger)
    recent: Recent = msgspec.field(default_factory=Recent)
    """Calls of the configuration without a patch on trial."""
    patching: Patching = msgspec.field(default_factory=Patching)

    @property
    def now_s(self) -> float:
        """Steady time of the newest entry, seconds; 0 before the first."""
        return self.clock.now_s or 0.0

    def observe(self, at: float, happening: GuardedCall | Decision) -> None:
        """Take in the next entry of the trail; ``at`` is its wall time, Unix seconds."""
        now_s = self.clock.read(at)
        self.seq += 1
        if isinstance(happening, GuardedCall):
            call = happening
            self.rolling.record(
                self.seq, now_s, success=call.success, latency_s=call.duration_s, cost=call.cost, index=call.index
            )
            latency_s = None if call.duration_s is None else max(call.duration_s, LEAST_LATENCY_S)
            outcome = CallOutcome(call.success, latency_s, call.cost, call.index)
            self.patching.take_call(call, outcome, self.recent)
            return
        was_applied = self._applied()
        self.patching.observe(happening, now_s, self.recent, self.seq)
        if self._applied() and not was_applied:
            self.trigger.improved(self.rolling, now_s)
        elif happening.kind in ("declined", "proposed"):
            self.trigger.answered(self.rolling, now_s)
        elif self.patching.phase == "idle" and happening.kind in ("not_applied", "restored", "dropped"):
            self.trigger.failures_before = self.rolling.failures  # so many again until the next patch is asked for

    def _applied(self) -> bool:
        trial = self.patching.trial
        return trial is not None and trial.applied > 0
