"""Recorded events reach the file: after a kill, beside other processes, while the store is in trouble."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from coherence import Monitor, Store
from coherence.core.events import Fault, Goal, Message, ToolResult, decode_event
from coherence.monitor import recorder as module
from coherence.monitor.codec import encode_record
from coherence.monitor.folding import SNAPSHOT_EVERY
from coherence.monitor.monitor import Durability
from coherence.monitor.recorder import Recorder, StoreBook
from coherence.monitor.replay import Replay
from coherence.monitor.snapshots import pack
from coherence.monitor.tick_result import Record
from coherence.providers import HashingEmbedder
from coherence.store.errors import StoreError
from coherence.store.rows import SessionRow

posix = pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")

WRITER = """
import itertools, sys
from coherence import Monitor
from coherence.providers import HashingEmbedder
path, durability, agent, count, flush_every = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
name = sys.argv[6]
m = Monitor(agent=agent, resume=True, store=path, durability=durability, embedder=HashingEmbedder(32))
for number in range(count) if count else itertools.count():
    if number % 3 == 2:
        m.tool_result(f"{name} {number}", error=number % 4 == 0)
    else:
        m.tool_call("Bash", {"command": f"{name} {number}"})
    if flush_every and number % flush_every == flush_every - 1:
        m.flush()
    if not count:
        print(number, flush=True)
