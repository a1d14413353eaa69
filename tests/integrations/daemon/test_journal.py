"""Daemons that are killed, stopped, out of disk or of another version: the agent goes on, the record is complete."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from integrations.running import Daemon, running

from coherence.core.events import Message, ToolCall, ToolResult, decode_event
from coherence.integrations.daemon import hook
from coherence.integrations.daemon.folder import only_one
from coherence.integrations.daemon.journal import Journal
from coherence.store.store import Store

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the daemon needs Unix sockets")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    before = Path.cwd()
    yield tmp_path / "state"
    os.chdir(before)


def send(folder: Path, event: str, number: int = 0, session: str = "s1", **fields: Any) -> bytes:
    """Hand over an event as the client does, with a process of its own."""
    payload = {"hook_event_name": event, "session_id": session, **fields}
    if number:
        asked = {"tool_name": "Bash", "tool_use_id": f"{session}-{number}", "tool_input": {"command": f"ls {number}"}}
        payload = {**payload, **asked}
    command = [sys.executable, "-I", "-S", hook.__file__, str(folder)]
    return subprocess.run(command, input=json.dumps(payload).encode(), capture_output=True, check=True).stdout


def step(folder: Path, number: int, session: str = "s1") -> None:
    assert send(folder, "PreToolUse", number, session) == b""
    assert send(folder, "PostToolUse", number, session, tool_response={"stdout": f"{number}"}) == b""


def steps(folder: Path, count: int, session: str) -> None:
    for number in range(1, count + 1):
        step(folder, number, session)


def stored(folder: Path, session: str = "s1") -> tuple[list[str], list[str | None], list[str]]:
    """Return the ids of stored calls, of stored results, and what the user has said, in their order."""
    calls: list[str] = []
    results: list[str | None] = []
    said: list[str] = []
    with Store(folder / "store.db") as store:
        for row in store.sessions():
            for kept in store.events(row.id) if row.session == session else ():
                event = decode_event(kept.data)
                if isinstance(event, ToolCall):
                    calls.append(event.call_id)
                elif isinstance(event, ToolResult):
                    results.append(event.call_id)
                elif isinstance(event, Message) and event.role == "user":
                    said.append(event.content)
    return calls, results, said


def ids(count: int, session: str = "s1") -> list[str]:
    return [f"{session}-{number}" for number in range(1, count + 1)]


def wait_for_an_empty_spool(folder: Path) -> None:
    until = time.monotonic() + 30
    while list((folder / hook.SPOOL).iterdir()):
        assert time.monotonic() < until, list((folder / hook.SPOOL).iterdir())
        time.sleep(0.05)


@contextmanager
def killed(folder: Path) -> Iterator[Daemon]:
    """Run a daemon that the block kills."""
    try:
        with running(folder) as process:
            yield process
            process.wait(30)
    except AssertionError:  # it has not ended by itself
        assert process.returncode == -signal.SIGKILL


@pytest.mark.parametrize(  # nothing is written yet, something is, all is
    "pause", [pytest.param(0.0, marks=pytest.mark.slow), 0.4, pytest.param(1.5, marks=pytest.mark.slow)]
)
def test_daemon_killed_at_any_time_the_record_is_complete_and_nothing_is_twice_in_it(
    folder: Path, pause: float
) -> None:
    with killed(folder) as process:
        send(folder, "UserPromptSubmit", prompt="List the files.")
        for number in (1, 2, 3, 4):
            step(folder, number)
        time.sleep(pause)
        process.kill()
    assert (folder / hook.SOCKET).exists()  # nobody has tidied up
    (folder / hook.WAKING).touch()  # no hook starts another one
    for number in (5, 6):
        step(folder, number)
    with running(folder):
        step(folder, 7)
    assert stored(folder) == (ids(7), ids(7), ["List the files."])
    assert not list((folder / hook.SPOOL).iterdir())


@pytest.mark.slow
def test_daemon_killed_again_and_again_among_parallel_sessions_loses_nothing(folder: Path) -> None:
    sessions, calls = ("s1", "s2", "s3"), 12

    with ThreadPoolExecutor(len(sessions)) as pool:
        running_sessions = [pool.submit(steps, folder, calls, name) for name in sessions]
        folder.mkdir(mode=0o700, exist_ok=True)
        for _ in range(2):
            with killed(folder) as process:
                time.sleep(1.0)
                process.kill()
        for each in running_sessions:
            each.result()
    with running(folder):
        pass
    for name in sessions:
        found, results, _ = stored(folder, name)
        assert sorted(found) == sorted(results, key=str) == sorted(ids(calls, name))


@pytest.mark.slow
def test_daemon_that_is_stopped_for_a_while_lets_the_agent_go_on_and_records_each_event_once(folder: Path) -> None:
    with running(folder) as process:
        step(folder, 1)
        process.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        assert send(folder, "PreToolUse", 2) == b""
        assert time.monotonic() - began >= hook.ANSWER_S  # the client would let it run for a second more
        process.send_signal(signal.SIGCONT)
        assert send(folder, "PostToolUse", 2, tool_response={"stdout": "2"}) == b""
        step(folder, 3)
    assert stored(folder)[:2] == (ids(3), ids(3))
    assert not list((folder / hook.SPOOL).iterdir())


MOVED = """
import runpy, sys, time
real, moved = time.time, [0.0]
time.time = lambda: real() + moved[0]
time.time_ns = lambda: int(time.time() * 1e9)
import signal
by = float(sys.argv[1])
def move(*_): moved[0] += by
signal.signal(signal.SIGUSR1, move)
sys.argv[:2] = ["coherence"]
runpy.run_module("coherence", run_name="__main__")
"""


@pytest.mark.parametrize("seconds", [pytest.param(600.0, marks=pytest.mark.slow), -600.0])
def test_daemon_whose_clock_moves_by_ten_minutes_records_each_event_once_and_in_order(
    folder: Path, seconds: float
) -> None:
    folder.mkdir(mode=0o700)
    (folder / hook.WAKING).touch()
    command = [sys.executable, "-c", MOVED, str(seconds), "daemon", "run", "--state", str(folder)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([*command, "--store", str(folder / "store.db")], stdout=log, stderr=log)
    try:
        until = time.monotonic() + 30
        while not (folder / hook.SOCKET).exists():
            assert time.monotonic() < until, (folder / "log").read_text()
            time.sleep(0.05)
        step(folder, 1)
        process.send_signal(signal.SIGSTOP)
        process.send_signal(signal.SIGUSR1)
        process.send_signal(signal.SIGCONT)
        for number in (2, 3):
            step(folder, number)
        os.chdir(folder)
        subprocess.run([sys.executable, "-m", "coherence", "daemon", "stop", "--state", str(folder)], check=True)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
    assert stored(folder)[:2] == (ids(3), ids(3))


@pytest.mark.slow
def test_daemon_without_room_on_the_disk_lets_the_agent_go_on_and_writes_later(folder: Path) -> None:
    with running(folder) as process:
        step(folder, 1)
        time.sleep(1.5)  # it is written
        size = (folder / "store.db-wal").stat().st_size
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))  # no file grows beyond
        for number in range(2, 6):
            step(folder, number)
        time.sleep(1.5)
        step(folder, 6)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        step(folder, 7)
        assert process.poll() is None
    assert stored(folder)[:2] == (ids(7), ids(7))


def test_daemon_without_room_takes_in_a_session_that_begins_meanwhile(folder: Path) -> None:
    with running(folder) as process:
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))  # it can write nothing
        send(folder, "UserPromptSubmit", prompt="List the files.")
        for number in range(1, 4):
            step(folder, number)
        send(folder, "SessionEnd", reason="other")
        time.sleep(1.5)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert stored(folder) == (ids(3), ids(3), ["List the files."])


@pytest.mark.slow
def test_daemon_two_versions_at_once_each_hook_is_answered_and_the_record_is_complete(
    folder: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    package = Path(hook.__file__).parents[2]
    shutil.copytree(package, other / "coherence", ignore=shutil.ignore_patterns("__pycache__"))
    copy = other / "coherence" / "integrations" / "daemon" / "hook.py"
    os.utime(copy, ns=(1, 1))  # the time at which it was installed tells one version from another
    env = {**os.environ, "COHERENCE_STORE": str(folder / "store.db"), "PYTHONSAFEPATH": "1"}
    folder.mkdir(mode=0o700)
    for number in range(1, 13):
        file, path = (Path(hook.__file__), package.parent) if number % 4 < 2 else (copy, other)
        asked = {"tool_name": "Bash", "tool_use_id": f"s1-{number}", "tool_input": {"command": f"ls {number}"}}
        payload = {"hook_event_name": "PreToolUse", "session_id": "s1", **asked}
        command = [sys.executable, "-I", "-S", str(file), str(folder)]
        raw = json.dumps(payload).encode()
        done = subprocess.run(command, input=raw, capture_output=True, check=True, env={**env, "PYTHONPATH": str(path)})
        assert (done.stdout, done.stderr) == (b"", b"")
        time.sleep(0.3)
    gone = False
    while not gone:  # the newest one may be starting yet
        subprocess.run([sys.executable, "-m", "coherence", "daemon", "stop", "--state", str(folder)], check=True)
        os.chdir(folder)
        with only_one() as gone:
            pass
    with running(folder):
        wait_for_an_empty_spool(folder)
    assert stored(folder)[0] == ids(12)


def test_journal_keeps_a_request_until_it_is_handled_and_written(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    first, second = journal.begin(b"a"), journal.begin(b"b")
    assert first is not None and second is not None
    journal.done(first)
    written: list[int] = []
    journal.settle(lambda: written.append(len(list((tmp_path / hook.SPOOL).iterdir()))))
    assert written == [2]  # both are there until it is written
    assert list((tmp_path / hook.SPOOL).iterdir()) == [second]
    journal.settle(lambda: written.append(0))
    assert written == [2]  # nothing was handled since
    assert Journal(tmp_path).recover()
    assert [path.read_bytes() for path in (tmp_path / hook.SPOOL).glob("*.payload")] == [b"b"]
    assert not Journal(tmp_path).recover()


def test_journal_without_room_handles_the_request_all_the_same(tmp_path: Path) -> None:
    (tmp_path / hook.SPOOL).write_text("no folder")
    journal = Journal(tmp_path)
    assert journal.begin(b"a") is None
    journal.done(None)
