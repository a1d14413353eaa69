"""The store of lessons, given what nobody should give: a clear error or a defined result, and nothing lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import hostile
import numpy as np
import pytest
from hostile import HANGS, RAISES, failing, lying_number, lying_table, lying_text, speaking, touchy
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st
from property_sizes import examples

from coherence.core.strangers import Asking, asking
from coherence.lessons.clean import MAX_LESSON
from coherence.lessons.errors import LessonError
from coherence.lessons.intake import MAX_FIX
from coherence.lessons.records import Origin
from coherence.lessons.store import LessonStore
from coherence.providers import HashingEmbedder
from lessons.stores import VAGUE, check_file, found, learn, missing, near, open_store

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("error_text", "", ValueError),
        ("error_text", "\u200b\ufeff", ValueError),
        ("error_text", b"ValueError: x", TypeError),
        ("fix_text", "\t\u200b", ValueError),
        ("pattern", None, TypeError),
        ("ts", NAN, ValueError),
        ("ts", -1e300, ValueError),
        ("origin", "builder", TypeError),
        ("origin", Origin("a", "s", ("3",)), TypeError),  # type: ignore[arg-type]
        ("origin", Origin("a", "s", (2**70,)), ValueError),
        ("origin", Origin(None, "s", (1,)), TypeError),  # type: ignore[arg-type]
    ],
)
def test_stats_a_bad_argument_of_record_is_named_and_nothing_is_kept(
    path: Path, field: str, value: Any, error: type[Exception]
) -> None:
    given = {"pattern": "p", "error_text": missing("y"), "fix_text": "pip install y", field: value}
    with open_store(path) as store:
        with pytest.raises(error, match=field):
            store.record(**given)
        assert store.stats().lessons == 0


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("text", b"x", TypeError),
        ("k", 0, ValueError),
        ("k", 2**60, ValueError),
        ("least", NAN, ValueError),
    ],
)
def test_a_bad_argument_of_query_is_named(path: Path, field: str, value: Any, error: type[Exception]) -> None:
    with open_store(path) as store, pytest.raises(error, match=field):
        store.query(**{"text": missing("y"), field: value})


BAD_CALLS: list[tuple[str, Callable[[LessonStore], object], type[Exception]]] = [
    ("lesson_id", lambda store: store.outcome("1", helped=True), TypeError),  # type: ignore[arg-type]
    ("lesson_id", lambda store: store.outcome(2**80, helped=True), ValueError),
    ("helped", lambda store: store.outcome(1, helped="no"), TypeError),  # type: ignore[arg-type]
    ("origin", lambda store: store.outcome(1, helped=True, origin=b"x"), TypeError),  # type: ignore[arg-type]
    ("origin", lambda store: store.outcome(1, helped=True, origin=""), ValueError),
    ("no lesson 77", lambda store: store.outcome(77, helped=True), LessonError),
    ("lesson_ids", lambda store: store.remove([1, "2"]), TypeError),  # type: ignore[list-item]
    ("keep", lambda store: store.prune(keep=-1), ValueError),
]


@pytest.mark.parametrize(("message", "call", "error"), BAD_CALLS)
def test_lesson_store_a_bad_call_is_refused_and_changes_nothing(
    path: Path, message: str, call: Callable[[LessonStore], object], error: type[Exception]
) -> None:
    with open_store(path) as store:
        id = learn(store, "y", ts=1.0)
        before = store.get(id)
        with pytest.raises(error, match=message):
            call(store)
        assert store.get(id) == before
        assert (store.stats().lessons, store.stats().outcomes) == (1, 0)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"cap": 0}, ValueError, "cap"),
        ({"timeout_s": NAN}, ValueError, "timeout_s"),
        ({"embedder": HashingEmbedder}, TypeError, "not the class"),
        ({"embedder": "minilm"}, TypeError, "embed"),
    ],
)
def test_store_bad_input_a_store_is_not_begun_with_bad_options(
    path: Path, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        open_store(path, **options)
    assert not path.exists()
    with pytest.raises(TypeError, match="store must be a path"):
        open_store(3)  # type: ignore[arg-type]


HOSTILE = [
    "\0\x01\x02\xff" * 50,
    "ValueError: \ud800 half of a pair \udfff",
    "ValueError: \u202eright to left\u202c",
    "E" * 1_000_000,
    "Error: \0" * 100_000,
    "\n".join(f"Error: line {number} failed" for number in range(100_000)),
    '"' * 50_000,
    "{" * 20_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_store_bad_input_hostile_text_is_kept_bounded_and_found_again(path: Path, text: str) -> None:
    with open_store(path) as store:
        id = learn(store, "", text, error_text=text, pattern=text, tool=text)
        kept = store.get(id)
        assert kept is not None
        assert 0 < len(kept.error_text) <= MAX_LESSON
        assert 0 < len(kept.fix_text) <= MAX_FIX
        assert len(kept.pattern) <= 200 >= len(kept.tool)
        for each in (kept.error_text, kept.fix_text, kept.pattern, kept.tool):
            each.encode()
        assert learn(store, "", text, error_text=text, pattern=text, tool=text) == id
        found(store, text, tool=text)
        assert found(store, text, tool=text, least=0.0) == [id]
    assert check_file(path) == 1


@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(), st.text(min_size=1), st.text(max_size=5))
@example("\ud800", "\udfff", "\0")
@example("(?P<x>", "\\1 \\g<0>", "%s")
def test_stats_no_text_breaks_the_store(path: Path, error: str, fix: str, tool: str) -> None:
    with open_store(path) as store:
        before = store.stats().lessons
        with suppress(ValueError):  # nothing can be seen in one of them
            assert store.get(learn(store, "", fix, error_text=error, tool=tool)) is not None
        assert store.stats().lessons - before in (0, 1)
        for lesson in store.query(error, tool=tool, least=0.0):
            lesson.fix_text.encode()


class Broken(HashingEmbedder):
    """An embedder that gives what it was told to, raises it, or does it."""

    def __init__(self, gives: object) -> None:
        super().__init__(64)
        self.gives = gives

    def embed(self, text: str) -> Any:
        if isinstance(self.gives, BaseException):
            raise self.gives
        return self.gives() if callable(self.gives) else self.gives


@pytest.mark.parametrize(
    "gives",
    [
        np.full(64, NAN),
        np.full(64, INF),
        np.zeros(64),
        np.ones(63),
        np.ones((2, 64)),
        "vector",
        None,
        RuntimeError("no"),
        MemoryError(),
        SystemExit(1),
    ],
    ids=str,
)
def test_vectors_what_a_broken_embedder_gives_is_not_kept_but_the_lesson_is(path: Path, gives: object) -> None:
    with open_store(path, embedder=Broken(gives)) as store:
        id = learn(store, "y", "pip install y")
        assert found(store, missing("y")) == [id]
        assert found(store, VAGUE, least=0.0) == []
        assert (store.stats().lessons, store.stats().vectors) == (1, 0)
    with open_store(path) as store:  # recorded again, or rebuilt, it is found by meaning too
        other = learn(store, "z", "pip install z")
        assert near(store) == {other}
        assert learn(store, "y", "pip install y") == id
        assert near(store) == {id, other}


def test_rebuild_an_embedder_that_hangs_holds_one_thread_and_loses_nothing(path: Path) -> None:
    hold = threading.Event()
    embedder = Broken(lambda: hold.wait() and np.ones(64))
    before = threading.active_count()
    with open_store(path, embedder=embedder, timeout_s=0.05) as store:
        ids = [learn(store, f"mod{number}") for number in range(5)]
        assert all(store.query(f"{VAGUE} {number}") == [] for number in range(5))
        assert threading.active_count() <= before + 2
        assert [lesson.id for lesson in store.lessons()] == ids[::-1]
        hold.set()
        until = time.monotonic() + 30
        while store.stats().vectors == 0 and time.monotonic() < until:
            learn(store, "mod3")
            time.sleep(0.01)
        assert near(store) == {ids[3]}
        assert store.rebuild() == 4
        assert near(store) == set(ids)


def test_a_rebuild_asks_again_for_what_was_bad(path: Path) -> None:
    embedder = Broken(np.full(64, NAN))
    with open_store(path, embedder=embedder) as store:
        id = learn(store, "y")
        embedder.gives = np.ones(64)
        assert learn(store, "y") == id  # a bad vector is not asked for again
        assert store.rebuild() == 1
        assert near(store) == {id}


@pytest.mark.parametrize("lacks", ["fingerprint", "dimensions", "embed_batch"])
def test_store_bad_input_an_embedder_that_lacks_something_is_refused_before_a_file_is_made(
    path: Path, lacks: str
) -> None:
    members = {"fingerprint": "f", "dimensions": 8, "embed": lambda _, text: [1.0] * 8, "embed_batch": lambda *_: []}
    del members[lacks]
    with pytest.raises((TypeError, ValueError), match=lacks):
        open_store(path, embedder=type("Mine", (), members)())
    assert not path.exists()


@pytest.mark.parametrize("act", [*HANGS.values(), *RAISES.values()], ids=[*HANGS, *RAISES])
def test_store_bad_input_of_strangers_is_refused_or_taken_for_the_text_that_it_is(
    act: Callable[[], Any], path: Path
) -> None:
    with LessonStore(path, embedder=False) as store, asking(Asking(0.1)):
        for bad in (speaking(act), touchy(act), failing(act)):
            given: Any = bad
            for call in (
                lambda given=given: store.record(pattern="p", error_text=given, fix_text="f"),
                lambda given=given: store.record(pattern="p", error_text="e", fix_text="f", origin=given),
                lambda given=given: store.record(pattern="p", error_text="e", fix_text="f", ts=given),
                lambda given=given: store.query(given),
                lambda given=given: store.query("e", tool=given, k=given),
                lambda given=given: store.outcome(given, helped=True),
                lambda given=given: store.remove(given),
            ):
                with pytest.raises((TypeError, ValueError)):
                    call()
        error = lying_text("ModuleNotFoundError: No module named 'yaml'", act)
        id = store.record(
            pattern=lying_text("p", act), error_text=error, fix_text=lying_text("pip install pyyaml", act)
        )
        (found,) = store.query(error, tool=lying_text("Bash", act), k=lying_number(int, 3, act))
        assert (found.id, found.fix_text, found.pattern) == (id, "pip install pyyaml", "p")
        assert store.remove(lying_table(list, act, [lying_number(int, id, act)])) == 1
    hostile.let_go()
