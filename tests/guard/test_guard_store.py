"""The store of a guard: one that leaves nothing, ones that cannot be used, and ones that break while calls go on."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from coherence.guard import Guard
from coherence.guard.guard import TemporaryStore
from coherence.guard.patch_events import Decision, GuardedCall
from coherence.guard.traces import Entry
from coherence.guard.views import View
from coherence.store.errors import StoreError
from coherence.store.store import Store


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder in which temporary files are made."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_a_guard_in_memory_is_a_whole_one_and_leaves_nothing(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(temporary)
    with Guard(store=":memory:") as guard, Guard(store=":memory:") as other:
        guard.run(lambda: 1, agent="a")
        assert (guard.status("a").calls, other.status("a").calls) == (1, 0)
        assert len(guard.traces("a")) == 1
    assert list(temporary.iterdir()) == []
    dropped = Guard(store=":memory:")
    dropped.run(lambda: 1, agent="a")
    del dropped
    assert list(temporary.iterdir()) == []


def test_a_child_leaves_the_temporary_store_of_its_parent(temporary: Path, in_child: Callable[[Any], str]) -> None:
    with TemporaryStore() as store:
        assert in_child(store.close) == "None"
        assert store.path.exists()
        assert store.fetch("SELECT count(*) FROM guard_accounts") == [(0,)]
    assert list(temporary.iterdir()) == []


def broken(kind: str, path: Path) -> None:
    if kind == "a folder":
        path.mkdir()
    elif kind == "text":
        path.write_text("hello")
    else:
        Store(path).close()
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA user_version = 99" if kind == "newer" else "PRAGMA application_id = 7")
        connection.close()


@pytest.mark.parametrize("kind", ["a folder", "text", "newer", "of another program"])
def test_guard_what_is_no_store_is_refused_at_once_and_left_alone(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "guard.db"
    broken(kind, path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(StoreError, match=r"guard\.db"):
        Guard(store=path)
    assert (path.read_bytes() if path.is_file() else None) == before
    assert os.listdir(tmp_path) == ["guard.db"]


def garbage(path: Path) -> None:
    for file in path.parent.glob("guard.db*"):
        file.write_bytes(b"garbage" * 3000)


def without_table(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE guard_accounts")
    connection.close()


@pytest.mark.parametrize("durability", ["batched", "full"])
@pytest.mark.parametrize("harm", [garbage, without_table, lambda path: shutil.rmtree(path.parent)])
def test_guard_a_store_that_breaks_costs_no_call(tmp_path: Path, durability: Any, harm: Callable[[Path], None]) -> None:
    path = tmp_path / "made" / "guard.db"
    guard = Guard(store=path, durability=durability)
    guard.run(lambda: 1, agent="a")
    guard.flush()
    harm(path)
    for agent in ("a", "new") * 5:
        assert guard.run(lambda: 7, agent=agent).result == 7
        with pytest.raises(ZeroDivisionError):
            guard.run(lambda: 1 / 0, agent=agent)
    with suppress(StoreError):  # what waits cannot be written
        guard.close()


def test_fetch_calls_go_on_while_a_decision_waits_for_the_store(tmp_path: Path) -> None:
    with Store(tmp_path / "guard.db", timeout_s=60) as store:
        view = View("a", store)
        decided: list[Decision | None] = []
        decision = Decision("declined", why="nothing")
        writer = threading.Thread(target=lambda: decided.append(view.decide(lambda: 2.0, lambda *_: decision)))
        other = sqlite3.connect(store.path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        writer.start()
        while store._owner != writer.ident:  # it is about to wait for the other one
            pass
        assert view.lock.acquire(timeout=30)
        view.observe(Entry(1.0, GuardedCall(True, duration_s=1.0, epoch=0)))
        view.lock.release()
        assert decided == []
        other.execute("ROLLBACK")
        other.close()
        writer.join()
        assert decided == [decision]
        assert store.fetch("SELECT seq, kind FROM events") == [(1, "guard_call"), (2, "guard")]
