"""Many agents in one process: few accounts are held, and none of them loses or doubles an entry by that."""

from __future__ import annotations

import random
import sqlite3
import threading
from pathlib import Path

import pytest

from coherence.guard import Guard, views
from coherence.guard.error_counts import ErrorCounts
from coherence.guard.patch_events import GuardedCall
from coherence.guard.traces import Entry, encode_account, read_account
from coherence.guard.views import Views, write_together
from coherence.store.errors import StoreError
from coherence.store.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "guard.db")


def entry(at: float = 1.0) -> Entry:
    return Entry(at, GuardedCall(True, 0.5))


def record(held: Views, agent: str) -> None:
    view = held.of(agent)
    with view.lock:
        view.observe(entry())
        held.mark(view)


def test_views_few_are_held_and_all_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "MAX_HELD", 3)
    with Guard(store=tmp_path / "guard.db") as guard:
        assert guard._runner._views is not None
        for _ in range(4):
            for number in range(20):
                guard.run(lambda: 1, agent=f"user-{number}")
            guard.flush()
        for _ in range(3):  # each that is added lets the oldest of 8 go
            for number in range(20):
                assert guard.status(f"user-{number}").calls == 4
        assert len(guard._runner._views.values()) == 3


def test_views_a_view_that_was_let_go_while_it_is_used_loses_and_doubles_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "MAX_HELD", 1)
    held = Views(store, ErrorCounts())
    old = held.of("a")
    held.of("b")
    assert [view.agent for view in held.values()] == ["b"]
    new = held.of("a")
    assert new is not old
    for view in (old, new, old):
        with view.lock:
            view.observe(entry())
            held.mark(view)
    assert read_account(store, "a").seq == 0
    held.write()
    assert read_account(store, "a").rolling.calls == 3
    assert store.fetch("SELECT count(*), max(seq) FROM events") == [(3, 3)]
    held.write()
    assert read_account(store, "a").rolling.calls == 3


@pytest.mark.parametrize("durability", ["batched", "full"])
def test_mark_threads_with_more_agents_than_are_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durability: str
) -> None:
    monkeypatch.setattr(views, "MAX_HELD", 2)
    monkeypatch.setattr("coherence.guard.runner.FLUSH_S", 0.001)
    agents, threads, calls = 6, 4, 150
    with Guard(store=tmp_path / "guard.db", durability=durability) as guard:  # type: ignore[arg-type]

        def work(seed: int) -> None:
            drawn = random.Random(seed)
            for _ in range(calls):
                guard.run(lambda: 1, agent=f"user-{drawn.randrange(agents)}")

        workers = [threading.Thread(target=work, args=(seed,)) for seed in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        guard.flush()
        assert guard.errors == {}
        assert sum(guard.status(f"user-{number}").calls for number in range(agents)) == threads * calls
        assert guard.store is not None
        for number in range(agents):
            account = read_account(guard.store, f"user-{number}")
            assert encode_account(account) == encode_account(guard._runner.view(f"user-{number}").account)
        rows = guard.store.fetch("SELECT count(*), max(seq) FROM events GROUP BY session_id")
        assert all(count == newest for count, newest in rows)  # without gaps


def test_views_while_the_store_cannot_be_written_a_bounded_number_waits(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "MAX_HELD", 5)
    monkeypatch.setattr(views, "MAX_BUSY", 20)
    troubles = ErrorCounts()
    held = Views(store, troubles)
    with sqlite3.connect(store.path) as other:
        other.execute("CREATE TRIGGER full BEFORE INSERT ON events BEGIN SELECT raise(FAIL, 'disk full'); END")
    for number in range(30):
        record(held, f"user-{number}")
        with pytest.raises(StoreError):
            held.write()
    (said,) = troubles.counts
    assert "calls are lost" in said
    assert troubles.counts[said] == 10
    with sqlite3.connect(store.path) as other:
        other.execute("DROP TRIGGER full")
    held.write()
    assert store.fetch("SELECT count(*) FROM events") == [(20,)]
    assert len(held.values()) == 5


def test_write_together_what_others_have_written_meanwhile_is_taken_in(store: Store) -> None:
    one, other = Views(store, ErrorCounts()), Views(store, ErrorCounts())
    record(one, "a")
    record(one, "b")
    record(other, "b")
    write_together(store, [other.of("b")])
    write_together(store, [one.of("a"), one.of("b")])
    assert [one.of(agent).account.rolling.calls for agent in ("a", "b")] == [1, 2]
    assert [read_account(store, agent).rolling.calls for agent in ("a", "b")] == [1, 2]


def test_write_after_the_file_is_gone_goes_on_from_the_account_in_a_new_one(tmp_path: Path) -> None:
    with Store(tmp_path / "guard.db") as store:
        held = Views(store, ErrorCounts())
        for _ in range(3):
            record(held, "a")
        held.write()
        store.path.unlink()
        record(held, "a")
        held.write()
        assert store.generation == 1
        found = read_account(store, "a")
        assert encode_account(found) == encode_account(held.of("a").account)
        assert found.seq == 4  # three calls of the file that is gone, and one
        assert store.count_events() == 1
        assert store.verify() == []
