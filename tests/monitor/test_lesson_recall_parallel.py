"""Errors of parallel calls: a success that comes after them in the same turn hides none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lessons.agents import MISSING, known, monitor, ran, solve

from coherence import Monitor
from coherence.core.decisions import Decision
from coherence.lessons import Lesson
from monitor.helpers import check_replay

BUSY = "Error: listen EADDRINUSE: address already in use :::8000"


def together(m: Monitor, *made: tuple[str, str, bool]) -> Decision:
    """Make all calls first, as a model does it in one turn, then tell their results."""
    calls = [m.tool_call("Bash", {"command": command}) for command, _, _ in made]
    for call, (_, result, error) in zip(calls, made, strict=True):
        m.tool_result(result, error=error, call=call)
    return m.decide()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "s.db"
    with monitor(path, "one") as m:
        solve(m)
        m.flush()
        assert m.lessons is not None
        m.lessons.record(pattern="Port", error_text=BUSY, fix_text="export PORT=8001", tool="Bash")
    return path


@pytest.mark.parametrize("tick", ["step", "event", "manual"])
@pytest.mark.parametrize("successes", [1, 3])
def test_lesson_recall_parallel_an_error_before_the_success_of_a_parallel_call_is_told(
    path: Path, tick: str, successes: int
) -> None:
    with monitor(path, "two", config={"tick": tick, "guidance": {"randomise": False}}) as m:
        others = [(f"cat {at}.py", "import os", False) for at in range(successes)]
        decision = together(m, ("python app.py", MISSING, True), *others)
        told = known(decision)
        assert told is not None and "it was solved by: pip install pyyaml" in told
        guidance = decision.guidance
        assert guidance is not None and guidance.pattern == "known_error"
        m.delivered(guidance)
        ran(m, "pip install pyyaml")
        assert known(ran(m, "python app.py")) is None
        m.flush()
        assert m.lessons is not None
        assert {each.fix_text: each.helped for each in m.lessons.lessons()}["pip install pyyaml"] == 1
    check_replay(path)


@pytest.mark.parametrize("tick", ["step", "manual"])
def test_lesson_recall_parallel_two_errors_of_one_turn_are_both_told(path: Path, tick: str) -> None:
    with monitor(path, "two", config={"tick": tick, "guidance": {"randomise": False}}) as m:
        decision = together(m, ("python app.py", MISSING, True), ("npm start", BUSY, True), ("ls", "app.py", False))
        told = known(decision)
        assert told is not None and "pip install pyyaml" in told and "export PORT=8001" in told
    check_replay(path)


def test_lesson_recall_parallel_at_most_three_are_looked_up_and_each_once(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monitor(path, "two", config={"tick": "manual"}) as m:
        assert m.lessons is not None
        asked: list[str] = []
        query = m.lessons.query

        def asking(text: str, **more: Any) -> list[Lesson]:
            asked.append(text)
            return query(text, **more)

        monkeypatch.setattr(m.lessons, "query", asking)
        errors = [(f"python {at}.py", MISSING.replace("yaml", f"mod{at}"), True) for at in range(9)]
        together(m, *errors, ("ls", "app.py", False))
        assert asked == [text for _, text, _ in reversed(errors[-3:])]
        m.message("assistant", "let me see")
        m.decide()
        assert len(asked) == 3
    check_replay(path)


def test_lesson_recall_parallel_what_was_solved_or_left_behind_is_not_told(path: Path) -> None:
    with monitor(path, "two", config={"tick": "manual"}) as m:
        for command, result, error in (("python app.py", MISSING, True), ("pip install pyyaml", "ok", False)):
            m.tool_result(result, error=error, call=m.tool_call("Bash", {"command": command}))
        assert known(ran(m, "python app.py")) is None
        together(m, ("python app.py", MISSING, True), ("ls", "app.py", False))
        assert known(ran(m, "ls", "app.py")) is None  # a call after it says that the agent has gone on


def test_lesson_recall_parallel_an_error_that_waits_for_its_fix_is_told_after_calls_that_nobody_looked_at(
    path: Path,
) -> None:
    with monitor(path, "two", config={"tick": "manual"}) as m:
        m.tool_result(MISSING, error=True, call=m.tool_call("Bash", {"command": "python app.py"}))
        assert known(ran(m, "ls", "app.py")) is not None


def test_lesson_recall_parallel_the_text_is_that_of_the_error_even_if_the_context_has_no_room_for_it(
    path: Path,
) -> None:
    with monitor(path, "two", config={"tick": "manual", "window": 1}) as m:
        assert known(together(m, ("python app.py", MISSING, True), ("ls", "app.py", False))) is not None
