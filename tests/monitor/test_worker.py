"""Worker of a monitor: threads, event loops, forks, a store in trouble, and the end of the process."""

from __future__ import annotations

import asyncio
import gc
import logging
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from coherence import Decision, Monitor, Store
from coherence.core.events import Fault, Message, Ticked
from coherence.core.redact import Redactor
from coherence.monitor import worker as module
from coherence.providers import HashingEmbedder
from coherence.store.errors import StoreError
from monitor.helpers import until

EVENTS_EACH, THREADS = 500, 8


def monitor(**options: Any) -> Monitor:
    return Monitor(**{"embedder": HashingEmbedder(32), **options})


@pytest.mark.slow
@pytest.mark.parametrize("kept", [False, True], ids=["in memory", "in a store"])
def test_worker_eight_threads_lose_nothing_and_keep_their_order(tmp_path: Path, kept: bool) -> None:
    m = monitor(store=tmp_path / "s.db" if kept else None, config={"tick": "manual"})
    together, done = threading.Barrier(THREADS + 2), threading.Event()
    raised: list[BaseException] = []
    decisions: list[Decision] = []

    def write(thread: int) -> None:
        together.wait()
        for number in range(EVENTS_EACH):
            m.message("system", f"{thread} {number}")

    def decide() -> None:
        together.wait()
        try:
            while not done.is_set():
                decisions.append(m.decide())
        except BaseException as error:  # what a thread raises would be lost
            raised.append(error)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(THREADS)]
    deciders = [threading.Thread(target=decide) for _ in range(2)]
    for thread in (*writers, *deciders):
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    for thread in deciders:
        thread.join()
    assert raised == []
    assert decisions
    records = m.events()[::-1]
    assert [record.seq for record in records] == list(range(1, len(records) + 1))
    said = [record.event.content.split() for record in records if type(record.event) is Message]
    for number in range(THREADS):
        assert [int(n) for thread, n in said if int(thread) == number] == list(range(EVENTS_EACH))
    m.close()
    if kept:
        with Store(tmp_path / "s.db") as store:
            assert store.verify() == []
            (session,) = store.sessions()
            rows = list(store.events(session.id))
            assert [row.seq for row in rows] == list(range(1, len(records) + 1))
            assert sum(row.kind == "message" for row in rows) == THREADS * EVENTS_EACH


def test_worker_many_tasks_record_while_the_loop_goes_on(tmp_path: Path) -> None:
    entered, go_on = threading.Event(), threading.Event()

    class Slow:
        name, inverted = "slow", True

        def compute(self) -> float:
            entered.set()
            go_on.wait(25)
            return 0.5

    async def run() -> tuple[int, Decision]:
        m = monitor(store=tmp_path / "s.db", metrics=[Slow()], config={"tick": "manual", "timeout_s": 30.0})

        async def act(task: int) -> None:
            for number in range(20):
                call = m.tool_call("Bash", {"command": f"{task} {number}"})
                await asyncio.sleep(0)
                m.tool_result(f"done {number}", call=call)

        await asyncio.gather(*(act(task) for task in range(10)))
        m.flush()
        deciding = asyncio.create_task(m.adecide())
        ticks = 0
        while not entered.is_set() or ticks < 100:  # while the measurement stands still, the loop does not
            ticks += 1
            await asyncio.sleep(0)
            if ticks <= 50:  # of 100 that wait, the caller of the next one would write them
                m.message("assistant", f"tick {ticks}")
        assert not deciding.done()
        go_on.set()
        decision = await deciding
        assert m.decide().seq > decision.seq  # works inside a running loop; the ticks are events
        assert m.counters.calls == 200
        m.close()
        return ticks, decision

    ticks, decision = asyncio.run(run())
    assert ticks >= 100
    assert decision.seq >= 401  # after 200 calls and 200 results


