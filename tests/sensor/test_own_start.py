"""Distance of a measure from where the run began."""

from __future__ import annotations

import pytest

from coherence.sensor.own_start import ENOUGH, HALF_GONE, MAX_EXCESS, RECENT, SLACK, Departure, OwnStart


def test_own_start_a_change_is_told_against_the_runs_own_mean() -> None:
    start = OwnStart()
    values = [0.2, 0.4, 0.9]
    told = []
    for value in values:
        told.append(start.changes({"drift": value}, ["drift"]))
        start.learn({"drift": value}, ["drift"])
    assert told[:ENOUGH] == [{}, {}]
    recent = (1 - RECENT) * 0.2 + RECENT * 0.4  # after two values
    recent = (1 - RECENT) * recent + RECENT * 0.9
    assert told[2] == pytest.approx({"drift.change": recent - 0.3})


def test_own_start_ask_anew_lets_a_level_follow_soon() -> None:
    start = OwnStart()
    for _ in range(12):
        start.learn({"novelty": 0.2})
    start.ask_anew()
    for _ in range(2):
        start.learn({"novelty": 0.8})
    assert start.levels["novelty"].mean == pytest.approx(0.5)  # of two values of 0.2 and two of 0.8


def test_departure_sums_up_what_lies_beyond_the_runs_own_usual() -> None:
    course = Departure()
    for distance in (0.5, 0.5, 0.5):
        course.learn(distance, novelty=0.0, weight=20.0)  # each departs by 0.25
    assert course.value == 0.0
    course.learn(0.7, novelty=0.5, weight=20.0)
    usual = (0.36 + 0.25 + 0.25) / 3  # the newest of the three is still left out
    assert course.sum == pytest.approx(0.7 * 1.5 / 2 - usual - SLACK)
    assert course.value == pytest.approx(course.sum / (course.sum + HALF_GONE))
    course.learn(1.0, novelty=1.0, weight=20.0)
    assert course.sum == pytest.approx(0.525 - usual + MAX_EXCESS - 2 * SLACK), "no step adds more than 0.3"


def test_departure_a_few_words_and_the_first_step_count_little_and_the_way_back_takes_away() -> None:
    course = Departure()
    course.learn(1.0, novelty=1.0, weight=20.0)
    assert course.value == 0.0
    course.learn(1.0, novelty=1.0, weight=20.0)  # as far as the first: (1 - (1 + 0.36) / 2) less what is free
    assert course.sum == pytest.approx(MAX_EXCESS - SLACK), "0.32 is more than one step adds"
    course = Departure()
    course.learn(0.2, novelty=0.0, weight=20.0)
    course.learn(1.0, novelty=1.0, weight=1.0)  # (1 - (0.1 + 0.36) / 2) / 6 = 0.128
    assert course.sum == pytest.approx(0.77 / 6 - SLACK)
    course.learn(0.1, novelty=0.0, weight=20.0)
    assert course.sum == 0.0


def test_departure_far_steps_without_a_new_word_count_a_third_of_what_others_do() -> None:
    def after(novelty: float) -> Departure:
        course = Departure()
        for distance in (0.4, 0.4, 0.4):
            course.learn(distance, novelty=0.2, weight=20.0)  # each departs by 0.24
        course.learn(1.0, novelty=novelty, weight=20.0)
        return course

    usual = (0.36 + 0.24 + 0.24) / 3  # the newest of the three is still left out
    assert after(0.0).sum == 0.0, "0.3 (0.5 - 0.28) is less than what is free"
    assert after(0.1).sum == pytest.approx((0.55 - usual) * (0.3 + 0.7 / 2) - SLACK)
    assert after(0.2).sum == pytest.approx(MAX_EXCESS - SLACK), "0.6 - 0.28 is more than one step adds"
