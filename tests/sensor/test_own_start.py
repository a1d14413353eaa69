"""How far a measure has moved from where the run began."""

from __future__ import annotations

import pytest

from coherence.sensor.own_start import ENOUGH, RECENT, OwnStart


def test_own_start_a_change_is_told_against_the_runs_own_mean() -> None:
    start = OwnStart()
    values = [0.2, 0.4, 0.9]
    told = []
    for value in values:
        told.append(start.changes({"drift": value}))
        start.learn({"drift": value})
    assert told[:ENOUGH] == [{}, {}]
    recent = (1 - RECENT) * 0.2 + RECENT * 0.4  # after two values
    recent = (1 - RECENT) * recent + RECENT * 0.9
    assert told[2] == pytest.approx({"drift.change": recent - 0.3})


def test_own_start_a_steady_measure_does_not_change_and_an_unknown_one_is_passed_over() -> None:
    start = OwnStart()
    for _ in range(5):
        start.learn({"novelty": 0.5, "goal_drift": None, "stall": 0.9})
    assert start.changes({"novelty": 0.5, "goal_drift": 0.9, "stall": 0.9}) == {"novelty.change": 0.0}
    assert set(start.levels) == {"novelty"}