@pytest.mark.parametrize(
    ("policy", "reasons"),
    [
        # goal, call, result, message, user's message, usage; then decide() twice
        ("manual", ["......", "decide"]),
        ("step", ["...", "step", ".", "step", "..", "decide"]),
        ("event", [".", "event", ".", "event", ".", "event", ".", "event", ".", "event", ".", "event"]),
        (1e6, ["......", "decide"]),
    ],
)
def test_worker_ticks_come_where_the_policy_says(policy: object, reasons: list[str]) -> None:
    with monitor(goal="fix it", config={"tick": policy}) as m:
        m.tool_call("Bash")
        m.tool_result("ok")
        m.message("assistant", "done")
        m.message("user", "thanks")
        m.usage(tokens_in=5)
        m.decide()
        m.decide()
        marks = [record.event.reason if type(record.event) is Ticked else "." for record in m.events()[::-1]]
        expected = [mark for part in reasons for mark in (list(part) if part.startswith(".") else [part])]
        assert marks == expected


def test_worker_a_clock_ticks_when_something_has_happened_and_ends_with_the_monitor() -> None:
    before = set(threading.enumerate())
    m = monitor(config={"tick": 0.01})
    m.message("assistant", "hello")
    until(lambda: any(type(record.event) is Ticked for record in m.events()))
    clock = m._clock
    assert clock is not None
    ticks = clock.clock.ticks
    until(lambda: clock.clock.ticks > ticks + 2)  # it goes on, but nothing has happened
    assert [type(record.event) for record in m.events()[::-1]] == [Message, Ticked]
    m.close()
    assert not [thread for thread in set(threading.enumerate()) - before if thread.name == "coherence-clock"]


def test_worker_the_clock_of_a_dropped_monitor_ends() -> None:
    m = monitor(config={"tick": 0.01})
    assert m._clock is not None and m._clock._thread is not None
    thread = m._clock._thread
    del m
    gc.collect()
    thread.join(20)
    assert not thread.is_alive()


def test_worker_a_clock_survives_a_store_that_cannot_be_written(tmp_path: Path) -> None:
    store = Store(tmp_path / "s.db", timeout_s=0)
    m = monitor(config={"tick": 0.01}, store=store, durability="full", strict=True)
    with Store(tmp_path / "s.db") as other, other.transaction(), pytest.raises(StoreError):
        m.message("assistant", "hello")
    with Store(tmp_path / "s.db") as other, other.transaction():
        until(lambda: m.latest is not None)
    m.message("assistant", "again")
    until(lambda: len(m.history()) >= 2)
    m.close()
    assert [row.kind for row in store.events(1) if row.kind == "message"] == ["message"] * 2
    store.close()


