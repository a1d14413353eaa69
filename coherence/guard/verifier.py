"""Every rollback derived again from the trail alone, as :mod:`~coherence.guard.export` writes it.

The trail is folded from its first entry. Before each step that the guard takes by rule (ending, dropping, confirming,
resuming, retrying, telling of a decay), the rule is asked what is due: it must be that step, with the same words and
evidence. Order and numbers are checked, that nothing is applied twice without a restore between, and whether calls can
have been served by what they say. What decided is counted a second time by :mod:`~coherence.guard.recount`.

What cannot be seen in a trail, for nobody has signed it:

- a call that was altered, or left out with all numbers moved up, where no decision depends on it;
- a trail that was made up as a whole by these rules, or that ends earlier than it did;
- who asked for a rollback: that a person has asked is an entry like others, and the rollback is listed as by hand;
- what the adapter did, and whether a patch could not be applied, as its owner says. A backup that was altered shows
  only where the next patch reads another configuration, and so does a change by the owner of the configuration: both
  are remarks;
- what the strategy proposed, and with hash canaries which calls of those on trial the patch served.

A step that was left out shows by the epochs of the calls after it. Calls that were pruned are missing at the beginning:
what depends on them is unknown, and a trail whose first calls somebody has removed looks the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from coherence.guard.account import Account
from coherence.guard.adapter import FAILED
from coherence.guard.basis import Basis
from coherence.guard.export import TrailEntry, TrailError
from coherence.guard.patch_events import (
    Accepted,
    ApprovalWanted,
    Approved,
    Asked,
    Confirmed,
    Decayed,
    Decision,
    Declined,
    Dropped,
    Ending,
    GuardedCall,
    NotApplied,
    Proposed,
    Refused,
    Restored,
    RestoreFailed,
    Resuming,
    Retrying,
    RollbackWanted,
    Serving,
    TrialWanted,
    Withheld,
    kind_of,
)
from coherence.guard.patch_state import Phase
from coherence.guard.patches import Patching
from coherence.guard.recount import Recount
from coherence.guard.requests import refusal, wanted_approval, wanted_rollback, wanted_trial
from coherence.guard.verified import MAX_TOLD, Derived, Remark, Rollback, Verified

_PHASES: dict[type, tuple[Phase, ...]] = {
    Asked: ("idle",),
    Declined: ("asking",),
    Proposed: ("asking",),
    Approved: ("idle", "reviewing"),
    Withheld: ("reviewing",),
    Accepted: ("asking", "reviewing"),
    Serving: ("applying",),
    NotApplied: ("applying",),
    Ending: ("idle", "applying", "serving"),
    Retrying: ("restoring",),
    RestoreFailed: ("restoring",),
    Restored: ("restoring",),
    Resuming: ("serving", "paused"),
    Confirmed: ("serving",),
    Dropped: ("serving", "paused"),
    Decayed: ("idle", "serving", "paused"),
}
_BY_RULE = (Approved, Ending, Retrying, Resuming, Confirmed, Dropped, Decayed)
_RESULTS = (Declined, Proposed, Withheld, Accepted, Serving, NotApplied, RestoreFailed, Restored)
"""What comes of a claim, by its owner."""

_GONE = "the process that asked has gone"


def verify_trail(entries: Iterable[TrailEntry]) -> Verified:
    r"""Derive every rollback of a trail again.

    Parameters
    ----------
    entries : Iterable of TrailEntry
        All of one agent's trail, oldest first, as :func:`~coherence.guard.export.read_entries` yields them.

    Raises
    ------
    TrailError
        For an entry with numbers that no guard writes; the message names the line.

    Examples
    --------
    >>> import io
    >>> from coherence.guard.export import read_entries
    >>> trail = io.BytesIO(
    ...     b'{"kind":"asked","seq":1,"at":1.0,"owner":"me","failures":0}\n{"kind":"serving","seq":2,"at":2.0}\n'
    ... )
    >>> found = verify_trail(read_entries(trail))
    >>> found.verdict, found.faults[1].what
    ('wrong', "'serving' cannot follow: the patch is at 'asking'")
    """
    check = _Check()
    for entry in entries:
        try:
            check.observe(entry)
        except TrailError:
            raise
        except (TypeError, ValueError, ArithmeticError) as error:
            raise TrailError(f"line {entry.line} is no entry of a guard's trail: {error}") from error
    return check.end()


class _Check:
    def __init__(self) -> None:
        self.found = Verified(rollbacks=[], faults=[], remarks=[])
        self.account = Account()
        self.recount = Recount()
        self.basis = Basis()
        self.served: dict[int, set[bool]] = {0: {False}}
        """By epoch: whether a call that began in it can have been served by a patch."""
        self.open: Rollback | None = None
        """Of which the restore is under way."""
        self.restored: tuple[dict[str, object], Rollback] | None = None
        self.due: int | None = None
        self.asked: list[tuple[float, float]] = []
        """What the means of the newest calls were since a patch was asked for."""

    def observe(self, entry: TrailEntry) -> None:
        found, happening = self.found, entry.happening
        self._number(entry)
        found.entries += 1
        if happening is None:
            self._remark(entry.seq, f"of a kind that this version does not know: {entry.kind!r:.80}")
            self.basis.lose(f"entry {entry.seq} is of a kind that this version does not know", for_good=True)
            self.account.seq += 1
            return
        if isinstance(happening, GuardedCall):
            found.calls += 1
            self._call(entry.seq, happening)
        else:
            self._decision(entry, happening)
        self.recount.observe(happening)
        self.basis.observe(self.account, entry.at, happening)
        self._after(entry.seq, happening)

    def end(self) -> Verified:
        """Return what was found."""
        if self.open is not None and self.open.restored is None:
            self._remark(self.open.seq, f"the configuration before patch {self.open.patch} is not in force again")
        elif self.due is not None:
            self._remark(self.due, f"patch {self.account.patching.number} is to be rolled back since, and was not yet")
        return self.found

    def _number(self, entry: TrailEntry) -> None:
        found, expected = self.found, self.found.newest + 1
        found.first = found.first or entry.seq
        if entry.seq < expected:
            self._fault(entry.seq, f"its number does not follow, line {entry.line} comes after entry {found.newest}")
            self.basis.lose("entries are not in their order", for_good=True)
        elif entry.seq > expected:
            missing = f"entries {expected} to {entry.seq - 1} are missing"
            if found.calls:
                self._fault(entry.seq, f"{missing}, and only the oldest calls may be")
                self.basis.lose(missing, for_good=True)
            else:
                self.basis.lose(f"{missing}: calls that were pruned")
        found.newest = max(entry.seq, found.newest)
        self.account.seq = entry.seq - 1

    def _call(self, seq: int, call: GuardedCall) -> None:
        if self.basis.lost_for_good:
            return
        epoch = self.account.patching.epoch
        if call.epoch > epoch:
            self._fault(seq, f"the call began after {call.epoch} changes of the configuration, and {epoch} are known")
        elif call.patched not in self.served.get(call.epoch, {False} if call.epoch < 0 else {False, True}):
            served = "was" if call.patched else "was not"
            self._fault(seq, f"the call {served} served by the patch, it says, and cannot have been so when it began")

    def _decision(self, entry: TrailEntry, step: Decision) -> None:
        seq, patching, basis = entry.seq, self.account.patching, self.basis
        phases = _PHASES.get(type(step), (patching.phase,))
        if patching.phase not in phases:
            self._judge(seq, "no", f"{entry.kind!r} cannot follow: the patch is at {patching.phase!r}")
        elif isinstance(step, _RESULTS) and not patching.owner:
            self._judge(seq, "no", f"{entry.kind!r} cannot follow: nobody has claimed it")
        elif isinstance(step, Asked):
            left = self.account.rolling.failures - self.account.trigger.failures_before
            if basis.complete and not 1 <= step.failures <= left:
                self._judge(seq, "no", f"{step.failures} failures called for a patch, and {left} were counted")
        elif isinstance(step, TrialWanted | ApprovalWanted | Refused | RollbackWanted):
            if _differing(_request(self.account, step), step):
                self._judge(seq, "no", f"nothing of the kind could be asked for: {entry.kind!r}")
        elif isinstance(step, Accepted | Proposed):
            self._taken_up(entry, step)
        elif isinstance(step, _BY_RULE) or (isinstance(step, Declined) and step.why == _GONE):
            derived, why_not = self._derive(entry, step)
            self._judge(seq, derived, "" if derived == "unknown" else why_not)
            if isinstance(step, Dropped) or (isinstance(step, Ending) and not step.pause):
                self._rolled_back(seq, step, derived, why_not)

    def _taken_up(self, entry: TrailEntry, step: Accepted | Proposed) -> None:
        settled = self.account.patching.settled(step, self._now_s(entry))
        if isinstance(settled, Declined | Withheld):
            if self.basis.complete:
                self._judge(entry.seq, "no", f"{entry.kind!r} cannot follow: {settled.why}")
            else:
                self._judge(entry.seq, "unknown", "")
        if isinstance(step, Accepted):
            self._accepted(entry.seq, step)

    def _now_s(self, entry: TrailEntry) -> float:
        """Return the steady time of an entry that has not been taken in yet."""
        return msgspec.structs.replace(self.account.clock).read(entry.at)

    def _accepted(self, seq: int, step: Accepted) -> None:
        patching, means = self.account.patching, (step.before.success_rate, step.before.mean_latency_s)
        if step.owner != patching.owner:
            self._judge(seq, "no", "a patch is put on trial by another than who asked for it")
        if step.policy == "classic" and step.share != 1.0:
            self._judge(seq, "no", "a patch judged by the classic rules serves all calls")
        if step.policy == "classic" and self.basis.newest and means not in self.asked:
            if len(self.asked) == 1:
                self._judge(seq, "no", "the means of the calls before are not those of the newest 100 calls")
            else:
                self.basis.trial_lost = "what calls were like before was read while other processes recorded calls"
        if self.restored is not None and not self.basis.lost_for_good:
            config, rollback = self.restored
            rollback.read_again = step.backup == config
            if not rollback.read_again:
                what = f"the configuration read is not the one that was restored after patch {rollback.patch}"
                self._remark(seq, f"{what}: it was changed meanwhile, or not restored")
        self.restored = None

    def _derive(self, entry: TrailEntry, step: Decision) -> tuple[Derived, str]:
        """Tell whether a step is the one that is due, and if not, why not."""
        patching = self.account.patching
        returns = step.returns if isinstance(step, Decayed) else True
        due = patching.due(getattr(step, "owner", ""), self._now_s(entry), returns=returns)
        by_hand = patching.wish is not None and patching.phase in ("idle", "serving", "paused")
        if isinstance(step, Decayed):
            missing = self.basis.missing("idle", depends=True)  # by the watch, whatever is on trial
        else:
            missing = self.basis.missing(patching.phase, depends=not by_hand and patching.holder is not None)
        differs = _differing(due, step)
        if (not differs or _told_by_owner(patching, step)) and not missing:
            if against := self._against(step, patching):
                return "no", against
            return ("by hand" if by_hand else "yes"), ""
        if missing:
            return "unknown", missing
        if due is not None and type(due) is type(step):
            name = differs[0]
            return "no", f"{name} is {getattr(step, name)!r:.60}, and {getattr(due, name)!r:.60} follows from the calls"
        if patching.phase in ("asking", "reviewing", "applying", "restoring") and not self.basis.complete:
            return "unknown", "what time it was follows from all calls, and some were pruned"
        return "no", f"{'nothing' if due is None else repr(kind_of(due))} was due, not {entry.kind!r}"

    def _against(self, step: Decision, patching: Patching) -> str:
        """Return what the second count says against a rollback that was derived, or nothing."""
        trial, counted = patching.trial, self.recount.trial
        if trial is None or counted is None:
            return "" if trial is None else "no patch is on trial in the second count"
        told, again = (trial.after.calls, trial.after.calls - trial.after.successes), (counted.calls, counted.failures)
        if told != again:
            return f"{told[1]} of {told[0]} patched calls failed, and {again[1]} of {again[0]} by a second count"
        if isinstance(step, Ending | Dropped) and step.metric is not None:
            if trial.policy == "classic":
                rule = counted.classic(trial.before)
                return "" if rule == step.metric else f"the classic rule on {rule} holds by a second count"
            if step.metric == "failure_run" and not counted.run_explains(
                step.evidence, step.limit, self.recount.before
            ):
                return "no run of failures gives that evidence by a second count"
        return ""

    def _rolled_back(self, seq: int, step: Ending | Dropped, derived: Derived, why_not: str) -> None:
        patching, recount = self.account.patching, self.recount
        holder = patching.holder
        counted = recount.trial or recount.standing
        if derived == "by hand":
            rule = "by hand"
        elif patching.phase == "applying":
            rule = "not applied" if _told_by_owner(patching, step) else "owner gone"
        else:
            rule = patching.trial.policy if patching.trial is not None else "decay"
        rollback = Rollback(
            patch=holder.number if holder is not None else patching.number,
            seq=seq,
            rule=rule,
            why=step.why,
            metric=step.metric,
            evidence=step.evidence,
            limit=step.limit,
            calls=counted.calls if counted is not None else 0,
            failures=counted.failures if counted is not None else 0,
            due=self.due if rule in ("sequential", "classic") else None,
            derived=derived,
            why_not=why_not,
        )
        self.found.rollbacks.append(rollback)
        self.restored = None if holder is None else (holder.backup, rollback)
        self.open = rollback if isinstance(step, Ending) else None

    def _after(self, seq: int, happening: GuardedCall | Decision) -> None:
        """Note what an entry has led to."""
        found, patching = self.found, self.account.patching
        if isinstance(happening, Accepted):
            found.patches += 1
        elif isinstance(happening, Confirmed):
            found.confirmed += 1
            self.restored = None
        elif isinstance(happening, Restored) and self.open is not None and patching.phase == "idle":
            self.open.restored, self.open = seq, None
        elif isinstance(happening, RestoreFailed) and self.open is not None:
            self.open.failed_restores += 1
        trial = patching.trial
        can = {False} if patching.phase != "serving" or trial is None else {True, False} if trial.both else {True}
        self.served.setdefault(patching.epoch, set()).update(can)
        self.served.pop(patching.epoch - MAX_TOLD, None)
        if trial is None or patching.phase not in ("serving", "paused"):
            self.due = None if trial is None else self.due
        elif trial.verdict().kind == "roll_back":
            self.due = seq if self.due is None else self.due
        else:
            self.due = None
        if patching.phase not in ("asking", "reviewing"):
            self.asked = []
        elif len(self.asked) < MAX_TOLD:
            newest = self.account.rolling.over_newest()
            self.asked.append((newest.success_rate or 0.0, newest.latency_mean_s or 0.0))

    def _judge(self, seq: int, derived: Derived, why_not: str) -> None:
        if derived == "unknown" or (derived == "no" and self.basis.lost_for_good):
            self.found.unknown += 1
        elif derived == "no":
            self._fault(seq, why_not)
        elif derived == "yes":
            self.found.steps += 1

    def _fault(self, seq: int, what: str) -> None:
        self.found.fault_count += 1
        if len(self.found.faults) < MAX_TOLD:
            self.found.faults.append(Remark(seq, what))

    def _remark(self, seq: int, what: str) -> None:
        if len(self.found.remarks) < MAX_TOLD:
            self.found.remarks.append(Remark(seq, what))


def _request(account: Account, step: TrialWanted | ApprovalWanted | Refused | RollbackWanted) -> Decision | None:
    """Return what a person could ask for here, of the kind of a step."""
    if isinstance(step, TrialWanted):
        return wanted_trial(account, step.patch, step.why)
    if isinstance(step, RollbackWanted):
        return wanted_rollback(account, step.why)
    return wanted_approval(account, step.why) if isinstance(step, ApprovalWanted) else refusal(account, step.why)


def _told_by_owner(patching: Patching, step: Decision) -> bool:
    """Tell whether the owner says that a patch could not be applied: that comes from outside, and from no rule."""
    if patching.phase != "applying" or not isinstance(step, Ending) or step.owner != patching.owner:
        return False
    of_rules = (step.pause, step.metric, step.evidence, step.limit)
    return step.why.startswith(FAILED) and of_rules == (False, None, None, None)


def _differing(due: Decision | None, step: Decision) -> list[str]:
    """Return the fields in which two decisions differ; rounding on another machine is no difference."""

    def same(one: object, other: object) -> bool:
        if isinstance(one, float) and isinstance(other, float):
            return math.isclose(one, other, rel_tol=1e-9)
        return one == other

    if type(due) is not type(step):
        return ["kind", "why"]
    return [name for name in step.__struct_fields__ if not same(getattr(due, name), getattr(step, name))]
