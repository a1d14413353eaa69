"""The daemon as a process of its own, with real hooks: nothing is lost, nothing stops the agent."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from coherence.core.events import ToolCall, decode_event
from coherence.integrations.claude_code import hook
from coherence.integrations.daemon.server import RequestError, read_request
from coherence.store.store import Store

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the daemon needs Unix sockets")
RUN = "import sys; from coherence.cli.entry import run; sys.argv[0] = 'coherence'; run()"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "state"
    made.mkdir(mode=0o700)
    return made


def start(folder: Path) -> subprocess.Popen[bytes]:
    command = ["daemon", "run", "--state", str(folder), "--store", str(folder / "store.db")]
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen([sys.executable, "-c", RUN, *command], stdout=log, stderr=log)
    until = time.monotonic() + 30
    while ask(folder, "status").returncode or process.poll() is not None:
        assert time.monotonic() < until, (folder / "log").read_text()
        assert process.poll() is None, (folder / "log").read_text()
    return process


def ask(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    """Ask the daemon something; the return code is 1 if none is there."""
    asked = (
        "import sys; from pathlib import Path; from coherence.integrations.daemon.folder import control\n"
        "found = control(Path(sys.argv[1]), sys.argv[2]); print(found); sys.exit(found is None)"
    )
    command_line = [sys.executable, "-c", asked, str(folder), command]
    return subprocess.run(command_line, capture_output=True, text=True, check=False)


@contextmanager
def daemon(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a daemon until the end of the block; then it has to end by itself, all written."""
    process = start(folder)
    try:
        yield process
        ask(folder, "stop")
        assert process.wait(30) == 0, (folder / "log").read_text()
    finally:
        process.kill()
        process.wait()


def send(folder: Path, payload: dict[str, Any] | bytes) -> bytes:
    (folder / hook.WAKING).touch()  # the test starts daemons itself
    raw = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    command = [sys.executable, "-I", "-S", hook.__file__, str(folder)]
    return subprocess.run(command, input=raw, capture_output=True, check=True).stdout


def called(session: str, number: int, command: str = "ls") -> dict[str, Any]:
    return {
        "hook_event_name": "PreToolUse",
        "session_id": session,
        "tool_name": "Bash",
        "tool_use_id": f"{session}-{number}",
        "tool_input": {"command": f"{command} {number}"},
    }


def calls(folder: Path) -> dict[str, list[str]]:
    """Return the ids of the calls that are stored, by session, in their order."""
    with Store(folder / "store.db") as store:
        found = {}
        for session in store.sessions():
            told = [decode_event(row.data) for row in store.events(session.id) if row.kind == "tool_call"]
            found[session.session] = [each.call_id for each in told if isinstance(each, ToolCall)]
        return found


def test_daemon_counts_every_call_of_four_sessions_at_once(folder: Path) -> None:
    asked = [called(f"s{number % 4}", number) for number in range(60)]
    with daemon(folder), ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda payload: send(folder, payload), asked))
    assert {name: sorted(ids) for name, ids in calls(folder).items()} == {
        f"s{at}": sorted(each["tool_use_id"] for each in asked if each["session_id"] == f"s{at}") for at in range(4)
    }


def test_daemon_killed_in_the_middle_the_record_is_complete_after_the_next_start(folder: Path) -> None:
    process = start(folder)
    for number in range(5):
        send(folder, called("s1", number))
    time.sleep(1.5)  # a batch is written after a second at most
    process.kill()
    process.wait()
    assert (folder / hook.SOCKET).exists()  # nobody has tidied up
    for number in range(5, 9):
        assert send(folder, called("s1", number)) == b""
    with daemon(folder):
        send(folder, called("s1", 9))
    assert calls(folder) == {"s1": [f"s1-{number}" for number in range(10)]}
    assert not list((folder / hook.SPOOL).iterdir())


def test_daemon_a_second_one_ends_at_once_and_the_first_goes_on(folder: Path) -> None:
    with daemon(folder):
        command = ["daemon", "run", "--state", str(folder), "--store", str(folder / "store.db")]
        second = subprocess.run([sys.executable, "-c", RUN, *command], capture_output=True, text=True, check=True)
        assert "runs already" in second.stdout
        assert send(folder, called("s1", 1)) == b""
    assert calls(folder) == {"s1": ["s1-1"]}


def test_daemon_of_another_version_answers_and_makes_room_for_the_new_one(folder: Path) -> None:
    process = start(folder)
    with socket.socket(socket.AF_UNIX) as line:
        os.chdir(folder)
        line.connect(hook.SOCKET)
        line.sendall(b"coherence-hook claude-code 1 steer\n" + json.dumps(called("s1", 1)).encode())
        line.shutdown(socket.SHUT_WR)
        assert line.recv(100) == b""
    assert process.wait(30) == 0
    assert calls(folder) == {"s1": ["s1-1"]}


@pytest.mark.parametrize(
    "hostile",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"[" * 1_000_000, id="nested"),
        pytest.param(b'{"session_id": "s", "hook_event_name": "Stop", "x": "' + b"a" * 10_000_000 + b'"}', id="10 MB"),
        pytest.param(b'{"session_id": "../../etc", "hook_event_name": "SessionStart", "cwd": "/"}', id="traversal"),
        pytest.param(b'{"session_id": "\\u0000\\u001b[2J", "hook_event_name": "Stop"}', id="control characters"),
        pytest.param(b'{"session_id": {"a": 1}, "hook_event_name": ["Stop"]}', id="types"),
        pytest.param(b"\xff\xfe\x00", id="no UTF-8"),
    ],
)
def test_daemon_hostile_payloads_change_nothing_outside_the_store(folder: Path, hostile: bytes) -> None:
    with daemon(folder):
        before = {path.name for path in folder.iterdir()}
        send(folder, hostile)
        send(folder, called("s1", 1))
        assert {path.name for path in folder.iterdir()} == before | {"waking"}  # which send() makes
    assert calls(folder)["s1"] == ["s1-1"]


@pytest.mark.parametrize("raw", [b"", b"GET / HTTP/1.1\r\n\r\n", b"coherence-hook other 1 steer\n{}"])
def test_read_request_refuses_what_no_hook_has_sent(raw: bytes) -> None:
    with pytest.raises(RequestError):
        read_request(raw)


def test_daemon_listens_on_no_port(folder: Path) -> None:
    with daemon(folder) as process:
        send(folder, called("s1", 1))
        inodes = {os.readlink(f"/proc/{process.pid}/fd/{name}") for name in os.listdir(f"/proc/{process.pid}/fd")}
        for table in ("tcp", "tcp6", "udp", "udp6"):
            rows = Path(f"/proc/{process.pid}/net/{table}").read_text().splitlines()[1:]
            assert not inodes & {f"socket:[{row.split()[9]}]" for row in rows}
