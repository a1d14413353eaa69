"""Counts of refused calls: harmful and harmless ones, in runs that break or keep a prohibition, in good runs.

Run: ``python tests/bench/gate.py``. Names of recorded runs (``tau_retail``) as arguments choose some, ``-`` none.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from coherence import Monitor
from coherence.monitor.steps import record_step
from coherence.providers.readers import read_transcripts
from coherence.providers.transcript import Step

DATA = Path(__file__).resolve().parents[1] / "data"
REFUSING = ("harmful_call", "forbidden_call", "broken_constraint")


def rows(name: str) -> list[dict[str, Any]]:
    """Return the rows of a file of ``tests/data/gate``."""
    return [json.loads(line) for line in (DATA / "gate" / f"{name}.jsonl").read_text("utf-8").splitlines()]


def is_refused(row: Mapping[str, Any]) -> bool:
    """Return whether one call is refused."""
    return Monitor(goal=row["goal"], embedder=False).check(row["tool"], row["arguments"]).kind == "block"


def is_seen(row: Mapping[str, Any], steps: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a call of a run is refused, or an answer is warned of, for what somebody has forbidden."""
    monitor = Monitor(goal=row["goal"], embedder=False)
    if row["system"]:
        monitor.message("system", row["system"])
    if row["correction"]:
        monitor.correction(row["correction"])
    waiting: list[str] = []
    for step in steps:
        if step["role"] == "tool":
            monitor.tool_result(step["content"], call=waiting.pop(0) if waiting else None)
            continue
        monitor.message(step["role"], step["content"])
        for call in step.get("calls", ()):
            if monitor.check(call["tool"], call["arguments"]).kind == "block":
                return True
            waiting.append(monitor.tool_call(call["tool"], call["arguments"]))
        if any(found.active and found.rule == "broken_constraint" for found in monitor.decide().findings):
            return True
    return False


def refusals(goal: str, steps: Sequence[Step]) -> Iterator[str]:
    """Yield the rules that refuse a call of a recorded run."""
    monitor = Monitor(goal=goal or "go on", embedder=False, config={"tick": "manual"})
    waiting: list[tuple[str, str]] = []
    for step in steps:
        for call in step.tool_calls:
            decision = monitor.check(call.name or "unknown", call.arguments)
            yield from (found.rule for found in decision.findings if found.active and found.severity == "block")
        record_step(monitor, step, waiting)


def is_good(labels: Mapping[str, Any]) -> bool:
    """Return whether a recorded run is as it should be, as far as its labels say."""
    return not (labels.get("derailed") or labels.get("hijacked") or labels.get("success") is False)


def _show(what: str, found: Sequence[bool]) -> None:
    halves = ", ".join(f"{sum(half)} of {len(half)}" for half in (found, found[::2], found[1::2]))
    sys.stdout.write(f"{what}: {halves} (all, even lines, odd lines)\n")


def main(names: Sequence[str]) -> None:
    for name in ("destructive", "destructive_2"):
        for harmful in (True, False):
            asked = [is_refused(row) for row in rows(name) if row["harmful"] is harmful]
            _show(f"{name}: {'harmful' if harmful else 'harmless'} calls refused", asked)
    for name in ("forbidden", "forbidden_2", "forbidden_3"):
        for side in ("broken", "kept"):
            _show(f"{name}: prohibitions {side}, seen", [is_seen(row, row[side]) for row in rows(name)])
    files = [DATA / "runs" / f"{name}.jsonl.gz" for name in names if name != "-"]
    for file in files or ([] if names else sorted((DATA / "runs").glob("*.jsonl.gz"))):
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            labels = [json.loads(line)["labels"] for line in lines]
        runs = [run for run, of_run in zip(read_transcripts(file, None), labels, strict=True) if is_good(of_run)]
        found = [set(refusals(run.goal, run.steps)).intersection(REFUSING) for run in runs]
        counts = Counter(rule for each in found for rule in each)
        told = ", ".join(f"{rule} {count}" for rule, count in sorted(counts.items())) or "none"
        sys.stdout.write(f"{file.name.partition('.')[0]}: of {len(runs)} good runs with a refused call: {told}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
