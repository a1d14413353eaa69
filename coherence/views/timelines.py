"""Timelines: the measured ticks of a session, the worst of each part where there are many, and its marks."""

from __future__ import annotations

from collections.abc import Sequence

from coherence.core.readings import excerpt
from coherence.store.faces import events_numbered
from coherence.store.rows import EventRow, SessionRow
from coherence.store.store import Store
from coherence.store.tally import MarkRow, Tally
from coherence.store.told import ToldFiring
from coherence.views.courses import Course
from coherence.views.events import view_of
from coherence.views.shapes import Mark, Timeline
from coherence.views.words import read_decision

MAX_MARKS = 200
"""Marks of a timeline; of more the gravest kinds stay, and of these the newest."""

MARK_TEXT = 160
"""Characters of a mark's text."""

GRAVEST = ("outcome", "goal", "refusal", "unblock", "firing", "compaction", "finding")
"""Kinds of marks, those first that stay longest."""


def timeline_of(
    store: Store,
    row: SessionRow,
    course: Course,
    tally: Tally,
    firings: Sequence[ToldFiring],
    *,
    first: int,
    last: int | None,
    points: int,
) -> Timeline:
    """Return the course of a session between two of its events, in so many points at most."""
    last = tally.through if last is None else min(last, tally.through)
    first = max(first, 1)
    marks = course.marks(GRAVEST, first, last, MAX_MARKS)
    told = {each.seq: each for each in firings if first <= each.seq <= last}
    marks += [MarkRow("firing", each.seq, each.pattern, each.ts) for each in told.values()]
    marks.sort(key=lambda each: (GRAVEST.index(each.kind), -each.seq))
    shown = sorted(marks[:MAX_MARKS], key=lambda each: each.seq)
    events = events_numbered(store, row.id, sorted({each.seq for each in shown if each.kind != "firing"}))
    return Timeline(
        points=course.ticks.points(first, last, points),
        marks=tuple(
            Mark(each.seq, each.ts, each.kind, excerpt(_text(events.get(each.seq), each, told), MARK_TEXT))
            for each in shown
        ),
        first=first,
        last=last,
        total=tally.events,
    )


def _text(event: EventRow | None, mark: MarkRow, told: dict[int, ToldFiring]) -> str:
    if mark.kind == "firing":
        return f"{mark.name}: {told[mark.seq].text}" if told[mark.seq].text else mark.name
    if event is None:
        return mark.name
    if mark.kind not in ("finding", "refusal"):
        return view_of(event).text
    decision = None if event.decision is None else read_decision(event.decision.data)
    if decision is None:
        return mark.name
    if mark.kind == "refusal":
        return f"{mark.name}: {decision.message}" if mark.name else decision.message
    why = next((each.why for each in decision.findings if each.rule == mark.name), "")
    return f"{mark.name}: {why}" if why else mark.name
