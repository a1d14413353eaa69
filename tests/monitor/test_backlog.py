"""More than can be folded in time: who records never pays for it, and nothing but measurements and texts is dropped."""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any, ClassVar

import pytest

from coherence import Monitor, Store
from coherence.core.events import Fault, Message, Ticked, ToolResult, decode_event
from coherence.detect.detector import EventDetector, Observed
from coherence.monitor.folding import BEHIND_EVENTS, KEPT_BYTES, MAX_EVENTS
from coherence.monitor.inbox import MAX_WAITING, size_of
from coherence.monitor.replay import Replay
from coherence.monitor.tick_result import Record
from coherence.providers import HashingEmbedder

LONG = 200_000


class SlowEmbedder(HashingEmbedder):
    """Takes a moment for every text, as a model does."""

    def embed(self, text: str, /) -> Any:
        time.sleep(0.002)
        return super().embed(text)


def events_of(path: Path) -> list[Any]:
    with Store(path) as store:
        assert store.verify() == []
        (session,) = store.sessions()
        rows = list(store.events(session.id))
        assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
        return [decode_event(row.data) for row in rows]


class Folding(EventDetector[list[int]]):
    """Remembers on which threads it was shown events."""

    name, data_type = "folding", list
    threads: ClassVar[set[int]] = set()

    def on_tool_result(self, observed: Observed) -> None:
        self.threads.add(threading.get_ident())


def test_post_leaves_the_backlog_to_the_background(tmp_path: Path) -> None:
    Folding.threads = set()
    m = Monitor(store=tmp_path / "s.db", embedder=SlowEmbedder(32), detectors=[Folding])
    for number in range(300):
        m.tool_result(f"line {number} of a long listing")
    deadline = time.monotonic() + 60
    while m._worker._inbox and time.monotonic() < deadline:
        time.sleep(0.01)
    assert Folding.threads
    assert threading.get_ident() not in Folding.threads
    m.close()


