"""The patches of one agent, by how far they have come: waiting for a person, on trial, confirmed."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from coherence.guard import classic
from coherence.guard.baseline import CallOutcome, Recent
from coherence.guard.canary import HashCanary, SlicedCanary
from coherence.guard.decay import Alert, DecayWatch
from coherence.guard.happenings import Policy
from coherence.guard.verdict import MOST_CALLS, Trial, Verdict

Phase: TypeAlias = Literal["idle", "asking", "reviewing", "applying", "serving", "paused", "restoring"]

MOST_OPEN = 10
"""A trial is given up after so many times the calls that a verdict needs at most, if they could not be compared."""

FIRST_CALLS = 5
"""A patch serves so many calls in a row at first, whatever their hash: they show one that breaks everything."""


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
        if phase != "serving":
            return False
        return not self.both or self.calls < FIRST_CALLS or HashCanary(self.share, self.salt).patched(call_id)

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


class Waiting(msgspec.Struct, frozen=True):
    """A proposed patch that waits for a person."""

    patch: dict[str, Any]
    why: str
    """Why it is not applied."""
    seq: int
    """The entry that proposed it."""
    failures: int
    """Failures that called for it."""
    approved: str | None = None
    """Why a person has approved it; None = nobody has."""
    approved_s: float = 0.0
    """Steady time of that, seconds."""


class Wish(msgspec.Struct, frozen=True):
    """A rollback that a person wants and nobody has begun."""

    number: int
    """The patch's number."""
    why: str
    at_s: float
    """Steady time at which it was asked for, seconds."""
