"""The patches of one agent, by how far they have come: waiting for a person, on trial, confirmed."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, Literal, TypeAlias

import msgspec

from coherence.guard import classic
from coherence.guard.baseline import CallOutcome, Recent
from coherence.guard.degradation import Alert, DecayWatch
from coherence.guard.patch_events import Policy
from coherence.guard.verdict import MAX_CALLS, Trial, Verdict

Phase: TypeAlias = Literal["idle", "asking", "reviewing", "applying", "serving", "paused", "restoring"]

MAX_OPEN = 10
"""A trial is given up after so many times the calls that a verdict needs at most, if they could not be compared."""

FIRST_CALLS = 5
"""A patch serves so many calls in a row at first, whatever their hash: they show one that breaks everything."""

VOUCHERS = 10
"""So many unpatched calls show, after a patch was accepted, whether the baseline still holds. A patch that was worse
than it before that is held: it serves no call until they have shown it."""

VOUCHED = 0.55
"""It holds if they succeed at this share of its rate at least, and once in any case. Without that, an outage that goes
on when a patch is accepted would end most trials at once, however harmless the patch is."""

UNLIKELY = 0.02
"""It does not hold either if the first of them fail, and so many would at its rate with this probability at most: the
outage went on then, though it may end among the others."""


UNPATCHED_CALLS = 100
"""A configuration that came without a patch is watched from so many calls on."""

UNPATCHED_BURST = 5
"""The newest failures that are left out then, if they are a burst: an agent that has just begun to fail was not so."""


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
    placed: int = 0
    """Those that began and ended with one configuration in force: slices are counted by these, or none of many calls
    under way at once would ever lie within one."""
    served: Recent = msgspec.field(default_factory=Recent)
    """The calls it served."""
    applied: int = 0
    """Number of times that it came into force: once more for every slice."""
    vouchers: tuple[int, int] | None = (0, 0)
    """Unpatched calls so far and how many of them succeeded; None = they have shown whether the baseline holds."""

    @property
    def held(self) -> bool:
        """Return True while it serves no call: it was worse than a baseline that may hold no longer."""
        return self.policy == "sequential" and self.vouchers is not None and self.trial.verdict.kind == "roll_back"

    def serves(self, phase: Phase, call_id: str) -> bool:
        """Return whether it serves a call that begins now."""
        if phase != "serving" or self.held:
            return False
        return not self.both or self.calls < FIRST_CALLS or in_share(self.share, self.salt, call_id)

    def observe(self, outcome: CallOutcome, patched: bool) -> None:
        """Take in a call of which it is known which configuration served it."""
        self.placed += 1
        if not patched:
            self.trial.compare(outcome)
            if self.vouchers is not None:
                self._vouch(*self.vouchers, outcome.success)
            return
        self.served.observe(outcome)
        self.trial.observe(outcome)
        self.after.observe(outcome)

    def _vouch(self, calls: int, good: int, success: bool) -> None:
        """Count an unpatched call; if they are not as before, what was found by the baseline alone is void."""
        calls, good = calls + 1, good + success
        before = self.trial.baseline
        needed = max(round(VOUCHERS * VOUCHED * before.successes / max(before.calls, 1)), 1)
        failing = (before.calls - before.successes + 1.0) / (before.calls + 1.0)
        lost = calls - good > VOUCHERS - needed or (not good and failing**calls <= UNLIKELY)
        if lost:
            self.trial.reprieve()
        self.vouchers = None if lost or good >= needed else (calls, good)

    def verdict(self) -> Verdict:
        """Return what is to be done now."""
        if self.held:
            found = Verdict("keep_looking")
        elif self.policy == "sequential":
            found = self.trial.verdict
        elif rule := classic.rolled_back(self.before, self.after):
            found = Verdict("roll_back", f"the classic rule on {rule}, after {self.after.calls} calls", rule)
        elif self.after.calls >= MAX_CALLS:
            found = Verdict("promote", f"no classic rule in {self.after.calls} calls")
        else:
            found = Verdict("keep_looking")
        if found.kind == "keep_looking" and self.calls * self.share >= MAX_OPEN * MAX_CALLS:
            return Verdict("roll_back", f"{self.calls} calls could not be compared")
        return found

    def wanted(self) -> bool:
        """Return whether the patch should be in force for the next call, by slices."""
        return self.both or (not self.held and in_slice(self.share, self.salt, self.slice, self.placed))


class Watching(msgspec.Struct):
    """A configuration that is watched."""

    watch: DecayWatch
    alerts: tuple[Alert, ...] = ()
    """Alerts that were not reported yet, one of each metric at most."""
    told: int = 0
    """The entry that reported one the newest time; 0 = none has."""

    def observe(self, outcome: CallOutcome) -> None:
        """Take in a call that it served."""
        found = self.watch.observe(outcome)
        if found:
            waiting = {alert.metric for alert in self.alerts}
            self.alerts += tuple(alert for alert in found if alert.metric not in waiting)


class Standing(Watching, kw_only=True):
    """A confirmed patch, watched."""

    number: int
    patch: dict[str, Any]
    backup: dict[str, Any]
    leaving: str = ""
    """Reason why the configuration before it is to be restored, or empty."""


class Waiting(msgspec.Struct, frozen=True):
    """A proposed patch that waits for a person."""

    patch: dict[str, Any]
    why: str
    """Reason why it is not applied."""
    seq: int
    """The entry that proposed it."""
    failures: int
    """Failures that called for it."""
    approved: str | None = None
    """Reason of the person who approved it; None = nobody has."""
    approved_s: float = 0.0
    """Steady time of that, seconds."""


class Wish(msgspec.Struct, frozen=True):
    """A rollback that a person wants and nobody has begun."""

    number: int
    """The patch's number."""
    why: str
    at_s: float
    """Steady time at which it was asked for, seconds."""


