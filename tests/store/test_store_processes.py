"""Many processes, forks and SIGKILL: nothing acknowledged is lost, nothing is torn."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pytest

from coherence.store.errors import StoreError
from coherence.store.rows import SessionRow
from coherence.store.store import Store
from store.rows import append, begin, event, fork, run_at_once

InChild: TypeAlias = Callable[[Callable[[], object]], str]

posix = pytest.mark.skipif(sys.platform == "win32", reason="needs fork or SIGKILL")


def make(path: Path, *names: str) -> list[SessionRow]:
    with Store(path, synchronous="NORMAL") as store:
        return [begin(store, name) for name in names]


def append_singly(path: Path, name: str, count: int) -> None:
    with Store(path, timeout_s=60, synchronous="NORMAL") as store:
        session = store.session("a", name)
        assert session is not None
        for number in range(count):
            append(store, session, data=f'"{os.getpid()} {number}"')


@posix
@pytest.mark.parametrize(
    "names",
    [
        pytest.param(["s0", "s1", "s2", "s3"], id="own sessions", marks=pytest.mark.slow),
        pytest.param(["s"] * 4, id="one session"),
    ],
)
def test_transaction_four_processes_write_250_events_each(tmp_path: Path, names: list[str]) -> None:
    path = tmp_path / "store.db"
    sessions = make(path, *dict.fromkeys(names))
    run_at_once(*(partial(append_singly, path, name, 250) for name in names))
    with Store(path) as store:
        assert store.verify() == []
        each = 1000 // len(sessions)
        for session in sessions:
            assert [row.seq for row in store.events(session.id)] == list(range(1, each + 1))
        texts = {row.data for session in sessions for row in store.events(session.id) if row.kind == "tool_call"}
        assert len(texts) == sum(each - each // 3 for _ in sessions)  # each third one is a tick


APPENDER = """
import sys
from coherence.store.rows import DecisionRow, EventRow, ReadingRow
from coherence.store.store import Store
with Store(sys.argv[1], timeout_s=30) as store:
    session = store.sessions()[0]
    out = sys.stdout
    while True:
        with store.transaction() as transaction:
            first = transaction.last_seq(session.id) + 1
            rows = [
                EventRow(seq, 1.0, "tick", '"%s"' % ("x" * 700), ReadingRow(1.0, "green", 0.0, "calm", '"%d"' % seq),
                         DecisionRow("continue", '"%d"' % seq))
                for seq in range(first, first + 7)
            ]
            transaction.add_events(session, rows)
            transaction.add_snapshot(session.id, first + 6, b"%d" % (first + 6))
        out.write("%d\\n" % (first + 6))
        out.flush()
