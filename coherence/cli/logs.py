"""The work behind ``coherence sessions``, ``coherence log`` and ``coherence audit``."""

from __future__ import annotations

import json
import sys
from collections import deque
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import msgspec

from coherence.cli.columns import print_columns
from coherence.cli.documents import print_document, versioned
from coherence.cli.outputs import check_outputs
from coherence.cli.target import find_sessions, opened, split_target
from coherence.core.events import BLOCK, NOTE
from coherence.core.readings import excerpt, one_line
from coherence.store.jsonl import export_jsonl, read_trail, trail_path
from coherence.store.open import is_sqlite
from coherence.store.rows import EventRow, SessionRow
from coherence.store.store import Store

USAGE = (
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.output_tokens",
    "coherence.cost_usd",
    "gen_ai.response.model",
)
TEXTS = ("gen_ai.tool.call.result", "content", "text", "summary", "message", "reason", "gen_ai.tool.call.arguments")


def list_sessions(store: Path | None, *, as_json: bool) -> None:
    """Print one line a session."""
    with opened(split_target(None, store)[0]) as kept:
        rows = [_summary(kept, row) for row in kept.sessions()]
    if as_json:
        print_document("coherence.sessions/1", rows)
        return
    table: list[tuple[str, ...]] = [("session", "source", "started", "events", "index", "pressure", "decision")]
    table += [
        (
            f"{row['agent']}/{row['session']}",
            row["source"],
            row["started"],
            str(row["events"]),
            "-" if row["index"] is None else f"{row['index']:.2f} {row['band']}",
            "-" if row["pressure"] is None else f"{row['pressure']:.2f} {row['mode']}",
            row["decision"] or "-",
        )
        for row in rows
    ]
    print_columns(table)


def newest_measurement(store: Store, row: SessionRow) -> EventRow | None:
    """Return the newest event of a session with a reading, ``None`` if none of the newest events has one."""
    last = store.last_seq(row.id)
    newest = None
    # Rarely do so many events lie between two ticks, and reading a long session whole would take its time.
    for event in store.events(row.id, after=max(last - 50, 0)):
        newest = event if event.reading is not None else newest
    return newest


def _summary(store: Store, row: SessionRow) -> dict[str, Any]:
    newest = newest_measurement(store, row)
    reading = newest.reading if newest is not None else None
    return {
        "agent": row.agent,
        "session": row.session,
        "parent": row.parent,
        "source": row.source,
        "started": time_of(row.started),
        "events": store.count_events(row.id),
        "index": reading.coherence_index if reading is not None else None,
        "band": reading.band if reading is not None else None,
        "pressure": reading.pressure if reading is not None else None,
        "mode": reading.mode if reading is not None else None,
        "decision": newest.decision.kind if newest is not None and newest.decision is not None else None,
    }


def print_log(target: str | None, *, store: Path | None, limit: int, kind: str | None, as_json: bool) -> None:
    """Print the newest events of what a target means, oldest first."""
    path, name = split_target(target, store)
    with opened(path) as kept:
        for row in find_sessions(kept, name):
            # of one kind the newest may lie anywhere
            after = 0 if kind is not None else max(kept.last_seq(row.id) - limit, 0)
            found = deque((event for event in kept.events(row.id, after=after) if kind in (None, event.kind)), limit)
            if not as_json:
                sys.stdout.write(one_line(f"{row.agent}/{row.session}") + "\n")
            for event in found:
                line = json.dumps(versioned("coherence.log/1", event_record(row, event))) if as_json else line_of(event)
                sys.stdout.write(line + "\n")


def event_record(row: SessionRow, event: EventRow) -> dict[str, Any]:
    """Return an event of a session as JSON has it."""
    return {
        "agent": row.agent,
        "session": row.session,
        "seq": event.seq,
        "ts": event.ts,
        "source": row.source,
        "event": json.loads(event.data),
        "reading": None if event.reading is None else json.loads(event.reading.data),
        "decision": None if event.decision is None else json.loads(event.decision.data),
    }