def test_worker_while_the_store_is_locked_recording_goes_on_and_everything_is_written_afterwards(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RETRY_S", 0.05)
    store = Store(tmp_path / "s.db", timeout_s=0.2)  # two writers of this process may meet for a moment
    m = monitor(store=store, strict=True)
    with caplog.at_level(logging.WARNING, "coherence"), Store(tmp_path / "s.db") as other:
        with other.transaction():
            for number in range(250):  # more than may wait: the 100th would be written by the caller
                m.message("assistant", f"message {number}")
                m.decide()
            with pytest.raises(StoreError, match="locked"):
                m.flush()
            assert store.count_events() == 0
        until(lambda: store.count_events() >= 500)  # by itself
    m.flush()
    kept = list(store.events(1))
    assert sum(row.kind == "message" for row in kept) == 250
    assert sum(row.kind == "fault" for row in kept) == 1
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "events wait in memory" in caplog.text
    m.close()
    assert store.verify() == []
    store.close()


@pytest.mark.slow
def test_worker_who_records_does_not_wait_for_a_write_that_is_under_way(tmp_path: Path) -> None:
    m = monitor(store=tmp_path / "s.db", config={"tick": "manual"})
    assert m._worker.recorder is not None
    writing, go_on = threading.Event(), threading.Event()
    lock = m._worker.recorder.writing

    def write_for_long() -> None:
        with lock:
            writing.set()
            go_on.wait(60)

    def record() -> None:
        for number in range(500):
            m.message("assistant", f"message {number}")

    writer = threading.Thread(target=write_for_long)
    host = threading.Thread(target=record)
    writer.start()
    assert writing.wait(20)
    host.start()
    host.join(20)
    assert not host.is_alive()
    go_on.set()
    writer.join()
    m.close()
    with Store(tmp_path / "s.db") as store:
        assert store.count_events() == 500


@pytest.mark.slow
def test_worker_of_a_burst_of_events_none_is_lost(tmp_path: Path) -> None:
    with monitor(store=tmp_path / "s.db", config={"tick": "manual"}) as m:
        for number in range(12_000):  # more than may wait while a store cannot be written
            m.tool_result(f"result {number}")
        assert m._worker.recorder is not None
        assert m._worker.recorder.lost == 0
    with Store(tmp_path / "s.db") as store:
        assert store.count_events() == 12_000


def test_worker_a_flush_does_not_raise_by_default(tmp_path: Path) -> None:
    store = Store(tmp_path / "s.db", timeout_s=0)
    m = monitor(store=store, durability="full")
    with Store(tmp_path / "s.db") as other, other.transaction():
        m.message("assistant", "hello")
        m.flush()
        assert m.decide().kind == "continue"
        assert m.check("Bash").kind == "continue"
    m.flush()
    assert [row.kind for row in store.events(1)].count("message") == 1
    assert [row.kind for row in store.events(1)].count("fault") == 1
    m.close()
    store.close()


@pytest.mark.parametrize("ends", ["quiet", "behind"])
def test_worker_with_full_durability_a_burst_is_measured_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    monkeypatch.setattr(module, "QUIET_S", 60.0)
    monkeypatch.setattr(module, "BEHIND_S", 60.0)
    with monitor(store=tmp_path / "s.db", durability="full", goal="x") as m:
        for number in range(20):
            m.tool_result(f"result {number}")
            m._worker.work()  # no call of the host waits for what this does
        assert not any(isinstance(record.event, Ticked) for record in m._worker.events)
        monkeypatch.setattr(module, "QUIET_S" if ends == "quiet" else "BEHIND_S", 0.0)
        m._worker.work()
        assert sum(isinstance(record.event, Ticked) for record in m._worker.events) == 1


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from coherence import Monitor, Store
from coherence.providers import HashingEmbedder
path = sys.argv[1]
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
m = Monitor(store=path, embedder=HashingEmbedder(32), strict=True)
m.message("assistant", "before")
m.flush()
size = max(file.stat().st_size for file in Path(path).parent.iterdir())
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
for number in range(300):
    m.message("assistant", f"{number} " + "x" * 2000)
    m.decide()
try:
    m.flush()
except Exception as error:
    print(type(error).__name__)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
m.flush()
m.close()
with Store(path) as store:
    kinds = [row.kind for row in store.events(1)]
    print(store.verify(), kinds.count("message"), kinds.count("fault"))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs RLIMIT_FSIZE")
def test_worker_on_a_full_disk_recording_goes_on_and_everything_is_written_afterwards(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FULL_DISK, str(tmp_path / "s.db")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.splitlines() == ["StoreError", "[] 301 1"]
    assert done.stderr.count("events wait in memory") == 1


def test_recording_inside_a_transaction_of_the_shared_store_does_not_raise(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        m = monitor(store=store, config={"tick": "manual"})
        with store.transaction():
            for number in range(150):  # the 100th is to be written by the caller, who cannot now
                m.message("assistant", f"message {number}")
        m.close()
        assert [row.kind for row in store.events(1)].count("message") == 150


def test_worker_a_rule_of_redaction_that_fails_lets_no_text_through(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> Any:
        raise RuntimeError("a rule broke")

    monkeypatch.setattr(Redactor, "prepare", fail)
    m = monitor(config={"tick": "manual"})
    m.message("assistant", "password=hunter2!x")
    assert [record.event for record in m.events()] == [Fault("prepare", "RuntimeError", "a rule broke")]


def test_worker_a_monitor_that_lives_on_removes_what_is_too_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.db"
    with monitor(store=path) as m:
        m.message("assistant", "of the past")
    with sqlite3.connect(path) as connection:  # as if it had been ten days ago
        connection.execute("DROP TRIGGER events_update")
        connection.execute("UPDATE events SET ts = ts - 864000")
    connection.close()
    monkeypatch.setattr(module, "RETAIN_S", 0.0)
    with monitor(store=path, config={"retention": {"max_age_days": 9}}) as m:
        m.message("assistant", "of today")
        m.flush()
        store = m.store
        assert store is not None
        until(lambda: store.fetch("SELECT count(*) FROM events WHERE data LIKE '%of the past%'") == [(0,)])
        assert store.fetch("SELECT count(*) FROM events WHERE data LIKE '%of today%'") == [(1,)]
