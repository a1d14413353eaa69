"""Runs that real monitors have recorded, for the tests of views."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from coherence import Monitor


def fails(monitor: Monitor, times: int, command: str = "pytest") -> list[str]:
    """Let a command fail so often, confirm all guidance but the newest, and return the ids of what fired."""
    fired = []
    for _ in range(times):
        call = monitor.tool_call("Bash", {"command": command})
        monitor.tool_result(f"ImportError: {command}", error=True, call=call)
        if guidance := monitor.decide().guidance:
            fired.append(guidance.id)
    fired = list(dict.fromkeys(fired))  # a decision may be told again
    for firing in fired[:-1]:
        monitor.delivered(firing)
    return fired


def works(monitor: Monitor, steps: int, about: str = "the login test") -> None:
    """Let calls succeed, each with a measurement, and the model be paid."""
    for number in range(steps):
        monitor.usage(tokens_in=100, tokens_out=10, cost_usd=0.01, model="m-1")
        call = monitor.tool_call("Read", {"path": f"{about}/{number}.py"})
        monitor.tool_result(f"def test_{number}(): assert login({number}) == {number}", call=call, duration_s=0.25)
        monitor.decide()


def begun(
    path: Path, agent: str = "a", session: str = "s", goal: str = "fix the login test", **options: Any
) -> Monitor:
    """Return a monitor that records into a store."""
    return Monitor(agent=agent, session=session, store=path, embedder=False, goal=goal, **options)
