"""A refusal as ``coherence explain`` shows it: the call, the rules, the evidence, and what came of it."""

from __future__ import annotations

import json
import shlex
from typing import Any

import msgspec

from coherence.cli.columns import print_pairs
from coherence.cli.documents import print_document
from coherence.cli.evidence import LABELS, MAX_TEXT, acts_after, event_json, numbered_events, print_events
from coherence.cli.logs import time_of
from coherence.core.decisions import Decision, Finding
from coherence.core.events import UNCOUNTED
from coherence.core.readings import excerpt, number_of, span
from coherence.monitor.codec import decode_decision
from coherence.policy.guidance import pattern_of
from coherence.policy.one_call import OF_ONE_CALL
from coherence.store.store import Store
from coherence.store.told import (
    ToldRefusal,
    all_refusals,
    block_end,
    newest_until,
    refusal_labels,
    steps_until,
)


class _Known:
    """Rows of the store about one refusal."""

    def __init__(self, store: Store, refusal: ToldRefusal) -> None:
        self.refusal = refusal
        self.decision = decode_decision(refusal.decision)
        self.blocking = _blocking(self.decision)
        self.others = [each for each in self.decision.findings if each.active and each not in self.blocking]
        self.stands = all(finding.rule not in OF_ONE_CALL for finding in self.blocking)
        """True if it was not for what the call is itself: whatever ends the block ends it."""
        self.until = newest_until(store, refusal)
        self.end = block_end(store, refusal, stands=self.stands)
        labels = refusal_labels(store, [refusal.agent])
        self.label = labels.get((refusal.session_id, refusal.seq))


class _Shown(_Known):
    """The same with the events around it."""

    def __init__(self, store: Store, refusal: ToldRefusal) -> None:
        super().__init__(store, refusal)
        session, seq = refusal.session_id, refusal.seq
        (asked,) = numbered_events(store, session, [seq])
        self.arguments = json.loads(asked.data).get("gen_ai.tool.call.arguments")
        seen = {number for finding in self.blocking for number in finding.evidence}
        # the question itself is shown as the call
        self.evidence = numbered_events(store, session, sorted(seen - {seq}))
        self.afterwards = acts_after(store, session, seq)
        self.step = steps_until(store, session, seq)
        self.counts = _counts(store, [pattern_of(finding) for finding in self.blocking])


def _blocking(decision: Decision) -> list[Finding]:
    return [finding for finding in decision.findings if finding.acts == "block"]


def list_row(store: Store, refusal: ToldRefusal) -> dict[str, Any]:
    """Return a refusal as the list of ``coherence explain --json`` has it."""
    known = _Known(store, refusal)
    return {
        "refusal": refusal.id,
        "rules": [finding.rule for finding in known.blocking],
        "tool": refusal.tool,
        "agent": refusal.agent,
        "session": refusal.session,
        "ts": refusal.ts,
        "overridden": known.end is not None,
        "label": None if known.label is None else LABELS[known.label],
        "text": known.decision.message,
    }


def explain_refusal(store: Store, refusal: ToldRefusal, *, as_json: bool) -> None:
    """Print all that is known of a refusal."""
    shown = _Shown(store, refusal)
    if as_json:
        print_document("coherence.explain.refusal/1", _plain(shown))
    else:
        _print(shown)


def _plain(shown: _Shown) -> dict[str, Any]:
    refusal, end = shown.refusal, shown.end
    return {
        "refusal": refusal.id,
        "agent": refusal.agent,
        "session": refusal.session,
        "source": refusal.source,
        "seq": refusal.seq,
        "step": shown.step,
        "ts": refusal.ts,
        "tool": refusal.tool,
        "arguments": shown.arguments,
        "text": shown.decision.message,
        "findings": [msgspec.to_builtins(finding) for finding in shown.blocking],
        "also": [finding.rule for finding in shown.others],
        "evidence": [event_json(event) for event in shown.evidence],
        "afterwards": [event_json(event) for event in shown.afterwards],
        "overridden": None if end is None else {"seq": end.seq, "ts": end.ts, "reason": end.text or ""},
        "label": None if shown.label is None else LABELS[shown.label],
        "of_rules": shown.counts,
    }


def _print(shown: _Shown) -> None:
    refusal = shown.refusal
    where = f"{refusal.agent}/{refusal.session}, step {shown.step}, event {refusal.seq}, {time_of(refusal.ts)}"
    rows = [("refusal", refusal.id), ("of", where), ("call", _call(shown))]
    for finding in shown.blocking:
        rows += [("rule", f"{finding.rule}: {finding.score:.2f}, needs {finding.threshold:.2f}")]
        rows += [(name, text) for name, text in (("why", finding.why), ("for you", finding.action)) if text]
    if shown.others:
        rows += [("also", ", ".join(f"{each.rule} ({each.severity})" for each in shown.others))]
    rows += [("overridden", _overridden(shown)), ("label", _label(shown))]
    for count in shown.counts:
        judged = f"labelled: {count['good']} right, {count['bad']} false alarms"
        rows += [("so far", f"{number_of(count['refusals'], 'refusal')} by {count['rule']}, {judged}")]
    print_pairs(rows)
    print_events({"seen": shown.evidence, "afterwards": shown.afterwards})


def _call(shown: _Shown) -> str:
    if shown.refusal.tool is None:
        return "none: a step was measured, and calls are refused since"
    return excerpt(f"{shown.refusal.tool} {json.dumps(shown.arguments, ensure_ascii=False)}", MAX_TEXT)


def _overridden(shown: _Shown) -> str:
    refusal, end = shown.refusal, shown.end
    if end is not None:
        return f"yes: {end.text or 'unblocked'}, event {end.seq}, {span(end.ts - refusal.ts)} later"
    if refusal.source != "hook":
        return f"no; m.unblock(decision={refusal.seq}) lets it through"
    command = f"coherence unblock --session {shlex.quote(refusal.session)} --agent {shlex.quote(refusal.agent)}"
    if shown.stands or shown.until is None:
        return f"no; to let it through: {command}"
    return f"no, and no longer the newest; to let it through, have the agent ask again, then: {command}"


def _label(shown: _Shown) -> str:
    if shown.label is None:
        return f"none: coherence label {shown.refusal.id} good|bad"
    return "good: it was right" if shown.label else "bad: a false alarm"


def _counts(store: Store, rules: list[str]) -> list[dict[str, Any]]:
    """Return how often each rule has refused a call, and how people judged that, without sessions of tests."""
    found: dict[str, dict[str, Any]] = {rule: {"rule": rule, "refusals": 0, "good": 0, "bad": 0} for rule in rules}
    refusals = [each for each in all_refusals(store) if each.tool is not None and each.source not in UNCOUNTED]
    labels = refusal_labels(store, sorted({each.agent for each in refusals}))
    for each in refusals:
        label = labels.get((each.session_id, each.seq))
        for rule in {pattern_of(finding) for finding in _blocking(decode_decision(each.decision))} & found.keys():
            found[rule]["refusals"] += 1
            if label is not None:
                found[rule][LABELS[label]] += 1
    return list(found.values())
