from __future__ import annotations

import queue
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from coherence.store.store import Store
from coherence.tui.reader import MISSING, TROUBLE, Answer, Reader, is_store
from coherence.views.views import Views
from tui.runs import begun, work

PATIENCE = 20.0


class Answers:
    """Answers of a reader, in their order."""

    def __init__(self, path: Path) -> None:
        self.told: queue.Queue[Answer] = queue.Queue()
        self.reader = Reader(path, self.told.put)
        self.reader.start()

    def next(self, name: str) -> Answer:
        while True:
            answer = self.told.get(timeout=PATIENCE)
            if answer.name == name:
                return answer


@pytest.fixture
def answers(tmp_path: Path) -> Iterator[Answers]:
    made = Answers(tmp_path / "runs.db")
    yield made
    made.reader.close()
    assert not made.reader._thread.is_alive()


def newest(views: Views) -> int:
    return views.newest()


def test_reader_a_question_is_answered_again_after_each_change(answers: Answers, tmp_path: Path) -> None:
    assert answers.next(TROUBLE).error == MISSING
    answers.reader.ask("newest", newest)
    with begun(tmp_path / "runs.db", "a") as m:
        work(m, 1)
        first = answers.next("newest").value
        work(m, 1)
        while answers.next("newest").value <= first:
            pass
    assert threading.current_thread() is not answers.reader._thread


def test_reader_what_is_asked_once_is_answered_once(answers: Answers, tmp_path: Path) -> None:
    with begun(tmp_path / "runs.db", "a") as m:
        work(m, 1)
        answers.reader.ask("once", newest, follow=False)
        answers.reader.ask("again", newest)
        answers.next("once")
        seen = answers.next("again").value
        work(m, 1)
        while answers.next("again").value <= seen:
            pass
    assert all(answer.name != "once" for answer in list(answers.told.queue))


def test_reader_a_name_that_nobody_has_is_an_answer(answers: Answers, tmp_path: Path) -> None:
    with begun(tmp_path / "runs.db", "coder") as m:
        work(m, 1)
    answers.reader.ask("session", lambda views: views.session("codre", "s1"))
    assert "coder/s1" in answers.next("session").error


def test_reader_a_change_is_told_and_all_is_asked_again(answers: Answers, tmp_path: Path) -> None:
    with begun(tmp_path / "runs.db", "a") as m:
        work(m, 1)
    answers.reader.ask("newest", newest)
    answers.next("newest")
    answers.reader.act("act", lambda store: f"{len(store.sessions())} session")
    assert answers.next("act").value == "1 session"
    answers.next("newest")

    def refuse(store: Store) -> str:
        raise LookupError("no such thing")

    answers.reader.act("act", refuse)
    assert answers.next("act").error == "no such thing"


def test_reader_another_file_at_the_path_is_read_from_then_on(answers: Answers, tmp_path: Path) -> None:
    for name, agent in (("runs.db", "old"), ("other.db", "new")):
        with begun(tmp_path / name, agent) as m:
            work(m, 1)
    answers.reader.ask("agents", lambda views: views.overview().agents)
    assert answers.next("agents").value == ("old",)
    for each in ("runs.db-wal", "runs.db-shm"):
        (tmp_path / each).unlink(missing_ok=True)
    shutil.move(tmp_path / "other.db", tmp_path / "runs.db")
    while answers.next("agents").value != ("new",):
        pass


def test_reader_what_is_no_store_is_left_as_it_is(answers: Answers, tmp_path: Path) -> None:
    assert answers.next(TROUBLE).error == MISSING
    for content in (b"", b"SQLite", b"%PDF-1.4 and so on"):
        (tmp_path / "new").write_bytes(content)
        shutil.move(tmp_path / "new", tmp_path / "runs.db")
        assert not is_store(tmp_path / "runs.db")
    assert "not a store of this package" in answers.next(TROUBLE).error
    assert (tmp_path / "runs.db").read_bytes() == content
