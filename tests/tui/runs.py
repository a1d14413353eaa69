"""A store as agents write it: one in trouble below one on course, and one that has ended; at times that are known."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from coherence.monitor.monitor import Monitor
from coherence.providers import HashingEmbedder
from coherence.tui.face import WatchFace

BEGIN = 1_790_000_000.0
"""2026-09-21 14:13:20 UTC, when the first agent begins."""


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = BEGIN

    def __call__(self) -> float:
        return self.now

    def pass_by(self, seconds: float) -> None:
        self.now += seconds


def set_clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Let a clock of its own stand for the system's, in UTC."""
    clock = Clock()
    monkeypatch.setattr(time, "time", clock)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    return clock


def fail(monitor: Monitor, times: int, pass_by: Callable[[float], None] = lambda _: None) -> None:
    """Let the same call fail again and again."""
    for _ in range(times):
        pass_by(2.0)
        call = monitor.tool_call("Bash", {"command": "pytest -q tests/test_login.py"})
        monitor.tool_result("ImportError: no module named login", error=True, call=call, duration_s=1.5)
        monitor.usage(tokens_in=1200, tokens_out=80, cost_usd=0.01)
        monitor.decide()


def work(monitor: Monitor, times: int, pass_by: Callable[[float], None] = lambda _: None) -> None:
    """Do something new each time, in two steps."""
    for at in range(times):
        pass_by(3.0)
        call = monitor.tool_call("Read", {"path": f"src/login/part_{at}.py"})
        monitor.tool_result(f"def part_{at}(user): return check(user, {at})", call=call, duration_s=0.2)
        monitor.message("assistant", f"Part {at} of the login checks the user against table {at}.")
        monitor.usage(tokens_in=900, tokens_out=40, cost_usd=0.005)
        monitor.decide()


def begun(
    path: Path, agent: str, goal: str | None = None, *, session: str = "s1", parent: str | None = None
) -> Monitor:
    """Begin to record an agent, or go on."""
    return Monitor(agent=agent, session=session, parent=parent, store=path, goal=goal, embedder=HashingEmbedder())


def write_store(path: Path, pass_by: Callable[[float], None] = lambda _: None) -> None:
    """Write three agents: ``planner`` has started ``coder``, which is blocked at last, and ``researcher``."""
    with begun(path, "planner", "Make the login work.") as m:
        work(m, 6, pass_by)
    with begun(path, "researcher", "Find how login works.", parent="planner") as m:
        work(m, 4, pass_by)
        m.outcome(success=True, text="found it in the manual")
    with begun(path, "coder", "Fix the login test.", parent="planner") as m:
        work(m, 3, pass_by)
        fail(m, 2, pass_by)
        told = m.decide().guidance
        assert told is not None  # two equal failures are answered with a hint
        m.delivered(told)
        fail(m, 6, pass_by)
        assert m.decide().kind == "block"


async def until(pilot: Pilot[None], holds: Callable[[], object], seconds: float = 20.0) -> None:
    """Wait until something holds; fail if it never does."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"never came; the screen:\n{shown(pilot.app)}"
        await pilot.pause(0.02)


def shown(face: object) -> str:
    """Return what is on the screen, without colours."""
    assert isinstance(face, WatchFace)
    strips = face.screen._compositor.render_strips()
    return "\n".join(strip.text for strip in strips)


def watching(face: WatchFace, act: Callable[[Pilot[None]], Awaitable[None]], size: tuple[int, int] = (80, 24)) -> None:
    """Run the program without a terminal, and act on it."""

    async def run() -> None:
        async with face.run_test(size=size) as pilot:
            await act(pilot)

    asyncio.run(run())
