"""The daemon as a process of its own, with real hooks: nothing is lost, nothing stops the agent."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from integrations.running import running
from monitor.helpers import Gate, until

from coherence.core.events import ToolCall, decode_event
from coherence.fleet.fleet import Fleet
from coherence.integrations.daemon import hook
from coherence.integrations.daemon.folder import only_one
from coherence.integrations.daemon.server import HookDaemon, RequestError, read_request
from coherence.providers import HashingEmbedder
from coherence.store.store import Store

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the daemon needs Unix sockets")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    before = Path.cwd()
    yield tmp_path / "state"
    os.chdir(before)


def send(folder: Path, payload: dict[str, Any] | bytes) -> bytes:
    """Hand over a payload as the client does, with a process of its own."""
    raw = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    command = [sys.executable, "-I", "-S", hook.__file__, str(folder)]
    return subprocess.run(command, input=raw, capture_output=True, check=True).stdout


def called(session: str, number: int) -> dict[str, Any]:
    return {
        "hook_event_name": "PreToolUse",
        "session_id": session,
        "tool_name": "Bash",
        "tool_use_id": f"{session}-{number}",
        "tool_input": {"command": f"ls {number}"},
    }


def calls(folder: Path) -> dict[str, list[str]]:
    """Return the ids of the calls that are stored, by session, in their order."""
    with Store(folder / "store.db") as store:
        found = {}
        for session in store.sessions():
            told = [decode_event(row.data) for row in store.events(session.id) if row.kind == "tool_call"]
            found[session.session] = [each.call_id for each in told if isinstance(each, ToolCall)]
        return found


@pytest.mark.parametrize("count", [24, pytest.param(2_000, marks=pytest.mark.slow)])
def test_daemon_counts_every_call_of_four_sessions_at_once(folder: Path, count: int) -> None:
    asked = [called(f"s{number % 4}", number) for number in range(count)]
    with running(folder), ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda payload: send(folder, payload), asked))
    assert {name: sorted(ids) for name, ids in calls(folder).items()} == {
        f"s{at}": sorted(each["tool_use_id"] for each in asked if each["session_id"] == f"s{at}") for at in range(4)
    }


def test_daemon_a_hook_starts_it_and_what_came_meanwhile_is_not_lost(folder: Path, tmp_path: Path) -> None:
    env = {**os.environ, "COHERENCE_STORE": str(folder / "store.db")}
    command = [sys.executable, "-I", "-S", hook.__file__, str(folder)]
    for number in range(3):
        raw = json.dumps(called("s1", number)).encode()
        subprocess.run(command, input=raw, check=True, env=env)
    until = time.monotonic() + 30
    while not (folder / hook.SOCKET).exists() or list((folder / hook.SPOOL).iterdir()):
        assert time.monotonic() < until, (folder / hook.LOG).read_text()
        time.sleep(0.05)
    second = subprocess.run(
        [sys.executable, "-m", "coherence", "daemon", "run", "--state", str(folder)],
        capture_output=True,
        text=True,
        check=True,
        env=env,
    )
    assert "runs already" in second.stdout
    # a hook of another version: it is answered, and the old daemon makes room
    os.chdir(folder)
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(hook.SOCKET)
        line.sendall(b"coherence-hook claude-code 1 steer\n" + json.dumps(called("s1", 3)).encode())
        line.shutdown(socket.SHUT_WR)
        assert line.recv(100) == hook.TAKEN
    gone = False
    while not gone:
        assert time.monotonic() < until
        time.sleep(0.05)
        with only_one() as gone:
            pass
    assert calls(folder) == {"s1": [f"s1-{number}" for number in range(4)]}


def test_handle_status_is_answered_while_a_hook_waits_for_a_measurement(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coherence.monitor.worker.VIEW_WAIT_S", 60)  # who waits at all, waits longer than the gate
    folder.mkdir(mode=0o700)
    os.chdir(folder)
    fleets = []

    def make_fleet(kept: Store, _: Path | None) -> Fleet:
        fleets.append(Fleet(store=kept, embedder=HashingEmbedder(32)))
        return fleets[-1]

    daemon = HookDaemon(folder, folder / "store.db", make_fleet=make_fleet)

    def told(event: str, **payload: Any) -> bytes:
        said = json.dumps({"hook_event_name": event, "session_id": "s1", **payload})
        return daemon.handle(f"coherence-hook claude-code {daemon.build} steer\n{said}".encode())

    failed = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "t1"}
    try:
        refused = told("PreToolUse", tool_name="Bash", tool_input={"command": "rm -rf /"}, tool_use_id="t0")
        told("PostToolUseFailure", error="no such file", **failed)
        gate = Gate(monkeypatch)
        waiting = threading.Thread(target=told, args=("PostToolBatch",))
        waiting.start()
        (monitor,) = fleets[0]
        until(lambda: gate.asked.is_set() and not is_free(monitor._worker._lock))
        feed = {"cost": {"total_cost_usd": 0.5}, "context_window": {"used_percentage": 13}}
        command = {"do": "status", "session": "s1", "feed": feed}
        found = json.loads(daemon.handle(b"coherence-control\n" + json.dumps(command).encode()))
        assert waiting.is_alive() and not gate.expired
        (agent,) = found["sessions"][0]["agents"]
        assert (agent["calls"], agent["errors"], agent["cost_usd"], agent["context_percent"]) == (1, 1, 0.5, 13)
        assert f"(coherence explain {agent['refusal'].removeprefix('refusal-')[:8]})".encode() in refused
        gate.go_on.set()
        waiting.join()
    finally:
        daemon.close()


def is_free(lock: Any) -> bool:
    """Tell whether no other thread holds a lock."""
    found: bool = lock.acquire(blocking=False)
    if found:
        lock.release()
    return found


HOSTILE = {
    "nothing": b"",
    "nested": b"[" * 1_000_000,
    "10 MB": b'{"session_id": "s", "hook_event_name": "Stop", "x": "' + b"a" * 10_000_000 + b'"}',
    "traversal": b'{"session_id": "../../etc", "hook_event_name": "SessionStart", "cwd": "/"}',
    "control characters": b'{"session_id": "\\u0000\\u001b[2J", "hook_event_name": "Stop"}',
    "types": b'{"session_id": {"a": 1}, "hook_event_name": ["Stop"]}',
    "no UTF-8": b"\xff\xfe\x00",
    "a pipe": b'{"session_id": "s1", "hook_event_name": "Stop", "transcript_path": "/dev/stdin"}',
}


def test_daemon_hostile_payloads_change_nothing_outside_the_store_and_open_no_port(folder: Path) -> None:
    with running(folder) as process:
        before = {path.name for path in folder.iterdir()}
        for hostile in HOSTILE.values():
            send(folder, hostile)
        send(folder, called("s1", 1))
        assert {path.name for path in folder.iterdir()} == before
        held = {os.readlink(f"/proc/{process.pid}/fd/{name}") for name in os.listdir(f"/proc/{process.pid}/fd")}
        for table in ("tcp", "tcp6", "udp", "udp6"):
            rows = Path(f"/proc/{process.pid}/net/{table}").read_text().splitlines()[1:]
            assert not held & {f"socket:[{row.split()[9]}]" for row in rows}
    assert calls(folder)["s1"] == ["s1-1"]


@pytest.mark.parametrize("raw", [b"", b"GET / HTTP/1.1\r\n\r\n", b"coherence-hook other 1 steer\n{}"])
def test_read_request_refuses_what_no_hook_has_sent(raw: bytes) -> None:
    with pytest.raises(RequestError):
        read_request(raw)


def test_read_spool_leaves_what_cannot_be_read_and_takes_in_the_rest(folder: Path) -> None:
    spool = folder / hook.SPOOL
    (spool / "0.payload").mkdir(parents=True)  # no file
    folder.chmod(0o700)
    os.chdir(folder)
    for number in range(2):
        hook.keep(json.dumps(called("s1", number)).encode(), observe=False)
    daemon = HookDaemon(folder, folder / "store.db", make_fleet=lambda kept, _: Fleet(store=kept, embedder=False))
    try:
        assert daemon.read_spool() == 2
        assert daemon.read_spool() == 0
    finally:
        daemon.close()
    assert [path.name for path in spool.iterdir()] == ["0.payload"]
    assert calls(folder) == {"s1": ["s1-0", "s1-1"]}
