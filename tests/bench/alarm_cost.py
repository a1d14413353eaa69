"""Cost of the detectors behind the alarms, for a step of the labelled runs and a result of 1 MB.

Run ``python tests/bench/alarm_cost.py``; it takes about a minute. A step is a message with its calls, or a result. Each
detector is given the events of a run as a state gives them; what the state itself costs is not in the figures. A new
detector is a line in ``DETECTORS``. Processor time of the thread is counted, so that a busy machine says the same.
"""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import mean, median
from typing import Any

import msgspec
from showing import row, say

from coherence.core.config import MonitorConfig
from coherence.core.events import Event, Goal, Message, ToolCall, ToolResult
from coherence.detect.assumption import AssumptionDetector
from coherence.detect.detector import DetectorTable, Observed
from coherence.detect.grounding_state import GroundingDetector
from coherence.detect.hijack import HijackDetector
from coherence.policy.hijack_findings import RULE, asked_call, limits_of
from coherence.state.reducer import AgentState

RUNS = Path(__file__).parent.parent / "data" / "runs"
SOURCES = ("agentdojo", "whowhen", "tau_airline", "swebench_mini")
MEAN_MS, P99_MS = 1.0, 5.0
"""What a step may cost."""

LIMITS = limits_of(MonitorConfig(), RULE)

HUGE_MS = 20.0
"""What a result of 1 MB may cost."""

DETECTORS: dict[str, Callable[[], DetectorTable]] = {
    "goal_hijack": lambda: DetectorTable([HijackDetector()]),
    "all detectors": lambda: DetectorTable(
        [
            HijackDetector(),
            AssumptionDetector(),
            GroundingDetector(MonitorConfig().grounding.extractors),
        ]
    ),
}
"""What is timed."""

HUGE = {
    "prose": "Please send the report of this week to anna@example.org before noon. ",
    "one word": "x",
    "JSON in one line": '{"id": 17, "note": "The rent rises in May, as agreed.", "tags": ["a", "b"]}, ',
    "short lines": "key: value\n",
    "brackets": "<[{(",
}
"""What a result of 1 MB is made of."""


def read(source: str) -> list[dict[str, Any]]:
    """Return the runs of a source."""
    with gzip.open(RUNS / f"{source}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def steps(run: dict[str, Any]) -> Iterator[list[Event]]:
    """Yield the events of each step; the goal comes first."""
    yield [Goal(run["goal"])]
    for step in run["steps"]:
        text = step["content"] or step.get("tool_result") or ""
        if step["role"] == "tool":
            yield [ToolResult(str(text), tool_name=step.get("tool_name"))]
            continue
        calls = step.get("tool_calls") or ()
        made = [ToolCall(call["name"], msgspec.Raw(msgspec.json.encode(call["arguments"])), "c") for call in calls]
        yield [Message("user" if step["role"] == "user" else "assistant", str(text)), *made]


def costs(make: Callable[[], DetectorTable], run: dict[str, Any]) -> list[float]:
    """Return the milliseconds of each step."""
    detectors, seq, found = make(), 0, []
    for events in steps(run):
        started = time.thread_time()
        for event in events:
            seq += 1
            detectors.observe(Observed.of(event, seq))
        found.append((time.thread_time() - started) * 1e3)
    return found


def huge_ms(make: Callable[[], DetectorTable], unit: str) -> float:
    """Return the milliseconds of a result of 1 MB and the call after it."""
    detectors = make()
    detectors.observe(Observed.of(Goal("Summarise the report"), 1))
    events: list[Event] = [
        ToolResult(unit * (1_000_000 // len(unit))),
        ToolCall("read", msgspec.Raw(b'{"page": 2}'), "c"),
    ]
    started = time.thread_time()
    for seq, event in enumerate(events, 2):
        detectors.observe(Observed.of(event, seq))
    return (time.thread_time() - started) * 1e3


def watch(state: AgentState, seq: int, event: Event) -> None:
    """Show an event to what judges calls, and to nothing else."""
    state.hijack.observe(Observed.of(event, seq))


def full_ms(many: int = 50) -> list[float]:
    """Return the milliseconds of asking about a call of 200 arguments once everything that is bounded is full."""
    state = AgentState()
    watch(state, 1, Goal(" ".join(f"thing{number}" for number in range(5_000))))
    for seq in range(2, 62):
        note = " ".join(
            f"Please send the report number{seq}x{at} of this week to anna{at}@example.org." for at in range(300)
        )
        watch(state, seq, ToolResult(note))
        made = {f"key{at}": f"report number{seq}x{at} to anna{at}@example.org" for at in range(200)}
        watch(state, seq, ToolCall("send_report", msgspec.Raw(msgspec.json.encode(made)), "c"))
    arguments, found = msgspec.json.encode(made), []
    for seq in range(many):
        started = time.thread_time()
        asked_call(seq, "send_report", arguments, state, LIMITS)
        found.append((time.thread_time() - started) * 1e3)
    return found


def asking_ms(run: dict[str, Any]) -> list[float]:
    """Return the milliseconds of asking about each call before it runs."""
    state, seq, found = AgentState(), 0, []
    for events in steps(run):
        for event in events:
            seq += 1
            if isinstance(event, ToolCall):
                started = time.thread_time()
                asked_call(seq, event.tool_name, bytes(event.arguments), state, LIMITS)
                found.append((time.thread_time() - started) * 1e3)
            watch(state, seq, event)
    return found


def show(what: str, found: list[float]) -> None:
    """Print the spread of some costs beside what they may be."""
    p99 = sorted(found)[int(0.99 * (len(found) - 1))]
    row(f"{what}, mean of {len(found):,}", mean(found), MEAN_MS, " ms")
    row(f"  99 % (median {median(found):.2f}, largest {max(found):.1f})", p99, P99_MS, " ms")


def main() -> None:
    """Print the table."""
    runs = {source: read(source) for source in SOURCES}
    say("detectors behind the alarms", "measured", "target")
    for name, make in DETECTORS.items():
        found = {source: [ms for run in runs[source] for ms in costs(make, run)] for source in SOURCES}
        show(f"{name}, a step of any source", [ms for each in found.values() for ms in each])
        for source in SOURCES:
            show(f"{name}, a step of {source}", found[source])
        for what, unit in HUGE.items():
            row(f"{name}, a result of 1 MB and the next call: {what}", huge_ms(make, unit), HUGE_MS, " ms")
    show(
        "asking about a call before it runs",
        [ms for source in SOURCES for run in runs[source] for ms in asking_ms(run)],
    )
    row("  the slowest of 50, all memories full, 200 arguments", max(full_ms()), HUGE_MS, " ms")


if __name__ == "__main__":
    main()
