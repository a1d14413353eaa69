"""Errors of an agent become lessons, and lessons are there at the next error: live, after a kill, and in a replay."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from lessons.agents import MISSING, known, monitor, ran, solve

from coherence import Fleet, Monitor
from coherence.core.decisions import Decision, Guidance
from coherence.lessons import Lesson, LessonStore, Origin
from coherence.providers import HashingEmbedder
from monitor.helpers import check_replay


def test_lesson_recall_a_fix_is_learned_with_where_it_comes_from_and_told_at_the_next_error(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with monitor(path, "one") as m:
        solve(m)
        m.flush()
        assert m.lessons is not None
        (lesson,) = m.lessons.lessons()
        assert (lesson.pattern, lesson.fix_text, lesson.tool) == ("ModuleNotFoundError", "pip install pyyaml", "Bash")
        # goal 1, call 2, error 3, tick 4, call 5, result 6, tick 7, call 8, success 9
        whole = m.lessons.get(lesson.id)
        assert whole is not None and whole.origins == (Origin("main", "one", (3, 6, 9)),)
    with monitor(path, "two") as m:
        decision = ran(m, "python app.py", MISSING.replace("/srv", "/home/me").replace("line 3", "line 14"), error=True)
        assert decision.kind == "guide"
        told = known(decision)
        assert told is not None and "it was solved by: pip install pyyaml" in told
        assert decision.guidance is not None and decision.guidance.pattern == "known_error"
        assert decision.guidance.lesson == lesson.id and "pip install pyyaml" in decision.guidance.text
        assert known(ran(m, "pip install pyyaml")) is None  # it says something about the newest error only
        assert known(ran(m, "ls", "ls: cannot access 'x': No such file or directory", error=True)) is None
    check_replay(path)


def test_what_was_delivered_and_helped_is_counted_once_and_what_did_not_help_too(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with monitor(path, "one") as m:
        solve(m)
    with monitor(path, "two") as m:
        guidance = ran(m, "python app.py", MISSING, error=True).guidance
        assert guidance is not None
        m.delivered(guidance)
        ran(m, "pip install pyyaml")
        ran(m, "python app.py")
        ran(m, "python app.py")
    with monitor(path, "three") as m:
        guidance = ran(m, "python app.py", MISSING, error=True).guidance
        assert guidance is not None
        m.delivered(guidance)
        ran(m, "pip install pyyaml")
        ran(m, "python app.py", MISSING, error=True)
    with monitor(path, "four") as m:  # told, but nobody confirmed that it arrived
        ran(m, "python app.py", MISSING, error=True)
        ran(m, "pip install pyyaml")
        ran(m, "python app.py")
        assert m.lessons is not None
    with LessonStore(path, embedder=HashingEmbedder(64)) as lessons:
        (lesson,) = lessons.lessons()
        assert (lesson.helped, lesson.failed) == (1, 1)
        assert lesson.count == 3  # sessions one, two and four
    check_replay(path)


def test_lesson_recall_an_error_that_comes_again_before_anything_was_tried_is_not_held_against_the_lesson(
    tmp_path: Path,
) -> None:
    path = tmp_path / "s.db"
    with monitor(path, "one") as m:
        solve(m)
    with monitor(path, "two") as m:
        guidance = ran(m, "python app.py", MISSING, error=True).guidance
        assert guidance is not None
        m.delivered(guidance)
        ran(m, "python app.py", MISSING, error=True)
        m.flush()
        assert m.lessons is not None
        assert [(lesson.helped, lesson.failed) for lesson in m.lessons.lessons()] == [(0, 0)]


def test_lesson_recall_the_comparison_withholds_it_in_one_arm(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with monitor(path, "one") as m:
        solve(m)
    fired: list[Guidance] = []
    with monitor(path, "two", guidance={"randomise": True}) as m:
        for _ in range(2):  # a pair has one of each
            guidance = ran(m, "python app.py", MISSING, error=True).guidance
            assert guidance is not None
            fired.append(guidance)
            ran(m, "ls")
    control, treatment = sorted(fired, key=lambda each: each.arm)
    assert (control.arm, treatment.arm) == ("control", "treatment")
    assert not control.text and "pip install pyyaml" in control.withheld
    assert "pip install pyyaml" in treatment.text
    check_replay(path)


def test_lesson_recall_another_pattern_tells_the_fix_in_place_of_its_default_advice(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with monitor(path, "one") as m:
        solve(m)
    with monitor(path, "two", guidance={"off": ["known_error"]}) as m:
        told = [ran(m, f"python app.py --try {at}", MISSING, error=True).guidance for at in range(4)]
    texts = [guidance.text for guidance in told if guidance is not None]
    assert texts and all("it was solved by: pip install pyyaml" in text for text in texts)
    assert not any("A general hint" in text for text in texts)


def test_the_rule_can_be_switched_off_and_lessons_too(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with monitor(path, "one") as m:
        solve(m)
    off = {"rules": {"known_error": {"enabled": False}}}
    with monitor(path, "two", config=off) as m:
        decision = ran(m, "python app.py", MISSING, error=True)
        assert known(decision) is None and decision.kind == "continue"
    with monitor(path, "three", lessons=False) as m:
        assert m.lessons is None
        assert known(ran(m, "python app.py", MISSING, error=True)) is None


def test_lesson_recall_tests_look_and_learn_nothing_and_replays_do_not_even_look(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with monitor(path, "test", source="test") as m:
        solve(m)
        m.flush()
        assert m.lessons is not None and list(m.lessons.lessons()) == []
        m.lessons.record(pattern="p", error_text=MISSING, fix_text="pip install pyyaml", tool="Bash")
        assert known(ran(m, "python app.py", MISSING, error=True)) is not None
    with monitor(path, "replay", source="replay") as m:
        assert m.lessons is None
        assert known(ran(m, "python app.py", MISSING, error=True)) is None


def test_a_lesson_store_of_its_own_serves_a_monitor_in_memory_and_is_left_open(tmp_path: Path) -> None:
    with LessonStore(tmp_path / "lessons.db", embedder=HashingEmbedder(64)) as lessons:
        with monitor(None, lessons=lessons) as m:
            solve(m)
            m.flush()
        assert [lesson.fix_text for lesson in lessons.lessons()] == ["pip install pyyaml"]
        with monitor(None, lessons=lessons) as m:
            assert known(ran(m, "python app.py", MISSING, error=True)) is not None
    with pytest.raises(TypeError, match="lessons must be a LessonStore"):
        monitor(None, lessons=3)


def test_lesson_recall_another_embedder_or_none_still_finds_equal_errors(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "s.db"
    with monitor(path, "one") as m:
        solve(m)
    with caplog.at_level(logging.WARNING, "coherence"), monitor(path, "two", embedder=HashingEmbedder(32)) as m:
        assert known(ran(m, "python app.py", MISSING, error=True)) is not None
    assert "lessons are found by equal signature only" in caplog.text
    with monitor(path, "three", embedder=False) as m:
        assert known(ran(m, "python app.py", MISSING, error=True)) is not None


def test_a_store_of_lessons_that_fails_hurts_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OSError("no disk")

    with monitor(tmp_path / "s.db") as m:
        solve(m)
        monkeypatch.setattr(LessonStore, "query", broken)
        monkeypatch.setattr(LessonStore, "record", broken)
        for _ in range(3):
            assert known(ran(m, "python app.py", MISSING, error=True)) is None
            ran(m, "pip install pyyaml")
            ran(m, "python app.py")
        m.flush()
        monkeypatch.undo()
        m.flush()  # what waited is written now
        assert m.lessons is not None
        assert [lesson.count for lesson in m.lessons.lessons()] == [4]
    assert caplog.text.count("coherence: lessons: no disk") == 1


def test_lesson_recall_a_rate_limit_is_no_error_to_look_up(tmp_path: Path) -> None:
    text = "Error 429: rate limit reached, retry after 20 s"
    with monitor(tmp_path / "s.db") as m:
        assert m.lessons is not None
        m.lessons.record(pattern="p", error_text=text, fix_text="use another key", tool="Bash")
        assert known(ran(m, "curl api", text, error=True)) is None


def test_agents_of_a_fleet_learn_from_each_other(tmp_path: Path) -> None:
    with Fleet(store=tmp_path / "s.db", embedder=HashingEmbedder(64)) as fleet:
        one, two = fleet.agent("one"), fleet.agent("two")
        assert one.lessons is two.lessons is fleet.lessons
        solve(one)
        one.flush()
        assert known(ran(two, "python app.py", MISSING, error=True)) is not None


CHILD = """
import os, signal, sys
sys.path.insert(0, sys.argv[2])
from lessons.agents import MISSING, monitor, ran, solve
m = monitor(sys.argv[1], "one", durability="full")
if sys.argv[3] == "solved":
    solve(m)
