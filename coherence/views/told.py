"""Firings and refusals as the faces show them, with what came of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import msgspec

from coherence.core.decisions import Finding
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

CHANGE = 0.05
"""Change of pressure from which on it says something."""

UNMEASURED = "not measured yet"

UNHEARD = "not known to have arrived, so its effect is not known either"


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
        return _joined(
            self._refusal(told_refusal(row, events[mark.seq], mark.name), marks, answers)
            for mark in reversed(wanted)
            if mark.seq in events
        )

    def _refusal(
        self, refusal: ToldRefusal, marks: Sequence[MarkRow], answers: Sequence[tuple[int, Feedback]]
    ) -> RefusalView:
        decision = read_decision(refusal.decision)
        blocking = [] if decision is None else [each for each in decision.findings if each.acts == "block"]
        until = next((mark.seq for mark in marks if mark.seq > refusal.seq and _replaces(mark)), None)
        end = end_of_refusal(refusal.seq, blocking, answers, until)
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
        effect=effect_of(firing, outcomes),
        verdict=verdict_of(outcomes) if firing.delivered else "",
        label=None if label is None else LABELS[label],
        lesson=None if guidance is None else guidance.lesson,
    )


def _joined(refusals: Iterable[RefusalView]) -> tuple[RefusalView, ...]:
    """Return refusals, the newest first: those that say the same again are one, up to the next that was labelled."""
    found: list[RefusalView] = []
    same: dict[Hashable, int] = {}
    for each in refusals:
        kind = _kind_of(each)
        if kind in same and each.label is None:
            newer = found[same[kind]]
            found[same[kind]] = msgspec.structs.replace(newer, count=newer.count + 1, since=each.seq)
        else:
            same[kind] = len(found)
            found.append(msgspec.structs.replace(each, since=each.seq))
    return tuple(found)


def _kind_of(refusal: RefusalView) -> Hashable:
    # what is refused for the agent's conduct is refused for the same reason, however often that is said in new figures
    of_one_call = bool({*refusal.rules} & {*OF_ONE_CALL})
    why = refusal.why if of_one_call else ""
    return refusal.tool, refusal.unblocked, refusal.reason, frozenset(refusal.rules), why


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


def end_of_refusal(
    refusal: int, blocking: Sequence[Finding], answers: Sequence[tuple[int, Feedback]], until: int | None
) -> Feedback | None:
    """Return the answer that lets a refused call through, if there is one.

    Parameters
    ----------
    refusal : int
        Number of the refused call.
    blocking : sequence of Finding
        Findings for which it was refused.
    answers : sequence of (int, Feedback)
        Answers to blocks with their numbers, oldest first.
    until : int or None
        Number of the next refused call or goal, from which on it is not the newest.
    """
    # if it was not for what the call is itself, whatever ends a block ends it
    stands = all(finding.rule not in OF_ONE_CALL for finding in blocking)

    def ends(seq: int, answer: Feedback) -> bool:
        if seq <= refusal or answer.score is not None:
            return False
        if answer.decision is not None:
            return answer.decision == refusal
        return stands or until is None or seq < until

    return next((answer for seq, answer in answers if ends(seq, answer)), None)


def shown_outcome(outcomes: Sequence[FiringOutcomeRow]) -> FiringOutcomeRow | None:
    """Return the outcome that says most: five actions later, else the farthest before, else the nearest after."""
    known = {each.horizon: each for each in outcomes}
    return next((known[horizon] for horizon in (5, 1, 10, 0) if horizon in known), None)


def effect_of(firing: ToldFiring, outcomes: Sequence[FiringOutcomeRow]) -> str:
    """Return what came of a firing, or why nothing can be said: only what arrived can have helped."""
    if firing.arm == "control":
        return f"without it: {effect_in_words(outcomes)}"
    return effect_in_words(outcomes) if firing.delivered else UNHEARD


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
    task = _task_of(outcomes)
    if task is not None:
        told.append("task succeeded" if task else "task failed")
    return "; ".join(told) or f"unknown {when}"


def _task_of(outcomes: Sequence[FiringOutcomeRow]) -> bool | None:
    return next((each.task_success for each in outcomes if each.task_success is not None), None)


def verdict_of(outcomes: Sequence[FiringOutcomeRow]) -> str:
    """Return how things stood after a firing: ``better``, ``worse``, ``mixed`` or ``same``; empty if nothing is known.

    The outcome of the task counts where neither error nor pressure tells more.

    Examples
    --------
    >>> verdict_of([FiringOutcomeRow(firing="x-1", horizon=5, error_resolved=True, pressure_change=0.2)])
    'better'
    >>> verdict_of([FiringOutcomeRow(firing="x-1", horizon=5, error_resolved=True, pressure_change=-0.2)])
    'mixed'
    >>> verdict_of([FiringOutcomeRow(firing="x-1", horizon=5, pressure_change=0.01)])
    'same'
    """
    found = shown_outcome(outcomes)
    if found is None:
        return ""
    signs = {found.error_resolved} if found.error_resolved is not None else set[bool]()
    if found.pressure_change is not None and abs(found.pressure_change) >= CHANGE:
        signs.add(found.pressure_change > 0)
    task = _task_of(outcomes)
    if not signs and task is not None:
        signs = {task}
    if len(signs) == 2:
        return "mixed"
    return "same" if not signs else "better" if True in signs else "worse"
