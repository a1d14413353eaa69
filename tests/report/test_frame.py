"""Runs as a table for pandas: one row a step, with the numbers of the run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from coherence import Monitor, Runs, read_runs
from coherence.core.errors import MissingExtraError
from coherence.report.frame import COLUMNS


def record(path: Path) -> Runs:
    for agent, error in (("stuck", True), ("calm", False)):
        with Monitor(store=path, agent=agent, goal="Make the tests pass", embedder=False) as m:
            m.message("user", "Go.")
            for at in range(5):
                call = m.tool_call("Bash", {"command": "pytest" if error else f"cat {at}.md"})
                m.tool_result("boom" if error else f"part {at}", error=error, call=call)
    return read_runs(path)


def test_frame_of_runs_has_a_row_for_each_step(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    runs = record(tmp_path / "s.db")
    frame = runs.to_pandas()
    # user, then five calls with their results
    assert len(frame) == 2 * 11 and list(frame.columns[: len(COLUMNS)]) == list(COLUMNS)
    stuck = frame[frame.run == "stuck/1"].reset_index(drop=True)
    run = runs["stuck/1"]
    assert stuck.equals(run.to_pandas())
    assert [None if pandas.isna(each) else each for each in stuck["index"]] == [
        reading.coherence_index for reading in run.readings
    ]
    assert list(stuck.pressure) == [appraisal.pressure for appraisal in run.appraisals]
    assert list(stuck.decision) == [decision.kind for decision in run.decisions]
    assert stuck.findings.iloc[-1] == [each.rule for each in run.decisions[-1].findings if each.active] != []
    assert stuck["metric.failure_streak"].iloc[-1] == run.readings[-1].metrics["failure_streak"]
    assert frame["metric.failure_streak"].dtype == frame.coverage.dtype == "float64"
    assert str(frame.ts.dtype).startswith("datetime64[") and frame.ts.dt.tz is not None
    assert abs(stuck.ts.iloc[-1].timestamp() - (run.transcript.steps[-1].ts or 0)) < 1e-3
    assert list(stuck.tool[1:3]) == ["Bash", "Bash"] and list(stuck.error[1:3]) == [False, True]
    assert frame.groupby("run")["index"].min()["stuck/1"] < frame.groupby("run")["index"].min()["calm/1"]


def test_frame_of_nothing_has_the_columns() -> None:
    pytest.importorskip("pandas")
    frame = Runs([]).to_pandas()
    assert len(frame) == 0 and list(frame.columns) == list(COLUMNS)


def test_frame_without_pandas_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r'pip install "coherence-sensor\[pandas\]"'):
        Runs([]).to_pandas()
