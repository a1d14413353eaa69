"""Cost of the detectors for a step of the labelled runs: all together, those of the light, and ``check``.

Run ``python tests/bench/detector_cost.py``; it takes one minute. A step is a message with its calls, or a result.
Processor time of the thread is counted, so that other work on the machine does not.
"""

from __future__ import annotations

import gzip
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import wraps
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import msgspec
from showing import row, say

from coherence import Monitor
from coherence.core.config import MonitorConfig
from coherence.core.events import Event, Goal, Message, ToolCall, ToolResult
from coherence.detect.breakdown import BreakdownDetector
from coherence.detect.detector import Observed
from coherence.metrics.course import Breakdown, FailureStreak, Novelty, Stall
from coherence.monitor.pipeline import AgentPipeline
from coherence.monitor.steps import record_steps
from coherence.policy.danger.unasked import DangerDetector
from coherence.policy.hijack_findings import RULE, asked_call, limits_of
from coherence.providers.hashing import HashingEmbedder
from coherence.providers.readers import read_transcripts
from coherence.providers.transcript import Transcript
from coherence.sensor.own_start import OwnStart
from coherence.state.progress import ProgressDetector
from coherence.state.reducer import AgentState

RUNS = Path(__file__).parent.parent / "data" / "runs"
SOURCES = ("agentdojo", "whowhen", "tau_airline", "swebench_mini")
EVERY = 4
"""One of so many runs is looked at."""
LIMITS = limits_of(MonitorConfig(), RULE)

HUGE = {
    "prose": "Please send the report of this week to anna@example.org before noon. ",
    "one word": "x",
    "JSON in one line": '{"id": 17, "note": "The rent rises in May, as agreed.", "tags": ["a", "b"]}, ',
    "short lines": "key: value\n",
    "brackets": "<[{(",
}
"""Units of which a result of 1 MB is made."""

LIGHT: dict[str, tuple[type, ...]] = {
    "progress": (ProgressDetector,),
    "breakdown": (BreakdownDetector,),
    "destructive calls": (DangerDetector,),
    "metrics": (Novelty, Stall, FailureStreak, Breakdown),
    "own start": (OwnStart,),
    "sum": (AgentPipeline,),
}
"""Parts of the light, and the classes that hold their methods."""

LIGHT_METHODS = ("compute", "explain", "changes", "learn", "findings", "_lit", "_gains")
"""Methods that are timed besides those that take in events; none of them calls another one that is timed."""

LIGHT_RUNS, LIGHT_STEPS = 6, 80
"""Runs of a file, and steps of a run, at which the light is looked at."""


def took_ms(action: Callable[..., object], *arguments: Any) -> float:
    """Return the milliseconds of an action."""
    started = time.thread_time()
    action(*arguments)
    return (time.thread_time() - started) * 1e3


def at_share(values: Sequence[float], share: float) -> float:
    """Return the value that a share of the values does not exceed."""
    return sorted(values)[int(share * (len(values) - 1))]


