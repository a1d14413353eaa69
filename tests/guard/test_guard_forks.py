"""A guard where processes fork, are spawned and end."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from coherence.guard import Guard

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here"),
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),
]


@pytest.fixture
def guard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Guard]:
    """Yield a guard of which nothing is written unless somebody asks for it."""
    monkeypatch.setattr("coherence.guard.runner.FLUSH_S", 3600.0)
    with Guard(store=tmp_path / "guard.db") as guard:
        yield guard


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program to its end."""
    path = os.pathsep.join(part for part in sys.path if part)
    return subprocess.run(
        [sys.executable, *arguments], timeout=60, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip


def counted(guard: Guard) -> tuple[int, int]:
    assert guard.store is not None
    guard.flush()
    ((rows, newest),) = guard.store.fetch("SELECT count(*), max(seq) FROM events")
    return rows, newest


@pytest.mark.parametrize(
    ("begins", "calls"),
    [
        (lambda guard: guard.flush(), 0),
        (lambda guard: guard.status("a"), 0),
        (lambda guard: guard.history("a"), 0),
        (lambda guard: guard.close(), 0),
        (lambda guard: guard.run(lambda: 2, agent="a"), 1),
    ],
    ids=["flush", "status", "history", "close", "run"],
)
def test_guard_a_child_never_writes_what_waits_in_its_parent(
    guard: Guard, in_child: Any, begins: Callable[[Guard], object], calls: int
) -> None:
    guard.run(lambda: 1, agent="a")

    def child() -> dict[str, int]:
        begins(guard)
        guard.flush()
        return guard.errors

    assert in_child(child) == "{}"
    assert counted(guard) == (1 + calls, 1 + calls)


def test_guard_locks_that_were_held_at_the_fork_hold_up_no_child(guard: Guard, in_child: Any) -> None:
    view = guard._runner.view("a")
    held, go = threading.Event(), threading.Event()

    def hold() -> None:
        assert guard._runner._views is not None
        with view.writing, view.lock, guard._troubles._lock, guard._runner._views._lock, guard._runner._starting:
            held.set()
            go.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(60)

    def child() -> object:
        guard._troubles.add("x", "y")
        guard.run(lambda: 1, agent="a")
        return counted(guard)

    try:
        assert in_child(child) == "(1, 1)"
    finally:
        go.set()
        holder.join()


CHILD = """
import multiprocessing, sys
from coherence.guard import Guard

def work(path):
    global kept  # alive until the end, and not closed
    kept = Guard(store=path)
    for _ in range(3):
        kept.run(lambda: 1, agent="a")

if __name__ == "__main__":
    worker = multiprocessing.get_context(sys.argv[2]).Process(target=work, args=(sys.argv[1],))
    worker.start()
    worker.join(60)
    sys.exit(worker.exitcode)
"""


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_guard_a_child_of_multiprocessing_writes_what_waits_when_it_ends(tmp_path: Path, method: str) -> None:
    (tmp_path / "program.py").write_text(CHILD)
    done = run(str(tmp_path / "program.py"), str(tmp_path / "guard.db"), method)
    assert (done.returncode, done.stderr) == (0, "")
    with Guard(store=tmp_path / "guard.db") as guard:
        assert guard.status("a").calls == 3


SIGNALS = """
import signal, sys
from coherence.guard import Guard

handled = []

def handler(*_):
    guard.run(lambda: 1, agent="a")
    handled.append(1)
    signal.setitimer(signal.ITIMER_REAL, 0.0003)  # once each time: on a busy machine they would pile up

with Guard(store=sys.argv[1]) as guard:
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.0003)
    for _ in range(1000):
        guard.run(lambda: 1, agent="a")
    signal.setitimer(signal.ITIMER_REAL, 0)
    calls = 1000 + len(handled)
    guard.flush()
    ((rows,),) = guard.store.fetch("SELECT count(*) FROM events")
    assert handled and guard.errors == {} and guard.status("a").calls == rows == calls, (guard.errors, rows, calls)
"""


@pytest.mark.slow
def test_guard_forks_a_signal_handler_may_run_a_call_in_the_middle_of_another(tmp_path: Path) -> None:
    done = run("-c", SIGNALS, str(tmp_path / "guard.db"))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize(
    "lines",
    [
        "sys.exit(0)",
        """
        def work():
            time.sleep(0.2)
            guard.run(lambda: 1, agent="b")
        threading.Thread(target=work).start()
        """,
        """
        class Late:
            def __del__(self):
                print(guard.run(lambda: 7, agent="a").result)  # the guard has ended, and calls just run
        sys.late = Late()
        """,
    ],
    ids=["exit", "thread", "del"],
)
def test_status_a_program_that_ends_has_written_all_and_says_nothing(tmp_path: Path, lines: str) -> None:
    begin = "import sys, threading, time\nfrom coherence.guard import Guard\nguard = Guard(store=sys.argv[1])\n"
    begin += 'guard.run(lambda: 1, agent="a")\n'
    done = run("-c", begin + textwrap.dedent(lines), str(tmp_path / "guard.db"))
    assert (done.returncode, done.stderr) == (0, "")
    with Guard(store=tmp_path / "guard.db") as guard:
        assert guard.status("a").calls == 1
        assert guard.status("b").calls == ("thread" in lines)
