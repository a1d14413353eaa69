"""Lessons are not learned, sent or blamed wrongly, and none is lost on the way."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from lessons.agents import MISSING, known, monitor, ran, solve

from coherence.lessons import LessonStore
from coherence.providers import HashingEmbedder


class Slow(HashingEmbedder):
    def embed(self, text: str) -> object:  # type: ignore[override]
        time.sleep(0.3)
        return super().embed(text)


def kept(path: Path) -> list[tuple[str, int, int, int]]:
    with LessonStore(path, embedder=False) as lessons:
        return [(each.fix_text, each.count, each.helped, each.failed) for each in lessons.lessons()]


def test_lesson_recall_care_what_destroys_something_is_no_advice(tmp_path: Path) -> None:
    error = "rm: cannot remove 'build': Is a directory"
    with monitor(tmp_path / "s.db") as m:
        assert m.lessons is not None
        m.lessons.record(pattern="rm", error_text=error, fix_text="rm -rf build", tool="Bash")
        m.lessons.record(pattern="git", error_text="error: failed to push some refs", fix_text="git push --force")
        assert known(ran(m, "rm build", error, error=True)) is None
        assert known(ran(m, "git push", "error: failed to push some refs", error=True)) is None


def test_lesson_recall_care_a_fix_with_other_names_says_so_and_its_failure_is_not_held_against_the_lesson(
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


def test_lesson_recall_care_a_lesson_is_judged_only_by_what_it_told(tmp_path: Path) -> None:
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


def test_lesson_recall_care_a_lesson_that_cannot_be_kept_keeps_no_other_from_it(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with monitor(path) as m:
        ran(m, "npm run build", "npm ERR!", error=True)  # says nothing
        ran(m, "npm install left-pad")
        ran(m, "npm run build")
        solve(m)
    assert ("pip install pyyaml", 1, 0, 0) in kept(path)


@pytest.mark.slow
def test_lesson_recall_care_what_was_just_learned_is_there_at_the_next_error_and_after_the_end(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with monitor(path, embedder=Slow(64)) as m:
        solve(m)
        assert known(ran(m, "python app.py", MISSING, error=True)) is not None
        ran(m, "pip install --force-reinstall pyyaml")
        ran(m, "python app.py")
    assert len(kept(path)) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_lesson_recall_care_a_child_of_a_fork_writes_what_it_learns_and_not_what_its_parent_did(tmp_path: Path) -> None:
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
