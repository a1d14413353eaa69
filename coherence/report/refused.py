"""Calls that were refused during a session, from its events: which, why, and whether they were let through."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import msgspec

from coherence.core.events import BLOCK, Feedback, Goal, Ticked
from coherence.core.readings import excerpt
from coherence.monitor.tick_result import Record
from coherence.report.score import RefusedCall
from coherence.views.told import end_of_refusal

CALL_LENGTH = 200
WHY_LENGTH = 500


def refused_calls(records: Sequence[Record], first_events: Sequence[int]) -> tuple[RefusedCall, ...]:
    """Return the calls that were refused among events, oldest first.

    Parameters
    ----------
    records : sequence of Record
        The events, oldest first.
    first_events : sequence of int
        For each step, the number of its first event; what was refused before the first step is told with it.
    """
    refused = [record for record in records if is_refusal(record)]
    answers = [(each.seq, each.event) for each in records if isinstance(each.event, Feedback)]
    answers = [(seq, answer) for seq, answer in answers if answer.about == BLOCK] if refused else []
    renewed = [each.seq for each in records if isinstance(each.event, Goal) or is_refusal(each)] if answers else []
    return tuple(_refused(record, first_events, answers, renewed) for record in refused)


def is_refusal(record: Record) -> bool:
    """Tell whether an event was a call that was refused."""
    asked = isinstance(record.event, Ticked) and record.event.tool_name is not None
    return asked and record.result is not None and record.result.decision.kind == "block"


def _refused(
    record: Record, first_events: Sequence[int], answers: Sequence[tuple[int, Feedback]], renewed: Sequence[int]
) -> RefusedCall:
    event, result, seq = record.event, record.result, record.seq
    assert isinstance(event, Ticked)
    assert result is not None
    blocking = [finding for finding in result.decision.findings if finding.acts == "block"]
    until = next((other for other in renewed if other > seq), None)
    return RefusedCall(
        step=max(bisect_right(first_events, seq) - 1, 0),
        seq=seq,
        tool=event.tool_name or "",
        call=_in_words(event),
        why=excerpt(result.decision.message, WHY_LENGTH),
        let_through=end_of_refusal(seq, blocking, answers, until) is not None,
    )


def _in_words(event: Ticked) -> str:
    """Return the beginning of a call's arguments: a command as it is, several of them by name."""
    if event.arguments is msgspec.UNSET:
        return ""
    given: Any = msgspec.json.decode(event.arguments)
    if not isinstance(given, dict):
        return excerpt(given if isinstance(given, str) else msgspec.json.encode(given).decode(), CALL_LENGTH)
    values = {key: each if isinstance(each, str) else msgspec.json.encode(each).decode() for key, each in given.items()}
    told = list(values.values()) if len(values) == 1 else [f"{key}: {value}" for key, value in values.items()]
    return excerpt(", ".join(told), CALL_LENGTH)
