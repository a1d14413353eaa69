"""The thread behind all monitors: forks, dropped monitors, the end of the process, threads left over."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coherence import Monitor, Store
from coherence.core.events import Ticked, ToolResult
from coherence.monitor.background import BACKGROUND
from coherence.providers import HashingEmbedder
from monitor.helpers import until

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def monitor(**options: Any) -> Monitor:
    return Monitor(**{"embedder": HashingEmbedder(32), **options})


def say_in_child(m: Monitor) -> None:
    m.message("assistant", "child")
    m.decide()
    m.flush()


def in_child(act: Callable[[], object]) -> int:
    """Fork; the child acts and ends, with exit code 0 unless it raised. Return its process id."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # 3.12 warns of forks beside threads
        child = os.fork()
    if child == 0:
        code = 1
        try:
            act()
            code = 0
        finally:
            os._exit(code)
    return child


def said(path: Path) -> list[str]:
    with Store(path) as store:
        assert store.verify() == []
        (session,) = store.sessions()
        rows = list(store.events(session.id))
        assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
        return [row.data for row in rows if row.kind == "message"]


@forks
def test_background_a_forked_child_goes_on_recording_and_nothing_is_written_twice(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    m = monitor(store=path)
    m.message("assistant", "saved before")
    m.flush()
    for number in range(20):
        m.message("assistant", f"unsaved {number}")
    assert os.waitpid(in_child(lambda: say_in_child(m)), 0)[1] == 0
    m.message("assistant", "parent")
    m.close()
    texts = said(path)
    assert sorted(texts) == sorted(set(texts))
    assert len(texts) == 1 + 20 + 2
    assert sum("child" in text for text in texts) == 1


@forks
def test_background_a_child_has_call_ids_of_its_own() -> None:
    m = monitor()
    read, write = os.pipe()
    child = in_child(lambda: os.write(write, m.tool_call("Bash").encode()))
    os.close(write)
    with open(read) as pipe:
        theirs = pipe.read()
    os.waitpid(child, 0)
    assert theirs.startswith("call-")
    assert theirs != m.tool_call("Bash")


@forks
def test_background_a_fork_in_the_middle_of_a_measurement_waits_for_it(tmp_path: Path) -> None:
    entered, go_on = threading.Event(), threading.Event()

    class Slow:
        name, inverted = "slow", True

        def compute(self) -> float:
            entered.set()
            go_on.wait(1)
            return 0.5

    m = monitor(store=tmp_path / "s.db", metrics=[Slow()], config={"timeout_s": 30.0})
    m.message("assistant", "hello")
    assert entered.wait(20)  # on the background thread
    threading.Timer(0.2, go_on.set).start()

    def act() -> None:
        go_on.set()
        say_in_child(m)

    assert os.waitpid(in_child(act), 0)[1] == 0
    m.close()
    assert len(said(tmp_path / "s.db")) == 2


@pytest.mark.slow
def test_a_dropped_monitor_is_written_by_the_background(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        m = monitor(store=store)
        m.message("assistant", "hello")
        gone = weakref.ref(m._worker)
        del m
        until(lambda: [row.kind for row in store.events(1)] == ["message", "tick"])
        until(lambda: gc.collect() is not None and gone() is None)


AT_EXIT = """
import sys
from coherence import Monitor
from coherence.providers import HashingEmbedder
m = Monitor(store=sys.argv[1], embedder=HashingEmbedder(32))
for number in range(int(sys.argv[2])):
    m.message("assistant", f"message {number}")
if sys.argv[3] == "drop":
    del m
"""


@pytest.mark.parametrize(("count", "end"), [(230, "drop"), pytest.param(1, "keep", marks=pytest.mark.slow)])
def test_background_at_the_end_of_the_process_everything_is_written(tmp_path: Path, count: int, end: str) -> None:
    command = [sys.executable, "-c", AT_EXIT, str(tmp_path / "s.db"), str(count), end]
    assert subprocess.run(command, capture_output=True, timeout=120, check=True).stderr == b""
    assert len(said(tmp_path / "s.db")) == count


@pytest.mark.slow
def test_background_a_hundred_monitors_leave_no_threads_and_nothing_alive(tmp_path: Path) -> None:
    with monitor(store=tmp_path / "warm.db", config={"tick": 0.05}) as m:
        m.message("assistant", "hello")
        m.decide()
    gc.collect()
    before = len(threading.enumerate())
    engines = []
    for number in range(100):
        with monitor(store=tmp_path / f"{number % 5}.db", config={"tick": 0.05 if number % 2 else "step"}) as m:
            m.message("assistant", "hello")
            m.decide()
            engines.append(weakref.ref(m._worker))
    del m
    assert len(threading.enumerate()) <= before
    until(lambda: gc.collect() is not None and not [engine for engine in engines if engine() is not None])


def test_call_work_that_fails_does_not_stop_the_thread(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def work(self) -> float | None:
            raise RuntimeError("broken")

        def finish(self) -> None: ...
        def before_fork(self) -> None: ...
        def after_fork_in_parent(self) -> None: ...
        def after_fork_in_child(self) -> None: ...

    broken = Broken()
    BACKGROUND.call(broken)
    until(lambda: "background work failed" in caplog.text)
    m = monitor()
    m.tool_result("ok")
    until(lambda: m.latest is not None)
    assert [type(record.event) for record in m.events()[::-1]] == [ToolResult, Ticked]
