"""Lessons of another version: brought to the normal form of this one, merged, and nothing of them lost."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from coherence.lessons import intake, normal
from coherence.lessons import reindex as renewing
from coherence.lessons.records import Lesson, Origin
from lessons.forms import earlier
from lessons.stores import check_file, found, learn, missing, near, open_store

LINES = 3
"""Errors of each module, of one shape but for the line."""


@contextmanager
def another_version() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(normal, "FORM", 0)
        patch.setattr(intake, "normalise", earlier)
        yield


def error(name: str, line: int) -> str:
    return f'Traceback (most recent call last):\n  File "app.py", line {line}, in load\n{missing(name)}'


def fill(path: Path, modules: int) -> None:
    """Keep lessons as another version would: three of each module, of which this one makes one."""
    with another_version(), open_store(path) as store:
        for number in range(modules):
            for line in range(LINES):
                origin = Origin("a", f"s{number}", (line + 1, line + 9))
                id = learn(
                    store, f"mod{number}", error_text=error(f"mod{number}", line), origin=origin, ts=100.0 + line
                )
                store.outcome(id, helped=True, origin=f"{number} {line}")


def kept(path: Path, modules: int) -> list[Lesson]:
    """Return the lessons after a rebuild, each of which must be the sum of its three."""
    check_file(path)
    with open_store(path) as store:
        found = sorted(store.lessons(), key=lambda lesson: lesson.id)
        assert len(found) == store.stats().vectors == modules
        assert near(store) == {lesson.id for lesson in found}
        for number in range(modules):
            (same, *_) = store.query(error(f"mod{number}", 77), tool="Bash")
            assert (same.match, same.fix_text) == ("exact", f"uv add mod{number}")
            assert (same.count, same.helped, same.created, same.seen) == (LINES, LINES, 100.0, 99.0 + LINES)
            whole = store.get(same.id)
            assert whole is not None and len(whole.origins) == LINES
        assert store.stats().outcomes == LINES * modules
        return found


def test_lessons_of_another_version_are_derived_anew_and_merged(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    fill(path, 4)
    with caplog.at_level(logging.WARNING, "coherence"), open_store(path) as store:
        assert caplog.text.count("run `coherence lessons rebuild`") == 1
        assert store.stats().lessons == 12
        found(store, error("mod1", 77), tool="Bash")  # works, whatever it finds
        later = learn(store, "mod1", error_text=error("mod1", 0), ts=101.0)  # counted apart
        assert later == 13
        store.remove([later])
        assert store.rebuild() == 4
        assert store.rebuild() == 0
    caplog.clear()
    assert [lesson.id for lesson in kept(path, 4)] == [1, 4, 7, 10]
    assert caplog.text == ""


def test_reindex_what_was_recorded_meanwhile_is_merged_too(path: Path) -> None:
    fill(path, 1)
    with open_store(path) as store:
        assert learn(store, "mod0", error_text=error("mod0", 50), ts=200.0) == 4
        for _ in range(5):
            store.outcome(4, helped=False)
        assert store.query(missing("mod0")) == [] or store.query(missing("mod0"))[0].id != 4  # retired
        store.rebuild()
        (lesson,) = store.lessons()
        assert (lesson.id, lesson.count, lesson.helped, lesson.failed) == (1, 4, 3, 5)
        assert (lesson.created, lesson.seen, lesson.retired) == (100.0, 200.0, False)
    check_file(path)


HEAD = """
import sys
sys.path.insert(0, sys.argv[2])
from lessons.stores import learn, missing, open_store
from coherence.lessons import reindex
"""
SLOW = f"""{HEAD}
derived, made = reindex._derived, []
def slow(lesson):
    made.append(1)
    if len(made) == 100:
        print("half-way", flush=True)
        sys.stdin.read()
    return derived(lesson)
reindex._derived = slow
open_store(sys.argv[1], rebuild=True).close()
"""
REBUILDER = f"{HEAD}\nopen_store(sys.argv[1], rebuild=True).close()"
WRITER = f"""{HEAD}
with open_store(sys.argv[1]) as store:
    for number in range(60):
        learn(store, "new%d_%s" % (number, sys.argv[3]))
        assert store.query(missing("new%d_%s" % (number, sys.argv[3])), tool="Bash", k=1)
"""


def run(script: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script, *map(str, (arguments[0], Path(__file__).parents[1], *arguments[1:]))]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
@pytest.mark.slow
def test_any_outdated_a_kill_in_the_middle_loses_nothing(path: Path) -> None:
    fill(path, 50)
    process = run(SLOW, path)
    assert process.stdout is not None and process.stdout.readline() == "half-way\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    with open_store(path) as store:
        assert 50 < store.stats().lessons < 150 and sum(lesson.count for lesson in store.lessons()) == 150
        assert renewing.any_outdated(store.store)
    open_store(path, rebuild=True).close()
    kept(path, 50)


@pytest.mark.slow
def test_reindex_many_processes_rebuild_and_record_at_once(path: Path) -> None:
    fill(path, 50)
    processes = [run(REBUILDER, path) for _ in range(3)] + [run(WRITER, path, own) for own in "ab"]
    for process in processes:
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said
    with open_store(path) as store:
        assert store.stats().lessons == 50 + 120
        store.remove([lesson.id for lesson in store.lessons() if lesson.fix_text.startswith("uv add new")])
    kept(path, 50)
