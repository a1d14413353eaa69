"""Work of ``coherence explain``, and of ``coherence label`` on a firing of guidance or a refusal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
import msgspec

from coherence.cli.columns import print_columns, print_pairs
from coherence.cli.documents import print_document
from coherence.cli.evidence import LABELS, acts_after, event_json, numbered_events, print_events
from coherence.cli.logs import time_of
from coherence.cli.refusals import explain_refusal, list_row
from coherence.cli.target import opened, split_target
from coherence.core.decisions import Decision
from coherence.core.readings import excerpt, number_of, one_line, span
from coherence.core.signs import said
from coherence.monitor.codec import decode_result
from coherence.monitor.tick_result import TickResult
from coherence.policy.experiment import judge_pattern
from coherence.policy.guidance import pattern_of
from coherence.store.rows import FiringOutcomeRow
from coherence.store.runs import session_label
from coherence.store.store import Store
from coherence.store.told import (
    ToldFiring,
    ToldRefusal,
    count_pattern,
    find_told,
    firing_labels,
    newest_told,
    outcomes_of,
    steps_until,
)
from coherence.views.changes import label_told


def _find(store: Store, name: str) -> ToldFiring | ToldRefusal:
    """Return the one firing or refusal that a name means; none, or several, become a usage error."""
    found = find_told(store, name, 6)
    if not found:
        raise click.UsageError(f"no firing and no refusal is called {one_line(name)!r}; coherence explain lists them")
    if len(found) > 1:
        known = ", ".join(each.id for each in found[:5])
        raise click.UsageError(one_line(f"more than one id begins with {name!r}: {known}"))
    return found[0]


def list_newest(store: Path | None, *, limit: int, as_json: bool) -> None:
    """Print the newest firings and refused calls, one a line."""
    with opened(split_target(None, store)[0]) as kept:
        found = newest_told(kept, limit)
        labels = firing_labels(kept, sorted({each.agent for each in found}))
        rows = [
            list_row(kept, each) if isinstance(each, ToldRefusal) else _list_row(each, labels.get(each.id))
            for each in found
        ]
    if as_json:
        print_document("coherence.explain.list/1", rows)
    elif not found:
        sys.stdout.write("no pattern has fired, and no call was refused\n")
    else:
        table: list[tuple[str, ...]] = [("id", "time", "session", "told", "label", "text")]
        for each, row in zip(found, rows, strict=True):
            where, label = f"{each.agent}/{each.session}", row["label"] or "-"
            table += [(each.id, time_of(each.ts), where, _told(row), label, excerpt(row["text"], 200))]
        print_columns(table, texts=1)


def _list_row(firing: ToldFiring, label: bool | None) -> dict[str, Any]:
    return {
        "firing": firing.id,
        "pattern": firing.pattern,
        "arm": firing.arm,
        "agent": firing.agent,
        "session": firing.session,
        "ts": firing.ts,
        "delivered": firing.delivered,
        "label": None if label is None else LABELS[label],
        "text": firing.text,
    }


def _told(row: dict[str, Any]) -> str:
    if "refusal" in row:
        return "overridden" if row["overridden"] else "refused"
    return "withheld" if row["arm"] == "control" else "delivered" if row["delivered"] else "not seen"


def explain_one(name: str, *, store: Path | None, as_json: bool) -> None:
    """Print all that is known of one firing or refusal."""
    with opened(split_target(None, store)[0]) as kept:
        found = _find(kept, name)
        if isinstance(found, ToldRefusal):
            explain_refusal(kept, found, as_json=as_json)
        elif as_json:
            print_document("coherence.explain/1", _plain(kept, found))
        else:
            _print(kept, found)


def label_one(store: Store, name: str, label: str) -> None:
    """Record whether a firing or a refusal was right."""
    found = _find(store, name)
    label_told(store, found, "good" if label == "good" else "bad" if label == "bad" else None)
    verdict = {"good": "was right", "bad": "was a false alarm", "none": "has no label now"}[label]
    sys.stdout.write(one_line(f"{found.id} of {found.agent}/{found.session} {verdict}") + "\n")


class _Known:
    """Rows of the store about one firing."""

    def __init__(self, store: Store, firing: ToldFiring) -> None:
        self.firing = firing
        tick = next(store.events(firing.session_id, after=firing.seq - 1, until=firing.seq), None)
        self.result: TickResult | None = decode_result(tick) if tick is not None else None
        decision = self.result.decision if self.result is not None else None
        self.decision: Decision | None = decision
        guidance = decision.guidance if decision is not None else None
        seqs = guidance.evidence if guidance is not None else ()
        self.evidence = numbered_events(store, firing.session_id, seqs)
        self.afterwards = acts_after(store, firing.session_id, firing.seq)
        active = [each for each in decision.findings if each.active] if decision is not None else []
        of_pattern = [each for each in active if pattern_of(each) == firing.pattern]
        self.finding = next((each for each in of_pattern if each.evidence == seqs), next(iter(of_pattern), None))
        self.others = [each for each in active if each is not self.finding]
        self.outcomes = outcomes_of(store, firing.id)
        self.label = firing_labels(store, [firing.agent]).get(firing.id)
        self.run_label = session_label(store, firing.agent, firing.session)
        self.counts = count_pattern(store, firing.pattern)
        self.judgement = judge_pattern(store, firing.pattern).judgement
        self.step = steps_until(store, firing.session_id, firing.seq)


def _plain(store: Store, firing: ToldFiring) -> dict[str, Any]:
    known = _Known(store, firing)
    result, reading = known.result, known.result.reading if known.result is not None else None
    return {
        "firing": firing.id,
        "pattern": firing.pattern,
        "arm": firing.arm,
        "pair": firing.pair,
        "agent": firing.agent,
        "session": firing.session,
        "source": firing.source,
        "seq": firing.seq,
        "step": known.step,
        "ts": firing.ts,
        "text": firing.text,
        "delivered": {"seq": firing.delivered_seq, "ts": firing.delivered_ts} if firing.delivered else None,
        "finding": None if known.finding is None else msgspec.to_builtins(known.finding),
        "also": [each.rule for each in known.others],
        "decision": None if known.decision is None else known.decision.kind,
        "index": None if reading is None else reading.coherence_index,
        "band": None if reading is None else str(reading.band),
        "cause": "" if reading is None else reading.cause,
        "pressure": None if result is None or reading is None else result.appraisal.pressure,
        "evidence": [event_json(event) for event in known.evidence],
        "afterwards": [event_json(event) for event in known.afterwards],
        "outcomes": [
            {name: value for name, value in msgspec.structs.asdict(each).items() if name != "firing"}
            for each in known.outcomes
        ],
        "label": None if known.label is None else LABELS[known.label],
        "run_label": None if known.run_label is None else LABELS[known.run_label],
        "of_pattern": {**msgspec.to_builtins(known.counts), "verdict": known.judgement.verdict},
    }


def _print(store: Store, firing: ToldFiring) -> None:
    known = _Known(store, firing)
    where = f"{firing.agent}/{firing.session}, step {known.step}, event {firing.seq}, {time_of(firing.ts)}"
    rows = [("firing", firing.id), ("of", where)]
    rows += [("withheld" if firing.arm == "control" else "told", firing.text or "the text is not kept")]
    rows += [("delivered", _delivery(firing))]
    if (finding := known.finding) is not None:
        rows += [("rule", f"{finding.rule} ({finding.severity}): {finding.score:.2f}, needs {finding.threshold:.2f}")]
        rows += [(name, text) for name, text in (("why", finding.why), ("for you", finding.action)) if text]
    if known.others:
        also = (f"{each.rule} ({each.severity}, {each.score:.2f} of {each.threshold:.2f})" for each in known.others)
        rows += [("also", ", ".join(also))]
    reading = known.result.reading if known.result is not None else None
    if known.result is not None and reading is not None:
        sign = f", strongest sign: {said(reading.cause)}" if reading.cause else ""
        rows += [("measured", f"index {reading.short()}, pressure {known.result.appraisal.pressure:.2f}{sign}")]
    if known.result is None:
        rows += [("measured", "its event is not kept: it was purged, or has left by age")]
    rows += [("outcome", text) for text in map(_outcome, known.outcomes)] or [("outcome", "not known yet")]
    rows += [("label", _label(known))]
    counts, judged = known.counts, known.judgement
    so_far = f"{number_of(counts.firings, 'firing')}, {counts.delivered} delivered, labelled: "
    rows += [("pattern", f"{so_far}{counts.good} right, {counts.bad} false alarms; effect: {judged.verdict}")]
    print_pairs(rows)
    print_events({"seen": known.evidence, "afterwards": known.afterwards})


def _delivery(firing: ToldFiring) -> str:
    if firing.arm == "control":
        return "no: it was withheld, to compare what happens without it"
    if not firing.delivered:
        return "not confirmed: the agent may not have seen it"
    who = "the client's transcript shows it" if firing.source == "hook" else "the host has confirmed it"
    if firing.delivered_seq is None or firing.delivered_ts is None:
        return f"yes: {who}"
    return f"yes: {who}, event {firing.delivered_seq}, {span(firing.delivered_ts - firing.ts)} later"


def _outcome(outcome: FiringOutcomeRow) -> str:
    when = "at the end of the task" if outcome.horizon == 0 else f"{number_of(outcome.horizon, 'action')} later"
    told = []
    if outcome.pressure_change is not None:
        fell = outcome.pressure_change
        told += ["the pressure was the same" if not fell else f"the pressure {_moved(fell)} by {abs(fell):.2f}"]
    if outcome.error_resolved is not None:
        told += ["the newest action succeeded" if outcome.error_resolved else "the newest action failed"]
    if outcome.tool_switched is not None:
        told += ["with another tool" if outcome.tool_switched else "with the same tool"]
    if outcome.task_success is not None:
        told += ["the task succeeded" if outcome.task_success else "the task failed"]
    return f"{when}: {', '.join(told) or 'unknown'}"


def _moved(fall: float) -> str:
    return "had fallen" if fall > 0 else "had risen"


def _label(known: _Known) -> str:
    of_run = "" if known.run_label is None else f"; the run is labelled {LABELS[known.run_label]}"
    if known.label is None:
        return f"none: coherence label {known.firing.id} good|bad{of_run}"
    return f"{'good: it was right' if known.label else 'bad: a false alarm'}{of_run}"
