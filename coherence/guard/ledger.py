"""The patches of an agent, told from its decisions: what each changed, what came of it, and why."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

import msgspec

from coherence.guard.patch_events import (
    Accepted,
    ApprovalWanted,
    Approved,
    Asked,
    Confirmed,
    Decayed,
    Decision,
    Dropped,
    Ending,
    NotApplied,
    Policy,
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
)
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
"""How a patch stands.

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
    """Why that came of it; while a patch waits, why it does."""
    asked_seq: int
    """The entry of the trail by which it was asked for; of one that nobody asked for, its own."""
    asked_at: float
    failures: int | None = None
    """Failures that called for it."""
    proposed_seq: int | None = None
    """The entry by which it began to wait for a person or an adapter."""
    approved_at: float | None = None
    """When a person approved it."""
    policy: Policy | None = None
    share: float | None = None
    """Of calls that it served while on trial, in (0, 1]."""
    backup: dict[str, Any] | None = None
    """The configuration before it."""
    accepted_at: float | None = None
    served_at: float | None = None
    """When it came into force for the first time."""
    judged_at: float | None = None
    """When it was decided that it stays or goes."""
    ended_at: float | None = None
    """When it was promoted, rolled back, declined, replaced, or could not be applied."""
    promoted_at: float | None = None
    worse_at: float | None = None
    """When the confirmed configuration got worse, the newest time."""
    metric: str | None = None
    """What decided: ``success``, ``failure_run``, ``latency``, ``cost`` or ``index``."""
    evidence: float | None = None
    limit: float | None = None
    """What the evidence had to reach."""
    rollback_asked_at: float | None = None
    """When a person asked for it to be rolled back."""
    restores_failed: int = 0
    """Attempts to restore the configuration before it that failed."""


