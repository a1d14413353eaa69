"""Commands to the daemon: status, stop and the end of a block."""

from __future__ import annotations

import json
import socket
import sys
import time
from pathlib import Path

import pytest
from integrations.running import Daemon, call, fail, running, tell

from coherence.core.errors import CoherenceError
from coherence.fleet.fleet import Fleet
from coherence.integrations.claude_code.session import ClaudeCodeSession
from coherence.integrations.daemon import hook
from coherence.integrations.daemon.control import (
    CommandError,
    agent_records,
    is_command,
    read_command,
    trend_of,
    unblock_agents,
)
from coherence.integrations.daemon.folder import LOCK, control, stop_daemon
from coherence.integrations.daemon.refusals import forget_refusals, store_refusal

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the daemon needs Unix sockets")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)  # back again at the end
    return tmp_path / "state"


def raw(sent: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(hook.SOCKET)
        line.sendall(sent)
        line.shutdown(socket.SHUT_WR)
        answer = b""
        while part := line.recv(1 << 16):
            answer += part
    return answer


def test_stop_daemon_ends_one_that_does_not_answer_yet(folder: Path) -> None:
    assert stop_daemon(folder) is None and not folder.exists()
    folder.mkdir(mode=0o700)
    (folder / LOCK).touch()
    assert stop_daemon(folder) is None  # nobody holds the lock
    (folder / hook.WAKING).touch()  # as the hook does that starts it
    process = Daemon(folder, ["daemon", "run", "--state", str(folder), "--store", str(folder / "store.db")])
    try:
        found = stop_daemon(folder)
        assert found is not None and found[1], "it was not waited for"
        assert process.wait(10) == 0
        assert stop_daemon(folder) is None
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"stop", b"{}", b'{"do": 1}', b'{"do": "unblock", "agent": []}', b"[" * 100_000, b"\xff"]
)
def test_read_command_refuses_what_is_none(body: bytes) -> None:
    with pytest.raises(CommandError, match="not a command"):
        read_command(b"coherence-control\n" + body)


def test_is_command_a_payload_that_begins_alike_is_none() -> None:
    assert is_command(b"coherence-control\n{}") and is_command(b"coherence-control\r\n{}")
    assert not is_command(b"coherence-controls\n{}") and not is_command(b"coherence-hook claude-code 1 steer\n{}")


@pytest.mark.parametrize(
    ("indices", "trend"),
    [
        ([], None),
        ([0.4], None),
        ([0.4, None], None),
        ([0.5, 0.4], "up"),
        ([0.4, 0.44], "steady"),
        ([0.1, 0.9, 0.9], "down"),
        ([0.9, 0.8, None, 0.2, 0.1], "up"),
    ],
)
def test_trend_of_newer_readings_against_older_ones(indices: list[float | None], trend: str | None) -> None:
    assert trend_of(indices) == trend


def test_agent_records_a_subagent_names_its_parent_and_cost_is_known_from_usage_on() -> None:
    with Fleet(embedder=False) as fleet:
        session = ClaudeCodeSession(fleet, "s1")
        session.handle({"hook_event_name": "SubagentStart", "agent_id": "a1", "agent_type": "Explore"})
        before = agent_records(fleet)
        fleet.agent("claude-code").usage(tokens_in=10, tokens_out=5, cost_usd=0.25)
        fleet.flush()
        after = agent_records(fleet)
    assert [(each["agent"], each["parent"], each["cost_usd"]) for each in before] == [
        ("claude-code", None, None),
        ("claude-code/Explore-a1", "claude-code", None),
    ]
    assert [each["cost_usd"] for each in after] == [0.25, None]
    assert before[0]["index"] is before[0]["band"] is before[0]["trend"] is None
    assert (before[0]["decision"], before[0]["cause"], before[0]["steps"]) == ("continue", "", 0)


def test_agent_records_name_the_newest_refusal_of_a_call_or_of_a_step() -> None:
    asked = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "rm -rf /"}}
    with Fleet(embedder=False) as fleet:
        session = ClaudeCodeSession(fleet, "s1")
        monitor = session.monitor
        (before,) = agent_records(fleet)
        reason = session.handle(asked)["hookSpecificOutput"]["permissionDecisionReason"]
        (call,) = agent_records(fleet)
        for _ in range(12):
            monitor.tool_result("boom", error=True, tool="Bash")
            decision = monitor.decide()
        (step,) = agent_records(fleet)
        assert decision == "block" and step["refusal"] == monitor.refusal_id(decision) != call["refusal"]
        monitor.goal("Another task")
        monitor.unblock()
        monitor.decide()
        (after,) = agent_records(fleet)
    assert reason.endswith(f" (coherence explain {call['refusal'].removeprefix('refusal-')[:8]})")
    assert before["refusal"] is after["refusal"] is None


