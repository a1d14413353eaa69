"""Firings and refusals as the faces show them, with what came of them."""

from __future__ import annotations

from collections.abc import Sequence

from coherence.core.events import BLOCK, Feedback, decode_event
from coherence.core.readings import excerpt, number_of
from coherence.policy.one_call import OF_ONE_CALL
from coherence.store.faces import agent_feedback, events_at, events_numbered, told_refusal
from coherence.store.rows import EventRow, FiringOutcomeRow, SessionRow
from coherence.store.store import Store
from coherence.store.tally import MarkRow, read_usage
from coherence.store.told import ToldFiring, ToldRefusal, firing_labels, outcomes_of_firings
from coherence.views.courses import Courses
from coherence.views.shapes import FiringView, RefusalView
from coherence.views.words import read_decision

MOST = 500
"""Refusals of a session that are shown, the newest."""

LABELS = {True: "good", False: "bad"}

UNMEASURED = "not measured yet"


class Told:
    """Firings and refusals of a store, with outcomes and labels.

    Parameters
    ----------
    store : Store
        Where they are.
    courses : Courses
        What is known of its sessions.
    """

    def __init__(self, store: Store, courses: Courses) -> None:
        self._store = store
        self._courses = courses

    def firings(self, firings: Sequence[ToldFiring]) -> tuple[FiringView, ...]:
        """Return firings with their effects and labels."""
        labels: dict[str, bool] = {}
        for agent in sorted({each.agent for each in firings}):
            labels |= self._labels(agent)
        outcomes = outcomes_of_firings(self._store, [each.id for each in firings])
        events = events_at(self._store, [(each.session_id, each.seq) for each in firings])
        return tuple(
            _firing(each, events.get((each.session_id, each.seq)), outcomes.get(each.id, []), labels.get(each.id))
            for each in firings
        )

    def _labels(self, agent: str) -> dict[str, bool]:
        """Return firing -> whether its newest label calls it right."""
        if self._courses.folds(agent):
            return firing_labels(self._store, [agent])
        found: dict[str, bool | None] = {}
        for data in agent_feedback(self._store, agent):
            judged = read_usage(data)
            if judged.about is not None:
                found[judged.about] = None if judged.score is None else judged.score > 0
        return {firing: good for firing, good in found.items() if good is not None}

    def refusals(self, row: SessionRow, *, first: int = 0, last: int = 2**62) -> tuple[RefusalView, ...]:
        """Return the newest refusals of a session, between two of its events, the newest first."""
        course = self._courses.of(row)
        wanted = course.marks(("refusal",), first, last, MOST)
        if not wanted:
            return ()
        marks = course.marks(("refusal", "goal"), wanted[0].seq)
        judged = [mark.seq for mark in course.marks(("feedback", "unblock"), wanted[0].seq)]
        events = events_numbered(self._store, row.id, [*(mark.seq for mark in wanted), *judged])
        answers = [(seq, answer) for seq in judged if seq in events and (answer := _answer(events[seq])) is not None]
        return tuple(
            self._refusal(told_refusal(row, events[mark.seq], mark.name), marks, answers)
            for mark in reversed(wanted)
            if mark.seq in events
        )

    def _refusal(
        self, refusal: ToldRefusal, marks: Sequence[MarkRow], answers: Sequence[tuple[int, Feedback]]
    ) -> RefusalView:
        decision = read_decision(refusal.decision)
        blocking = [] if decision is None else [each for each in decision.findings if each.acts == "block"]
        # if it was not for what the call is itself, whatever ends a block ends it
        stands = all(finding.rule not in OF_ONE_CALL for finding in blocking)
        until = next((mark.seq for mark in marks if mark.seq > refusal.seq and _replaces(mark)), None)
        end = next((each for seq, each in answers if _lets_through(seq, each, refusal.seq, stands, until)), None)
        judged = [each.score for _, each in answers if each.decision == refusal.seq]
        return RefusalView(
            id=refusal.id,
            seq=refusal.seq,
            ts=refusal.ts,
            tool=refusal.tool or "",
            why=excerpt("" if decision is None else decision.message, 1_000),
            unblocked=end is not None,
            label=None if not judged or judged[-1] == 0 else LABELS[(judged[-1] or 0.0) > 0],
            rules=tuple(finding.rule for finding in blocking),
            reason="" if end is None else end.text,
            agent=refusal.agent,
            session=refusal.session,
        )


def _firing(
    firing: ToldFiring, event: EventRow | None, outcomes: Sequence[FiringOutcomeRow], label: bool | None
) -> FiringView:
    decision = None if event is None or event.decision is None else read_decision(event.decision.data)
    guidance = None if decision is None else decision.guidance
    return FiringView(
        id=firing.id,
        agent=firing.agent,
        session=firing.session,
        seq=firing.seq,
        ts=firing.ts,
        pattern=firing.pattern,
        arm=firing.arm,
        delivered=firing.delivered,
        text=firing.text,
        effect=effect_in_words(outcomes),
        helped=helped(outcomes) if firing.delivered else None,
        label=None if label is None else LABELS[label],
        lesson=None if guidance is None else guidance.lesson,
    )


def _answer(event: EventRow) -> Feedback | None:
    """Return the judgement of a refusal, or the end of a block, that an event is."""
    try:
        found = decode_event(event.data)
    except ValueError:
        return None
    return found if isinstance(found, Feedback) and found.about == BLOCK else None


def _replaces(mark: MarkRow) -> bool:
    """Tell whether a refusal before this is not the newest any more."""
    return mark.kind == "goal" or (mark.kind == "refusal" and bool(mark.name))


def _lets_through(seq: int, answer: Feedback, refusal: int, stands: bool, until: int | None) -> bool:
    if seq <= refusal or answer.score is not None:
        return False
    if answer.decision is not None:
        return answer.decision == refusal
    return stands or until is None or seq < until


def shown_outcome(outcomes: Sequence[FiringOutcomeRow]) -> FiringOutcomeRow | None:
    """Return the outcome that says most: five actions later, else the farthest before, else the nearest after."""
    known = {each.horizon: each for each in outcomes}
    return next((known[horizon] for horizon in (5, 1, 10, 0) if horizon in known), None)


def effect_in_words(outcomes: Sequence[FiringOutcomeRow]) -> str:
    """Return what came of a firing.

    Examples
    --------
    >>> effect_in_words([FiringOutcomeRow(firing="x-1", horizon=5, error_resolved=True, task_success=True)])
    'error resolved; task succeeded'
    """
    found = shown_outcome(outcomes)
    if found is None:
        return UNMEASURED
    when = "at the end of the task" if found.horizon == 0 else f"after {number_of(found.horizon, 'step')}"
    told = []
    if found.pressure_change is not None:
        sign = "−" if found.pressure_change > 0 else "+" if found.pressure_change < 0 else "±"
        told.append(f"pressure {sign}{abs(found.pressure_change):.2f} {when}")
    if found.error_resolved is not None:
        told.append("error resolved" if found.error_resolved else "error not resolved")
    if found.tool_switched:
        told.append("another tool")
    task = next((each.task_success for each in outcomes if each.task_success is not None), None)
    if task is not None:
        told.append("task succeeded" if task else "task failed")
    return "; ".join(told) or f"unknown {when}"


def helped(outcomes: Sequence[FiringOutcomeRow]) -> bool | None:
    """Tell whether things were better after a firing, which is no proof that it was the reason; ``None`` = unknown."""
    found = shown_outcome(outcomes)
    if found is None:
        return None
    if found.error_resolved is not None:
        return found.error_resolved
    if found.pressure_change:
        return found.pressure_change > 0
    return found.task_success