else:
    ran(m, "python app.py", MISSING, error=True)
    ran(m, "pip install pyyaml")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("until", ["tried", "solved"])
@pytest.mark.slow
def test_lesson_recall_a_kill_loses_no_lesson_and_what_is_folded_again_teaches_nothing_twice(
    tmp_path: Path, until: str
) -> None:
    path = tmp_path / "s.db"
    command = [sys.executable, "-c", CHILD, str(path), str(Path(__file__).parents[1]), until]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    with monitor(path, "one") as m:
        ran(m, "python app.py")
        m.flush()
        assert m.lessons is not None
        assert [(lesson.fix_text, lesson.count) for lesson in m.lessons.lessons()] == [("pip install pyyaml", 1)]
    check_replay(path)


class Slow(HashingEmbedder):
    def embed(self, text: str) -> object:  # type: ignore[override]
        time.sleep(0.3)
        return super().embed(text)


def kept(path: Path) -> list[tuple[str, int, int, int]]:
    with LessonStore(path, embedder=False) as lessons:
        return [(each.fix_text, each.count, each.helped, each.failed) for each in lessons.lessons()]


def test_lesson_recall_what_destroys_something_is_no_advice(tmp_path: Path) -> None:
    error = "rm: cannot remove 'build': Is a directory"
    with monitor(tmp_path / "s.db") as m:
        assert m.lessons is not None
        m.lessons.record(pattern="rm", error_text=error, fix_text="rm -rf build", tool="Bash")
        m.lessons.record(pattern="git", error_text="error: failed to push some refs", fix_text="git push --force")
        assert known(ran(m, "rm build", error, error=True)) is None
        assert known(ran(m, "git push", "error: failed to push some refs", error=True)) is None


