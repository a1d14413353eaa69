"""What is embedded before a measurement, while no lock is held, and calls that are judged meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coherence import Monitor
from coherence.core.events import Ticked
from coherence.providers import HashingEmbedder
from monitor.helpers import Gate, check_replay, until


def ticks(m: Monitor) -> list[Ticked]:
    """Return the measurements so far, in their order, without having any made."""
    return [record.event for record in m._worker.events if type(record.event) is Ticked]


def test_check_without_wait_is_answered_while_the_step_before_is_embedded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch)
    m = Monitor(store=tmp_path / "s.db", embedder=HashingEmbedder(32))
    m.message("assistant", "I look at the files.")
    assert gate.asked.wait(20)  # the background thread embeds it
    assert m.check("Bash", {"command": "rm -rf ~"}, wait=False).kind == "block"
    assert m.check("Bash", {"command": "ls"}, wait=False)
    assert [tick.tool_name for tick in ticks(m)] == ["Bash", "Bash"]  # no step is measured yet
    gate.go_on.set()
    until(lambda: [tick.tool_name for tick in ticks(m)] == ["Bash", "Bash", None])
    m.close()
    check_replay(tmp_path / "s.db", kept=None)


def test_check_without_wait_leaves_only_the_newest_step_unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    m = Monitor(embedder=HashingEmbedder(32))
    monkeypatch.setattr(m._worker, "_wake", lambda: None)  # the background thread is late
    m.message("assistant", "I look at the files.")
    m.message("assistant", "I have seen the files.")
    m.check("Bash", {"command": "ls"}, wait=False)
    assert [tick.reason for tick in ticks(m)] == ["step", "check"]
    m.decide()
    assert [tick.reason for tick in ticks(m)] == ["step", "check", "step", "decide"]
    m.close()


def test_unembedded_texts_are_embedded_once_and_each_step_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    gate.go_on.set()
    with Monitor(embedder=HashingEmbedder(32), goal="count the files") as m:
        for number in range(20):
            m.message("assistant", f"I count folder {number}.")
        until(lambda: len(ticks(m)) == 20)
        assert m._worker.pipeline.unembedded() == []
    assert len(gate.texts) == len(set(gate.texts)) == 21  # the goal, too


def test_unembedded_texts_that_fail_do_not_hold_up_the_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(embedder: HashingEmbedder, text: str) -> Any:
        raise RuntimeError("no memory left")

    monkeypatch.setattr(HashingEmbedder, "embed", fail)
    with Monitor(embedder=HashingEmbedder(32), goal="count the files") as m:
        m.message("assistant", "I count them.")
        until(lambda: len(ticks(m)) == 1)
        assert m.result is not None and m.result.reading is not None
        assert m.result.reading.metrics["goal_drift"] is None


def told(m: Monitor) -> list[str]:
    """Return the kinds of what is recorded and measured so far, in their order, without having any made."""
    return [type(record.event).__name__ for record in m._worker.events]


def test_tick_measures_in_its_turn_and_never_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    m = Monitor(store=tmp_path / "s.db", embedder=HashingEmbedder(32), config={"tick": "manual"})
    for words in ("I look at the files.", "I have seen the files."):
        m.message("assistant", words)
        m.tick()
    m.tick()  # nothing has come since
    m.message("assistant", "I am done.")
    assert gate.asked.wait(20)  # the background thread embeds what the first one needs
    assert told(m) == ["Message"]
    assert m.known_decision.seq == 0
    gate.go_on.set()
    until(lambda: told(m) == ["Message", "Ticked", "Message", "Ticked", "Message"])
    assert [tick.reason for tick in ticks(m)] == ["decide", "decide"]
    assert m.known_decision.seq == 4
    m.close()
    check_replay(tmp_path / "s.db", kept=None)


def test_tick_is_left_for_later_by_a_check_without_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    m = Monitor(embedder=HashingEmbedder(32), config={"tick": "manual"})
    monkeypatch.setattr(m._worker, "_wake", lambda: None)  # the background thread is late
    for words in ("I look at the files.", "I have seen the files."):
        m.message("assistant", words)
        m.tick()
    m.check("Bash", {"command": "ls"}, wait=False)
    assert [tick.reason for tick in ticks(m)] == ["decide", "check"]  # only the newest is not made
    m.tool_call("Bash", {"command": "ls"})
    m.flush()
    assert told(m) == ["Message", "Ticked", "Message", "Ticked", "Ticked", "ToolCall"]
    m.close()


def test_tick_with_full_durability_is_no_event_and_is_measured(tmp_path: Path) -> None:
    config = {"tick": "manual"}
    with Monitor(store=tmp_path / "s.db", embedder=HashingEmbedder(32), durability="full", config=config) as m:
        m.message("assistant", "I look at the files.")
        m.tick()
        until(lambda: told(m) == ["Message", "Ticked"])
