"""Many processes, threads, forks and SIGKILL: every lesson that was acknowledged is there, and can be found."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from coherence.lessons.store import LessonStore
from coherence.store.store import Store
from lessons.stores import VAGUE, check_file, found, learn, missing, near, open_store

InChild: TypeAlias = Callable[[Callable[[], object]], str]

posix = pytest.mark.skipif(sys.platform == "win32", reason="needs fork or SIGKILL")

HEAD = """
import sys
import numpy as np
from coherence.lessons.store import LessonStore
from coherence.providers import HashingEmbedder

def learn(store, name):
    error = "ModuleNotFoundError: No module named '%s'" % name
    return store.record(pattern="p", error_text=error, fix_text="uv add " + name, tool="Bash")
"""

WRITER = f"""{HEAD}
path, own, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
with LessonStore(path, embedder=HashingEmbedder(64)) as store:
    for number in range(count):
        learn(store, "%s_%d" % (own, number))
        id = learn(store, "shared_%d" % (number % 5))
        store.outcome(id, helped=True, origin="%s %d" % (own, number))
        assert store.query("ModuleNotFoundError: No module named '%s_%d'" % (own, number), tool="Bash")
"""


def run(script: str, *args: object) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", script, *map(str, args)], stdout=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> str:
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return said


@pytest.mark.slow
def test_four_processes_record_100_lessons_each_at_once(path: Path) -> None:
    with open_store(path) as store:  # open all the time
        assert near(store) == set()
        for process in [run(WRITER, path, f"own{number}", 100) for number in range(4)]:
            finish(process)
        assert store.stats().lessons == store.stats().vectors == 405
        assert near(store) == {lesson.id for lesson in store.lessons()}
        kept = {lesson.fix_text: lesson for lesson in store.lessons()}
        for number in range(5):
            lesson = kept[f"uv add shared_{number}"]
            assert (lesson.count, lesson.helped) == (80, 80)  # 4 x 100 / 5
        assert all(found(store, missing(f"own{number}_99"), tool="Bash") for number in range(4))
    assert check_file(path) == 405


def test_store_processes_what_others_add_and_remove_is_seen_at_once(path: Path) -> None:
    with open_store(path) as store:
        own = learn(store, "own")
        assert near(store) == {own}
        script = f"{HEAD}\nwith LessonStore(sys.argv[1], embedder=HashingEmbedder(64)) as store:\n    "
        theirs = int(finish(run(script + "print(learn(store, 'theirs'))", path)))
        assert found(store, missing("theirs"), tool="Bash") == [theirs]
        assert near(store) == {own, theirs}
        finish(run(script + f"store.remove([{own}])", path))
        assert near(store) == {theirs}
        assert own not in found(store, missing("own"), least=0.0)


def test_query_threads_share_a_store(tmp_path: Path) -> None:
    path, failures = tmp_path / "lessons.db", []
    with open_store(path, cap=40) as store:

        def work(own: int) -> None:
            try:
                for number in range(25):
                    id = learn(store, f"mod{own}_{number}")
                    store.query(f"{VAGUE} {own} {number}", least=0.0)
                    store.query(missing(f"mod{own}_{number}"))
                    if store.get(id) is not None and number % 5 == 0:
                        store.remove([id])
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(own,)) for own in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert near(store) == {lesson.id for lesson in store.lessons()}
        assert store.stats().lessons == store.stats().vectors <= 40
    check_file(path)


TEACHER = f"""{HEAD}
start = int(sys.argv[2])
with LessonStore(sys.argv[1], embedder=HashingEmbedder(64), cap=60) as store:
    number = start
    while True:
        number += 1
        id = learn(store, "mod%d" % number)
        store.query("ModuleNotFoundError: No module named 'mod%d'" % (number - 3), tool="Bash")
        sys.stdout.write("%d\\n" % id)
        sys.stdout.flush()