def salt_of(number: int, share: float, length: int) -> str:
    """Return a salt with which the first slice is patched: whether a patch can be applied shows at once."""
    # at the least share, 0.01, that none fits has a chance of 0.99**10_000 = 2e-44
    for attempt in range(10_000):
        salt = f"patch-{number}-{attempt}"
        if in_slice(share, salt, length, 0):
            return salt
    return f"patch-{number}"


_WHOLE = 2**64


def in_share(share: float, salt: str, call_id: str) -> bool:
    """Return whether a call is among a share of calls: the same in every process and after every restart.

    It is if 64 bits of BLAKE2b (RFC 7693) of salt and id, as a fraction of 2**64, lie below the share. With the same
    salt a larger share keeps the calls of a smaller one; another salt draws anew.

    Examples
    --------
    >>> sum(in_share(0.1, "patch-1", f"call-{number}") for number in range(1000))
    89
    """
    return _hashed(salt, call_id) < int(share * _WHOLE)


def in_slice(share: float, salt: str, length: int, number: int) -> bool:
    """Return whether a call lies in a patched slice, for a configuration that can only be switched for all calls.

    Slice ``k`` holds the calls ``k * length`` to ``(k + 1) * length - 1``. Patched slices are spread evenly by
    systematic sampling with a start that depends on the salt (Cochran 1977, Sampling Techniques, ch. 8): among any
    ``n`` slices in a row they are ``n * share``, give or take one. A load that repeats with the period of the patched
    slices is met at the same place each time; a length that does not divide its period avoids that.

    Examples
    --------
    >>> "".join("x" if in_slice(0.25, "patch-1", 5, number) else "." for number in range(40))
    '..........xxxxx...............xxxxx.....'
    """
    step = int(share * _WHOLE)
    return (number // length * step + _hashed(salt, "")) % _WHOLE + step >= _WHOLE


def _hashed(salt: str, call_id: str) -> int:
    """Return 64 bits; the length before the salt keeps ("a", "bc") and ("ab", "c") apart."""
    text = f"{len(salt)}:{salt}{call_id}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big")
