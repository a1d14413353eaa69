"""A recorded store, scored like a transcript."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from coherence import Monitor
from coherence.cli.main import main
from coherence.core.errors import TranscriptError
from coherence.core.readings import Counters
from coherence.providers.transcript import Step, TranscriptCall
from coherence.report.recorded import read_recorded


def record(path: Path) -> None:
    with Monitor(store=path, agent="coder", goal="Fix the login.", embedder=False) as m:
        m.message("assistant", "I run the test.")
        call = m.tool_call("Bash", {"command": "pytest"})
        m.usage(tokens_in=100, tokens_out=10)
        m.usage(tokens_in=50)
        m.tool_result("1 failed", call=call, error=True, duration_s=2.5)
        m.message("user", "Look at the date too.")
        m.tool_call("Read", {"path": "login.py"})
        m.tool_result("def login(): ...")
        m.outcome(success=False)
    with Monitor(store=path, agent="idle", embedder=False):
        pass


def test_read_recorded_a_session_is_what_was_told(tmp_path: Path) -> None:
    record(tmp_path / "s.db")
    (run,) = read_recorded(tmp_path / "s.db")
    assert (run.id, run.goal, run.outcome, run.went_wrong) == ("coder/1", "Fix the login.", "failed", True)
    first = run.steps[0].tool_calls[0]
    assert all(step.ts is not None for step in run.steps)
    assert tuple(msgspec.structs.replace(step, ts=None) for step in run.steps) == (
        Step(
            role="assistant",
            content="I run the test.",
            tool_calls=(TranscriptCall("Bash", {"command": "pytest"}, first.id),),
            usage=Counters(tokens_in=150, tokens_out=10),
        ),
        Step(role="tool", content="1 failed", tool_name="Bash", is_error=True, latency_s=2.5),
        Step(role="user", content="Look at the date too."),
        Step(
            role="assistant", tool_calls=(TranscriptCall("Read", {"path": "login.py"}, run.steps[3].tool_calls[0].id),)
        ),
        Step(role="tool", content="def login(): ...", tool_name="Read"),
    )


def test_read_recorded_a_label_counts_more_than_the_outcome(tmp_path: Path) -> None:
    record(tmp_path / "s.db")
    for label, found in (("good", ("good", False)), ("bad", ("bad", True)), ("none", ("failed", True))):
        assert CliRunner().invoke(main, ["label", str(tmp_path / "s.db"), "coder", label]).exit_code == 0
        (run,) = read_recorded(tmp_path / "s.db")
        assert (run.outcome, run.went_wrong) == found


def test_read_recorded_the_command_scores_a_store(tmp_path: Path) -> None:
    record(tmp_path / "s.db")
    result = CliRunner().invoke(main, ["score", str(tmp_path / "s.db"), "--embedder", "hashing", "--json"])
    assert result.exit_code == 0, result.output
    (run,) = json.loads(result.stdout)["runs"]
    assert (run["run_id"], run["format"], run["steps"], run["outcome"]) == ("coder/1", "store", 5, "failed")


def test_read_recorded_what_is_no_store_is_refused_by_name(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE notes (text)")
    other.close()
    with pytest.raises(TranscriptError, match=r"other\.db"):
        read_recorded(tmp_path / "other.db")
    with Monitor(store=tmp_path / "empty.db", embedder=False):
        pass
    with pytest.raises(TranscriptError, match="without a session that has a step"):
        read_recorded(tmp_path / "empty.db")


def test_read_recorded_a_run_that_was_scored_has_no_times_of_its_own(tmp_path: Path) -> None:
    record(tmp_path / "s.db")
    arguments = ["score", str(tmp_path / "s.db"), "--embedder", "hashing", "--store", str(tmp_path / "again.db")]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    (run,) = read_recorded(tmp_path / "again.db")
    assert {step.ts for step in run.steps} == {None}


def test_read_recorded_what_the_host_says_before_the_first_step_is_the_system_text(tmp_path: Path) -> None:
    with Monitor(store=tmp_path / "s.db", goal="Refund order 7.", embedder=False) as m:
        m.message("system", "You serve a shop.")
        m.message("assistant", "I look it up.")
        m.message("system", "Be brief.")
    (run,) = read_recorded(tmp_path / "s.db")
    assert run.system == "You serve a shop."
    assert [(step.role, step.content) for step in run.steps] == [
        ("assistant", "I look it up."),
        ("system", "Be brief."),
    ]
