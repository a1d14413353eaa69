"""The work behind ``coherence replay``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
import msgspec

from coherence.cli.documents import print_document
from coherence.cli.target import find_sessions, opened, read_config, split_target
from coherence.core.config import MonitorConfig
from coherence.core.decisions import as_shown
from coherence.core.readings import one_line
from coherence.monitor.replay import Replay, ReplayStep, Report
from coherence.monitor.session_header import is_without_text
from coherence.monitor.tick_result import TickResult
from coherence.store.rows import SessionRow
from coherence.store.store import Store


def replay_sessions(
    target: str | None,
    *,
    store: Path | None,
    check: bool,
    at: int | None,
    until_fire: bool,
    config: Path | None,
    as_json: bool,
) -> int:
    """Replay what a target means, and return the exit status."""
    path, name = split_target(target, store)
    other = read_config(config) if config is not None else None
    with opened(path) as kept:
        rows = find_sessions(kept, name)
        if not rows:
            raise click.UsageError(f"{path}: no sessions")
        without = [row for row in rows if is_without_text(row)]
        if name is None and 0 < len(without) < len(rows):
            click.echo(f"left out: {len(without)} sessions without texts, which cannot be computed again", err=True)
            rows = [row for row in rows if not is_without_text(row)]
        if check:
            return _check(kept, rows, as_json=as_json)
        if at is not None or until_fire:
            return _show_one(kept, rows[-1], at, other, as_json=as_json)
        if other is not None:
            return _compare(kept, rows, other, as_json=as_json)
        return _list(kept, rows, as_json=as_json)


def _say(line: str) -> None:
    sys.stdout.write(one_line(line) + "\n")


def _check(store: Store, rows: list[SessionRow], *, as_json: bool) -> int:
    reports: list[Report] = []
    for row in rows:
        report = Replay(store, row).report()
        reports.append(report)
        if as_json:
            continue
        kept = f", {report.kept} taken as recorded" if report.kept else ""
        _say(
            f"{row.agent}/{row.session}: {report.events} events, {report.equal} of {report.ticks} ticks are equal"
            f" bit for bit{kept}"
        )
        for found in report.differences:
            _say(f"  event {found.seq}: {found.what} was {found.recorded!r}, is {found.computed!r}")
    if as_json:
        print_document("coherence.replay.check/1", msgspec.to_builtins(reports))
    return int(any(report.equal < report.ticks for report in reports))


def _line(step: ReplayStep, result: TickResult) -> str:
    reading = result.reading
    index = (
        f"{reading.coherence_index:.2f} {reading.band:<6}"
        if reading and reading.coherence_index is not None
        else "-    -     "
    )
    mark = "" if step.equal else "  (recorded otherwise)"
    return (
        f"{step.seq:>6}  {index}  pressure {result.appraisal.pressure:.2f} {result.appraisal.mode:<7}"
        f"  {result.decision}{mark}"
    )


def _list(store: Store, rows: list[SessionRow], *, as_json: bool) -> int:
    lines = []
    for row in rows:
        if not as_json:
            _say(f"{row.agent}/{row.session}")
        for step in Replay(store, row).steps():
            if step.computed is None or step.computed.reading is None:
                continue
            if as_json:
                lines.append(_plain(row, step, step.computed))
            else:
                _say(_line(step, step.computed))
    if as_json:
        print_document("coherence.replay/1", lines)
    return 0


def _plain(row: SessionRow, step: ReplayStep, result: TickResult) -> dict[str, Any]:
    return {
        "agent": row.agent,
        "session": row.session,
        "seq": step.seq,
        "ts": step.row.ts,
        "equal": step.equal,
        "reading": None if result.reading is None else result.reading.to_dict(),
        "appraisal": msgspec.to_builtins(result.appraisal),
        "decision": result.decision.to_dict(),
    }


def _show_one(store: Store, row: SessionRow, at: int | None, other: MonitorConfig | None, *, as_json: bool) -> int:
    """Show one moment: event ``at``, or the first decision that is more than to continue."""
    replay = Replay(store, row, other)
    last = store.last_seq(row.id)
    if at is not None and at > last:
        name = one_line(f"{row.agent}/{row.session}")
        raise click.BadParameter(f"the newest event of {name} is {last}", param_hint="--at")
    shown: ReplayStep | None = None
    result: TickResult | None = None
    for step in replay.steps(until=at):
        if step.computed is not None and step.computed.reading is not None:
            shown, result = step, step.computed
            if at is None and result.decision.kind != "continue":
                break
    fired = result is not None and result.decision.kind != "continue"
    if shown is None or result is None or (at is None and not fired):
        if as_json:
            print_document("coherence.replay/1", None)
        else:
            _say("nothing fires" if at is None else f"nothing was measured up to event {at}")
        return 0
    if as_json:
        print_document("coherence.replay/1", _plain(row, shown, result))
        return 0
    asked = "" if at in (None, shown.seq) else f" (the newest measurement up to event {at})"
    _say(f"{row.agent}/{row.session}, event {shown.seq}{asked}: {result.decision}")
    for finding in result.decision.findings:
        events = f" (events {', '.join(map(str, finding.evidence))})" if finding.evidence else ""
        _say(f"  {'active  ' if finding.active else 'inactive'} {finding}{events}")
    for name, signal in result.appraisal.signals.items():
        usual = "no baseline"
        if signal.usual is not None:
            usual = f"usual {as_shown(name, signal.usual):.2f}, z {signal.z:.1f}"
        _say(f"  signal {name} {as_shown(name, signal.value or 0.0):.2f} ({usual}): pressure {signal.pressure:.2f}")
    if result.reading is not None:
        for line in result.reading.explain().split("\n"):
            _say(f"  {line}")
    for text in replay.pipeline.state.get_goals():
        _say(f"  goal: {text[:200]}")
    for item in replay.pipeline.state.context:
        _say(f"  {item.seq:>6} {item.role}: {item.text[:160]}")
    return 0


def _compare(store: Store, rows: list[SessionRow], other: MonitorConfig, *, as_json: bool) -> int:
    """Show where another configuration would have decided otherwise."""
    found = []
    ticks = 0
    for row in rows:
        for step in Replay(store, row, other).steps():
            recorded = step.recorded
            if recorded is None or step.computed is None:
                continue
            ticks += 1
            was, now = recorded.decision, step.computed.decision
            if was.kind != now.kind:
                found.append((row, step, was, now))
    if as_json:
        changes = [
            {"agent": row.agent, "session": row.session, "seq": step.seq, "was": was.kind, "would_be": now.kind}
            | {"why": now.message or was.message}
            for row, step, was, now in found
        ]
        print_document("coherence.replay.config/1", changes)
        return 0
    for row, step, was, now in found:
        _say(f"{row.agent}/{row.session} event {step.seq}: {was.kind} -> {now.kind}: {now.message or was.message}")
    _say(f"{len(found)} of {ticks} decisions would differ")
    return 0
