"""One agent's patch: on trial, confirmed and watched, or rolled back. Pure: what happened comes in, the next step out.

::

    idle ── failures ──> asking ────┐
      │                             ├── proposal ──> applying ──> serving <──slices──> paused
      ├── a person approved ──> reviewing               │            │                   │
      └── declined, withheld, not applied, restored, dropped, confirmed ── restoring <───┘

Whoever does something outside (asks, applies, restores) claims it first by an entry of the trail that names it as the
owner. A claim of a process that has gone is taken over after :data:`LEASE_S`. What a person wants stands in the trail
until a process that can has done it: a rollback comes before all else.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from coherence.guard.baseline import Baseline, CallOutcome, Recent
from coherence.guard.degradation import DecayWatch
from coherence.guard.memory import PatchMemory, digest_of
from coherence.guard.patch_events import Decision, GuardedCall, Notice
from coherence.guard.patch_state import (
    UNPATCHED_BURST,
    UNPATCHED_CALLS,
    OnTrial,
    Phase,
    Standing,
    Waiting,
    Watching,
    Wish,
    salt_of,
)
from coherence.guard.verdict import Trial

LEASE_S = 120.0
"""After so many seconds what a process has claimed is taken over; it takes its adapter less."""

BACKOFF_S, MAX_BACKOFF_S = 1.0, 3600.0
"""A restore that failed is tried again after so long, then after twice as long each time, up to an hour."""

_CHANGES = ("accepted", "serving", "not_applied", "ending", "retrying", "restored", "late", "resuming")
"""After these another configuration may be in force."""


class Patching(msgspec.Struct):
    """State of an agent's patch. It changes by calls and by the entries of the trail, in their order."""

    phase: Phase = "idle"
    number: int = 0
    """Patches accepted so far; the newest one's number."""
    epoch: int = 0
    """Grows whenever the configuration changes, or begins to: a call of another epoch cannot be assigned to one."""
    owner: str = ""
    """Process that does what the phase is about; empty = none."""
    claimed_s: float = 0.0
    """Steady time of the claim, seconds."""
    attempts: int = 0
    """Restores that failed, for this patch."""
    retry_s: float = 0.0
    """Steady time of the next attempt, seconds."""
    pauses: bool = False
    """True = the trial goes on after the restore."""
    ending: str = ""
    """Reason why the patch whose restore was begun last is rolled back; empty for a pause."""
    failures: int = 0
    """Failures that called for the patch that is being asked for."""
    before: Baseline = Baseline()
    """Summary of the calls before those."""
    trial: OnTrial | None = None
    standing: Standing | None = None
    unpatched: Watching | None = None
    """The watch on a configuration that came without a patch; None = too few calls, or a patch is confirmed."""
    waiting: Waiting | None = None
    wish: Wish | None = None
    undo: dict[str, Any] | None = None
    """The configuration to restore, because one was changed by a process whose claim had been taken over."""
    memory: PatchMemory = msgspec.field(default_factory=PatchMemory)

    @property
    def holder(self) -> OnTrial | Standing | None:
        """The patch on trial, or the confirmed one."""
        return self.trial or self.standing

    @property
    def watching(self) -> Watching | None:
        """The watch on the configuration without a patch on trial, once there is one."""
        return self.standing or self.unpatched

    @property
    def backup(self) -> dict[str, Any] | None:
        """The configuration that a restore brings back."""
        if self.trial is None and self.undo is not None:
            return self.undo
        return None if self.holder is None else self.holder.backup

    def holds(self, number: int) -> bool:
        """Return whether a patch is on trial or confirmed, by its number."""
        return any(held is not None and held.number == number for held in (self.trial, self.standing))

    @property
    def approved(self) -> bool:
        """Return whether the patch that waits is approved, and nobody has taken it up."""
        return self.waiting is not None and self.waiting.approved is not None

    @property
    def requested(self) -> bool:
        """Return whether a person wants something that nobody has begun."""
        return self.wish is not None or self.approved

    @property
    def pends(self) -> bool:
        """Return whether something is to be done without a call: a request, or a claim whose process may have gone."""
        return self.requested or self.phase not in ("idle", "serving", "paused")

    @property
    def rests(self) -> bool:
        """Return whether there is nothing to do until the next call."""
        return self.phase == "idle" and not self.requested

    def take_call(self, call: GuardedCall, outcome: CallOutcome, recent: Recent) -> None:
        """Take in a call; ``recent`` is the account of the configuration in force without a patch on trial."""
        trial = self.trial
        if trial is not None:
            # each one, or a trial whose calls can never be assigned would stay open for ever
            trial.calls += 1
        # nobody knows which configuration served it
        if call.epoch != self.epoch or self.undo is not None:
            return
        if self.phase in ("serving", "paused") and trial is not None:
            trial.observe(outcome, call.patched)
            if call.patched:
                return
        elif self.phase not in ("idle", "asking", "reviewing"):
            return
        recent.observe(outcome)
        if self.standing is not None:
            if self.phase == "idle":
                self.standing.observe(outcome)
        elif self.unpatched is not None:
            self.unpatched.observe(outcome)
        elif len(recent.newest) >= UNPATCHED_CALLS:
            self.unpatched = Watching(DecayWatch.begin(recent.freeze(UNPATCHED_BURST)))

    def observe(self, step: Decision, now_s: float, recent: Recent, seq: int) -> None:
        """Take in one entry of the trail that is no call; ``seq`` is its number."""
        waiting, holder = self.waiting, self.holder
        match step.kind:
            case "asked":
                self._claim("asking", step.owner, now_s)
                # now: calls that fail while the strategy thinks are no part of the baseline
                self.failures, self.before = step.failures, recent.freeze(step.failures)
            case "proposed":
                self.waiting = Waiting(step.patch, step.why, seq, self.failures)
                self._rest("idle")
            case "trial_wanted":
                why = "a person proposed it"
                self.waiting = Waiting(step.patch, why, seq, failures=0, approved=step.why, approved_s=now_s)
            case "approval_wanted" if waiting is not None and step.proposed_seq == waiting.seq:
                self.waiting = replace(waiting, approved=step.why, approved_s=now_s)
            case "approved" if waiting is not None:
                self._claim("reviewing", step.owner, now_s)
                self.failures, self.before = waiting.failures, recent.freeze(waiting.failures)
            case "withheld" if waiting is not None:
                self.waiting = replace(waiting, approved=None) if step.waits else None
                self._rest("idle")
            case "refused" if waiting is not None:
                self.memory.add(waiting.patch, now_s, seq)
                self.waiting = None
            case "rollback_wanted":
                self.wish = Wish(step.number, step.why, now_s)
            case "accepted":
                self._accept(step, now_s)
            case "serving":
                self._rest("serving")
                if self.trial is not None:
                    # an adapter that serves both is asked to apply a patch only for good
                    self.trial.applied, self.trial.both = self.trial.applied + 1, False
            case "ending":
                self.attempts, self.pauses, self.ending = 0, step.pause, "" if step.pause else step.why
                self._claim("restoring", step.owner, now_s)
            case "retrying":
                self._claim("restoring", step.owner, now_s)
            case "restore_failed":
                self.retry_s = now_s + min(BACKOFF_S * 2.0 ** min(self.attempts, 20), MAX_BACKOFF_S)
                # without an owner: any process may try next
                self.attempts, self.owner = self.attempts + 1, ""
            case "restored" if self.pauses:
                self._rest("paused")
            case "restored" if self.trial is None and self.undo is not None:
                self.undo = None
                _forget(recent)
                self._rest("idle")
            case "late":
                self._late(step, now_s)
            case "resuming":
                self._claim("applying", step.owner, now_s)
                self.pauses = False
            case "confirmed":
                self._confirm(recent)
            case "decayed":
                if (watching := self.watching) is not None:
                    watching.alerts, watching.told = watching.alerts[1:], seq
                if self.standing is not None:
                    self.standing.leaving = step.why if step.returns else ""
            case "declined" | "not_applied" | "restored" | "dropped":
                if holder is not None and step.kind != "declined":
                    self.memory.add(holder.patch, now_s, seq)
                if step.kind == "restored":
                    self.undo = None
                    if self.trial is None:
                        self.standing = None
                        _forget(recent)  # those were calls of the configuration that has been left
                self.trial = None
                self._rest("idle")
                if self.undo is not None:
                    self._restore_now(now_s)
        self.epoch += step.kind in _CHANGES
        # what it asked for has come about in another way
        if self.wish is not None and not self.holds(self.wish.number):
            self.wish = None

    def _claim(self, phase: Phase, owner: str, now_s: float) -> None:
        self.phase, self.owner, self.claimed_s = phase, owner, now_s

    def _rest(self, phase: Phase) -> None:
        self.phase, self.owner, self.pauses = phase, "", False

    def _late(self, step: Decision, now_s: float) -> None:
        """Have the configuration restored: once more, at once, or with the end of the patch on trial."""
        if self.phase == "restoring":
            self.owner, self.retry_s = "", now_s
            return
        self.undo, self.ending = step.backup, step.why
        if self.trial is None:
            self._restore_now(now_s)
        else:
            self.wish = self.wish or Wish(self.trial.number, step.why, now_s)

    def _restore_now(self, now_s: float) -> None:
        self._rest("restoring")
        self.attempts, self.retry_s = 0, now_s

    def _accept(self, step: Decision, now_s: float) -> None:
        self.waiting = None
        self.number += 1
        salt = salt_of(self.number, step.share, step.slice)
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
            # in place, as the account holds the same object
            recent.newest[:], recent.at = trial.served.newest, trial.served.at
            watch = DecayWatch.begin(recent.freeze())
            self.standing = Standing(number=trial.number, patch=trial.patch, backup=trial.backup, watch=watch)
            self.unpatched = None
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
            Whether a confirmed configuration that got worse gives way to the one before it; one that came without a
            patch has none.
        """
        if self.phase == "idle":
            # away from a patch first: an approved one may wait, a harmful one may not
            return self._wanted(owner) or self._leaves(owner, returns=returns) or self._approved(owner)
        if self.phase in ("serving", "paused"):
            return self._wanted(owner) or self._judges(owner) or self._reports(returns=False)
        if self.owner and now_s < self.claimed_s + LEASE_S:
            return None
        if self.phase == "asking":
            return Decision("declined", why="the process that asked has gone")
        if self.phase == "reviewing":
            return self._approved(owner)
        if self.phase == "applying":
            # it may have applied a half: that is restored, and not tried again
            return Decision("ending", owner=owner, why="the process that applied it has gone")
        return Decision("retrying", owner=owner) if self.owner or now_s >= self.retry_s else None

    def settled(self, result: Decision, now_s: float) -> Decision:
        """Return what becomes of what a strategy has proposed, or a person approved, by what has happened since."""
        if result.kind not in ("accepted", "proposed"):
            return result
        if self.phase == "reviewing":
            if self.wish is None:
                return result
            return Decision("withheld", patch=result.patch, why="a rollback was asked for meanwhile", waits=True)
        # what a person wants goes before a proposal that was made without knowing it
        if self.requested:
            return Decision("declined", why="a person has decided meanwhile")
        held, waiting = self.standing, self.waiting
        if held is not None and digest_of(held.patch) == digest_of(result.patch):
            return Decision("declined", why="the patch is in force already")
        if result.kind == "proposed" and waiting and digest_of(waiting.patch) == digest_of(result.patch):
            return Decision("declined", why="the same patch waits for a person already")
        why = self.memory.refuses(result.patch, now_s)
        return Decision("declined", why=why) if why else result

    def _wanted(self, owner: str) -> Decision | None:
        wish, trial = self.wish, self.trial
        if wish is None:
            return None
        in_force = self.phase == "idle" or (self.phase == "serving" and trial is not None and not trial.both)
        return Decision("ending", owner=owner, why=wish.why) if in_force else Decision("dropped", why=wish.why)

    def _approved(self, owner: str) -> Decision | None:
        waiting = self.waiting
        if waiting is None or waiting.approved is None:
            return None
        return Decision("approved", owner=owner, patch=waiting.patch, why=waiting.approved)

    def _leaves(self, owner: str, *, returns: bool) -> Decision | None:
        standing = self.standing
        if report := self._reports(returns=returns and standing is not None):
            return report
        if standing is None or not standing.leaving:
            return None
        return Decision("ending", owner=owner, why=standing.leaving)

    def _reports(self, *, returns: bool) -> Decision | None:
        watching = self.watching
        if watching is None or not watching.alerts:
            return None
        return Decision("decayed", metric=watching.alerts[0].metric, why=watching.alerts[0].why, returns=returns)

    def _judges(self, owner: str) -> Decision | None:
        trial = self.trial
        if trial is None:
            return None
        verdict, serving = trial.verdict(), self.phase == "serving"
        if verdict.kind == "roll_back":
            in_force = serving and not trial.both
            return Decision(
                "ending" if in_force else "dropped", owner=owner if in_force else "", why=verdict.why,
                metric=verdict.metric, evidence=verdict.evidence, limit=verdict.limit,
            )  # fmt: skip
        if verdict.kind == "promote":
            if serving and not trial.both:
                return Decision("confirmed", why=verdict.why, evidence=verdict.evidence, limit=verdict.limit)
            # it is confirmed once it serves all calls, and the configuration shows it
            return Decision("resuming", owner=owner)
        if trial.wanted() == serving:
            return None
        if not serving:
            return Decision("resuming", owner=owner)
        why = f"held: {trial.trial.verdict.why}" if trial.held else "slice"
        return Decision("ending", owner=owner, pause=True, why=why)


def _forget(recent: Recent) -> None:
    recent.newest.clear()
    recent.at = 0


_QUIET = ("asked", "declined", "resuming", "retrying", "trial_wanted", "approval_wanted", "rollback_wanted")
"""Of these nobody is notified: they come to nothing, or another entry follows."""


def notice_of(agent: str, before: Patching, step: Decision) -> Notice | None:
    """Return the notice of a step, or None: slices give none, and of restores that fail only the first does.

    Parameters
    ----------
    agent : str
        Whose patch it is.
    before : Patching
        Where the patch stood when the step was decided on.
    step : Decision
        What was decided.

    Examples
    --------
    >>> notice_of("support", Patching(ending="success fell"), Decision("restored")).why
    'success fell'
    """
    if step.kind in _QUIET or (step.kind == "ending" and step.pause):
        return None
    if (step.kind == "restore_failed" and before.attempts) or (step.kind == "restored" and before.pauses):
        return None
    if step.kind == "serving" and before.trial is not None and before.trial.applied:
        return None
    why = before.ending if step.kind == "restored" else step.why
    holder = before.standing if step.kind == "decayed" else before.holder
    patch = step.patch or (None if holder is None else holder.patch)
    return Notice(agent, step.kind, why, None if patch is None else dict(patch))
