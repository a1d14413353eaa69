"""Errors of an agent become lessons, and lessons are there at the next error: live, after a kill, and in a replay."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from lessons.agents import MISSING, known, monitor, ran, solve

from coherence import Fleet
from coherence.core.decisions import Guidance
from coherence.lessons import LessonStore, Origin
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
    assert not any("By default" in text for text in texts)


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
