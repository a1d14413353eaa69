"""A live monitor as a scored run: what it has measured itself, not computed again."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from coherence.core.decisions import KINDS, Appraisal, Decision, Mode
from coherence.core.readings import Band, FrozenDict, Reading
from coherence.monitor.monitor import Monitor
from coherence.monitor.tick_result import Record, TickResult
from coherence.providers.readers.recorded_events import transcript_of_events
from coherence.report.score import FROM_BEST, ScoredRun

NOTHING = Reading(tick_seq=0, ts=0.0, metrics=FrozenDict(), coherence_index=None, band=Band.UNKNOWN, coverage=0.0)
"""Reading of a step before the first measurement."""

UNMEASURED = TickResult(Appraisal(seq=0, pressure=0.0, mode=Mode.OBSERVE), Decision(seq=0, kind="continue"), NOTHING)
"""Result of a step before the first measurement."""


def scored_monitor(monitor: Monitor, name: str = "") -> ScoredRun | None:
    """Measure what waits, and return a monitor's run as far as its newest 10,000 events hold it.

    Each step has the worst of its readings and of its decisions, refused calls included; a step without any has those
    of the step before.

    Parameters
    ----------
    monitor : Monitor
        The monitor, open or closed.
    name : str
        Id of the run; default: ``agent/session``.

    Returns
    -------
    ScoredRun or None
        ``None`` if there is no step yet.
    """
    monitor.decide()
    records = monitor.events()[::-1]
    # The numbers of the events stand for their times, so that each step tells its first event.
    numbered = ((float(record.seq), record.event) for record in records)
    name = name or f"{monitor.agent}/{monitor.session}"
    transcript = transcript_of_events(name, "", numbered, format="monitor")
    if transcript is None:
        return None
    first_events = tuple(int(step.ts or 0) for step in transcript.steps)
    times = {record.seq: record.ts for record in records}
    steps = [
        msgspec.structs.replace(step, ts=times[seq]) for step, seq in zip(transcript.steps, first_events, strict=True)
    ]
    goal = transcript.goal or monitor.state.facts.goal
    results = list(_results(records, first_events))
    return ScoredRun(
        transcript=msgspec.structs.replace(transcript, steps=tuple(steps), goal=goal),
        readings=tuple(
            msgspec.structs.replace(result.reading or NOTHING, tick_seq=at) for at, result in enumerate(results)
        ),
        context_steps=((),) * len(steps),
        appraisals=tuple(result.appraisal for result in results),
        decisions=tuple(result.decision for result in results),
        inverted=monitor.inverted,
        first_events=first_events,
    )


def _results(records: Sequence[Record], first_events: Sequence[int]) -> Iterator[TickResult]:
    """Yield the worst that was measured and decided during each step, of equals the newest."""
    found: defaultdict[int, list[TickResult]] = defaultdict(list)
    for record in reversed(records):
        if record.result is not None:
            found[bisect_right(first_events, record.seq) - 1].append(record.result)
    told = UNMEASURED
    for step in range(len(first_events)):
        told = max((each for each in found[step] if each.reading is not None), key=_band, default=told)
        worst = max(found[step], key=_severity, default=told)
        yield msgspec.structs.replace(told, decision=worst.decision)


def _severity(result: TickResult) -> int:
    return KINDS.index(result.decision.kind)


def _band(result: TickResult) -> int:
    return FROM_BEST.index(result.reading.band if result.reading is not None else Band.UNKNOWN)