"""


def kill_again_and_again(path: Path, kills: int) -> None:
    """Kill an appending process ``kills`` times, each time on the file that the one before left."""
    (session,) = make(path, "s")
    dice = random.Random(7)
    acknowledged = 0
    for _ in range(kills):
        process = subprocess.Popen([sys.executable, "-c", APPENDER, path], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        first = process.stdout.readline()
        time.sleep(dice.uniform(0, 0.05))
        process.send_signal(signal.SIGKILL)
        said = (first + process.stdout.read()).splitlines(keepends=True)
        process.stdout.close()
        assert process.wait() == -signal.SIGKILL
        acknowledged = max([acknowledged, *(int(line) for line in said if line.endswith("\n"))])
        with Store(path) as store:
            assert store.recovered_from is None
            assert store.verify() == []
            rows = list(store.events(session.id))
            assert len(rows) >= acknowledged
            assert len(rows) % 7 == 0  # whole transactions only
            assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
            assert all(row.reading and row.decision and row.reading.data == f'"{row.seq}"' for row in rows)
            snapshot = store.snapshot(session.id)
            assert snapshot == (len(rows), b"%d" % len(rows))
            acknowledged = len(rows)
    assert acknowledged > 0


@posix
@pytest.mark.slow
def test_verify_a_hundred_kills_lose_nothing_acknowledged(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path / "store.db", 100)


def append_each(store: Store, session: SessionRow, count: int) -> int:
    return max(append(store, session) for _ in range(count))


@posix
def test_fork_parent_and_child_both_write_after_a_fork(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    (session,) = make(path, "s")
    with Store(path, timeout_s=30, synchronous="NORMAL") as store:
        assert append_each(store, session, 3) == 3
        rows = store.events(session.id)
        next(rows)
        child = fork()
        if child == 0:
            try:
                append_each(store, session, 200)
                store.close()
            except BaseException as error:
                os.write(2, repr(error).encode())
                os._exit(1)
            os._exit(0)
        append_each(store, session, 200)
        _, status = os.waitpid(child, 0)
        assert status == 0
        assert [row.seq for row in rows] == [2, 3]
        assert store.last_seq(session.id) == 403
        assert store.verify() == []


@posix
def test_fork_a_child_holds_locks_of_its_own(tmp_path: Path) -> None:
    """The parent closes while the child goes on; a third process must not take the log for an orphan."""
    path = tmp_path / "store.db"
    (session,) = make(path, "s")
    store = Store(path, synchronous="NORMAL")
    append_each(store, session, 3)
    go_receiver, go_sender = os.pipe()
    ready_receiver, ready_sender = os.pipe()
    child = fork()
    if child == 0:
        try:
            append_each(store, session, 3)
            os.write(ready_sender, b"x")
            os.read(go_receiver, 1)
            append_each(store, session, 3)
            os.write(ready_sender, b"x")
            os.read(go_receiver, 1)  # killed here, with what it wrote in the log only
        finally:
            os._exit(0)
    os.close(ready_sender)  # a child that fails ends the waiting below
    os.close(go_receiver)
    assert os.read(ready_receiver, 1) == b"x"
    store.close()
    run_at_once(lambda: append_singly(path, "s", 5))
    assert Path(f"{path}-wal").exists()  # the child still uses it
    os.write(go_sender, b"x")
    assert os.read(ready_receiver, 1) == b"x"
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    for descriptor in (go_sender, ready_receiver):
        os.close(descriptor)
    with Store(path) as store:
        assert store.verify() == []
        assert store.last_seq(session.id) == 3 + 3 + 5 + 3


@posix
def test_a_fork_inside_a_transaction_leaves_the_file_to_the_parent(tmp_path: Path, in_child: InChild) -> None:
    path = tmp_path / "store.db"
    (session,) = make(path, "s")
    with Store(path, synchronous="NORMAL") as store:
        append_each(store, session, 1)
        with store.transaction() as transaction:
            transaction.add_events(session, [event(2)])
            row = event(3)
            said = in_child(lambda: transaction.add_events(session, [row]))
            assert "belongs to the parent process" in said
            for action in (
                lambda: append_each(store, session, 1),
                lambda: store.last_seq(session.id),
                lambda: Store(path),
            ):
                assert "forked while its parent was writing" in in_child(action)
            assert in_child(store.close) == "None"
            transaction.add_events(session, [row])
        assert append_each(store, session, 1) == 4
        assert store.verify() == []


@posix
def test_leaving_a_transaction_in_a_child_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    (session,) = make(path, "s")
    with Store(path, synchronous="NORMAL") as store:
        child = -1
        try:
            with store.transaction() as transaction:
                transaction.add_events(session, [event(1)])
                child = fork()
        except StoreError:
            if child == 0:
                os._exit(7)
            raise
        if child == 0:
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 7
        assert append_each(store, session, 1) == 2
        assert store.verify() == []


@posix
@pytest.mark.slow
def test_fork_waits_for_other_threads_to_finish(tmp_path: Path, in_child: InChild) -> None:
    path = tmp_path / "store.db"
    (session,) = make(path, "s")
    with Store(path, timeout_s=30, synchronous="NORMAL") as store:
        stop = threading.Event()

        def work() -> None:
            while not stop.is_set():
                append_each(store, session, 1)

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        said = []
        try:
            for _ in range(5):
                time.sleep(0.01)
                said.append(in_child(lambda: append_each(store, session, 5) > 0))
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert said == ["True"] * 5
        assert store.verify() == []


@posix
def test_fork_a_store_closed_before_a_fork_stays_closed(tmp_path: Path, in_child: InChild) -> None:
    store = Store(tmp_path / "store.db")
    store.close()
    assert "this Store is closed" in in_child(lambda: store.last_seq(1))


@posix
def test_fork_no_connection_is_open_while_forking(tmp_path: Path, in_child: InChild) -> None:
    path = tmp_path / "store.db"
    (session,) = make(path, "s")
    with Store(path, synchronous="NORMAL") as store:
        append_each(store, session, 2)

        def descriptors() -> list[str]:
            found = []
            for name in os.listdir("/proc/self/fd"):
                try:
                    found.append(os.readlink(f"/proc/self/fd/{name}"))
                except OSError:
                    continue
            return [name for name in found if str(path) in name]

        if not os.path.isdir("/proc/self/fd"):
            pytest.skip("needs /proc")
        assert descriptors()
        assert in_child(descriptors) == "[]"
