"""Threads, processes and a store in each other's way: nothing is lost, nothing waits, nothing stays claimed."""

from __future__ import annotations

import gc
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from coherence.guard import Guard, views
from coherence.guard import runner as flushing
from coherence.guard.patch_events import Decision, GuardedCall, Notice
from coherence.guard.traces import Entry, encode_account, read_account
from coherence.guard.views import View
from coherence.store.store import Store
from guard.helpers import BOUNDS, Memory, Proposes, call, patched, request_approval, until
from guard.world import THRESHOLDS


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Another process keeps the store locked."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


def returns_meanwhile(call: Callable[[], object]) -> None:
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()


def test_traces_a_call_does_not_wait_for_who_has_written_and_keeps_the_store_locked(path: Path) -> None:
    with Store(path, timeout_s=60) as store, Guard(store=store) as guard, Guard(store=path) as other:
        guard.run(lambda: 1, agent="a")
        guard.flush()
        other.run(lambda: 2, agent="a")
        other.flush()
        view = guard._runner.view("a")
        with locked(path):
            view.looked_s = 0.0
            returns_meanwhile(lambda: guard.run(lambda: 3, agent="a"))
            assert view.account.seq == 3  # it has seen the other's
        guard.flush()
        assert [trace.seq for trace in guard.traces("a")] == [1, 2, 3]


@pytest.mark.slow
def test_errors_full_durability_waits_for_a_locked_store_no_longer_than_a_call_may(path: Path) -> None:
    with Store(path, timeout_s=60) as store, Guard(store=store, durability="full", wait_s=0.05) as guard:
        guard.run(lambda: 1, agent="a")
        with locked(path):
            returns_meanwhile(lambda: guard.run(lambda: 2, agent="a"))
            assert guard.errors == {"recording: StoreError": 1}
            assert store.fetch("SELECT count(*) FROM events") == [(1,)]
        guard.flush()
        assert store.fetch("SELECT count(*) FROM events") == [(2,)]


@pytest.mark.slow
def test_what_is_wrapped_keeps_its_guard(path: Path) -> None:
    def wrapped() -> Callable[[], int]:
        guard = Guard(store=path)
        return guard.wrap(agent="a")(lambda: 7)

    fn = wrapped()
    gc.collect()
    assert fn() == 7
    del fn  # and is let go with it
    gc.collect()
    with Guard(store=path) as guard:
        assert guard.status("a").calls == 1


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_a_guard_that_is_collected_in_its_own_thread_writes_everything(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gc.disable()
    try:
        guard = Guard(store=path)
        store, ring = guard.store, [guard]
        assert store is not None
        ring.append(ring)  # type: ignore[arg-type]  # only the collector finds it
        begun, go, write = threading.Event(), threading.Event(), views.write_together

        def collects(*given: Any) -> None:
            if threading.current_thread().name == "coherence-guard-writes":
                begun.set()
                go.wait(60)
                gc.collect()
            write(*given)

        monkeypatch.setattr(views, "write_together", collects)
        guard.run(lambda: 1, agent="a")
        begun.wait(60)
        guard.run(lambda: 2, agent="a")
        del guard, ring
        go.set()
        until(lambda: store.closed)
    finally:
        gc.enable()
    with Guard(store=path) as guard:
        assert guard.status("a").calls == 2


def test_rollback_the_restore_comes_before_anybody_is_told_of_it(path: Path) -> None:
    memory, levels = Memory(), list[tuple[str, int]]()

    def notify(notice: Notice) -> None:
        levels.append((notice.kind, memory.config["level"]))

    with patched(path, memory, notifier=notify, thresholds=THRESHOLDS, wait_s=60) as guard:
        call(guard, 2, fails=True)
        assert guard.rollback("a")
    assert levels == [("accepted", 2), ("serving", 2), ("ending", 1), ("restored", 1)]


def test_errors_a_store_whose_file_is_removed_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flushing, "LOOK_S", 0.01)
    with Guard(store=path) as guard:
        guard.run(lambda: 1, agent="a")
        guard.flush()
        time.sleep(0.3)  # some looks
        assert guard.errors == {}
        os.replace(path, path.with_name("moved.db"))
        until(lambda: "store: its file was removed or replaced: what is recorded is lost" in guard.errors)


@pytest.mark.slow
def test_an_adapter_is_asked_for_no_agent_that_its_guard_does_not_know(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several programs may keep their trails in one store."""
    monkeypatch.setattr(flushing, "LOOK_S", 0.01)
    memory = Memory()
    with Guard(store=path, strategy=Proposes({"level": 2}), bounds=BOUNDS, thresholds=THRESHOLDS) as asks:
        call(asks, 2, fails=True)
        until(lambda: asks.status("a").waiting)
        assert request_approval(asks.store, "a", "good")  # type: ignore[arg-type]
        with Guard(store=path, config_adapter=memory, bounds=BOUNDS) as guard:
            guard.run(lambda: 1, agent="b")
            time.sleep(0.5)  # some looks, each 0.1 s
            assert memory.applied == []
            guard.run(lambda: 1, agent="a")
            until(lambda: memory.applied == [{"level": 2}])


def test_guard_races_a_call_in_the_middle_of_a_decision_is_not_lost(path: Path) -> None:
    """A handler of a signal may run one there, on the same thread."""
    with Store(path) as store:
        view = View("a", store)
        view.observe(Entry(1.0, GuardedCall(True, 1.0)))

        def choose(*_: Any) -> Decision:
            with view.lock:
                view.observe(Entry(1.5, GuardedCall(False, 2.0)))
            return Decision("declined", why="no")

        assert view.decide(lambda: 2.0, choose) == Decision("declined", why="no")
        view.write()
        view.refresh()
        assert store.fetch("SELECT seq, kind FROM events") == [(1, "guard_call"), (2, "guard"), (3, "guard_call")]
        assert encode_account(view.account) == encode_account(read_account(store, "a"))
        assert view.account.rolling.failures == 1


def test_traces_calls_that_come_faster_than_they_are_written_are_not_lost(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coherence.guard.views.MAX_WAITING", 10)
    monkeypatch.setattr(flushing, "FLUSH_S", 60.0)
    with Guard(store=path) as guard:
        for _ in range(35):
            guard.run(lambda: 1, agent="a")
        assert guard.errors == {}
        assert len(guard.traces("a")) == 35
        monkeypatch.setattr(flushing, "FLUSH_S", 0.1)
        guard._runner._flusher._stopped.set()  # type: ignore[union-attr]