@pytest.mark.slow
def test_advance_behind_measures_once_and_says_which_steps_it_left_out(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    m = Monitor(store=path, embedder=SlowEmbedder(32), config={"tick": "step"})
    with m._worker.settled():  # the background cannot fold meanwhile
        for number in range(BEHIND_EVENTS + 50):
            m._worker._inbox.put(time.time(), ToolResult(f"line {number}"))
    m.flush()
    m.close()
    told = events_of(path)
    results = sum(type(event) is ToolResult for event in told)
    ticks = sum(type(event) is Ticked for event in told)
    dropped = sum(type(event) is Fault and event.where == "measurement" for event in told)
    assert results == BEHIND_EVENTS + 50
    assert ticks < results
    # each step is measured, or said not to be; the last of those that are not has the tick of all of them
    assert results <= ticks + dropped <= results + 1
    with Store(path) as store:
        (session,) = store.sessions()
        report = Replay(store, session).report()
    assert report.ticks == report.equal == ticks


@pytest.mark.parametrize("stored", [pytest.param(True, marks=pytest.mark.slow), False])
def test_post_of_more_than_memory_may_hold_is_bounded(tmp_path: Path, stored: bool) -> None:
    path = tmp_path / "s.db"
    m = Monitor(store=path if stored else None, embedder=False)
    count = 2 * MAX_WAITING // LONG
    with m._worker.settled():
        for number in range(count):
            m._worker._inbox.put(time.time(), ToolResult(f"{number}:" + "x" * LONG))
        assert m._worker._inbox._bytes <= MAX_WAITING
    m.flush()
    kept = m.events()
    assert sum(size_of(record.event) for record in kept) <= KEPT_BYTES
    faults = [record.event.message for record in kept if type(record.event) is Fault and record.event.where == "inbox"]
    m.close()
    if stored:
        texts = [event.result for event in events_of(path) if type(event) is ToolResult]
        assert [int(text.partition(":")[0]) for text in texts] == list(range(count))
        assert faults == []
    else:
        (said,) = faults
        # half of them fit in
        assert count // 2 <= int(said.split()[0]) <= count // 2 + 3
        assert said.endswith("texts and 0 events were dropped")


def hold(m: Monitor, until: threading.Event) -> threading.Thread:
    """Keep a monitor's lock on another thread, as a fold that does not end would."""
    begun = threading.Event()

    def act() -> None:
        with m._worker._lock:
            begun.set()
            until.wait(30)

    thread = threading.Thread(target=act)
    thread.start()
    assert begun.wait(30)
    return thread


def test_decide_returns_the_newest_result_when_time_is_up(caplog: pytest.LogCaptureFixture) -> None:
    m = Monitor(embedder=HashingEmbedder(32), config={"timeout_s": 0.2})
    m.message("assistant", "hello")
    first = m.decide()
    until = threading.Event()
    thread = hold(m, until)
    with caplog.at_level(logging.WARNING, "coherence"):
        for number in range(3):
            m.message("assistant", f"more {number}")
            assert m.decide().seq == first.seq
        assert m.check("Bash", {"command": "ls"}).kind == "warn"
    until.set()
    thread.join()
    assert caplog.text.count("are not read yet") == 1
    assert m.decide().seq > first.seq
    late = [record.event for record in m.events() if type(record.event) is Fault]
    assert [(event.where, event.message) for event in late] == [("decide", "timeout: 1 events were not read yet")]


def test_post_with_full_durability_waits_for_a_locked_store_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "s.db"
    m = Monitor(store=path, durability="full", embedder=False, config={"wait_s": 0.1, "tick": "manual"})
    m.message("user", "before")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with caplog.at_level(logging.WARNING, "coherence"):
        began = time.monotonic()
        for number in range(20):
            m.message("user", f"while it is locked {number}")
        assert time.monotonic() - began < 2.0  # 20 times 0.1 s, had each one waited
        other.execute("ROLLBACK")
        other.close()
        m.message("user", "after")
        m.flush()
    assert sum("events wait in memory" in record.message for record in caplog.records) == 1
    told = [event.content for event in events_of(path) if type(event) is Message]
    assert told == ["before", *(f"while it is locked {number}" for number in range(20)), "after"]
    m.close()


def test_post_with_full_durability_is_in_the_store_before_it_is_folded(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    m = Monitor(store=path, durability="full", embedder=False)
    m.tool_result("x" * LONG)
    assert sum(type(event) is ToolResult for event in events_of(path)) == 1
    assert m._worker._ahead or m.counters.calls == 1
    m.close()
    assert [type(event) for event in events_of(path)][:1] == [ToolResult]


def test_post_with_full_durability_and_no_store_is_recorded_whatever_waits() -> None:
    m = Monitor(durability="full", embedder=False, strict=True, config={"tick": "manual", "wait_s": 0.05})
    until = threading.Event()
    thread = hold(m, until)
    count = KEPT_BYTES // LONG + 5
    for number in range(count):
        m.tool_result(f"{number}:" + "x" * LONG)
    until.set()
    thread.join()
    assert m.counters.calls == count
    m.close()


def test_lighten_what_is_written_and_not_folded_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    m = Monitor(store=path, durability="full", embedder=False, config={"tick": "manual"})
    count = KEPT_BYTES // LONG + 20
    m._worker._others.add(-1)  # the background lets somebody else go first, who never comes
    for number in range(count):
        m.tool_result(f"{number}:" + "x" * LONG)
    assert m._worker._ahead_bytes <= KEPT_BYTES + 2 * LONG
    m._worker._others.clear()
    assert m.counters.calls == count
    m.close()
    assert [event.result.partition(":")[0] for event in events_of(path)] == [str(number) for number in range(count)]


def test_keep_holds_the_newest_ten_thousand_events_of_a_long_life() -> None:
    m = Monitor(embedder=False, config={"tick": "manual"})
    count = MAX_EVENTS + 500
    with m._worker.settled():
        for number in range(count):
            m._worker._keep(Record(number, 0.0, ToolResult(f"line {number}")))
    kept = list(m._worker.events)
    assert [record.seq for record in kept] == list(range(count - MAX_EVENTS, count))
    assert m._worker._kept_bytes == sum(size_of(record.event) for record in kept)
    m.close()
