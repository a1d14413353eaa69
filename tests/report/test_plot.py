"""Figures of runs: what is drawn is what was measured, nothing is shown, and hostile names stay names."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import coherence
from coherence import Monitor, Store
from coherence.core.errors import MissingExtraError, TranscriptError
from coherence.report.live import scored_monitor
from coherence.report.plot import _figure_class

HOSTILE = "$\\frac{1}{0}$ _x <script>\x1b[31m\u202e"


def life(**options: Any) -> Monitor:
    m = Monitor(goal="Make the tests pass", embedder=False, **options)
    for _ in range(6):
        m.message("assistant", "I run the tests.")
        m.tool_result("ImportError: yaml", error=True, call=m.tool_call("Bash", {"command": "pytest"}))
    m.decide()
    return m


@pytest.fixture(autouse=True)
def matplotlib() -> None:
    pytest.importorskip("matplotlib")


def test_plot_draws_index_pressure_metrics_and_rules_of_a_monitor() -> None:
    with life(agent="builder") as m:
        run = scored_monitor(m)
        figure = coherence.plot(m)
    assert run is not None
    index, metrics, rules = figure.axes
    lines = {line.get_label(): list(line.get_ydata()) for line in index.lines}
    assert lines["index"] == [reading.coherence_index for reading in run.readings]
    assert lines["pressure (0 = calm)"] == [appraisal.pressure for appraisal in run.appraisals]
    assert index.get_title(loc="left") == "builder/1"
    # 6 messages, each with a call, and 6 results
    assert rules.xaxis.get_major_formatter()(11, None) == str(run.number(11)) == "12"
    worst = [at for at, light in enumerate(run.lights) if light == "orange"]
    assert list(next(line for line in index.lines if line.get_label() == "O orange").get_xdata()) == worst
    assert {line.get_label() for line in metrics.lines} >= {"failure_streak (high is bad)", "stall (high is bad)"}
    drawn = {name.get_text() for name in rules.get_yticklabels()}
    active = {each.rule for decision in run.decisions for each in decision.findings if each.active}
    assert drawn <= active and "bash_retry" in drawn


def test_plot_a_closed_monitor_and_a_session_of_a_store_give_the_same_figure(tmp_path: Path) -> None:
    m = life(agent="a", store=tmp_path / "s.db")
    m.close()
    with Store(tmp_path / "s.db") as store:
        figures = [coherence.plot(m), coherence.plot(tmp_path / "s.db"), coherence.plot(store, session="a/1")]
    drawn = [[str(list(line.get_ydata())) for axes in figure.axes for line in axes.lines] for figure in figures]
    assert drawn[0] == drawn[1] == drawn[2]


def test_plot_opens_no_window_and_loads_no_pyplot(tmp_path: Path) -> None:
    life(store=tmp_path / "s.db").close()
    code = (
        "import sys, coherence\n"
        f"coherence.plot({str(tmp_path / 's.db')!r}).savefig({str(tmp_path / 'run.png')!r})\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "DISPLAY"}
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, env=environment)
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")


def test_plot_names_of_others_are_no_formulas(tmp_path: Path) -> None:
    def odd(data: object) -> float:
        return 0.5

    with Monitor(agent=HOSTILE, goal=HOSTILE, embedder=False) as m:
        for at in range(4):
            m.message("assistant", f"{HOSTILE} {at}")
            m.tool_result(HOSTILE, error=True, call=m.tool_call(HOSTILE, HOSTILE))
        figure = coherence.plot(m)
    figure.savefig(tmp_path / "run.png")
    assert figure.axes[0].get_title(loc="left").startswith("\\$\\frac{1}{0}\\$")


def test_plot_a_long_run_carries_letters_in_place_of_points() -> None:
    with Monitor(embedder=False) as m:
        for at in range(160):
            m.message("assistant", f"I read part {at} of the plan.")
        figure = coherence.plot(m)
    assert {line.get_label() for line in figure.axes[0].lines} == {"index", "pressure (0 = calm)"}
    assert "G" in {text.get_text() for text in figure.axes[0].texts}


def test_plot_takes_the_metrics_that_are_named() -> None:
    with life() as m:
        figure = coherence.plot(m, metrics=["stall"])
        assert [line.get_label() for line in figure.axes[1].lines] == ["stall (high is bad)"]
        assert len(coherence.plot(m, metrics=[]).axes) == 2
        with pytest.raises(ValueError, match="metrics: the run has no 'grace'; it has "):
            coherence.plot(m, metrics=["grace"])


def test_plot_what_cannot_be_drawn_is_said(tmp_path: Path) -> None:
    with Monitor(embedder=False) as m, pytest.raises(ValueError, match="no step to draw yet"):
        coherence.plot(m)
    with life() as m, pytest.raises(ValueError, match="session names one of a store"):
        coherence.plot(m, session="a")
    with pytest.raises(TypeError, match="not int"):
        coherence.plot(7)  # type: ignore[arg-type]
    with pytest.raises(TranscriptError, match=r"nowhere\.db"):
        coherence.plot(tmp_path / "nowhere.db")
    life(store=tmp_path / "s.db").close()
    with pytest.raises(TranscriptError, match="no agent and no session is called 'x'"):
        coherence.plot(tmp_path / "s.db", session="x")


def test_plot_without_matplotlib_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    _figure_class.cache_clear()  # an earlier figure has found it
    with life() as m, pytest.raises(MissingExtraError, match=r'pip install "coherence-sensor\[plot\]"'):
        coherence.plot(m)
