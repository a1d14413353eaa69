"""A lesson that somebody removed stays removed, whatever is folded again; new events may teach it anew."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from lessons.agents import MISSING, monitor, ran, solve
from lessons.stores import check_file, learn, missing, open_store

from coherence.lessons import LessonStore, Origin, table

CHILD = """
import os, signal, sys
sys.path.insert(0, sys.argv[2])
from lessons.agents import monitor, solve
m = monitor(sys.argv[1], "one", durability="full")
solve(m)
m.flush()
(lesson,) = m.lessons.lessons()
assert (m.lessons.remove([lesson.id]) if sys.argv[3] == "remove" else m.lessons.prune(keep=0)) == 1
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
@pytest.mark.parametrize("way", ["remove", "prune"])
def test_lesson_recall_removed_events_that_are_folded_again_after_a_kill_do_not_bring_it_back(
    tmp_path: Path, way: str
) -> None:
    path = tmp_path / "s.db"
    command = [sys.executable, "-c", CHILD, str(path), str(Path(__file__).parents[1]), way]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    with monitor(path, "one") as m:
        ran(m, "ls")
        m.flush()
        assert m.lessons is not None and list(m.lessons.lessons()) == []
        solve(m)  # this has happened anew
        m.flush()
        assert [(lesson.fix_text, lesson.count) for lesson in m.lessons.lessons()] == [("pip install pyyaml", 1)]
    check_file(path)


def test_lesson_recall_removed_a_session_that_is_told_again_does_not_bring_it_back(tmp_path: Path) -> None:
    with LessonStore(tmp_path / "lessons.db", embedder=False) as lessons:
        for _ in range(2):
            with monitor(tmp_path / "s.db", "one", lessons=lessons) as m:
                solve(m)
            lessons.remove([lesson.id for lesson in lessons.lessons()])
            (tmp_path / "s.db").unlink()
        with monitor(tmp_path / "s.db", "one", lessons=lessons) as m:
            solve(m)
        assert list(lessons.lessons()) == []
        with monitor(tmp_path / "s.db", "two", lessons=lessons) as m:
            solve(m)
        assert len(list(lessons.lessons())) == 1


def test_lesson_recall_removed_only_the_same_events_are_kept_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "MAX_REJECTED", 3)
    path = tmp_path / "lessons.db"
    with open_store(path) as store:
        first = learn(store, "yaml", origin=Origin("a", "s", (3, 6, 9)))
        assert store.remove([first]) == 1
        assert learn(store, "yaml", origin=Origin("a", "s", (3, 6, 9))) == 0
        assert store.stats().lessons == 0
        other = learn(store, "cv2", origin=Origin("a", "s", (4, 6, 9)))  # another error, the same success
        assert other > first
        by_hand = learn(store, "yaml")
        assert by_hand > other and store.stats().vectors == 2
        assert learn(store, "yaml", origin=Origin("a", "s", (3, 6, 9))) == by_hand
        assert [lesson.count for lesson in store.query(missing("yaml"), k=1)] == [1]
        for session in ("t", "u", "v"):  # three newer ones
            store.remove([learn(store, session, origin=Origin("a", session, (1, 2)))])
        assert learn(store, "u", origin=Origin("a", "u", (1, 2))) == 0
        assert learn(store, "yaml", origin=Origin("a", "s", (3, 6, 9))) == by_hand
        assert [lesson.count for lesson in store.query(missing("yaml"), k=1)] == [2]  # forgotten by now
    check_file(path)


def test_lesson_recall_removed_what_left_because_of_the_cap_may_come_back(tmp_path: Path) -> None:
    with open_store(tmp_path / "lessons.db", cap=1) as store:
        learn(store, "yaml", origin=Origin("a", "s", (1, 2)))
        learn(store, "cv2")
        assert learn(store, "yaml", origin=Origin("a", "s", (1, 2))) > 0
        assert store.query(MISSING, k=1)
