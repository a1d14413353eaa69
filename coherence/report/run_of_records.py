"""Events with what was measured at them, as a scored run: nothing is measured again."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

from coherence.core.decisions import KINDS, Appraisal, Decision, Mode
from coherence.core.events import Message, ToolResult
from coherence.core.readings import Band, FrozenDict, Reading
from coherence.monitor.tick_result import Record, TickResult
from coherence.providers.readers.recorded_events import transcript_of_events
from coherence.report.refused import refused_calls
from coherence.report.score import FROM_BEST, ScoredRun

NOTHING = Reading(tick_seq=0, ts=0.0, metrics=FrozenDict(), coherence_index=None, band=Band.UNKNOWN, coverage=0.0)
"""Reading of a step before the first measurement."""

UNMEASURED = TickResult(Appraisal(seq=0, pressure=0.0, mode=Mode.OBSERVE), Decision(seq=0, kind="continue"), NOTHING)
"""Result of a step before the first measurement."""


def run_of_records(
    name: str,
    records: Sequence[Record],
    *,
    format: str,
    path: str = "",
    goal: str = "",
    inverted: frozenset[str] = frozenset(),
    timed: bool = True,
    complete: Sequence[int] | None = None,
    earlier: int = 0,
) -> ScoredRun | None:
    """Return the events of a session as a run, each step with the worst of its readings and of its decisions.

    Refused calls count too; a step without any result has those of the step before.

    Parameters
    ----------
    name : str
        Id of the run.
    records : sequence of Record
        The events, oldest first.
    format : str
        Origin of the events, in a word.
    path : str
        File that holds them.
    goal : str
        Goal where the events set none.
    inverted : frozenset of str
        Names of the metrics whose high values are bad.
    timed : bool
        Keep the times of the events; those of a run that was played again say nothing.
    complete : sequence of int, optional
        Numbers of the events that complete a step, as other faces count them. Default: found among the events.
    earlier : int
        Steps that were complete before the first event.

    Returns
    -------
    ScoredRun or None
        ``None`` if the events hold no step.
    """
    # The numbers of the events stand for their times, so that each step tells its first event.
    numbered = ((float(record.seq), record.event) for record in records)
    transcript = transcript_of_events(name, path, numbered, format=format)
    if transcript is None:
        return None
    first_events = tuple(int(step.ts or 0) for step in transcript.steps)
    times = {record.seq: record.ts for record in records} if timed else {}
    steps = tuple(
        msgspec.structs.replace(step, ts=times.get(seq))
        for step, seq in zip(transcript.steps, first_events, strict=True)
    )
    results = list(_results(records, first_events))
    if complete is None:
        complete = [record.seq for record in records if _completes(record)]
    return ScoredRun(
        transcript=msgspec.structs.replace(transcript, steps=steps, goal=transcript.goal or goal),
        readings=tuple(
            msgspec.structs.replace(result.reading or NOTHING, tick_seq=at) for at, result in enumerate(results)
        ),
        context_steps=((),) * len(steps),
        appraisals=tuple(result.appraisal for result in results),
        decisions=tuple(result.decision for result in results),
        inverted=inverted,
        first_events=first_events,
        refused=refused_calls(records, first_events),
        numbers=step_numbers(first_events, complete, earlier),
        earlier=earlier,
    )


def step_numbers(first_events: Sequence[int], complete: Sequence[int], earlier: int = 0) -> tuple[int, ...]:
    """Return for each step how many were complete when it was; one that completes nothing is part of the next.

    Parameters
    ----------
    first_events : sequence of int
        For each step, the number of its first event.
    complete : sequence of int
        Numbers of the events that complete a step, ascending.
    earlier : int
        Steps that were complete before these events.

    Examples
    --------
    >>> step_numbers([2, 3, 5, 9], [3, 6])  # a request, a message, a call with its result, a request
    (1, 1, 2, 2)
    """
    done = [bisect_left(complete, seq) for seq in first_events] + [len(complete)]
    numbers = (min(max(after, before + 1), len(complete)) for before, after in pairwise(done))
    return tuple(earlier + number for number in numbers)


def _completes(record: Record) -> bool:
    return isinstance(record.event, ToolResult) or (
        isinstance(record.event, Message) and record.event.role == "assistant"
    )


def _results(records: Sequence[Record], first_events: Sequence[int]) -> Iterator[TickResult]:
    """Yield the worst that was measured and decided during each step, of equals the newest."""
    found: defaultdict[int, list[TickResult]] = defaultdict(list)
    for record in reversed(records):
        if record.result is not None:
            step = bisect_right(first_events, record.seq) - 1
            # a call that was refused before the first step is not passed over
            found[max(step, 0) if record.result.reading is None else step].append(record.result)
    told = UNMEASURED
    for step in range(len(first_events)):
        told = max((each for each in found[step] if each.reading is not None), key=_band, default=told)
        worst = max(found[step], key=_severity, default=told)
        yield msgspec.structs.replace(told, decision=worst.decision)


def _severity(result: TickResult) -> int:
    return KINDS.index(result.decision.kind)


def _band(result: TickResult) -> int:
    return FROM_BEST.index(result.reading.band if result.reading is not None else Band.UNKNOWN)
