"""Loops on the labelled runs: alarms on good runs as they are, and what is found of repeats put into them.

Run ``python tests/bench/loops.py``; it takes about a minute. *Good* is a run that its benchmark counts as a success and
that was not hijacked. Runs are given to the rule call by call, 30 calls kept, as a monitor does. Beside it stands the
naive rule: the same tool five times in a row, whatever it was asked and whatever it answered.
"""

from __future__ import annotations

import gzip
import json
import random
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Raw

from coherence.core.decisions import KINDS, DecisionKind, worst_kind
from coherence.core.events import Message, ToolCall, ToolResult
from coherence.policy.rules.loops import Loop, RepeatedToolCallLoop, find_loop, steps_of
from coherence.state.reducer import AgentState

RUNS = Path(__file__).parent.parent / "data" / "runs"
SOURCES = ("agentdojo", "tau_airline", "swebench_mini")
PLACES = 3
"""Places at which repeats are put into a run, each on its own."""

ROUNDS = {1: 6, 2: 5, 3: 4, 4: 4}
"""Repetitions of a cycle, by period."""


RULE = RepeatedToolCallLoop()

WORDS = "now the test file still looks wrong so I will check what it says about this value again first".split()


class Call(NamedTuple):
    """One call of a run and its result."""

    tool: str
    arguments: dict[str, Any]
    result: str
    error: bool


def good_runs(source: str) -> Iterator[list[Call]]:
    """Yield the calls of the good runs of one file; a call without a recorded result is left out."""
    with gzip.open(RUNS / f"{source}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            run = json.loads(line)
            if run["labels"].get("success") and not run["labels"].get("hijacked"):
                yield list(_calls(run["steps"]))


def _calls(steps: list[dict[str, Any]]) -> Iterator[Call]:
    waiting: list[dict[str, Any]] = []
    for step in steps:
        if step["role"] == "assistant":
            waiting = list(step.get("tool_calls") or [])
        elif step["role"] == "tool" and waiting:
            call = waiting.pop(0)
            yield Call(call["name"], call["arguments"], step["tool_result"], bool(step["is_error"]))


def lived(calls: list[Call], chance: random.Random | None = None) -> Iterator[Loop | None]:
    """Yield what the rule finds after each call, in a state that also takes in a thought before it.

    With ``chance`` each thought is in other words.
    """
    state = AgentState()
    for number, call in enumerate(calls):
        thought = "I will go on." if chance is None else " ".join(chance.choices(WORDS, k=12))
        arguments = Raw(json.dumps(call.arguments).encode())
        events = (
            Message("assistant", thought),
            ToolCall(call.tool, arguments, str(number)),
            ToolResult(call.result, error=call.error, call_id=str(number)),
        )
        for event in events:
            state.fold(state.facts.seq + 1, float(number), event)
        yield find_loop(steps_of(state.facts))


def worst_of(calls: list[Call]) -> DecisionKind:
    """Return the most severe that the rule asks for during a run."""
    return worst_kind([RULE.severity(loop) for loop in lived(calls) if loop is not None and loop.amount >= RULE.guide])


def found_after(calls: list[Call], first: int, last: int, chance: random.Random | None = None) -> int | None:
    """Return the number of inserted calls (places ``first`` to ``last``) after which the rule is active."""
    for place, loop in enumerate(lived(calls[:last], chance)):
        if place >= first and loop is not None and loop.amount >= RULE.guide:
            return place - first + 1
    return None


def naive(calls: list[Call], first: int = 0, last: int | None = None) -> int | None:
    """Return the number of calls after which one tool was called five times in a row."""
    for end in range(max(first + 1, 5), (len(calls) if last is None else last) + 1):
        if len({call.tool for call in calls[end - 5 : end]}) == 1:
            return end - first
    return None


def with_repeats(run: list[Call], period: int, chance: random.Random, kind: str) -> tuple[list[Call], int, int]:
    """Put a cycle of calls of the run into it at a random place; return the run, and where that begins and ends."""
    at = chance.randrange(period, len(run) + 1)
    cycle = run[at - period : at]
    inserted = []
    for _ in range(ROUNDS[period]):
        for call in cycle:
            arguments = dict(call.arguments)
            if kind == "ids":
                arguments["request_id"] = str(uuid.UUID(int=chance.getrandbits(128), version=4))
                second = chance.randrange(60)
                arguments["at"] = f"2026-03-04T10:{chance.randrange(60):02}:{second:02}Z"
            result = f"{call.result}\nfinished in {chance.uniform(0.1, 9):.2f} s" if kind == "timings" else call.result
            inserted.append(call._replace(arguments=arguments, result=result))
    return [*run[:at], *inserted, *run[at:]], at, at + len(inserted)


def main() -> None:
    """Print both tables."""
    runs = {source: list(good_runs(source)) for source in SOURCES}
    print(f"{'untouched good runs':<20} {'runs':>6} {'calls':>6} {'guide+':>7} {'warn+':>7} {'block':>7} | naive rule")
    for source, good in runs.items():
        worst = [KINDS.index(worst_of(run)) for run in good]
        shares = " ".join(f"{sum(kind >= least for kind in worst) / len(good):>7.1%}" for least in (1, 2, 3))
        false = sum(naive(run) is not None for run in good) / len(good)
        print(f"{source:<20} {len(good):>6} {sum(map(len, good)):>6} {shares} | {false:>7.1%}")
    print(f"\n{'inserted repeats':<20} {'kind':>8} {'period':>6} {'cases':>6} {'found':>7}  after calls | naive rule")
    for source, good in runs.items():
        for kind in ("same", "reworded", "ids", "timings"):
            for period, rounds in ROUNDS.items():
                chance = random.Random(f"{source} {kind} {period}")
                long = [run for run in good if len(run) >= period]
                cases = [with_repeats(run, period, chance, kind) for run in long for _ in range(PLACES)]
                after = [found_after(*case, chance if kind == "reworded" else None) for case in cases]
                hits = sorted(count for count in after if count is not None)
                beside = sum(naive(*case) is not None for case in cases) / len(cases)
                when = f"{hits[len(hits) // 2]:>3} to {hits[-1]:>2} of {period * rounds:>2}" if hits else "-"
                found = len(hits) / len(cases)
                print(f"{source:<20} {kind:>8} {period:>6} {len(cases):>6} {found:>7.1%} {when:>12} | {beside:>7.1%}")


if __name__ == "__main__":
    main()
