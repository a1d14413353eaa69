"""The daemon's log: its newest lines, and that it is begun anew before it grows without bound."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from integrations.running import running, tell

from coherence.integrations.daemon import hook
from coherence.integrations.daemon.folder import control
from coherence.integrations.daemon.log import MAX_LOG, OLD_LOG, newest_lines, rotate_log

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the daemon needs Unix sockets")

PRINTING = """
import os, sys
from coherence.integrations.daemon.log import rotate_log
for at in range(3):
    os.write(2, b"x" * 600_000 + f" {at}\\n".encode())
    print(rotate_log(), file=sys.stderr, flush=True)
"""


def test_rotate_log_what_is_printed_goes_on_in_the_new_one_and_one_old_one_is_kept(tmp_path: Path) -> None:
    with (tmp_path / hook.LOG).open("ab") as log:
        subprocess.run([sys.executable, "-c", PRINTING], stdout=log, stderr=log, cwd=tmp_path, check=True)
    # 600 kB stay, 1.2 MB go, and the third 600 kB stand in the new log
    assert [line[-2:] for line in (tmp_path / OLD_LOG).read_text().splitlines()] == [" 0", "se", " 1"]
    assert [line[-2:] for line in (tmp_path / hook.LOG).read_text().splitlines()] == ["ue", " 2", "se"]
    assert (tmp_path / hook.LOG).stat().st_mode & 0o777 == 0o600


def test_rotate_log_leaves_a_short_one_and_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert not rotate_log()
    Path(hook.LOG).write_bytes(b"x" * MAX_LOG)
    assert not rotate_log() and os.listdir() == [hook.LOG]


def test_newest_lines_go_back_into_the_old_log_and_no_further_than_asked(tmp_path: Path) -> None:
    assert newest_lines(tmp_path, 3) is None
    (tmp_path / OLD_LOG).write_text("a\nb\n")
    assert newest_lines(tmp_path, 3) == ["a", "b"]
    (tmp_path / hook.LOG).write_bytes(b"c\n\xff\n")
    assert newest_lines(tmp_path, 3) == ["b", "c", "\ufffd"]
    assert newest_lines(tmp_path, 1) == ["\ufffd"]


def test_rotate_log_a_running_daemon_does_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with running(tmp_path / "state"):
        (tmp_path / "state" / hook.LOG).write_bytes(b"x" * (MAX_LOG + 1))
        for _ in range(2):  # it looks before each request
            tell("UserPromptSubmit", "s1", prompt="List the files.")
            control(tmp_path / "state", "status")
        assert (tmp_path / "state" / OLD_LOG).stat().st_size == MAX_LOG + 1
