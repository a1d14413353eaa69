"""Recording that a host does not wait for: nothing is lost, and nobody who asks can tell it from recording at once."""

from __future__ import annotations

import os
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from coherence import Monitor, Store
from coherence.core.events import Message, text_of
from coherence.monitor.deferred import MAX_BYTES, Deferred
from monitor.helpers import until
from monitor.test_background import in_child


def monitor(**options: Any) -> Monitor:
    return Monitor(**{"embedder": False, "source": "test", **options})


def later(m: Monitor, text: str, size: int = 0) -> None:
    m.record_later(partial(m.message, "assistant", text), size=size)


def texts(m: Monitor) -> list[str]:
    return [text_of(record.event) for record in reversed(m.events()) if isinstance(record.event, Message)]


def test_record_later_keeps_the_order_of_what_is_recorded_and_asked() -> None:
    with monitor() as m:
        later(m, "one")
        later(m, "two")
        m.message("assistant", "three")
        later(m, "four")
        assert texts(m) == ["one", "two", "three", "four"]
        later(m, "five")
        m.decide()
        assert texts(m)[-1] == "five"


@pytest.mark.parametrize("ask", [Monitor.decide, Monitor.flush, lambda m: m.check("bash", {"command": "ls"})])
def test_record_later_is_read_before_anybody_is_answered(ask: Any) -> None:
    with monitor() as m:
        done = []
        m.record_later(lambda: done.append(threading.get_ident()))
        ask(m)
        assert done == [threading.get_ident()]


def test_record_later_is_read_behind_the_hosts_back_with_the_time_of_the_call() -> None:
    with monitor() as m:
        readers: list[int] = []
        before = time.time()

        def read() -> None:
            readers.append(threading.get_ident())
            m.message("assistant", "read later")

        m.record_later(read)
        after = time.time()
        until(lambda: readers)
        assert readers != [threading.get_ident()]
        (record,) = (record for record in m.events() if isinstance(record.event, Message))
        assert before <= record.ts <= after


def test_record_later_that_fails_costs_nobody_else_anything(caplog: pytest.LogCaptureFixture) -> None:
    with monitor() as m:
        m.record_later(partial(divmod, 1, 0))
        later(m, "the next one")
        assert texts(m) == ["the next one"]
    assert "ZeroDivisionError" in caplog.text


def test_close_records_what_waits_and_after_it_there_is_nothing_to_wait_for(tmp_path: Path) -> None:
    m = monitor(store=tmp_path / "s.db")
    later(m, "the last words")
    m.close()
    with Store(tmp_path / "s.db") as store:
        (session,) = store.sessions()
        assert [row.kind for row in store.events(session.id)][:1] == ["message"]
    done: list[bool] = []
    m.record_later(lambda: done.append(True))
    assert done == [True]


def test_record_later_waits_for_nothing_where_each_event_is_written_at_once(tmp_path: Path) -> None:
    with monitor(store=tmp_path / "s.db", durability="full") as m:
        done: list[bool] = []
        m.record_later(lambda: done.append(True))
        assert done == [True]


def test_deferred_reads_at_once_when_too_many_bytes_wait() -> None:
    waiting = Deferred()
    read: list[Any] = []
    for at in range(3):
        waiting.add(partial(read.append, at), size=MAX_BYTES // 2)
    # two halves are not more than all; the third is
    assert read == [0, 1, 2]
    waiting.add(partial(read.append, 3), size=MAX_BYTES)
    assert read == [0, 1, 2]


def test_deferred_is_read_once_and_in_order_by_many_threads() -> None:
    waiting = Deferred()
    read: list[Any] = []

    def settle_often() -> None:
        for _ in range(2_000):
            waiting.settle()

    threads = [threading.Thread(target=settle_often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for at in range(5_000):
        waiting.add(partial(read.append, at), size=1)
    for thread in threads:
        thread.join()
    waiting.settle()
    assert read == list(range(5_000))


def test_deferred_alone_lets_no_other_thread_read_and_reads_nothing_itself() -> None:
    waiting = Deferred()
    read: list[Any] = []
    with waiting.alone():
        waiting.add(lambda: read.append("added inside"), size=1)
        other = threading.Thread(target=waiting.settle)
        other.start()
        other.join(0.05)
        assert other.is_alive()
        waiting.settle()
        assert read == []
    other.join()
    assert read == ["added inside"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_record_later_is_left_to_the_parent_by_a_fork(tmp_path: Path) -> None:
    m = monitor(store=tmp_path / "s.db")
    m.flush()
    later(m, "told before the fork")

    def child() -> None:
        later(m, "told by the child")
        m.flush()

    assert os.waitpid(in_child(child), 0)[1] == 0
    m.close()
    with Store(tmp_path / "s.db") as store:
        (session,) = store.sessions()
        found = [row.data for row in store.events(session.id) if row.kind == "message"]
    assert sorted("child" in data for data in found) == [False, True]
