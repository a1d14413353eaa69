"""A live monitor as a scored run."""

from __future__ import annotations

import pytest

from coherence import Monitor
from coherence.core.readings import Band
from coherence.report.html import render_html
from coherence.report.live import scored_monitor
from coherence.report.score import ScoredRun


def monitor(tick: str = "step") -> Monitor:
    return Monitor(agent="a", session="s", goal="List the files.", embedder=False, source="test", config={"tick": tick})


def scored(m: Monitor) -> ScoredRun:
    run = scored_monitor(m)
    assert run is not None
    return run


def test_scored_monitor_has_the_readings_that_the_monitor_made() -> None:
    with monitor() as m:
        m.message("user", "List the files.")
        m.message("assistant", "I look.")
        m.tool_result("a.txt", call=m.tool_call("Bash", {"command": "ls"}))
        run = scored(m)
        indexes = [reading.coherence_index for reading in m.history()[::-1]]
    assert [step.role for step in run.transcript.steps] == ["user", "assistant", "tool"]
    # the user's message is measured by nobody; the agent's and the tool's each once
    assert [reading.coherence_index for reading in run.readings] == [None, *indexes]
    assert [reading.tick_seq for reading in run.readings] == [0, 1, 2]
    assert (run.transcript.id, run.transcript.goal) == ("a/s", "List the files.")
    # 1 the goal, 2 and 3 the messages, 4 a tick, 5 the call, which joins the agent's message, 6 the result
    assert run.first_events == (2, 3, 6)


def test_scored_monitor_takes_the_worst_of_a_step_and_goes_on_from_the_newest() -> None:
    with monitor("manual") as m:
        for _ in range(7):
            m.tool_result("no such file", error=True, call=m.tool_call("Bash", {"command": "ls"}))
        m.decide()
        m.message("user", "Go on.")
        run = scored(m)
    assert run.lights[:13] == [Band.UNKNOWN] * 13, "measured once, after the last result"
    assert run.lights[13] in (Band.ORANGE, Band.RED)
    assert run.lights[14] in (Band.ORANGE, Band.RED), "nothing has changed by what the user says"


def test_scored_monitor_without_a_step_is_none() -> None:
    with monitor() as m:
        assert scored_monitor(m) is None


def test_scored_monitor_can_be_shown_as_a_page() -> None:
    with monitor() as m:
        m.message("assistant", "I clean up.")
        assert m.check("Bash", {"command": "rm -rf /"}) == "block"
        page = render_html([scored(m)])
    assert "I clean up." in page and "block" in page


@pytest.mark.parametrize("closed", [False, True])
def test_scored_monitor_is_the_same_each_time(closed: bool) -> None:
    m = monitor()
    m.message("assistant", "I look.")
    first = scored(m)
    if closed:
        m.close()
    assert scored(m) == first
    m.close()
