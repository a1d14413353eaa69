"""``coherence daemon``, as a user runs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from coherence.cli.main import main
from coherence.integrations.daemon import hook

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the daemon needs Unix sockets")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # commands enter the state folder


def place(state: Path) -> dict[str, str]:
    return {"COHERENCE_STATE": str(state), "COHERENCE_STORE": str(state.parent / "store.db")}


def run(state: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["daemon", *arguments], env=place(state))


def spawn(state: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "coherence", "daemon", *arguments]
    env = {**os.environ, **place(state)}
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)


def test_start_waits_for_the_daemon_and_starts_no_second_one(tmp_path: Path) -> None:
    state = tmp_path / "state"
    assert run(state, "stop").stdout == "no daemon runs\n"
    first = spawn(state, "start", "--idle", "60")
    try:
        found = re.fullmatch(r"daemon (\d+) runs\n", first.stdout)
        assert found is not None and first.returncode == 0, first.stderr
        assert (state / hook.SOCKET).exists() and (state / hook.LOG).stat().st_mode & 0o777 == 0o600
        assert run(state, "start").stdout == f"daemon {found[1]} runs already\n"
    finally:
        ended = spawn(state, "stop")
    assert ended.stdout == f"daemon {found[1]} has ended\n"
    again = spawn(state, "start")
    assert re.fullmatch(r"daemon \d+ runs\n", again.stdout) and again.stdout != first.stdout
    assert run(state, "stop").stdout == again.stdout.replace(" runs", " has ended")


def test_start_says_where_to_read_why_a_daemon_did_not_come(tmp_path: Path) -> None:
    (tmp_path / "store.db").mkdir()
    done = run(tmp_path / "state", "start")
    assert (done.exit_code, done.stderr) == (1, "Error: the daemon ended with 1: coherence daemon logs says why\n")
    assert f"{tmp_path / 'store.db'}" in run(tmp_path / "state", "logs").stdout


def test_start_refuses_a_folder_that_others_may_enter(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir(mode=0o755)
    done = run(tmp_path / "state", "start")
    assert done.exit_code == 1 and "must be a folder that only you may enter" in done.stderr


def test_logs_prints_the_newest_lines_without_the_controls_of_a_terminal(tmp_path: Path) -> None:
    none = run(tmp_path, "logs")
    assert (none.exit_code, none.stdout, none.stderr) == (0, "", f"no log in {tmp_path} yet\n")
    (tmp_path / hook.LOG).write_text("".join(f"line {at}\n" for at in range(50)) + "\x1b[2Jred\n")
    assert spawn(tmp_path, "logs", "-n", "2").stdout == "line 49\n [2Jred\n"
    assert len(run(tmp_path, "logs").stdout.splitlines()) == 40
    assert run(tmp_path, "logs", "-n", "0").exit_code == 2
    (tmp_path / hook.LOG).unlink()
    (tmp_path / hook.LOG).mkdir()
    assert run(tmp_path, "logs").stderr == f"Error: {tmp_path / hook.LOG}: Is a directory\n"
