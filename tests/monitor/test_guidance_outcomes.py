"""Outcomes of guidance, in a real store: outcomes at 1, 5 and 10 actions and at the task's end, derived by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from monitor.helpers import FIRED, check_replay, guided, rows, step

OUTCOMES = (
    "SELECT horizon, pressure_change, error_resolved, tool_switched, task_success FROM firing_outcomes "
    "WHERE firing_id = ? ORDER BY horizon"
)
ENDS = (
    "SELECT firing_id, task_success FROM firing_outcomes JOIN firings f USING (firing_id) "
    "WHERE horizon = 0 ORDER BY f.seq"
)


def test_guidance_outcomes_outcomes_are_those_at_one_five_and_ten_actions(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with guided(path, randomise=False) as m:
        guidance = step(m, error=True).guidance
        assert guidance is not None
        m.delivered(guidance)
        pressures = [m.own_pressure]
        for at in range(1, 11):
            step(m, "fine", tool="Read" if at == 5 else "Grep", error=at in (1, 10))
            pressures.append(m.own_pressure)
            m.message("assistant", "a remark is no action")
        m.outcome(True)
    assert pressures[0] > 0
    assert rows(path, OUTCOMES, guidance.id) == [
        (0, None, None, None, 1),
        (1, pressures[0] - pressures[1], 0, 1, None),  # another tool, and an error again
        (5, pressures[0] - pressures[5], 1, 0, None),  # the same tool
        (10, pressures[0] - pressures[10], 0, 1, None),
    ]
    assert rows(path, FIRED) == [(guidance.id, "loop", None, "treatment", "It goes in a loop.", 1)]
    check_replay(path)


def test_guidance_outcomes_an_error_that_was_not_there_cannot_be_resolved(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with guided(path, randomise=False) as m:
        guidance = step(m).guidance
        step(m, "fine")
    assert guidance is not None
    ((horizon, _, resolved, switched, task),) = rows(path, OUTCOMES, guidance.id)
    assert (horizon, resolved, switched, task) == (1, None, 0, None)


@pytest.mark.parametrize(
    ("told", "known"),
    [
        ([{"success": False}], 0),
        ([{"score": 0.5}], 1),
        ([{"score": 0.49}], 0),
        ([{}], None),
        ([{"success": True}, {}], 1),  # a later word that says nothing takes nothing back
        ([{"success": True}, {"success": False}], 0),  # before anything was measured, the later one counts
    ],
    ids=str,
)
def test_the_tasks_end_is_the_outcome_of_each_of_its_firings(
    tmp_path: Path, told: list[dict[str, Any]], known: int | None
) -> None:
    path = tmp_path / "s.db"
    with guided(path, tick="manual") as m:
        fired = [step(m).guidance for _ in range(2)]
        for outcome in told:
            m.outcome(**outcome)
    ends = rows(path, ENDS)
    assert ends == ([] if known is None else [(guidance.id, known) for guidance in fired if guidance is not None])
    check_replay(path)


def test_guidance_outcomes_a_new_goal_is_a_new_task(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with guided(path) as m:
        step(m)
        m.goal("something else")
        newer = step(m).guidance
        m.outcome(True)
    assert newer is not None
    assert rows(path, "SELECT firing_id FROM firing_outcomes WHERE horizon = 0") == [(newer.id,)]
