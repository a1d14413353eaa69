"""The patches of an agent, by its decisions: what each changed, what came of it, and why."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

import msgspec

from coherence.guard.patch_events import Policy
from coherence.guard.traces import Past, read_decisions
from coherence.store.store import Store

Outcome: TypeAlias = Literal[
    "waiting",
    "declined",
    "replaced",
    "applying",
    "on trial",
    "not applied",
    "restoring",
    "restore failed",
    "rolled back",
    "promoted",
    "got worse",
]
"""State of a patch.

``waiting`` = for a person or an adapter; ``declined`` = a person said no; ``replaced`` = another proposal came before
it was applied; ``applying``, ``on trial`` = no verdict yet; ``not applied`` = the adapter could not; ``restoring``,
``restore failed`` = the configuration before it is wanted back, and is not there yet; ``rolled back`` = it is; or the
patch was given up while it was not in force; ``promoted`` = it stays; ``got worse`` = it was promoted, and is still in
force.
"""


class PatchRecord(msgspec.Struct, kw_only=True):
    """One patch of an agent. Times are wall times, Unix seconds; ``None`` = it has not come to that."""

    number: int
    """Its place among all patches that were proposed for the agent, 1 = the first."""
    patch: dict[str, Any]
    outcome: Outcome
    why: str = ""
    """Reason of the outcome; while a patch waits, the reason why it does."""
    asked_seq: int
    """The entry of the trail by which it was asked for; of one that nobody asked for, its own."""
    asked_at: float
    failures: int | None = None
    """Failures that called for it."""
    proposed_seq: int | None = None
    """The entry by which it began to wait for a person or an adapter."""
    approved_at: float | None = None
    """Time of a person's approval."""
    policy: Policy | None = None
    share: float | None = None
    """Of calls that it served while on trial, in (0, 1]."""
    backup: dict[str, Any] | None = None
    """The configuration before it."""
    accepted_at: float | None = None
    served_at: float | None = None
    """Time at which it came into force first."""
    judged_at: float | None = None
    """Time of the decision that it stays or goes."""
    ended_at: float | None = None
    """Time at which it was promoted, rolled back, declined, replaced, or could not be applied."""
    promoted_at: float | None = None
    worse_at: float | None = None
    """Newest time at which the confirmed configuration got worse."""
    metric: str | None = None
    """Metric that decided: ``success``, ``failure_run``, ``latency``, ``cost`` or ``index``."""
    evidence: float | None = None
    limit: float | None = None
    """Limit that the evidence had to reach."""
    rollback_asked_at: float | None = None
    """Time at which a person asked for it to be rolled back."""
    restores_failed: int = 0
    """Attempts to restore the configuration before it that failed."""

    @property
    def can_roll_back(self) -> bool:
        """True of the patch on trial, and of one that is confirmed."""
        return self.accepted_at is not None and self.outcome not in ("rolled back", "not applied")


def ledger(decisions: Iterable[Past]) -> list[PatchRecord]:
    """Return the patches of one agent, oldest first.

    Parameters
    ----------
    decisions : iterable of Past
        All its decisions, oldest first, as :func:`~coherence.guard.traces.read_decisions` returns them with a limit of
        -1. Kinds that say nothing about a patch are passed over.

    Examples
    --------
    >>> from coherence.guard.patch_events import Decision
    >>> trail = [
    ...     Decision("asked", owner="p1", failures=3),
    ...     Decision("accepted", owner="p1", patch={"retries": 2}, backup={"retries": 1}, share=0.5, slice=10),
    ...     Decision("serving"),
    ...     Decision("ending", owner="p1", why="success fell", metric="success", evidence=90.0, limit=80.0),
    ...     Decision("restored"),
    ... ]
    >>> found = ledger(Past(seq, 100.0 * seq, step) for seq, step in enumerate(trail, 1))[0]
    >>> found.number, found.outcome, found.why, found.evidence, found.asked_at, found.ended_at
    (1, 'rolled back', 'success fell', 90.0, 100.0, 500.0)
    """
    found = _Ledger()
    for past in decisions:
        found.observe(past)
    return found.records


def read_history(store: Store, agent: str, limit: int, *, slices: bool) -> list[Past]:
    """Return the newest decisions on an agent's patches, oldest first; switches between slices only if asked for."""
    if slices:
        return read_decisions(store, agent, limit)
    found = without_slices(read_decisions(store, agent, -1))
    return found[max(len(found) - limit, 0) :]


def without_slices(decisions: Iterable[Past]) -> list[Past]:
    """Leave out that a patch on trial goes and comes into force again, slice by slice, unless something fails then.

    Examples
    --------
    >>> from coherence.guard.patch_events import Decision
    >>> pause = Decision("ending", owner="p1", pause=True, why="slice")
    >>> again = Decision("resuming", owner="p1"), Decision("serving")
    >>> trail = [Decision("serving"), pause, Decision("restored"), *again, pause, Decision("restore_failed")]
    >>> [past.kind for past in without_slices(Past(seq, 0.0, step) for seq, step in enumerate(trail, 1))]
    ['serving', 'restore_failed']
    """
    found: list[Past] = []
    result = ""
    for past in decisions:
        step = past.decision
        if step.kind == "resuming" or (step.kind == "ending" and step.pause):
            result = "serving" if step.kind == "resuming" else "restored"
        elif step.kind == result:
            result = ""
        else:
            if step.kind in ("ending", "not_applied", "restore_failed", "retrying"):
                result = ""
            found.append(past)
    return found