def test_lesson_recall_a_fix_with_other_names_says_so_and_its_failure_is_not_held_against_the_lesson(
    tmp_path: Path,
) -> None:
    path = tmp_path / "s.db"
    with LessonStore(path, embedder=HashingEmbedder(64)) as lessons:
        lessons.record(pattern="NoModule", error_text=MISSING, fix_text="pip install yaml", tool="Bash")
    other = MISSING.replace("yaml", "cv2")
    with monitor(path) as m:
        decision = ran(m, "python app.py", other, error=True)
        told = known(decision)
        assert (
            told is not None and "one with another name was solved in a way that would here be: pip install cv2" in told
        )
        assert decision.guidance is not None
        m.delivered(decision.guidance)
        ran(m, "pip install cv2", "ERROR: No matching distribution found for cv2", error=True)
        ran(m, "pip install cv2 --pre")
        ran(m, "python app.py", other, error=True)
    assert ("pip install yaml", 1, 0, 0) in kept(path)


def test_lesson_recall_a_lesson_is_judged_only_by_what_it_told(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with monitor(path, "one") as m:
        solve(m)
    with monitor(path, "two") as m:  # told pip install pyyaml, does something else, and that helps
        guidance = ran(m, "python app.py", MISSING, error=True).guidance
        assert guidance is not None
        m.delivered(guidance)
        ran(m, "apt-get install python3-yaml")
        ran(m, "python app.py")
    assert sorted(kept(path)) == [("apt-get install python3-yaml", 1, 0, 0), ("pip install pyyaml", 1, 0, 0)]


def test_lesson_recall_a_lesson_that_cannot_be_kept_keeps_no_other_from_it(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with monitor(path) as m:
        ran(m, "npm run build", "npm ERR!", error=True)  # says nothing
        ran(m, "npm install left-pad")
        ran(m, "npm run build")
        solve(m)
    assert ("pip install pyyaml", 1, 0, 0) in kept(path)


@pytest.mark.slow
def test_lesson_recall_what_was_just_learned_is_there_at_the_next_error_and_after_the_end(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with monitor(path, embedder=Slow(64)) as m:
        solve(m)
        assert known(ran(m, "python app.py", MISSING, error=True)) is not None
        ran(m, "pip install --force-reinstall pyyaml")
        ran(m, "python app.py")
    assert len(kept(path)) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_lesson_recall_a_child_of_a_fork_writes_what_it_learns_and_not_what_its_parent_did(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with monitor(path, "parent") as m:
        ran(m, "python app.py", MISSING, error=True)
        child = os.fork()
        if child == 0:
            try:
                with monitor(path, "child") as own:
                    solve(own)
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        ran(m, "pip install pyyaml")
        ran(m, "python app.py")
    assert kept(path) == [("pip install pyyaml", 2, 0, 0)]


BUSY = "Error: listen EADDRINUSE: address already in use :::8000"


def together(m: Monitor, *made: tuple[str, str, bool]) -> Decision:
    """Make all calls first, as a model does it in one turn, then tell their results."""
    calls = [m.tool_call("Bash", {"command": command}) for command, _, _ in made]
    for call, (_, result, error) in zip(calls, made, strict=True):
        m.tool_result(result, error=error, call=call)
    return m.decide()


@pytest.fixture
def taught(tmp_path: Path) -> Path:
    path = tmp_path / "s.db"
    with monitor(path, "one") as m:
        solve(m)
        m.flush()
        assert m.lessons is not None
        m.lessons.record(pattern="Port", error_text=BUSY, fix_text="export PORT=8001", tool="Bash")
    return path


@pytest.mark.parametrize("tick", ["step", "event", "manual"])
@pytest.mark.parametrize("successes", [1, 3])
def test_lesson_recall_an_error_before_the_success_of_a_parallel_call_is_told(
    taught: Path, tick: str, successes: int
) -> None:
    with monitor(taught, "two", config={"tick": tick, "guidance": {"randomise": False}}) as m:
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
    check_replay(taught)


@pytest.mark.parametrize("tick", ["step", "manual"])
def test_lesson_recall_two_errors_of_one_turn_are_both_told(taught: Path, tick: str) -> None:
    with monitor(taught, "two", config={"tick": tick, "guidance": {"randomise": False}}) as m:
        decision = together(m, ("python app.py", MISSING, True), ("npm start", BUSY, True), ("ls", "app.py", False))
        told = known(decision)
        assert told is not None and "pip install pyyaml" in told and "export PORT=8001" in told
    check_replay(taught)


def test_lesson_recall_at_most_three_are_looked_up_and_each_once(taught: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monitor(taught, "two", config={"tick": "manual"}) as m:
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
    check_replay(taught)


def test_lesson_recall_what_was_solved_or_left_behind_is_not_told(taught: Path) -> None:
    with monitor(taught, "two", config={"tick": "manual"}) as m:
        for command, result, error in (("python app.py", MISSING, True), ("pip install pyyaml", "ok", False)):
            m.tool_result(result, error=error, call=m.tool_call("Bash", {"command": command}))
        assert known(ran(m, "python app.py")) is None
        together(m, ("python app.py", MISSING, True), ("ls", "app.py", False))
        assert known(ran(m, "ls", "app.py")) is None  # a call after it says that the agent has gone on


def test_lesson_recall_an_error_that_waits_for_its_fix_is_told_after_calls_that_nobody_looked_at(
    taught: Path,
) -> None:
    with monitor(taught, "two", config={"tick": "manual"}) as m:
        m.tool_result(MISSING, error=True, call=m.tool_call("Bash", {"command": "python app.py"}))
        assert known(ran(m, "ls", "app.py")) is not None


def test_lesson_recall_the_text_is_that_of_the_error_even_if_the_context_has_no_room_for_it(
    taught: Path,
) -> None:
    with monitor(taught, "two", config={"tick": "manual", "window": 1}) as m:
        assert known(together(m, ("python app.py", MISSING, True), ("ls", "app.py", False))) is not None
