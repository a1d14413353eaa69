"""No output is half-written, even if the command is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from coherence.report.files import write_atomically

DATA = Path(__file__).resolve().parents[2] / "examples" / "data"


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.2, 0.8, 1.4, 2.0, 2.6, 3.2])
def test_kill_a_killed_run_leaves_the_old_output_or_the_whole_new_one(tmp_path: Path, delay: float) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text("old\n", encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-m", "coherence", "score", DATA / "whowhen.jsonl.gz", "--jsonl", out],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    process.wait()
    text = out.read_text(encoding="utf-8")
    if text != "old\n":
        assert len([json.loads(line) for line in text.splitlines()]) == 30  # 8 + 10 + 12 steps


def test_kill_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("old", encoding="utf-8")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(path, "half \ud800")
    assert path.read_text(encoding="utf-8") == "old"
    assert os.listdir(tmp_path) == ["out.txt"]


def test_kill_the_mode_of_a_replaced_file_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("old", encoding="utf-8")
    path.chmod(0o640)
    write_atomically(path, "new")
    assert path.stat().st_mode & 0o777 == 0o640