m.close()
"""


def writer(
    path: Path, durability: str, *, agent: str, count: int, flush_every: int, name: str
) -> subprocess.Popen[str]:
    arguments = [str(path), durability, agent, str(count), str(flush_every), name]
    return subprocess.Popen([sys.executable, "-c", WRITER, *arguments], stdout=subprocess.PIPE, text=True)


def check_whole(store: Store) -> None:
    """Check that nothing is torn: numbers without gaps, and readings and decisions exactly where there are ticks."""
    assert store.recovered_from is None
    assert store.verify() == []
    for session in store.sessions():
        rows = list(store.events(session.id))
        assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
        assert all((row.decision is not None) == (row.kind == "tick") for row in rows)


def told(store: Store) -> list[str]:
    """Give what was said in all events that are no ticks."""
    return [row.data for session in store.sessions() for row in store.events(session.id) if row.kind != "tick"]


def kill_again_and_again(path: Path, kills: int, durability: str, flush_every: int) -> None:
    """Kill a writing process ``kills`` times, each time on the file that the one before left."""
    dice = random.Random(7)
    for kill in range(kills):
        process = writer(path, durability, agent="a", count=0, flush_every=flush_every, name=f"w{kill}")
        assert process.stdout is not None
        first = process.stdout.readline()
        time.sleep(dice.uniform(0, 0.15))
        process.send_signal(signal.SIGKILL)
        said = [int(line) for line in (first + process.stdout.read()).splitlines(keepends=True) if line.endswith("\n")]
        process.stdout.close()
        assert process.wait() == -signal.SIGKILL
        # A number is said after its event was recorded, and after the flush that may follow it.
        safe = (said[-1] + 1) // flush_every * flush_every if flush_every else said[-1] + 1
        with Store(path) as store:
            check_whole(store)
            kept = told(store)
        for number in range(safe):
            assert any(f'"w{kill} {number}"' in text for text in kept)


@posix
@pytest.mark.parametrize(
    "kills", [pytest.param(20, marks=pytest.mark.slow), pytest.param(180, marks=pytest.mark.torture)]
)
def test_recorder_two_hundred_kills_lose_nothing_that_was_acknowledged_with_full_durability(
    tmp_path: Path, kills: int
) -> None:
    kill_again_and_again(tmp_path / "s.db", kills, "full", 0)


@posix
@pytest.mark.slow
def test_recorder_a_kill_loses_nothing_that_was_flushed(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path / "s.db", 2, "batched", 7)


def test_recorder_with_full_durability_each_method_returns_after_its_event_is_in_the_file(tmp_path: Path) -> None:
    m = Monitor(store=tmp_path / "s.db", durability="full", embedder=HashingEmbedder(32), config={"tick": "manual"})
    with Store(tmp_path / "s.db") as store:
        for number in range(1, 4):
            m.tool_call("Bash")
            assert store.count_events() == number
        m.decide()
        assert store.count_events() == 4
        m.check("Bash")
        assert store.count_events() == 5
    m.close()


@pytest.mark.slow
def test_recorder_what_is_older_than_a_second_has_reached_the_file_without_a_flush(tmp_path: Path) -> None:
    with Monitor(store=tmp_path / "s.db", embedder=HashingEmbedder(32)) as m, Store(tmp_path / "s.db") as store:
        m.tool_call("Bash", {"command": "ls"})
        recorded = time.monotonic()
        while store.count_events() < 1:
            assert time.monotonic() < recorded + 10  # a busy machine; on a free one it takes half a second
            time.sleep(0.01)


def write_at_once(path: Path, processes: int, count: int, *, same: bool) -> None:
    writers = [
        writer(path, "batched", agent="a" if same else f"a{number}", count=count, flush_every=0, name=f"w{number}")
        for number in range(processes)
    ]
    for process in writers:
        process.communicate(timeout=180)
    assert [process.returncode for process in writers] == [0] * processes
    with Store(path) as store:
        check_whole(store)
        assert [row.session for row in store.sessions()] == ["1"] * (1 if same else processes)
        # beside what was told, steps that were not measured: more comes at once than can be
        kept = [data for data in told(store) if '"where":"measurement"' not in data]
        assert len(kept) == len(set(kept)) == processes * count
        for row in store.sessions():
            assert Replay(store, row).report().differences == []
    with Monitor(agent="a" if same else "a0", resume=True, store=path, embedder=HashingEmbedder(32)) as m:
        assert m.session == "1"
        results = len([number for number in range(count) if number % 3 == 2]) * (processes if same else 1)
        assert m.counters.calls == results
        before = m.decide().seq
        m.message("assistant", "going on")
        assert m.decide().seq == before + 2  # the message, and the tick of its step


def test_recorder_who_goes_on_without_a_close_folds_few_events_and_stands_where_the_other_stood(tmp_path: Path) -> None:
    path, config = tmp_path / "s.db", {"tick": "manual"}
    with Monitor(store=path, embedder=HashingEmbedder(32), config=config) as m:
        for number in range(130):
            m.tool_call("Bash", {"command": f"make {number}"})
            m.tool_result(f"part {number} is built", error=number % 7 == 0)
        m.decide()
        m.flush()
        with Store(path) as store:
            kept = store.snapshot(1)
            assert kept is not None
            assert kept[0] == 261 - 261 % SNAPSHOT_EVERY
        with m._worker.settled() as pipeline:
            stood = pack(pipeline.snapshot())
        other = Monitor(resume=True, store=path, embedder=HashingEmbedder(32), config=config)
        with other, other._worker.settled() as pipeline:
            assert pack(pipeline.snapshot()) == stood


@pytest.mark.slow
@pytest.mark.parametrize("same", [True, False], ids=["one session", "own agents"])
def test_recorder_four_processes_write_2000_events_each(tmp_path: Path, same: bool) -> None:
    write_at_once(tmp_path / "s.db", 4, 2_000, same=same)


def begin(store: Store) -> SessionRow:
    with store.transaction() as transaction:
        return transaction.add_session(session="1", agent="a", parent=None, source="api", started=1, config="{}")


def record(seq: int) -> Record:
    return Record(seq, 1.0, Goal(f"goal {seq}"))


def test_rejoin_records_move_up_behind_what_another_process_wrote(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        session = begin(store)
        ours, theirs = (Recorder(store, session, StoreBook(store), 0) for _ in range(2))
        ours.add(record(1))
        theirs.add(record(1))
        theirs.add(record(2))
        theirs.save()
        ours.save()
        assert ours.moved == 2
        assert ours.saved == 3
        ours.add(record(2))  # still counted without the others'
        assert [kept.seq for kept in ours.rejoin(3)] == [4]
        ours.save()
        assert [row.data.split('"')[-2] for row in store.events(session.id)] == ["goal 1", "goal 2", "goal 1", "goal 2"]
        assert [row.seq for row in store.events(session.id)] == [1, 2, 3, 4]


def test_recorder_what_waits_too_long_is_lost_oldest_first_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_STUCK", 3)
    with Store(tmp_path / "s.db") as store:
        session = begin(store)
        recorder = Recorder(store, session, StoreBook(store), 0)
        for seq in range(1, 6):
            recorder.add(record(seq))
        assert (recorder.lost, recorder.pending) == (2, 3)
        recorder.save()
        assert [(row.seq, row.data.split('"')[-2]) for row in store.events(session.id)] == [
            (1, "goal 3"),
            (2, "goal 4"),
            (3, "goal 5"),
        ]


def test_recorder_what_is_lost_while_a_save_is_under_way_is_not_taken_from_the_newer_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_STUCK", 3)
    with Store(tmp_path / "s.db") as store:
        session = begin(store)
        recorder = Recorder(store, session, StoreBook(store), 0)
        for seq in range(1, 4):
            recorder.add(record(seq))
        real = encode_record

        def slow(row: Record) -> object:
            if row.seq == 3:  # two more come while the first three are being written
                recorder.add(record(4))
                recorder.add(record(5))
            return real(row)

        monkeypatch.setattr(module, "encode_record", slow)
        recorder.save()
        assert recorder.lost == 0  # they were written after all
        monkeypatch.setattr(module, "encode_record", real)
        recorder.save()
        assert [row.data.split('"')[-2] for row in store.events(session.id)] == [f"goal {n}" for n in range(1, 6)]


def test_recorder_a_state_that_knows_of_lost_events_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_STUCK", 3)
    with Store(tmp_path / "s.db") as store:
        session = begin(store)
        recorder = Recorder(store, session, StoreBook(store), 0)
        for seq in range(1, 7):
            recorder.add(record(seq))
            if seq == 2:
                recorder.add_snapshot(2, b"the state after goal 2")
        recorder.save()
        # In the file, event 2 is goal 5.
        assert [row.data.split('"')[-2] for row in store.events(session.id)] == ["goal 4", "goal 5", "goal 6"]
        assert store.snapshot(session.id) is None


def test_recorder_a_state_without_what_another_process_wrote_first_is_not_kept(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        session = begin(store)
        ours, theirs = (Recorder(store, session, StoreBook(store), 0) for _ in range(2))
        ours.add(record(1))
        theirs.add(record(1))
        theirs.save()
        ours.save()  # our event 1 has become event 2
        ours.add_snapshot(1, b"our state, taken at the close before it was read anew")
        ours.save()
        assert store.snapshot(session.id) is None


def test_pending_an_error_leaves_everything_waiting(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db", timeout_s=0) as store:
        session = begin(store)
        recorder = Recorder(store, session, StoreBook(store), 0)
        recorder.add(record(1))
        with Store(tmp_path / "s.db") as other, other.transaction(), pytest.raises(StoreError, match="locked"):
            recorder.save()
        assert recorder.pending == 1
        recorder.save()
        assert (recorder.pending, store.count_events()) == (0, 1)


@pytest.mark.parametrize("durability", ["batched", "full"])
def test_recorder_one_event_that_no_store_can_hold_keeps_no_other_from_it(
    tmp_path: Path, durability: Durability, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "s.db"
    with Monitor(store=path, durability=durability, embedder=HashingEmbedder(32)) as m:
        m.message("user", "before")
        m.flush()
        assert m._worker.recorder is not None
        writer = m._worker.recorder.store._writer
        assert writer is not None
        writer.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 50_000)  # as 1 GB is by default
        for number in range(20):
            m.tool_result("x" * 60_000 if number in (3, 11) else f"result {number}")
            if number % 7 == 0:
                m.decide()
        m.flush()
        m.message("user", "behind")
    with Store(path) as store:
        check_whole(store)
        (session,) = store.sessions()
        told = [decode_event(row.data) for row in store.events(session.id)]
        report = Replay(store, session).report()
    results = [event.result for event in told if isinstance(event, ToolResult)]
    assert results == [f"result {number}" for number in range(20) if number not in (3, 11)]
    assert [event.where for event in told if isinstance(event, Fault)] == ["store", "store"]
    assert [event.content for event in told if isinstance(event, Message)] == ["before", "behind"]
    assert report.equal == report.ticks > 2
    assert sum("cannot be stored" in record.getMessage() for record in caplog.records) == 2