def line_of(event: EventRow, most: int = 100) -> str:
    """Return an event on one line, its text cut to so many characters."""
    data = json.loads(event.data)
    named = ((key.partition(".usage.")[2] or key.rpartition(".")[2], data.get(key)) for key in USAGE)
    usage = [f"{name} {value}" for name, value in named if value is not None]
    what = ", ".join(usage) if event.kind == "usage" else next((str(data[key]) for key in TEXTS if data.get(key)), "")
    marks = [data["gen_ai.tool.name"]] if "gen_ai.tool.name" in data else []
    marks += ["ERROR"] if data.get("error") else []
    marks += [{True: "success", False: "failure"}[data["success"]]] if data.get("success") is not None else []
    marks += [f"score {data['score']:g}"] if data.get("score") is not None else []
    if data.get("about") == BLOCK:
        marks += [_judged(data.get("score"))]
    marks += ["note"] if data.get("about") == NOTE else []
    marks += [f"delivered {data['coherence.firing']}"] if data.get("coherence.firing") else []
    if event.reading is not None and event.decision is not None:
        index = event.reading.coherence_index
        shown = "unknown" if index is None else f"{index:.2f} {event.reading.band}"
        what = f"index {shown}, pressure {event.reading.pressure:.2f} {event.reading.mode}, {event.decision.kind}"
        what += _reason(event.decision.data)
    elif event.decision is not None:
        marks.append(event.decision.kind)
        what = f"{what}{_reason(event.decision.data)}"
    return one_line(f"{event.seq:>6}  {time_of(event.ts)}  {event.kind:<11}  {' '.join([*marks, excerpt(what, most)])}")


def _judged(score: float | None) -> str:
    """Return what an event about a block says."""
    if score is None:
        return "unblock"
    return "refusal confirmed" if score > 0 else "refusal a false alarm" if score < 0 else "refusal without a label"


def _reason(decision: str) -> str:
    """Return the first active finding of a decision, and the guidance that fired with it."""
    data = json.loads(decision)
    data = data.get("decision", data)
    active = [finding["rule"] for finding in data.get("findings", ()) if finding.get("active")]
    guidance = data.get("guidance")
    told = f", guidance {guidance['pattern']} ({guidance['arm']})" if guidance else ""
    return (f" ({active[0]})" if active else "") + told


def time_of(ts: float) -> str:
    """Return a Unix time as date and time in UTC."""
    try:
        return datetime.fromtimestamp(ts, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return str(ts)


def verify_audit(paths: tuple[Path, ...], *, as_json: bool) -> int:
    """Check the hash chain of a store, or of exported files; return the exit status."""
    if len(paths) == 1 and is_sqlite(paths[0]):
        with opened(paths[0]) as kept:
            faults = kept.verify()
            count, first, newest = kept.extent()
            purged = kept.count_purged()
    else:
        for path in paths:
            if not path.exists():
                raise click.UsageError(f"{path}: no such file")
        faults, count, first, newest, purged = read_trail(paths)
        if not count and not faults:
            raise click.UsageError(f"{', '.join(map(str, paths))}: no events of an audit trail")
    if as_json:
        print_document("coherence.audit.verify/1", msgspec.to_builtins(faults))
        return int(bool(faults))
    for fault in faults:
        sys.stdout.write(one_line(fault.message) + "\n")
    verdict = "intact" if not faults else "NOT INTACT"
    without = f", {purged} of them purged" if purged else ""
    sys.stdout.write(f"{count} events from number {first} on{without}, newest hash {newest}: {verdict}\n")
    return int(bool(faults))


def export_audit(path: Path, folder: Path) -> None:
    """Append what is new to the JSON lines of the audit trail."""
    check_outputs({"the trail's file": trail_path(folder)}, [], store=path)
    with opened(path) as kept:
        export_jsonl(kept, folder)
    click.echo(f"audit trail: {folder}", err=True)
