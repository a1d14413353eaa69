"""Runs scored side by side: the same results in the same order, and one message where something fails."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import coherence.cli.parallel
from cli.endings import end_process
from cli.refusals import complaint
from coherence.cli.main import main
from coherence.cli.parallel import MAX_PROCESSES, ProcessEndedError, count_processes, score_side_by_side
from coherence.providers.readers import read_transcripts
from coherence.report.ahead import usable_cores
from coherence.report.score import ScoredRun

DATA = Path(__file__).resolve().parents[2] / "examples" / "data"
FILES = (DATA / "agentdojo.jsonl.gz", DATA / "whowhen.jsonl.gz")


def score(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["score", "--embedder", "hashing", *map(str, arguments)])


@pytest.mark.slow
def test_score_side_by_side_changes_no_output(tmp_path: Path) -> None:
    """A bad file between two good ones, a window and a metric, settings, and every output."""
    bad, config, out = tmp_path / "bad.jsonl", tmp_path / "config.toml", tmp_path / "out.jsonl"
    bad.write_text("{", encoding="utf-8")
    config.write_text('weights = "classic"\n', encoding="utf-8")
    given = (FILES[0], bad, FILES[1], "--window", 7, "--metric", "stall", "--config", config, "--json")
    found = []
    for jobs in (1, 3):
        result = score(*given, "--jobs", jobs, "--jsonl", out)
        assert result.exit_code == 2 and "bad.jsonl" in result.stderr
        found.append((result.stdout, result.stderr, out.read_bytes()))
    assert found[0] == found[1]


def test_score_side_by_side_begins_no_process_for_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> list[ScoredRun]:
        raise AssertionError("a process was begun")

    monkeypatch.setattr(coherence.cli.parallel, "score_side_by_side", refuse)
    path = tmp_path / "run.jsonl"
    path.write_text(json.dumps({"id": "one", "steps": [{"role": "assistant", "content": "Done"}]}) + "\n")
    assert score(path, "--jobs", 4).exit_code == 0


@pytest.mark.slow
def test_score_side_by_side_settings_that_do_not_fit_are_bad_usage(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("weights = {nothing = 1.0}\n", encoding="utf-8")
    told = [complaint(score(FILES[0], "--config", config, "--jobs", jobs)) for jobs in (1, 2)]
    assert told[0] == told[1] and "nothing" in told[0]


@pytest.mark.slow
def test_score_side_by_side_a_process_that_is_killed_ends_all_with_one_message() -> None:
    transcripts = read_transcripts(FILES[0])
    with pytest.raises(ProcessEndedError, match="fewer --jobs") as raised:
        score_side_by_side(transcripts, end_process, "hashing", 2, lambda _: None)
    assert raised.value.exit_code == 2


def test_score_side_by_side_is_not_for_runs_that_are_recorded(tmp_path: Path) -> None:
    """They stand in the store in their order, and no two of one name may take the same session."""
    store = tmp_path / "s.db"
    assert "one at a time: leave out --jobs" in complaint(score(*FILES, "--jobs", 2, "--store", store))
    assert not store.exists()


def test_count_processes() -> None:
    assert count_processes(0, 1_000) == min(usable_cores(), MAX_PROCESSES)
    # as asked for, but no more than there are runs or Windows can wait for
    assert [count_processes(jobs, runs) for jobs, runs in ((1, 9), (4, 9), (4, 3), (4, 0), (500, 900))] == [
        1,
        4,
        3,
        0,
        61,
    ]


@pytest.mark.slow
@pytest.mark.parametrize("moment_s", [0.0, 2.0])
def test_score_side_by_side_ends_on_an_interrupt_without_a_traceback(moment_s: float) -> None:
    """Ctrl-C is heard while the processes start, and while they work."""
    runs = Path(__file__).resolve().parents[1] / "data" / "runs" / "tau_retail.jsonl.gz"  # 231 runs, minutes
    command = [sys.executable, "-m", "coherence", "score", str(runs), "--embedder", "hashing", "--jobs", "2"]
    ours = signal.signal(signal.SIGINT, signal.SIG_DFL)  # a suite in the background ignores it
    try:
        process = subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True, text=True)
    finally:
        signal.signal(signal.SIGINT, ours)
    with process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        time.sleep(1 if children.exists() else 5)
        while children.exists() and len(children.read_text().split()) < 3:  # the two, and multiprocessing's own
            time.sleep(0.05)
        time.sleep(moment_s)
        os.killpg(process.pid, signal.SIGINT)
        _, told = process.communicate(timeout=30)
    assert (process.returncode, told.split()) == (1, ["Aborted!"])