"""


@posix
@pytest.mark.slow
def test_record_fifty_kills_lose_no_lesson_that_was_acknowledged(path: Path) -> None:
    dice = random.Random(5)
    acknowledged = 0
    for _ in range(50):
        process = run(TEACHER, path, acknowledged)
        assert process.stdout is not None
        first = process.stdout.readline()
        time.sleep(dice.uniform(0, 0.05))
        process.send_signal(signal.SIGKILL)
        said = (first + process.stdout.read()).splitlines(keepends=True)
        process.stdout.close()
        assert process.wait() == -signal.SIGKILL
        acknowledged = max([acknowledged, *(int(line) for line in said if line.endswith("\n"))])
        assert 0 < check_file(path) <= 60
        with open_store(path, cap=60) as store:
            assert store.store.recovered_from is None
            kept = {lesson.id: lesson for lesson in store.lessons()}
            assert acknowledged in kept
            assert max(kept) <= acknowledged + 1
            assert near(store) == set(kept)  # no lesson without its vector
            assert kept[acknowledged].fix_text == f"uv add mod{acknowledged}"
            acknowledged = max(kept)


REBUILDER = f"""{HEAD}
import time
class Slow(HashingEmbedder):
    made = 0
    def embed(self, text):
        Slow.made += 1
        if Slow.made == 100:
            print("half-way", flush=True)
            time.sleep(60)
        return super().embed(text)
LessonStore(sys.argv[1], embedder=Slow(32), rebuild=True, timeout_s=100)
"""


@posix
@pytest.mark.slow
def test_a_rebuild_that_was_killed_is_gone_on_with(path: Path) -> None:
    from coherence.providers import HashingEmbedder

    with open_store(path) as store:
        ids = {learn(store, f"mod{number}") for number in range(150)}
    process = run(REBUILDER, path)
    assert process.stdout is not None
    assert process.stdout.readline() == "half-way\n"
    process.kill()
    process.communicate()
    assert check_file(path) == 150
    with open_store(path, embedder=HashingEmbedder(32)) as store:
        assert 0 < store.stats().vectors < 150
        assert found(store, missing("mod149"), tool="Bash", k=1) == [max(ids)]  # an equal signature needs no vector
    with open_store(path, embedder=HashingEmbedder(32), rebuild=True) as store:
        assert near(store) == ids
        assert store.rebuild() == 0
    assert check_file(path) == 150


@posix
def test_store_processes_parent_and_child_go_on_after_a_fork(path: Path, in_child: InChild) -> None:
    with open_store(path) as store:
        first = learn(store, "first")
        assert near(store) == {first}

        def child() -> set[int]:
            learn(store, "child")
            held = near(store)
            store.close()
            return held

        assert in_child(child) == "{1, 2}"
        assert near(store) == {1, 2}
        assert learn(store, "child") == 2
    assert check_file(path) == 2


@posix
def test_store_processes_a_fork_while_other_threads_hold_the_locks(tmp_path: Path, in_child: InChild) -> None:
    """The locks of index and cache are copied as they are, and nobody in the child would ever release them."""
    with open_store(tmp_path / "lessons.db") as store:
        learn(store, "first")
        searching = store._searching
        assert searching is not None
        held, done = threading.Event(), threading.Event()

        def hold() -> None:
            with searching.lock, searching.cache._lock:
                held.set()
                done.wait(60)

        thread = threading.Thread(target=hold)
        thread.start()
        assert held.wait(60)
        try:
            assert in_child(lambda: (near(store), found(store, missing("first"), tool="Bash"))) == "({1}, [1])"
        finally:
            done.set()
            thread.join()
        assert near(store) == {1}


@posix
def test_a_fork_inside_a_transaction_leaves_the_file_to_the_parent(tmp_path: Path, in_child: InChild) -> None:
    with Store(tmp_path / "lessons.db") as file, open_store(file) as store:
        id = learn(store, "first")
        with file.transaction():
            assert "forked while its parent was writing" in in_child(lambda: learn(store, "child"))
        assert learn(store, "second") == id + 1


def test_a_store_in_a_transaction_of_its_own_thread_says_so(tmp_path: Path) -> None:
    with Store(tmp_path / "lessons.db") as file:
        store = LessonStore(file, embedder=False)
        id = learn(store, "first")
        with file.transaction():
            with pytest.raises(RuntimeError, match="in a transaction already"):
                learn(store, "second")
            assert found(store, missing("first"), tool="Bash") == [id]
        store.close()
        assert learn(LessonStore(file, embedder=False), "second") == id + 1
