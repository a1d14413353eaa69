"""Events of a session that an explanation shows: those it rests on, and what the agent did then."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from coherence.cli.logs import line_of
from coherence.store.rows import EventRow
from coherence.store.store import Store

NEXT_EVENTS = 6
"""Events afterwards that are shown."""

MAX_TEXT = 400
"""Characters of an event's text."""

ACTS = ("tool_call", "tool_result", "message")
"""Kinds of the events that show what an agent did."""

LABELS = {True: "good", False: "bad"}


def numbered_events(store: Store, session_id: int, seqs: Sequence[int]) -> list[EventRow]:
    """Return the events of some numbers, as far as they are kept."""
    return [event for seq in seqs for event in store.events(session_id, after=seq - 1, until=seq)]


def acts_after(store: Store, session_id: int, seq: int) -> list[EventRow]:
    """Return what the agent did after an event."""
    following = store.events(session_id, after=seq, limit=50)
    return [event for event in following if event.kind in ACTS and _is_act(event)][:NEXT_EVENTS]


def _is_act(event: EventRow) -> bool:
    return event.kind != "message" or '"content":""' not in event.data


def event_json(event: EventRow) -> dict[str, Any]:
    """Return an event as JSON has it."""
    return {"seq": event.seq, "ts": event.ts, "event": json.loads(event.data)}


def print_events(lists: Mapping[str, Sequence[EventRow]]) -> None:
    """Print lists of events below their names; empty ones are left out."""
    for name, events in lists.items():
        if events:
            sys.stdout.write(f"{name}\n")
        for event in events:
            sys.stdout.write(line_of(event, MAX_TEXT) + "\n")
