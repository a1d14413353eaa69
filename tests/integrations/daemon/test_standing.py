"""An agent that is refused every call stays refused when no daemon runs, until somebody ends it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from coherence.fleet.fleet import Fleet
from coherence.integrations.daemon import hook
from coherence.integrations.daemon.refusals import forget_refusal, store_refusal
from coherence.integrations.daemon.server import HookDaemon

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the daemon needs Unix sockets")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "state"
    made.mkdir(mode=0o700)
    monkeypatch.chdir(made)  # back again at the end
    (made / hook.WAKING).touch()  # no hook starts a daemon
    return made


class Daemon:
    """A daemon in this process whose sessions may make so many calls."""

    def __init__(self, folder: Path, calls: int | None, **config: Any) -> None:
        settings = {**config, "budget": {"calls": calls}} if calls is not None else config

        def fleet(store: Any, _: Path | None) -> Fleet:
            return Fleet(store=store, embedder=False, resume=True, config=settings)

        self.daemon = HookDaemon(folder, folder / "store.db", make_fleet=fleet)

    def __enter__(self) -> HookDaemon:
        return self.daemon

    def __exit__(self, *_: object) -> None:
        self.daemon.close()


def payload(event: str, command: str = "", **fields: Any) -> bytes:
    asked = {"tool_name": "Bash", "tool_input": {"command": command}} if command else {}
    return json.dumps({"hook_event_name": event, "session_id": "s1", **asked, **fields}).encode()


def told(daemon: HookDaemon, event: str, command: str = "", **fields: Any) -> bytes:
    return daemon.handle(hook.request(payload(event, command, **fields), observe=False))


def asked_alone(folder: Path, command: str, **fields: Any) -> bool:
    """Ask with a real hook whether a call may run while no daemon does."""
    run = [sys.executable, "-I", "-S", hook.__file__, str(folder)]
    done = subprocess.run(run, input=payload("PreToolUse", command, **fields), capture_output=True, check=True)
    return done.stdout == b""


def test_stored_answer_a_used_up_budget_refuses_every_call_without_a_daemon(folder: Path) -> None:
    with Daemon(folder, 1) as daemon:
        assert told(daemon, "PreToolUse", "ls 1") == b""
        assert b'"deny"' in told(daemon, "PreToolUse", "ls 2")
        assert told(daemon, "PreToolUse", "ls 3", agent_id="a1", agent_type="Plan") == b""  # with a budget of its own
    assert not asked_alone(folder, "ls 4")
    assert not asked_alone(folder, "cat x")
    assert asked_alone(folder, "ls 4", session_id="s2")
    assert not asked_alone(folder, "ls 5", agent_id="a1")  # which is used up, too
    assert asked_alone(folder, "ls 5", agent_id="a2")
    run = [sys.executable, "-I", "-S", hook.__file__, str(folder)]
    done = subprocess.run(run, input=payload("PostToolUse", "ls"), capture_output=True, check=True)
    assert done.stdout == b""  # what has run is no question


def test_stored_answer_a_budget_that_was_used_up_at_the_end_of_a_step_counts(folder: Path) -> None:
    with Daemon(folder, 1) as daemon:
        told(daemon, "PreToolUse", "ls 1", tool_use_id="t1")
        told(daemon, "PostToolUse", "ls 1", tool_use_id="t1", tool_response={"stdout": ""})
        told(daemon, "PostToolBatch", tool_calls=[])
    assert not asked_alone(folder, "ls 2")


@pytest.mark.parametrize(
    ("calls", "ends"),
    [
        (1, b'coherence-control\n{"do": "unblock", "session": "s1"}'),
        (1, hook.request(payload("SessionEnd", reason="other"), observe=False)),
        (100, hook.request(payload("PreToolUse", "ls 8"), observe=False)),
    ],
    ids=["unblocked", "over", "raised"],
)
def test_stored_answer_ends_with_the_block(folder: Path, calls: int, ends: bytes) -> None:
    with Daemon(folder, 1) as daemon:
        for number in range(3):
            told(daemon, "PreToolUse", f"ls {number}")
    assert not asked_alone(folder, "ls 9")
    with Daemon(folder, calls) as daemon:
        daemon.handle(ends)
    assert asked_alone(folder, "ls 9")


def test_stored_answer_of_a_block_is_for_one_call_unless_the_settings_refuse_all(folder: Path) -> None:
    def fail(daemon: HookDaemon, numbers: range) -> None:
        for number in numbers:
            for event, more in (("PreToolUse", {}), ("PostToolUseFailure", {"error": "No such file: missing.py"})):
                told(daemon, event, "python3 missing.py", tool_use_id=f"t{number}", **more)
            told(daemon, "PostToolBatch", tool_calls=[])

    with Daemon(folder, None) as daemon:
        fail(daemon, range(12))
    assert asked_alone(folder, "ls")
    with Daemon(folder, None, block="all") as daemon:
        fail(daemon, range(12, 14))
        assert b'"deny"' in told(daemon, "PreToolUse", "ls")
    assert not asked_alone(folder, "cat x")


def test_stored_answer_ends_for_a_call_that_the_person_has_let_through(folder: Path) -> None:
    asked: dict[str, Any] = {"command": "rm -rf ~", "tool_use_id": "t1", "permission_mode": "default"}
    with Daemon(folder, None) as daemon:
        assert b'"ask"' in told(daemon, "PreToolUse", **asked)
        assert not asked_alone(folder, **asked)
        told(daemon, "PostToolUse", **asked, tool_response={"stdout": ""})
        assert b"permissionDecision" not in told(daemon, "PreToolUse", **{**asked, "tool_use_id": "t2"})
    assert asked_alone(folder, **asked)


def test_forget_refusal_deletes_one_and_its_mark(folder: Path) -> None:
    for key in ("a", "b"):
        store_refusal(folder, "s1", key, b"{}")
    forget_refusal(folder, "s1", "a")
    forget_refusal(folder, "s1", "a")  # there is none any more
    assert {path.name for path in (folder / hook.BLOCKED).rglob("*") if path.is_file()} == {"b"}
