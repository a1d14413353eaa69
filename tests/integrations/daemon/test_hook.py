"""The hook itself, as the client starts it: a process without the package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from coherence.core.config import disabled
from coherence.integrations.daemon import hook

CALL = {"hook_event_name": "PreToolUse", "session_id": "s1", "tool_name": "Bash", "tool_input": {"command": "rm -rf ~"}}


def run(folder: Path, payload: bytes, **env: str) -> subprocess.CompletedProcess[bytes]:
    (folder / hook.WAKING).parent.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_mode & 0o077 == 0:
        (folder / hook.WAKING).touch()  # as if another hook had just started the daemon
    return subprocess.run(
        [sys.executable, "-I", "-S", hook.__file__, str(folder)],
        input=payload,
        capture_output=True,
        check=False,
        env={**os.environ, **env},
    )


def test_hook_without_a_daemon_keeps_the_payload_and_lets_the_agent_go_on(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    done = run(folder, json.dumps(CALL).encode())
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    (kept,) = (folder / hook.SPOOL).iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600
    line, _, body = kept.read_bytes().partition(b"\n")
    assert line.split() == [b"coherence-hook", b"claude-code", hook.build().encode(), b"steer"]
    assert json.loads(body) == CALL


def test_stored_answer_of_a_refused_call_stays_without_a_daemon_and_another_call_runs(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    (folder / hook.BLOCKED).mkdir(parents=True)
    folder.chmod(0o700)
    (folder / hook.BLOCKED / hook.call_key(dict(CALL))).write_bytes(b'{"denied": true}')
    assert run(folder, json.dumps({**CALL, "tool_use_id": "other"}).encode()).stdout == b'{"denied": true}'
    assert run(folder, json.dumps({**CALL, "session_id": "s2"}).encode()).stdout == b""
    assert run(folder, b"[" * 100_000).stdout == b""


@pytest.mark.skipif(sys.platform == "win32", reason="modes of folders are POSIX")
def test_enter_a_folder_that_others_may_enter_is_not_trusted(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    done = run(folder, b"{}")
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"chmod 700" in done.stderr
    assert not list(folder.iterdir())
    folder.chmod(0o700)
    link = tmp_path / "link"
    link.symlink_to(folder)
    assert b"must be a folder" in run(link, b"{}").stderr


def test_main_switched_off_does_nothing(tmp_path: Path) -> None:
    done = run(tmp_path / "state", b"{}", COHERENCE_DISABLED="1")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert not (tmp_path / "state" / hook.SPOOL).exists()


def test_hook_imports_nothing_beyond_the_standard_library() -> None:
    listed = subprocess.run(
        [sys.executable, "-I", "-S", "-X", "importtime", hook.__file__], capture_output=True, check=True, text=True
    )
    loaded = {line.rpartition("|")[2].strip() for line in listed.stderr.splitlines()}
    assert "_socket" in loaded
    assert not loaded & {"socket", "json", "subprocess", "coherence", "typing", "hashlib"}


@pytest.mark.parametrize("value", [*hook.ENABLED, "1", "yes", " OFF "])
def test_enabled_values_are_those_of_the_package(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COHERENCE_DISABLED", value)
    assert disabled() == (value.strip().lower() not in hook.ENABLED)