def ledger(decisions: Iterable[Past]) -> list[PatchRecord]:
    """Return the patches of one agent, oldest first.

    Parameters
    ----------
    decisions : iterable of Past
        All its decisions, oldest first, as :func:`~coherence.guard.traces.read_decisions` returns them with a limit of
        -1. Kinds that say nothing about a patch are passed over.

    Examples
    --------
    >>> from coherence.guard.classic import Metrics
    >>> trail = [
    ...     Asked(owner="p1", failures=3),
    ...     Accepted(
    ...         owner="p1", patch={"retries": 2}, backup={"retries": 1}, policy="sequential", share=0.5, slice=10,
    ...         both=False, before=Metrics(0.9, 0.1, 0),
    ...     ),
    ...     Serving(),
    ...     Ending(owner="p1", why="success fell", metric="success", evidence=90.0, limit=80.0),
    ...     Restored(),
    ... ]
    >>> found = ledger(Past(seq, 100.0 * seq, step) for seq, step in enumerate(trail, 1))[0]
    >>> found.number, found.outcome, found.why, found.evidence, found.asked_at, found.ended_at
    (1, 'rolled back', 'success fell', 90.0, 100.0, 500.0)
    """
    reading = _Reading()
    for past in decisions:
        reading.observe(past, past.decision)
    return reading.records


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
    >>> pause = Ending(owner="p1", pause=True, why="slice")
    >>> trail = [Serving(), pause, Restored(), Resuming(owner="p1"), Serving(), pause, RestoreFailed(why="disk full")]
    >>> [past.kind for past in without_slices(Past(seq, 0.0, step) for seq, step in enumerate(trail, 1))]
    ['serving', 'restore_failed']
    """
    found: list[Past] = []
    result: type[Decision] | None = None
    for past in decisions:
        step = past.decision
        if isinstance(step, Resuming) or (isinstance(step, Ending) and step.pause):
            result = Serving if isinstance(step, Resuming) else Restored
        elif result is not None and isinstance(step, result):
            result = None
        else:
            if isinstance(step, Ending | NotApplied | RestoreFailed | Retrying):
                result = None
            found.append(past)
    return found


class _Reading:
    """The patches so far, and which of them the next entry is about."""

    def __init__(self) -> None:
        self.records: list[PatchRecord] = []
        self.asked: tuple[Past, Asked] | None = None
        self.waiting: PatchRecord | None = None
        self.trial: PatchRecord | None = None
        self.standing: PatchRecord | None = None
        self.reviewing = False
        """Whether the one that waits was approved and is being taken up."""
        self.pauses = False
        """Whether the restore that goes on is one between slices."""

    def observe(self, past: Past, step: Decision) -> None:
        """Take in the next decision."""
        if isinstance(step, Asked):
            self.asked = past, step
        elif isinstance(step, Proposed):
            self._proposed(past, step)
        elif isinstance(step, TrialWanted):
            self._wanted(past, step)
        elif isinstance(step, Accepted):
            self._accepted(past, step)
        elif isinstance(step, ApprovalWanted | Approved | Withheld | Refused):
            if self.waiting is not None:
                self._waited(self.waiting, past, step)
        elif isinstance(step, RollbackWanted):
            record = self.trial or self.standing
            if record is not None:
                record.rollback_asked_at = past.at
        elif self.trial is not None:
            self._tried(self.trial, past, step)
        elif self.standing is not None:
            self._stood(self.standing, past, step)

    def _new(self, past: Past, patch: dict[str, Any], outcome: Outcome) -> PatchRecord:
        asked, failures = (past, None) if self.asked is None else (self.asked[0], self.asked[1].failures)
        self.asked = None
        number = len(self.records) + 1
        record = PatchRecord(
            number=number, patch=patch, outcome=outcome, asked_seq=asked.seq, asked_at=asked.at, failures=failures
        )
        self.records.append(record)
        return record

    def _proposed(self, past: Past, step: Proposed) -> None:
        if self.waiting is not None and self.waiting.patch == step.patch:
            self.waiting.why, self.waiting.proposed_seq, self.asked = step.why, past.seq, None
            return
        self._replace(past)
        self.waiting = self._new(past, step.patch, "waiting")
        self.waiting.why, self.waiting.proposed_seq = step.why, past.seq

    def _wanted(self, past: Past, step: TrialWanted) -> None:
        """Take in a patch that a person wants on trial; a strategy that is being asked has no part in it."""
        asked, self.asked = self.asked, None
        self._replace(past)
        self.waiting = self._new(past, step.patch, "waiting")
        self.waiting.why, self.waiting.proposed_seq, self.waiting.approved_at = step.why, past.seq, past.at
        self.asked = asked

    def _waited(self, record: PatchRecord, past: Past, step: ApprovalWanted | Approved | Withheld | Refused) -> None:
        """Take in what a person says to the patch that waits, and what comes of it."""
        self.reviewing = isinstance(step, Approved)
        if isinstance(step, ApprovalWanted):
            record.approved_at = past.at if step.proposed_seq == record.proposed_seq else record.approved_at
        elif isinstance(step, Withheld) and step.waits:
            record.approved_at, record.why = None, step.why
        elif isinstance(step, Withheld | Refused):
            _end(record, past, "declined" if isinstance(step, Refused) else "not applied", step.why)
            self.waiting = None

    def _accepted(self, past: Past, step: Accepted) -> None:
        if self.waiting is not None and (self.reviewing or self.waiting.patch == step.patch):
            record = self.waiting
        else:
            self._replace(past)
            record = self._new(past, step.patch, "applying")
        record.outcome, record.why = "on trial" if step.both else "applying", ""
        record.policy, record.share, record.backup = step.policy, step.share, step.backup
        record.accepted_at = past.at
        record.served_at = past.at if step.both else None
        record.patch = step.patch
        self.waiting, self.trial, self.reviewing, self.pauses = None, record, False, False

    def _replace(self, past: Past) -> None:
        """End the proposal that waits."""
        if self.waiting is not None:
            _end(self.waiting, past, "replaced", "another proposal came")
            self.waiting = None

    def _tried(self, record: PatchRecord, past: Past, step: Decision) -> None:
        """Take in a decision on the patch on trial."""
        if isinstance(step, Serving):
            record.outcome = "on trial"
            record.served_at = past.at if record.served_at is None else record.served_at
        elif isinstance(step, Ending):
            self.pauses = step.pause
            if not step.pause:
                _judged(record, past, step)
        elif isinstance(step, Restored) and self.pauses:
            self.pauses = False
        elif isinstance(step, RestoreFailed):
            _failed(record, step, pauses=self.pauses)
        elif isinstance(step, Confirmed):
            record.evidence, record.limit = step.evidence, step.limit
            record.judged_at = record.promoted_at = past.at
            _end(record, past, "promoted", step.why)
            self.trial, self.standing = None, record
        elif isinstance(step, Restored | Dropped | NotApplied):
            if isinstance(step, Dropped):
                _judged(record, past, step)
            not_applied = isinstance(step, NotApplied)
            why = step.why if isinstance(step, NotApplied) else record.why
            _end(record, past, "not applied" if not_applied else "rolled back", why)
            self.trial = None

    def _stood(self, record: PatchRecord, past: Past, step: Decision) -> None:
        """Take in a decision on the confirmed patch."""
        if isinstance(step, Decayed):
            record.outcome, record.why, record.metric, record.worse_at = "got worse", step.why, step.metric, past.at
            record.evidence = record.limit = None
        elif isinstance(step, Ending):
            self.pauses = False
            _judged(record, past, step)
        elif record.outcome not in ("restoring", "restore failed"):
            return  # a change that came late is undone; this patch stands
        elif isinstance(step, RestoreFailed):
            _failed(record, step, pauses=False)
        elif isinstance(step, Restored):
            _end(record, past, "rolled back", record.why)
            self.standing = None


def _judged(record: PatchRecord, past: Past, step: Ending | Dropped) -> None:
    record.outcome, record.why, record.judged_at = "restoring", step.why, past.at
    record.metric = step.metric if step.metric is not None or record.worse_at is None else record.metric
    record.evidence, record.limit = step.evidence, step.limit


def _failed(record: PatchRecord, step: RestoreFailed, *, pauses: bool) -> None:
    record.restores_failed += 1
    if not pauses:
        record.outcome = "restore failed"


def _end(record: PatchRecord, past: Past, outcome: Outcome, why: str) -> None:
    record.outcome, record.why, record.ended_at = outcome, why, past.at
