"""The changes that faces make: what they write is what the commands and monitors write."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from guard.helpers import BOUNDS, Memory, Proposes
from monitor.helpers import until

from coherence.guard import Guard
from coherence.lessons import LessonStore
from coherence.monitor.replay import Replay
from coherence.store.runs import session_label
from coherence.store.store import Store
from coherence.views.changes import (
    edit_lesson,
    forget_lesson,
    label_firing,
    label_session,
    rollback,
    unblock,
)
from coherence.views.views import Views
from views.recorded import begun, fails, works


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


def test_label_session_is_seen_by_views_and_by_the_commands(path: Path) -> None:
    with begun(path) as m:
        works(m, 2)
    with Store(path) as store, Views(path) as views:
        for label in ("good", "bad", None):
            assert label_session(store, "a", "s", label, "as I saw it") == 1
            assert views.overview().lines[0].label == label == views.session("a", "s").line.label
            assert session_label(store, "a", "s") == {"good": True, "bad": False, None: None}[label]
            assert [line.label for line in views.overview(label=label or "none").lines] == [label]
            assert views.session("a", "s").comment == ("" if label is None else "as I saw it")
        assert [event.text for event in views.events("a", "s", kind="feedback")] == [
            "labelled good: as I saw it",
            "labelled bad: as I saw it",
            "as I saw it",
        ]
        assert label_session(store, "a", "s", "good") == 1
        assert views.session("a", "s").comment == "as I saw it", "that of the label before"
        assert store.verify() == []
        row = store.session("a", "s")
        assert row is not None
        assert not Replay(store, row).report().differences, "a comment judges nothing"


def test_label_session_refuses_what_cannot_be(path: Path) -> None:
    begun(path).close()
    begun(path, "t", "test", source="test").close()
    with Store(path) as store:
        with pytest.raises(LookupError, match="no session is called a/x"):
            label_session(store, "a", "x", "good")
        with pytest.raises(ValueError, match="label must be 'good', 'bad' or None, not 'great'"):
            label_session(store, "a", "s", "great")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="of the source 'test', which counts for nothing"):
            label_session(store, "t", "test", "good")
        with pytest.raises(ValueError, match="a/s has 1 run, not 2"):
            label_session(store, "a", "s", "good", run=2)


def test_label_session_of_a_continuation_labels_where_it_began(path: Path) -> None:
    begun(path, config={"window": 5}).close()
    begun(path, config={"window": 6}).close()
    with Store(path) as store, Views(path) as views:
        assert [row.session for row in store.sessions()] == ["s", "s~2"]
        label_session(store, "a", "s~2", "bad")
        assert {line.session: line.label for line in views.overview().lines} == {"s": "bad", "s~2": "bad"}


def test_label_firing_of_firings_and_refusals(path: Path) -> None:
    with begun(path, goal="Look. Do not delete data.") as m:
        m.message("user", "Look. Do not delete data.")
        (fired, *_) = fails(m, 4)
        assert not m.check("Bash", {"command": "rm -rf data"})
    with Store(path) as store, Views(path) as views:
        refusal = views.session("a", "s").refusals[0].id
        for label in ("bad", "good", None):
            label_firing(store, fired, label)
            label_firing(store, refusal, label)
            session = views.session("a", "s")
            assert [each.label for each in session.firings if each.id == fired] == [label]
            assert [each.label for each in session.refusals] == [label]
            assert not session.refusals[0].unblocked
        with pytest.raises(LookupError, match="no firing and no refusal is called 'nothing'"):
            label_firing(store, "nothing", "good")


def test_unblock_reaches_the_monitor_that_has_the_session_open(path: Path) -> None:
    with begun(path, config={"budget": {"calls": 1}}) as m:
        call = m.tool_call("Bash", {"command": "ls"})
        m.tool_result("a", call=call)
        assert not m.decide() and not m.check("Bash", {"command": "ls a"})
        m.flush()
        with Store(path) as store, Views(path) as views:
            unblock(store, "a", "s", "more is fine")
            refusal = views.session("a", "s").refusals[0]
            assert (refusal.unblocked, refusal.reason) == (True, "more is fine")
            with pytest.raises(LookupError, match="no session is called a/x"):
                unblock(store, "a", "x")
        m.message("user", "go on")  # its next write, with which it takes in what others wrote
        m.flush()
        assert m.check("Bash", {"command": "ls b"})


def test_edit_lesson_keeps_its_counts_and_replaces_it(path: Path) -> None:
    with LessonStore(path, embedder=False) as lessons:
        id = lessons.record(
            pattern="P", error_text="No module named 'numpy'", fix_text="pip install numpi", tool="Bash"
        )
        lessons.record(pattern="P", error_text="No module named 'numpy'", fix_text="pip install numpi", tool="Bash")
        lessons.outcome(id, helped=True)
        store = lessons.store
        same = edit_lesson(store, id, pattern="NoModule")
        assert same == id
        new = edit_lesson(store, id, fix="uv add numpy")
        (found,) = lessons.lessons(limit=10)
        assert (found.id, found.pattern, found.fix_text, found.count, found.helped) == (
            new,
            "NoModule",
            "uv add numpy",
            2,
            1,
        )
        assert [each.fix_text for each in lessons.query("No module named 'numpy'", tool="Bash")] == ["uv add numpy"]
        with pytest.raises(ValueError, match="fix_text"):
            edit_lesson(store, new, fix=" ")
        forget_lesson(store, new)
        assert list(lessons.lessons(limit=10)) == []
        for gone in (edit_lesson, forget_lesson):
            with pytest.raises(LookupError, match=f"there is no lesson {new}"):
                gone(store, new)


def test_rollback_is_asked_for_and_done_by_who_has_the_adapter(path: Path) -> None:
    config = Memory()
    with Guard(store=path, strategy=Proposes({"level": 2}), config_adapter=config, bounds=BOUNDS) as guard:
        for number in range(20):
            with suppress(ZeroDivisionError):
                guard.run(lambda number=number: 1 / (number % 2), agent="support")  # type: ignore[misc]
        guard.flush()
        with Store(path) as store:
            record = rollback(store, "support", "it looks wrong")
            assert record.patch == {"level": 2}
            with pytest.raises(LookupError, match="'nobody' has no patch on trial"):
                rollback(store, "nobody")

        def is_done() -> bool:  # the guard reads requests of others now and then, as calls come
            guard.run(lambda: 1, agent="support")
            guard.flush()
            with Views(path) as views:
                patch = views.guard().agents[0].patches[0]
                return (patch.outcome, patch.can_roll_back) == ("rolled back", False)

        until(is_done)
    assert config.config == {"level": 1}