def test_unblock_agents_only_those_that_are_blocked() -> None:
    asked = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "rm -rf /"}}
    with Fleet(embedder=False) as fleet:
        session = ClaudeCodeSession(fleet, "s1")
        session.handle({"hook_event_name": "SubagentStart", "agent_id": "a1", "agent_type": "Explore"})
        assert unblock_agents(fleet, None, "") == []
        assert session.handle(asked)
        assert unblock_agents(fleet, None, "a person looked") == [{"agent": "claude-code", "rules": [], "call": True}]
        assert not session.handle(asked)  # it may run
        named = unblock_agents(fleet, "Explore-a1", "")
        assert named == [{"agent": "claude-code/Explore-a1", "rules": [], "call": False}]
        with pytest.raises(CommandError, match="no agent Plan in this session, but claude-code"):
            unblock_agents(fleet, "Plan", "")


def test_forget_refusals_of_one_session_leaves_those_of_others(tmp_path: Path) -> None:
    for session, key in (("s1", "a"), ("s1", "b"), ("../s2", "c"), ("s1", "a")):
        store_refusal(tmp_path, session, key, b"{}")
    blocked = tmp_path / hook.BLOCKED
    assert {path.name for path in blocked.iterdir() if path.is_file()} == {"a", "b", "c"}
    assert {path.stat().st_mode & 0o777 for path in blocked.iterdir() if path.is_file()} == {0o600}
    (blocked / "b").unlink()
    assert (forget_refusals(tmp_path, "s1"), forget_refusals(tmp_path, "s1")) == (1, 0)
    assert {path.name for path in blocked.iterdir() if path.is_file()} == {"c"}
    assert forget_refusals(tmp_path, "../s2") == 1


def test_control_says_how_agents_stand_and_refuses_unknown_commands(folder: Path) -> None:
    assert control(folder, "status") is None
    with running(folder) as process:
        fail("s1", 6, agent_id="a1", agent_type="Explore")
        tell("UserPromptSubmit", "s2", prompt="List the files.")
        found = control(folder, "status")
        assert found is not None
        assert (found["schema"], found["pid"]) == ("coherence.status/1", process.pid)
        assert [each["session"] for each in found["sessions"]] == ["s2", "s1"]  # the newest use first
        main, child = found["sessions"][1]["agents"]
        assert (main["agent"], child["parent"], child["calls"], child["errors"]) == ("claude-code", "claude-code", 6, 6)
        assert child["trend"] == "down" and child["cause"] and child["pressure"] > 0.3
        only = control(folder, "status", session="s2")
        assert only is not None and [each["session"] for each in only["sessions"]] == ["s2"]
        assert control(folder, "status", session="s3") == {**found, "sessions": []}
        with pytest.raises(CoherenceError, match="unknown command dance; there are status, stop, unblock"):
            control(folder, "dance")
        assert "not a command" in json.loads(raw(b"coherence-control\nstop"))["error"]
        assert raw(b"coherence-control stop") == hook.TAKEN  # no command and no payload
        assert process.poll() is None


@pytest.mark.slow
def test_control_unblock_a_session_from_before_a_restart(folder: Path) -> None:
    with running(folder):
        assert not call("s1", "rm -rf /") and not call("s2", "rm -rf /")
        assert len([path for path in (folder / hook.BLOCKED).iterdir() if path.is_file()]) == 2
    with running(folder):
        with pytest.raises(CoherenceError, match="no session is followed now"):
            control(folder, "unblock")
        with pytest.raises(CoherenceError, match="nothing is known of the session s3"):
            control(folder, "unblock", session="s3")
        found = control(folder, "unblock", session="s1", reason="a person looked")
        assert found is not None and found["schema"] == "coherence.unblock/1"
        assert (found["session"], found["refusals"]) == ("s1", 1)
        assert [each["agent"] for each in found["agents"]] == ["claude-code"]
        assert call("s1", "rm -rf /") and not call("s2", "rm -rf /")
        newest = control(folder, "unblock")
        assert newest is not None and newest["session"] == "s2"


def test_control_a_status_line_keeps_no_daemon_alive(folder: Path) -> None:
    with running(folder, "--idle", "1") as process:
        until = time.monotonic() + 20
        while process.poll() is None:
            assert time.monotonic() < until
            try:
                control(folder, "status")
            except CoherenceError:
                break  # it is ending
            time.sleep(0.2)


@pytest.mark.slow
def test_handle_a_prompt_unblocks_after_a_restart_and_forgets_what_is_kept_for_hooks_alone(folder: Path) -> None:
    with running(folder):
        assert not call("s1", "rm -rf /") and not call("s2", "rm -rf /")
    with running(folder):
        told = tell("UserPromptSubmit", "s1", prompt="/coherence:unblock I looked")
        assert told["systemMessage"] == "coherence: claude-code: the call refused last may run"
        assert len([path for path in (folder / hook.BLOCKED).iterdir() if path.is_file()]) == 1  # that of s2
        assert call("s1", "rm -rf /") and not call("s2", "rm -rf /")
