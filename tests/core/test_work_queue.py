from __future__ import annotations

import logging
import os
import threading

import pytest

from coherence.core.work_queue import WorkQueue


def test_work_queue_works_off_in_order_on_a_thread_of_its_own() -> None:
    done: list[tuple[int, str]] = []
    waiting = WorkQueue[int](
        lambda item: done.append((item, threading.current_thread().name)), name="own", most_waiting=10
    )
    for item in range(5):
        waiting.put(item)
    assert waiting.flush(10.0)
    assert done == [(item, "own") for item in range(5)]


def test_work_queue_counts_what_fails_comes_too_fast_or_too_late(caplog: pytest.LogCaptureFixture) -> None:
    go = threading.Event()

    def work(item: int) -> None:
        assert go.wait(10.0)
        if item == 0:
            raise KeyError(item)

    waiting = WorkQueue[int](work, name="own", most_waiting=2)
    with caplog.at_level(logging.WARNING, "coherence"):
        for item in range(6):  # one is being worked off, or none yet; two wait
            waiting.put(item)
        too_many = waiting.dropped
        assert too_many in (3, 4)
        assert not waiting.flush(0.01)
        go.set()
        assert waiting.close(10.0)
        assert waiting.dropped == too_many + 1
        waiting.put(7)
    assert waiting.dropped == too_many + 2
    assert [record.message for record in caplog.records] == ["own: dropped: too many wait, or it is closed (1 so far)"]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_work_queue_begins_anew_in_a_child() -> None:
    done: list[int] = []
    waiting = WorkQueue[int](done.append, name="own", most_waiting=10)
    waiting.put(1)
    assert waiting.flush(10.0)
    child = os.fork()
    if child == 0:
        waiting.put(2)
        os._exit(0 if waiting.flush(10.0) and done == [1, 2] else 1)
    assert os.waitpid(child, 0)[1] == 0