def steps(source: str) -> Iterator[list[list[Event]]]:
    """Yield the runs of a source as the events of each step; the goal comes first."""
    with gzip.open(RUNS / f"{source}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            run = json.loads(line)
            yield [[Goal(run["goal"])], *map(events_of, run["steps"])]


def events_of(step: dict[str, Any]) -> list[Event]:
    """Return the events of a step."""
    content = str(step["content"] or step.get("tool_result") or "")
    if step["role"] == "tool":
        return [ToolResult(content, tool_name=step.get("tool_name"))]
    calls = step.get("tool_calls") or ()
    made = [ToolCall(call["name"], msgspec.Raw(msgspec.json.encode(call["arguments"])), "c") for call in calls]
    return [Message("user" if step["role"] == "user" else "assistant", content), *made]


def agent() -> AgentPipeline:
    """Return a pipeline with every detector, which compares words alone."""
    return AgentPipeline(MonitorConfig(), None)


def alarms() -> None:
    """Show the cost of all detectors together, and of asking about a call before it runs."""
    observing: dict[str, list[float]] = defaultdict(list)
    asking: list[float] = []
    for source in SOURCES:
        for run in islice(steps(source), 0, None, EVERY):
            pipeline, seq = agent(), 0
            for events in run:
                spent = 0.0
                for event in events:
                    seq += 1
                    if isinstance(event, ToolCall):
                        asked = event.tool_name, bytes(event.arguments), pipeline.state, LIMITS
                        asking.append(took_ms(asked_call, seq, *asked))
                    spent += took_ms(pipeline.fold, seq, float(seq), event)
                observing[source].append(spent)
    every = [ms for found in observing.values() for ms in found]
    row(f"all detectors together, median of {len(every):,} steps", median(every), 0.4, " ms")
    row("all detectors together, 99 %", at_share(every, 0.99), 3, " ms")
    for name, found in (*observing.items(), ("asking about a call before it runs", asking)):
        say(
            f"  {name}: median, 99 %, largest", f"{median(found):.2f}, {at_share(found, 0.99):.1f}, {max(found):.0f} ms"
        )
    for name, unit in HUGE.items():
        pipeline = agent()
        pipeline.fold(1, 1.0, Goal("Summarise the report"))
        huge = ToolResult(unit * (1_000_000 // len(unit))), ToolCall("read", msgspec.Raw(b'{"page": 2}'), "c")
        spent = sum(took_ms(pipeline.fold, seq, float(seq), event) for seq, event in enumerate(huge, 2))
        row(f"a result of 1 MB and the next call: {name}", spent, 20, " ms")
    row("asking about a call of 200 arguments, all memories full", full_ms(), 20, " ms")


def full_ms() -> float:
    """Return the most of 50 times that asking takes once everything that is bounded is full."""
    state = AgentState()
    state.hijack.observe(Observed.of(Goal(" ".join(f"thing{number}" for number in range(5_000))), 1))
    for seq in range(2, 62):
        note = " ".join(f"Please send the report number{seq}x{at} to anna{at}@example.org." for at in range(300))
        made = {f"key{at}": f"report number{seq}x{at} to anna{at}@example.org" for at in range(200)}
        arguments = msgspec.json.encode(made)
        for event in (ToolResult(note), ToolCall("send_report", msgspec.Raw(arguments), "c")):
            state.hijack.observe(Observed.of(event, seq))
    return max(took_ms(asked_call, seq, "send_report", arguments, state, LIMITS) for seq in range(50))


Spent = defaultdict[str, float]
"""Milliseconds by part."""


@contextmanager
def light_timed(spent: Spent) -> Iterator[None]:
    """Add the cost of every method of the light to its part."""

    def wrapped(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def call(*args: Any, **named: Any) -> Any:
            started = time.thread_time()
            try:
                return method(*args, **named)
            finally:
                spent[name] += (time.thread_time() - started) * 1e3

        return call

    with ExitStack() as stack:
        for name, classes in LIGHT.items():
            for cls in classes:
                for method, found in list(vars(cls).items()):
                    if callable(found) and (method.startswith("on_") or method in LIGHT_METHODS):
                        stack.enter_context(patch.object(cls, method, wrapped(name, found)))
        yield


def light_costs(run: Transcript) -> list[Spent]:
    """Return the cost of each part at each step of a run."""
    spent, found = Spent(float), []
    manual = {"tick": "manual"}
    with light_timed(spent), Monitor(goal=run.goal or None, embedder=HashingEmbedder(64), config=manual) as monitor:
        for at in record_steps(monitor, run):
            monitor.decide()
            found.append(spent.copy())
            spent.clear()
            if at + 1 == LIGHT_STEPS:
                break
    return found


def light() -> None:
    """Show the cost of the light: its detectors, its metrics, the run's own start, the sum itself."""
    found: list[Spent] = []
    for file in sorted(RUNS.glob("*.jsonl.gz")):
        transcripts = list(read_transcripts(file, None))
        for run in transcripts[:: max(len(transcripts) // LIGHT_RUNS, 1)]:
            found += light_costs(run)
    whole = [sum(step.values()) for step in found]
    row(f"the light, median of {len(found):,} steps", median(whole), 0.3, " ms")
    row("the light, 95 %", at_share(whole, 0.95), 2, " ms")
    for name in LIGHT:
        part = [step[name] for step in found]
        say(f"  {name}: median, 95 %", f"{median(part):.3f}, {at_share(part, 0.95):.3f} ms", "")


def main() -> None:
    """Print the table."""
    say("processor time of a step", "measured", "target")
    alarms()
    light()


if __name__ == "__main__":
    main()
