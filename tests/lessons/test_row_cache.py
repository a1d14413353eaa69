"""A store answers as if it read all lessons anew, although it keeps some in memory and others change them."""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
import time
from pathlib import Path
from random import Random

import pytest

from coherence.lessons import row_cache as shelf
from coherence.lessons import table
from coherence.lessons.records import Lesson
from coherence.lessons.store import LessonStore
from lessons.stores import VAGUE, learn, missing, open_store

posix = pytest.mark.skipif(sys.platform == "win32", reason="needs fork")

NAMES = ("yaml", "numpy", "attrs", "requests", "pandas", "left-pad")


def answers(store: LessonStore) -> list[list[Lesson]]:
    """Put questions that find lessons by signature, by names and by meaning."""
    texts = [*map(missing, NAMES), *(f"{VAGUE}, it may be {name}" for name in NAMES)]
    return [store.query(text, tool="Bash", k=5, least=0.0) for text in texts]


def check(store: LessonStore) -> None:
    """Check that what is kept in memory, once it has followed, is what the tables hold."""
    kept = store._shelf
    kept.follow(table.read_state(store.store))
    known, listed = kept._read.known, kept._read.listed
    assert known == table.read_lessons(store.store, list(known))
    fresh = shelf.Shelf(store.store)
    assert listed == fresh.listed(list(listed))


def change(store: LessonStore, rng: Random) -> None:
    """Change anything about lessons."""
    ids = [lesson.id for lesson in store.lessons()]
    what = rng.randrange(10)
    if what < 4 or not ids:
        learn(store, rng.choice(NAMES), rng.choice(["uv add it", None]), pattern=rng.choice(["", "missing module"]))
    elif what < 8:
        store.outcome(rng.choice(ids), helped=rng.random() < 0.3)
    elif what == 8:
        store.remove([rng.choice(ids)])
    else:
        store.prune(keep=rng.randrange(4, 8), retired=rng.random() < 0.5)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_listed_an_open_store_answers_as_one_that_was_opened_just_now(tmp_path: Path, seed: int) -> None:
    path, rng = tmp_path / "lessons.db", Random(seed)
    with open_store(path) as asking, open_store(path) as changing:
        for _ in range(40):
            change(asking if rng.random() < 0.2 else changing, rng)
            with open_store(path) as fresh:
                assert answers(asking) == answers(fresh)
        check(asking)


def test_row_cache_what_is_changed_in_place_is_read_again(path: Path) -> None:
    with open_store(path) as asking:
        learn(asking, "yaml")
        asking.query(missing("yaml"))
        connection = sqlite3.connect(path)
        with connection:
            connection.execute("UPDATE lessons SET fix_text = 'uv add pyyaml'")
        connection.close()
        assert [lesson.fix_text for lesson in asking.query(missing("yaml"))] == ["uv add pyyaml"]


def test_row_cache_that_a_lesson_was_used_is_no_change(tmp_path: Path) -> None:
    with open_store(tmp_path / "lessons.db") as store:
        id = learn(store, "yaml")
        before = table.read_state(store.store).changes
        with store.store.transaction() as transaction:
            table.touch(transaction, [id])
        assert table.read_state(store.store).changes == before
        store.outcome(id, helped=False)
        assert table.read_state(store.store).changes > before


def test_listed_after_more_changes_than_are_followed_all_is_read_again(path: Path) -> None:
    with open_store(path) as asking:
        for name in NAMES:
            learn(asking, name)
        answers(asking)
        connection = sqlite3.connect(path)
        with connection:
            for _ in range(2_500 // len(NAMES)):
                connection.execute("UPDATE lessons SET helped = helped + 1")
        ((rows,),) = connection.execute("SELECT count(*) FROM lesson_changes").fetchall()
        connection.close()
        assert shelf.MAX_CHANGES < rows <= 1_000
        assert asking.query(missing("yaml"))[0].helped == 2_500 // len(NAMES)
        check(asking)


def test_follow_tables_that_are_others_by_their_token_are_read_anew(path: Path) -> None:
    with open_store(path) as asking:
        learn(asking, "yaml")
        answers(asking)
        assert asking._shelf._read.known
        asking.rebuild()
        asking._shelf.follow(table.read_state(asking.store))
        assert not asking._shelf._read.known


def test_known_memory_is_bounded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelf, "MAX_ROWS", 8)
    with open_store(path) as asking:
        for number in range(30):
            learn(asking, f"module_{number}")
        for number in range(30):
            with open_store(path) as fresh:
                text = missing(f"module_{number}")
                assert asking.query(text, least=0.0) == fresh.query(text, least=0.0) != []
            assert len(asking._shelf._read.known) < 8 + 30


@pytest.mark.slow
def test_listed_threads_ask_while_others_change(tmp_path: Path) -> None:
    path, failures, until = tmp_path / "lessons.db", [], time.monotonic() + 1.5
    with open_store(path) as asking, open_store(path) as changing:
        for name in NAMES:
            learn(changing, name)

        def ask() -> None:
            try:
                while time.monotonic() < until:
                    answers(asking)
            except Exception as error:
                failures.append(error)

        def alter(seed: int) -> None:
            try:
                rng = Random(seed)
                while time.monotonic() < until:
                    change(changing, rng)
            except Exception as error:
                if "there is no lesson" not in str(error):  # another thread was quicker
                    failures.append(error)

        threads = [threading.Thread(target=ask) for _ in range(3)]
        threads += [threading.Thread(target=alter, args=(seed,)) for seed in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        check(asking)
        with open_store(path) as fresh:
            assert answers(asking) == answers(fresh)


@posix
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_listed_a_forked_child_and_its_parent_see_what_the_other_changes(path: Path) -> None:
    with open_store(path) as store:
        id = learn(store, "yaml")
        answers(store)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                store.outcome(id, helped=True)
                told = store.query(missing("yaml"))[0]
                status = 0 if told.helped == 1 else 2
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        assert store.query(missing("yaml"))[0].helped == 1
        check(store)
