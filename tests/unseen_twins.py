"""Pairs of a right and a wrong statement whose writers never saw the rules, fed through a monitor."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from coherence.monitor.monitor import Monitor

FOLDER = Path(__file__).parent / "data" / "claims"
RULES = ("ungrounded_answer", "contradicted_claim", "ungrounded_writing")
STRENGTHS = {"continue": 0, "watch": 1, "guide": 1, "warn": 2}
Twin = dict[str, Any]


class Judged(NamedTuple):
    """One statement of a pair and what the rules said of it."""

    line: int
    """Of its file, 0 = the first."""
    kind: str
    wrong: bool
    written: bool
    """True for a call that writes something, false for a message."""
    said: str
    strength: int
    """1 = a rule asks to guide, 2 = to warn; 0 = none of them is active."""
    told: tuple[str, ...]
    """Findings in words."""


def read_twins(name: str) -> list[Twin]:
    """Return the pairs of a file, such as ``answers`` or ``claims_2``, in the order of their file."""
    with (FOLDER / f"unseen_{name}.jsonl").open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def judge_twin(line: int, twin: Twin) -> Iterator[Judged]:
    """Yield the right and the wrong statement of a pair, judged after the same events."""
    made = "claim" if "true_claim" in twin else "call"
    said = (twin["right"], twin["wrong"]) if "right" in twin else (twin[f"true_{made}"], twin[f"false_{made}"])
    for wrong, statement in enumerate(said):
        monitor = _after(twin)
        if isinstance(statement, str):
            monitor.message("assistant", statement)
        else:
            monitor.tool_call(statement["tool"], statement["arguments"])
        active = [each for each in monitor.decide().findings if each.rule in RULES and each.active]
        strength = max((STRENGTHS.get(each.severity, 2) for each in active), default=0)
        text = statement if isinstance(statement, str) else json.dumps(statement, ensure_ascii=False)
        yield Judged(
            line,
            twin["kind"],
            bool(wrong),
            not isinstance(statement, str),
            text,
            strength,
            tuple(f"{each.severity} {each}" for each in active),
        )


def _after(twin: Twin) -> Monitor:
    monitor = Monitor(goal=twin["goal"], embedder=False)
    for result in twin.get("results", ()):
        monitor.tool_result(result["content"], call=monitor.tool_call(result["tool"], {}))
    waiting: list[str] = []
    for step in twin.get("steps", ()):
        if step["role"] == "tool":
            monitor.tool_result(step["content"], call=waiting.pop(0), error=step.get("error", False))
            continue
        if step["content"]:
            monitor.message(step["role"], step["content"])
        waiting += [monitor.tool_call(call["tool"], call["arguments"]) for call in step.get("calls", ())]
    return monitor
