"""Thresholds of an agent's calls by its own runs: from how many on, within which bounds, whoever trains it."""

from __future__ import annotations

import pytest

from coherence.baseline.calibration import Calibration
from coherence.baseline.own_life import LOWEST, MARGIN, NOVEL, Life, learn_life

SHIPPED = 0.25


def learned(*scores: float, tool: str = "send") -> Life:
    return learn_life([{"read": 0.05, tool: score} for score in scores], 0.05, SHIPPED)


def test_life_says_nothing_before_20_runs_and_before_those_that_a_budget_needs() -> None:
    assert learned(*[0.1] * 19) == Life(19)
    assert learned(*[0.1] * 20).usual == LOWEST
    few = [{"send": 0.1}] * 98
    assert learn_life(few, 0.01, 0.33).usual is None
    assert learn_life([*few, {"send": 0.1}], 0.01, 0.33).usual == LOWEST  # 1 / 0.01 - 1 = 99


def test_life_the_threshold_of_20_runs_is_a_little_above_the_largest_and_of_39_above_the_second() -> None:
    assert learned(*[0.1] * 19, 0.2).usual == pytest.approx(0.2 + MARGIN)
    assert learned(*[0.1] * 37, 0.2, 0.22).usual == pytest.approx(0.2 + MARGIN)  # 5 % of 40 are 2


@pytest.mark.parametrize("attacked", [1, 2])
def test_life_an_attacker_brings_back_the_shipped_threshold_at_most(attacked: int) -> None:
    life = learned(*[0.1] * (20 - attacked), *[0.9] * attacked)
    assert life.threshold("send") == SHIPPED
    assert life.threshold("new") == SHIPPED - NOVEL


def test_life_where_more_than_a_tenth_exceed_the_shipped_threshold_scores_say_nothing() -> None:
    life = learned(*[0.1] * 17, 0.26, 0.3, 0.4)  # 3 of 20
    assert (life.loud, life.threshold("send")) == (True, None)


def test_life_a_tool_that_no_run_called_is_unusual_sooner_unless_the_agent_often_calls_new_ones() -> None:
    assert learned(*[0.1] * 20).threshold("wipe") == pytest.approx(LOWEST - NOVEL)
    ever_new = learn_life([{f"tool {run}": 0.1} for run in range(20)], 0.05, SHIPPED)
    assert ever_new.threshold("wipe") == LOWEST
    many = learned(*[0.1] * 20, tool="")  # runs with more tools than are told apart
    assert many.threshold("wipe") == LOWEST


def test_life_the_only_run_with_a_tool_is_judged_as_if_it_were_new() -> None:
    runs = [{"read": 0.1}] * 19 + [{"read": 0.1, "send": 0.2}]
    life = learn_life(runs, 0.05, SHIPPED)  # 0.2 + 0.03 + 0.01
    assert life.threshold("send") == pytest.approx(0.24)
    assert life.threshold("new") == pytest.approx(0.21)


def test_outdated_a_life_counts_when_it_is_first_known_and_when_there_are_a_quarter_more_runs() -> None:
    none, first, next_one, more = (
        Calibration(life=life) for life in (Life(19), Life(20, 0.2), Life(24, 0.21), Life(25, 0.21))
    )
    assert none.outdated(first)
    assert not first.outdated(next_one)
    assert first.outdated(more)
    assert not more.outdated(Calibration(life=Life(100, 0.21)))
