"""The cap: those leave that were not used for longest, and every index follows."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from property_sizes import examples

from coherence.lessons import search
from lessons.stores import check_file, found, learn, missing, near, open_store

NAMES = [f"mod{number}" for number in range(12)]


@pytest.mark.parametrize(("cap", "left"), [(1, 1), (2, 2), (99, 99), (250, 249)])
def test_lessons_the_oldest_leave_in_batches_of_a_hundredth(tmp_path: Path, cap: int, left: int) -> None:
    with open_store(tmp_path / "lessons.db", cap=cap, embedder=False) as store:
        ids = [learn(store, f"mod{number}") for number in range(cap)]
        assert store.stats().lessons == cap
        ids.append(learn(store, "one more"))
        assert [lesson.id for lesson in store.lessons()] == ids[::-1][:left]  # 250: two leave at once


def test_store_cap_a_lesson_that_leaves_and_comes_back_in_one_batch_keeps_its_vector(tmp_path: Path) -> None:
    from coherence.lessons.intake import make_new

    news = [
        make_new(pattern="p", error_text=missing(name), fix_text="do", tool="", origin=None, ts=1.0)
        for name in ("a", "b", "a")
    ]
    with open_store(tmp_path / "lessons.db", cap=1) as store:
        store.add(news[:1])
        first, second = store.add(news[1:])
        assert first < second
        assert near(store) == {second}


def test_follow_an_index_most_of_whose_lessons_were_removed_is_made_anew(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "MAX_REMOVED", 5)
    with open_store(path, cap=4) as store:
        ids = [learn(store, f"mod{number}") for number in range(24)]
        assert near(store) == set(ids[-4:])
        more = [learn(store, f"more{number}") for number in range(20)]
        assert near(store) == set(more[-4:])
        searching = store._searching
        assert searching is not None and searching.index is not None
        assert len(searching.index) <= 4 + 5


class Cap(RuleBasedStateMachine):
    """A store beside a list: the least recently used lesson first."""

    @initialize(cap=st.integers(1, 6))
    def begin(self, cap: int) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.cap = cap
        self.open()
        self.other = open_store(self.folder / "lessons.db", cap=cap)
        self.order: list[str] = []
        self.ids: dict[str, int] = {}
        self.counts: dict[str, int] = {}

    def open(self) -> None:
        self.store = open_store(self.folder / "lessons.db", cap=self.cap)

    def use(self, name: str) -> None:
        self.order.remove(name)
        self.order.append(name)

    @rule(name=st.sampled_from(NAMES))
    def record(self, name: str) -> None:
        id = learn(self.store, name)
        if name in self.order:
            assert id == self.ids[name]
            self.use(name)
            self.counts[name] += 1
            return
        if len(self.order) == self.cap:
            self.order.pop(0)
        self.order.append(name)
        self.ids[name], self.counts[name] = id, 1

    @rule(name=st.sampled_from(NAMES))
    def query(self, name: str) -> None:
        answer = found(self.store, missing(name), tool="Bash", k=1)
        assert answer == [self.ids[name]] if name in self.order else True

    @precondition(lambda self: self.order)
    @rule(data=st.data(), helped=st.booleans())
    def outcome(self, data: st.DataObject, helped: bool) -> None:
        name = data.draw(st.sampled_from(self.order))
        kept = self.store.get(self.ids[name])
        assert kept is not None
        if helped or kept.failed < 1:  # never so often that the lesson sinks
            self.store.outcome(self.ids[name], helped=helped)
            if helped:
                self.use(name)

    @precondition(lambda self: self.order)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(self.order))
        assert self.store.remove([self.ids[name]]) == 1
        self.order.remove(name)

    @rule(keep=st.integers(0, 6))
    def prune(self, keep: int) -> None:
        surplus = max(len(self.order) - keep, 0)
        assert self.store.prune(keep=keep) == surplus
        del self.order[:surplus]

    @rule()
    def open_again(self) -> None:
        self.store.close()
        self.open()

    @invariant()
    def the_indexes_hold_what_the_table_holds(self) -> None:
        if hasattr(self, "store"):
            ids = {self.ids[name] for name in self.order}
            assert near(self.store) == near(self.other) == ids
            assert {lesson.id: lesson.count for lesson in self.other.lessons()} == {
                self.ids[name]: self.counts[name] for name in self.order
            }

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            self.other.close()
            with open_store(self.folder / "lessons.db") as store:
                assert [lesson.id for lesson in store.lessons()] == [self.ids[name] for name in reversed(self.order)]
            check_file(self.folder / "lessons.db")
            shutil.rmtree(self.folder)


TestCap = Cap.TestCase
TestCap.settings = examples(12, stateful_step_count=20, deadline=None)
