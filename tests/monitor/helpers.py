"""Helpers of the monitor's tests: waiting for a thread, checking a replay, an agent whose guidance fires on demand."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coherence import Monitor, Store
from coherence.core.decisions import Appraisal, Decision, Finding
from coherence.core.readings import Reading
from coherence.monitor.replay import Replay
from coherence.providers import HashingEmbedder
from coherence.state.reducer import AgentState

FIRED = "SELECT firing_id, pattern, pair, arm, text, delivered FROM firings ORDER BY event_id"


def until(true: Callable[[], object], seconds: float = 20.0) -> None:
    """Wait for something that happens on another thread."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def check_replay(path: Path, *, kept: int | None = 0) -> None:
    """Assert that the chain is whole and that every session replays bit for bit."""
    with Store(path) as store:
        assert store.verify() == []
        for row in store.sessions():
            report = Replay(store, row).report()
            assert report.differences == [] and report.equal == report.ticks
            assert kept is None or report.kept == kept


class Gate:
    """An embedder of this package that waits until it may go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked, self.go_on = threading.Event(), threading.Event()
        self.texts: list[str] = []
        self.expired = False
        """True once an embedding has waited in vain."""
        embed = HashingEmbedder.embed

        def wait(embedder: HashingEmbedder, text: str) -> Any:
            self.texts.append(text)
            self.asked.set()
            self.expired |= not self.go_on.wait(20)
            assert not self.expired
            return embed(embedder, text)

        monkeypatch.setattr(HashingEmbedder, "embed", wait)


class Sees:
    """Active while the newest result names it."""

    name = "loop"

    def __call__(self, state: AgentState, reading: Reading | None, appraisal: Appraisal) -> Finding:
        seen = bool(state.context) and "loop" in state.context[-1].text.split()
        return Finding(
            rule="loop", severity="guide", active=seen, score=float(seen), threshold=0.5, why="it goes in a loop"
        )


def guided(path: Path, *, session: str | None = None, tick: Any = "step", source: Any = "api", **more: Any) -> Monitor:
    """Return a monitor that fires guidance whenever a result says "loop"."""
    config = {"rules": {"loop": {"dwell": 0}}, "tick": tick, "guidance": {"cooldown": 0, "randomise": True, **more}}
    return Monitor(
        store=path,
        session=session,
        resume=True,
        source=source,
        embedder=HashingEmbedder(16),
        rules=[Sees()],
        config=config,
    )


def step(m: Monitor, result: str = "loop", *, tool: str = "Read", error: bool = False) -> Decision:
    """Let the agent call a tool, and decide."""
    number = m.counters.calls or 0
    call = m.tool_call(tool, {"path": f"{number}.py"})
    m.tool_result(f"{'abcdefghij'[number % 10]} {result}", error=error, call=call)
    return m.decide()


def rows(path: Path, sql: str, *parameters: Any) -> list[Any]:
    """Return what the file holds."""
    with sqlite3.connect(path) as connection:
        return connection.execute(sql, parameters).fetchall()
