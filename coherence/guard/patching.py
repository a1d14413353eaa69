"""One agent's patch: on trial, confirmed and watched, or rolled back. Pure: what happened comes in, the next step out.

::

    idle ── failures ──> asking ── proposal ──> applying ──> serving <──slices──> paused
      ^                    │                       │            │                   │
      └── declined, not applied, restored, dropped, confirmed ──┴── restoring <─────┘

Whoever does something outside (asks, applies, restores) claims it first by an entry of the trail that names it as the
owner. A claim of a process that has gone is taken over after :data:`LEASE_S`.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from coherence.guard import classic
from coherence.guard.baseline import Baseline, CallOutcome, Recent
from coherence.guard.canary import HashCanary, SlicedCanary
from coherence.guard.decay import Alert, DecayWatch
from coherence.guard.happenings import (
    Accepted,
    Asked,
    Call,
    Confirmed,
    Decayed,
    Decision,
    Declined,
    Dropped,
    Ending,
    NotApplied,
    Policy,
    Proposed,
    Restored,
    RestoreFailed,
    Resuming,
    Retrying,
    Serving,
)
from coherence.guard.verdict import MOST_CALLS, Trial, Verdict

Phase: TypeAlias = Literal["idle", "asking", "applying", "serving", "paused", "restoring"]

LEASE_S = 120.0
"""After so many seconds what a process has claimed is taken over; it takes its adapter less."""

BACKOFF_S, LONGEST_BACKOFF_S = 1.0, 3600.0
"""A restore that failed is tried again after so long, then after twice as long each time, up to an hour."""

MOST_OPEN = 10
"""A trial is given up after so many times the calls that a verdict needs at most, if they could not be compared."""


class OnTrial(msgspec.Struct):
    """A patch without a verdict."""

    number: int
    patch: dict[str, Any]
    backup: dict[str, Any]
    policy: Policy
    share: float
    slice: int
    both: bool
    salt: str
    trial: Trial
    before: classic.Metrics
    after: classic.Tally = msgspec.field(default_factory=classic.Tally)
    calls: int = 0
    """All calls since it was accepted."""
    served: Recent = msgspec.field(default_factory=Recent)
    """The calls it served."""
    applied: int = 0
    """How often it came into force: for every slice again."""

    def serves(self, phase: Phase, call_id: str) -> bool:
        """Tell whether it serves a call that begins now."""
        if self.both:
            return phase == "serving" and HashCanary(self.share, self.salt).patched(call_id)
        return phase == "serving"

    def take(self, outcome: CallOutcome, patched: bool) -> None:
        """Take in a call of which it is known which configuration served it."""
        if not patched:
            self.trial.compare(outcome)
            return
        self.served.take(outcome)
        self.trial.take(outcome)
        self.after.take(outcome)

    def verdict(self) -> Verdict:
        """Return what is to be done now."""
        if self.policy == "sequential":
            found = self.trial.verdict
        elif rule := classic.rolled_back(self.before, self.after):
            found = Verdict("roll_back", f"the classic rule on {rule}, after {self.after.calls} calls", rule)
        elif self.after.calls >= MOST_CALLS:
            found = Verdict("promote", f"no classic rule in {self.after.calls} calls")
        else:
            found = Verdict("keep_looking")
        if found.kind == "keep_looking" and self.calls * self.share >= MOST_OPEN * MOST_CALLS:
            return Verdict("roll_back", f"{self.calls} calls could not be compared")
        return found

    def wanted(self) -> bool:
        """Tell whether the patch should be in force for the next call, by slices."""
        return self.both or SlicedCanary(self.share, self.salt, self.slice).patched(self.calls)


class Standing(msgspec.Struct):
    """A confirmed patch, watched."""

    number: int
    patch: dict[str, Any]
    backup: dict[str, Any]
    watch: DecayWatch
    alert: Alert | None = None
    """What has got worse and was not told yet."""
    leaving: str = ""
    """Why the configuration before it is to be restored, or empty."""


class Patching(msgspec.Struct):
    """Where an agent's patch stands. It changes by calls and by the entries of the trail, in their order."""

    phase: Phase = "idle"
    number: int = 0
    """Patches accepted so far; the newest one's number."""
    epoch: int = 0
    """Grows whenever the configuration changes, or begins to: a call of another epoch cannot be assigned to one."""
    owner: str = ""
    """Who does what the phase is about; empty = nobody."""
    claimed_s: float = 0.0
    """Steady time of the claim, seconds."""
    attempts: int = 0
    """Restores that failed, for this patch."""
    retry_s: float = 0.0
    """Steady time of the next attempt, seconds."""
    pauses: bool = False
    """Whether the trial goes on after the restore."""
    failures: int = 0
    """Failures that called for the patch that is being asked for."""
    before: Baseline = Baseline()
    """What calls were like before those."""
    trial: OnTrial | None = None
    standing: Standing | None = None

    def take_call(self, call: Call, outcome: CallOutcome, recent: Recent) -> None:
        """Take in a call; ``recent`` is the account of the configuration in force without a patch on trial."""
        trial = self.trial
        if trial is not None:
            trial.calls += 1
        if call.epoch != self.epoch:
            return
        if self.phase in ("serving", "paused") and trial is not None:
            trial.take(outcome, call.patched)
            if call.patched:
                return
        elif self.phase not in ("idle", "asking"):
            return
        recent.take(outcome)
        if self.standing is not None and self.phase == "idle":
            alerts = self.standing.watch.take(outcome)
            if alerts and self.standing.alert is None:
                self.standing.alert = alerts[0]

    def take(self, step: Decision, now_s: float, recent: Recent) -> None:
        """Take in one entry of the trail that is no call."""
        if isinstance(step, Asked):
            self._claim("asking", step.owner, now_s)
            self.failures, self.before = step.failures, recent.freeze(step.failures)
        elif isinstance(step, Accepted):
            self._accept(step, now_s)
        elif isinstance(step, Serving):
            self._rest("serving")
            if self.trial is not None:
                self.trial.applied, self.trial.both = self.trial.applied + 1, False
        elif isinstance(step, Ending | Retrying):
            if isinstance(step, Ending):
                self.attempts, self.pauses = 0, step.pause
            self._claim("restoring", step.owner, now_s)
            self.epoch += 1
        elif isinstance(step, RestoreFailed):
            self.retry_s = now_s + min(BACKOFF_S * 2.0 ** min(self.attempts, 20), LONGEST_BACKOFF_S)
            self.attempts, self.owner = self.attempts + 1, ""
        elif isinstance(step, Restored) and self.pauses:
            self._rest("paused")
        elif isinstance(step, Resuming):
            self._claim("applying", step.owner, now_s)
            self.pauses, self.epoch = False, self.epoch + 1
        elif isinstance(step, Confirmed):
            self._confirm(recent)
        elif isinstance(step, Decayed):
            if self.standing is not None:
                self.standing.alert = None
                self.standing.leaving = step.why if step.returns else ""
        elif isinstance(step, Declined | Proposed | NotApplied | Restored | Dropped):
            if isinstance(step, Restored) and self.trial is None:
                self.standing = None
                recent.newest.clear()  # those were calls of the configuration that has been left
                recent.at = 0
            self.trial = None
            self._rest("idle")
        if isinstance(step, Serving | NotApplied | Restored):
            self.epoch += 1

    def _claim(self, phase: Phase, owner: str, now_s: float) -> None:
        self.phase, self.owner, self.claimed_s = phase, owner, now_s

    def _rest(self, phase: Phase) -> None:
        self.phase, self.owner, self.pauses = phase, "", False

    def _accept(self, step: Accepted, now_s: float) -> None:
        self.number += 1
        self.epoch += 1
        salt = _salt(self.number, step.share, step.slice)
        trial = Trial.begin(self.before)
        self.trial = OnTrial(
            self.number,
            step.patch,
            step.backup,
            step.policy,
            step.share,
            step.slice,
            step.both,
            salt,
            trial,
            step.before,
        )
        if step.both:
            self.trial.applied = 1
            self._rest("serving")
        else:
            self._claim("applying", step.owner, now_s)

    def _confirm(self, recent: Recent) -> None:
        trial = self.trial
        if trial is not None:
            recent.newest[:], recent.at = trial.served.newest, trial.served.at
            watch = DecayWatch.begin(recent.freeze())
            self.standing = Standing(trial.number, trial.patch, trial.backup, watch)
        self.trial = None
        self._rest("idle")

    def due(self, owner: str, now_s: float, *, returns: bool) -> Decision | None:
        """Return the step to take now, or None.

        Parameters
        ----------
        owner : str
            Who would take it.
        now_s : float
            Steady time, seconds.
        returns : bool
            Whether a confirmed configuration that got worse gives way to the one before it.
        """
        if self.phase == "idle":
            return self._leaves(owner, returns=returns)
        if self.phase in ("serving", "paused"):
            return self._judges(owner)
        if self.owner and now_s < self.claimed_s + LEASE_S:
            return None
        if self.phase == "asking":
            return Declined(why="the process that asked has gone")
        if self.phase == "applying":
            return Ending(owner=owner, why="the process that applied it has gone")
        return Retrying(owner=owner) if self.owner or now_s >= self.retry_s else None

    def _leaves(self, owner: str, *, returns: bool) -> Decision | None:
        standing = self.standing
        if standing is None:
            return None
        if (alert := standing.alert) is not None:
            share = f"{alert.beyond} of the last {alert.calls} calls"
            why = f"{alert.metric} got worse: {share} are beyond what {alert.expected:.0%} were expected to be"
            return Decayed(metric=alert.metric, why=why, returns=returns)
        return Ending(owner=owner, why=standing.leaving) if standing.leaving else None

    def _judges(self, owner: str) -> Decision | None:
        trial = self.trial
        if trial is None:
            return None
        verdict, serving = trial.verdict(), self.phase == "serving"
        if verdict.kind == "roll_back":
            found = {"why": verdict.why, "metric": verdict.metric, "evidence": verdict.evidence, "limit": verdict.limit}
            return Ending(owner=owner, **found) if serving and not trial.both else Dropped(**found)  # type: ignore[arg-type]
        if verdict.kind == "promote":
            if serving and not trial.both:
                return Confirmed(why=verdict.why, evidence=verdict.evidence, limit=verdict.limit)
            return Resuming(owner=owner)
        if trial.wanted() == serving:
            return None
        return Ending(owner=owner, pause=True, why="slice") if serving else Resuming(owner=owner)


def _salt(number: int, share: float, length: int) -> str:
    """Return a salt with which the first slice is patched: whether a patch can be applied shows at once."""
    for attempt in range(10_000):
        salt = f"patch-{number}-{attempt}"
        if SlicedCanary(share, salt, length).patched(0):
            return salt
    return f"patch-{number}"
