"""A file that cannot be written, is full, damaged or somebody else's: nothing acknowledged is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from coherence.lessons import search as searching
from coherence.store.errors import StoreError
from lessons.stores import VAGUE, check_file, found, learn, missing, near, open_store

InChild: TypeAlias = Callable[[Callable[[], object]], str]

posix = pytest.mark.skipif(sys.platform == "win32", reason="needs resource limits and users")


def test_query_a_full_disk_keeps_what_was_there_and_the_next_lesson(path: Path) -> None:
    with open_store(path) as store:
        ids = [learn(store, f"mod{number}") for number in range(30)]
        store.query(missing("mod3"), tool="Bash")

        def limit(more: int | None) -> None:
            with store.store.transaction() as transaction:
                ((pages,),) = transaction.execute("PRAGMA page_count")
                transaction.execute(f"PRAGMA max_page_count = {2**30 if more is None else pages + more}")

        limit(2)

        def fill() -> None:
            for number in range(100):
                ids.append(learn(store, f"more{number}", "do this " * 200))

        with pytest.raises(StoreError, match="the disk is full"):
            fill()
        assert {lesson.id for lesson in store.lessons()} == near(store) == set(ids)
        assert found(store, missing("mod4"), tool="Bash", k=1) == [ids[4]]
        limit(None)
        assert learn(store, "at last") == max(ids) + 1
    assert check_file(path) == len(ids) + 1


LIMITED = """
import resource, sys
from coherence.lessons.store import LessonStore
from coherence.providers import HashingEmbedder
from coherence.store.errors import StoreError

def error(number):
    return "ModuleNotFoundError: No module named 'mod%d'" % number

def learn(number):
    return store.record(pattern="p", error_text=error(number), fix_text="do this " * 100 + str(number), tool="Bash")

with LessonStore(sys.argv[1], embedder=HashingEmbedder(64)) as store:
    ids = [learn(0)]
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, resource.RLIM_INFINITY))
    try:
        while True:
            ids.append(learn(len(ids)))
    except StoreError as problem:
        print(problem)
    for number in range(6):
        assert store.query(error(number), tool="Bash", k=1)[0].id == ids[number]
    assert sorted(lesson.id for lesson in store.lessons()) == ids
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    ids.append(learn(len(ids)))
    assert ids[-1] == len(ids)
    print(len(ids))
"""


@posix
def test_store_disk_a_file_that_may_not_grow(path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LIMITED, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    message, count = done.stdout.splitlines()
    assert message.startswith(f"{path}: reading or writing failed")
    assert check_file(path) == int(count) > 10
    with open_store(path) as store:
        assert len(near(store)) == int(count)


@posix
def test_store_disk_a_file_that_is_read_only_is_refused_clearly_and_left_as_it_is(
    public_folder: Path, in_child: InChild
) -> None:
    path = public_folder / "lessons.db"
    with open_store(path) as store:
        learn(store, "y")
    path.chmod(0o444)
    public_folder.chmod(0o555)

    def learn_as_nobody() -> int:
        if os.geteuid() == 0:
            os.setuid(65534)  # root may write everywhere
        return learn(open_store(path), "z")

    said = in_child(learn_as_nobody)
    assert said.startswith(f"StoreError: {path}: ")
    assert "read-only" in said
    public_folder.chmod(0o755)
    assert check_file(path) == 1


def test_store_disk_a_file_of_lessons_that_is_no_store_is_refused_and_not_moved(tmp_path: Path) -> None:
    path = tmp_path / "lessons.json"
    path.write_text('[{"pattern": "p", "error": "boom", "fix": "f", "tool": "Bash", "ts": 5}]')
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"no store of evidence or lessons, but JSON; .*`coherence lessons import"):
        open_store(path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_query_an_index_that_cannot_be_saved_is_made_again(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(searching, "SAVE_EVERY", 1)
    Path(f"{path}.lessons").write_bytes(b"in the way")
    with open_store(path) as store:
        id = learn(store, "y")
        store.query(VAGUE)
    assert "the index of lessons was not saved" in caplog.text
    with open_store(path) as store:
        assert near(store) == {id}
