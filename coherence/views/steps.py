"""One step of a session: what was said and done, what was measured after it, and the evidence of each finding."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from coherence.core.decisions import KINDS, Decision, Finding
from coherence.core.readings import Band, Reading
from coherence.monitor.codec import decode_result
from coherence.monitor.tick_result import TickResult
from coherence.store.faces import events_numbered, metric_directions
from coherence.store.rows import EventRow, SessionRow
from coherence.store.store import Store
from coherence.store.tally import read_usage
from coherence.views.events import evidence_of, view_of
from coherence.views.shapes import EvidenceView, FindingView, FiringView, RefusalView, StepView
from coherence.views.words import is_cause

REACH = 100
"""Events before and after one among which its step is looked for."""

HIGH_IS_GOOD = ("goal_coherence", "memory_retention", "grounding")
"""Metrics of this package of which a high value is good; of all others it is bad."""

BEGINS = ("goal", "message", "tool_call", "tool_result", "correction", "memory", "compaction")
"""Kinds of events that begin a step after one that is complete."""


def ends(row: EventRow) -> bool:
    """Tell whether an event completes a step."""
    return row.kind == "tool_result" or (row.kind == "message" and read_usage(row.data).role == "assistant")


def begins(row: EventRow) -> bool:
    """Tell whether an event is not about the step before it any more."""
    if row.kind == "tick":
        return row.reading is None and '"gen_ai.tool.name"' in row.data
    return row.kind in BEGINS and '"coherence.firing"' not in row.data


def around(store: Store, row: SessionRow, seq: int) -> list[EventRow]:
    """Return the events of the step that holds an event, as far as they are near it."""
    near = list(store.events(row.id, after=max(seq - REACH, 0), until=seq + REACH))
    place = next((at for at, event in enumerate(near) if event.seq >= seq), len(near) - 1)
    first = place
    while first > 0 and not _parts(near, first):
        first -= 1
    last = place + 1
    while last < len(near) and not _parts(near, last):
        last += 1
    return near[first:last]


def _parts(events: Sequence[EventRow], at: int) -> bool:
    """Tell whether a step begins with an event: it begins something, and what was before is complete."""
    if not begins(events[at]):
        return False
    for event in reversed(events[:at]):
        if ends(event):
            return True
        if begins(event):
            return False
    return False


def read_result(row: EventRow) -> TickResult | None:
    """Return what was measured and decided with an event; ``None`` if nothing was, or this version cannot read it."""
    try:
        return decode_result(row)
    except (msgspec.DecodeError, UnicodeError):
        return None


def step_view(
    store: Store,
    row: SessionRow,
    events: Sequence[EventRow],
    step: int,
    firings: tuple[FiringView, ...],
    refusals: tuple[RefusalView, ...],
) -> StepView:
    """Return a step with its measurement: the last reading of its events, and the most severe decision."""
    results = [(event, result) for event in events if (result := read_result(event)) is not None]
    measured = [(event, result) for event, result in results if result.reading is not None]
    tick, told = measured[-1] if measured else (None, None)
    reading = None if told is None else told.reading
    decisions = [result.decision for _, result in results]
    decision = max(decisions, key=_severity, default=None)
    telling = decisions if told is None else [*[each for each in decisions if not each], told.decision]
    findings = _active(telling, "" if reading is None else reading.cause)
    return StepView(
        seq=0 if tick is None else tick.seq,
        step=step,
        first=events[0].seq,
        last=events[-1].seq,
        events=tuple(view_of(event) for event in events if not _is_silent(event)),
        metrics={} if reading is None else dict(reading.metrics),
        inverted=tuple(sorted(_inverted(store, row, reading))),
        index=None if reading is None else reading.coherence_index,
        band=str(Band.UNKNOWN if reading is None else reading.band),
        pressure=None if told is None else told.appraisal.pressure,
        decision="continue" if decision is None else decision.kind,
        message="" if decision is None else decision.message,
        findings=tuple(_finding(store, row, each) for each in findings),
        firings=firings,
        cause="" if reading is None else reading.cause,
        coverage=None if reading is None else reading.coverage,
        losses={} if reading is None else dict(reading.losses),
        told={} if reading is None else {name: str(each) for name, each in reading.evidence.items()},
        unknown={} if reading is None else dict(reading.unknown),
        errors=() if reading is None else tuple(map(str, reading.errors)),
        refusals=refusals,
    )


def _severity(decision: Decision) -> int:
    return KINDS.index(decision.kind)


def _is_silent(event: EventRow) -> bool:
    """Tell whether an event is a measurement and nothing else, which the step's figures show."""
    return event.kind == "tick" and event.reading is not None


def _active(decisions: Sequence[Decision], cause: str) -> list[Finding]:
    """Return the active findings, the most severe first, of equals the one that gave the band."""
    found: dict[str, Finding] = {}
    for decision in decisions:
        found |= {each.rule: each for each in decision.findings if each.active}
    return sorted(found.values(), key=lambda each: (-KINDS.index(each.severity), not is_cause(each.rule, cause)))


def _finding(store: Store, row: SessionRow, finding: Finding) -> FindingView:
    events = events_numbered(store, row.id, finding.evidence)
    evidence = tuple(
        evidence_of(events[seq], finding.why) if seq in events else EvidenceView(seq, "") for seq in finding.evidence
    )
    return FindingView(
        finding.rule, finding.severity, finding.score, finding.threshold, finding.why, finding.action, evidence
    )


def _inverted(store: Store, row: SessionRow, reading: Reading | None) -> set[str]:
    if reading is None:
        return set()
    own = metric_directions(store, row.id)
    return {name for name in reading.metrics if own.get(name, name not in HIGH_IS_GOOD)}