class _Ledger:
    """The patches so far, and which of them the next entry is about."""

    def __init__(self) -> None:
        self.records: list[PatchRecord] = []
        self.asked: Past | None = None
        self.waiting: PatchRecord | None = None
        self.trial: PatchRecord | None = None
        self.standing: PatchRecord | None = None
        self.reviewing = False
        """True = the one that waits was approved and is being taken up."""
        self.pauses = False
        """True = the restore that goes on is one between slices."""

    def observe(self, past: Past) -> None:
        """Take in the next decision."""
        step, waiting = past.decision, self.waiting
        match step.kind:
            case "asked":
                self.asked = past
            case "proposed" if waiting is not None and waiting.patch == step.patch:
                waiting.why, waiting.proposed_seq, self.asked = step.why, past.seq, None
            case "proposed":
                self.waiting = self._new(past, self.asked)
                self.waiting.why, self.waiting.proposed_seq, self.asked = step.why, past.seq, None
            case "trial_wanted":  # a strategy that is being asked has no part in it
                self.waiting = self._new(past, None)
                self.waiting.why, self.waiting.proposed_seq, self.waiting.approved_at = step.why, past.seq, past.at
            case "accepted":
                self._accepted(past, waiting)
            case "approval_wanted" | "approved" | "withheld" | "refused":
                self.reviewing = step.kind == "approved"
                if waiting is not None:
                    self._waited(waiting, past)
            case "rollback_wanted":
                if (held := self.trial or self.standing) is not None:
                    held.rollback_asked_at = past.at
            case _ if self.trial is not None:
                self._tried(self.trial, past)
            case _ if self.standing is not None:
                self._stood(self.standing, past)

    def _new(self, past: Past, asked: Past | None) -> PatchRecord:
        """Begin a patch; it takes the place of one that waits."""
        if self.waiting is not None:
            _end(self.waiting, past, "replaced", "another proposal came")
        by = past if asked is None else asked
        record = PatchRecord(
            number=len(self.records) + 1,
            patch=past.decision.patch,
            outcome="waiting",
            asked_seq=by.seq,
            asked_at=by.at,
            failures=None if asked is None else asked.decision.failures,
        )
        self.records.append(record)
        return record

    def _waited(self, record: PatchRecord, past: Past) -> None:
        """Take in what a person says to the patch that waits, and what comes of it."""
        step = past.decision
        if step.kind == "approval_wanted" and step.proposed_seq == record.proposed_seq:
            record.approved_at = past.at
        elif step.kind == "withheld" and step.waits:
            record.approved_at, record.why = None, step.why
        elif step.kind in ("withheld", "refused"):
            _end(record, past, "declined" if step.kind == "refused" else "not applied", step.why)
            self.waiting = None

    def _accepted(self, past: Past, waiting: PatchRecord | None) -> None:
        step = past.decision
        if waiting is not None and (self.reviewing or waiting.patch == step.patch):
            record, self.asked = waiting, None
        else:
            record, self.asked = self._new(past, self.asked), None
        record.patch, record.why, record.outcome = step.patch, "", "on trial" if step.both else "applying"
        record.policy, record.share, record.backup = step.policy, step.share, step.backup
        record.accepted_at, record.served_at = past.at, past.at if step.both else None
        self.waiting, self.trial, self.reviewing, self.pauses = None, record, False, False

    def _tried(self, record: PatchRecord, past: Past) -> None:
        """Take in a decision on the patch on trial."""
        step = past.decision
        match step.kind:
            case "serving":
                record.outcome = "on trial"
                record.served_at = past.at if record.served_at is None else record.served_at
            case "ending":
                self.pauses = step.pause
                if not step.pause:
                    _judged(record, past)
            case "restored" if self.pauses:
                self.pauses = False
            case "restore_failed":
                _failed(record, pauses=self.pauses)
            case "confirmed":
                record.evidence, record.limit = step.evidence, step.limit
                record.judged_at = record.promoted_at = past.at
                _end(record, past, "promoted", step.why)
                self.trial, self.standing = None, record
            case "restored" | "dropped" | "not_applied":
                if step.kind == "dropped":
                    _judged(record, past)
                if step.kind == "not_applied":
                    _end(record, past, "not applied", step.why)
                else:
                    _end(record, past, "rolled back", record.why)
                self.trial = None

    def _stood(self, record: PatchRecord, past: Past) -> None:
        """Take in a decision on the confirmed patch."""
        step, restores = past.decision, record.outcome in ("restoring", "restore failed")
        if step.kind == "decayed":
            record.outcome, record.why, record.metric, record.worse_at = "got worse", step.why, step.metric, past.at
            record.evidence = record.limit = None
        elif step.kind == "ending":
            self.pauses = False
            _judged(record, past)
        elif step.kind == "restore_failed" and restores:
            _failed(record, pauses=False)
        elif step.kind == "restored" and restores:  # else a change that came late is undone, and this patch stands
            _end(record, past, "rolled back", record.why)
            self.standing = None


def _judged(record: PatchRecord, past: Past) -> None:
    step = past.decision
    record.outcome, record.why, record.judged_at = "restoring", step.why, past.at
    record.metric = step.metric if step.metric is not None or record.worse_at is None else record.metric
    record.evidence, record.limit = step.evidence, step.limit


def _failed(record: PatchRecord, *, pauses: bool) -> None:
    record.restores_failed += 1
    if not pauses:
        record.outcome = "restore failed"


def _end(record: PatchRecord, past: Past, outcome: Outcome, why: str) -> None:
    record.outcome, record.why, record.ended_at = outcome, why, past.at
