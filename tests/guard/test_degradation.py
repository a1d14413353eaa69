"""Decay of a confirmed configuration: how soon it is seen, how seldom wrongly, and how often it is reported."""

import math
import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.guard.baseline import Baseline, CallOutcome, Recent
from coherence.guard.degradation import ENOUGH, MAX_STATES, Chart, DecayWatch, calls_to_alarm, limit_for, steps

GOOD, BAD = CallOutcome(True, 1.0, 1.0, 0.9), CallOutcome(False, 1.0, 1.0, 0.9)


def confirmed(calls: int = 400) -> Baseline:
    """Calls of which every tenth failed, with values evenly spread from 1 to 2 and from 0.9 down to 0.8."""
    recent = Recent()
    for place in range(calls):
        part = place / calls
        recent.observe(CallOutcome(place % 10 != 9, 1 + part, 1 + part, 0.9 - part / 10))
    return recent.freeze()


def test_decay_watch_half_of_the_calls_failing_is_seen_within_fifteen() -> None:
    watch = DecayWatch.begin(Baseline(400, 360))
    for call in range(400):
        assert not watch.observe(BAD if call % 10 == 9 else GOOD)
    for call in range(1, 16):
        if alerts := watch.observe(GOOD if call % 2 else BAD):
            break
    assert [alert.metric for alert in alerts] == ["success"]
    # 5 failures of the first 15 are 35 - 24 = 11; the rest is what the good calls had left: see the bench for chances
    assert alerts[0].beyond / alerts[0].calls > 0.3
    assert alerts[0].calls <= call + 20


@pytest.mark.parametrize(
    ("worse", "metric"),
    [
        (BAD, "success"),
        (CallOutcome(True, 3.0, 1.0, 0.9), "latency"),
        (CallOutcome(True, 1.0, 3.0, 0.9), "cost"),
        (CallOutcome(True, 1.0, 1.0, 0.4), "index"),
    ],
)
def test_each_metric_is_watched(worse: CallOutcome, metric: str) -> None:
    watch = DecayWatch.begin(confirmed())
    needed = 1
    while not (alerts := watch.observe(worse)):
        needed += 1
    assert [alert.metric for alert in alerts] == [metric]
    assert (alerts[0].calls, alerts[0].beyond) == (needed, needed)  # all of them, from the first one on
    assert needed <= 15
    assert list(watch.worse) == [metric]
    assert metric in alerts[0].why
    assert not any(watch.observe(worse) for _ in range(1_000))  # told once
    assert not any(watch.observe(GOOD) for _ in range(100))
    assert not watch.worse
    again = 1
    while not watch.observe(worse):  # told again after a recovery
        again += 1
    assert again == needed


def test_decay_watch_half_of_the_calls_failing_for_long_is_told_once_and_total_failure_once_more() -> None:
    watch = DecayWatch.begin(Baseline(400, 360))
    told = [call for call in range(1_000) if watch.observe(BAD if call % 2 else GOOD)]
    assert len(told) == 1
    assert told[0] <= 15
    alerts = [alert for _ in range(100) for alert in watch.observe(BAD)]
    assert [alert.metric for alert in alerts] == ["success"]
    assert alerts[0].expected > 0.4  # by now half of the calls are expected to fail
    assert watch.worse == ("success",)


@pytest.mark.parametrize(("rate", "up", "down", "limit"), [(0.1, 5, 2, 12), (0.3, 2, 1, 5), (0.6, 1, 3, 4)])
def test_calls_to_alarm_the_mean_to_an_alarm_is_that_of_the_chain(rate: float, up: int, down: int, limit: int) -> None:
    # By simulation of the rule itself; the mean of 4,000 waits has a standard error of 1.6 %.
    chance = random.Random(1)
    total = 0
    for _ in range(4_000):
        level = 0
        while level < limit:
            level = level + up if chance.random() < rate else max(level - down, 0)
            total += 1
    assert calls_to_alarm(rate, up, down, limit) == pytest.approx(total / 4_000, rel=0.06)


@pytest.mark.parametrize("rate", [0.003, 0.1, 1 / 3, 0.7])
def test_limit_for_the_limit_is_the_lowest_that_keeps_the_promise(rate: float) -> None:
    up, down = steps(rate)
    assert rate * up < (1 - rate) * down  # it falls while nothing has changed
    assert (1 + rate) / 2 * up > (1 - rate) / 2 * down  # and rises when success is halved
    limit = limit_for(rate, up, down, 20_000)
    assert limit < MAX_STATES
    assert calls_to_alarm(rate, up, down, limit) >= 20_000 > calls_to_alarm(rate, up, down, limit - 1)


def test_calls_to_alarm_false_alarms_are_shared_by_the_metrics() -> None:
    watch = DecayWatch.begin(confirmed())
    assert watch.success.calls_to_alarm == 10_000 * 7 / 4
    for chart in (watch.latency, watch.cost, watch.index):
        assert chart is not None
        assert chart.calls_to_alarm == 10_000 * 7
    assert DecayWatch.begin(Baseline(400, 360)).success.calls_to_alarm == 10_000


def test_decay_watch_the_rate_is_learned_from_calls_without_an_alarm_and_only_so_many() -> None:
    watch = DecayWatch.begin(Baseline(10, 9))
    vague = watch.success.expected
    for call in range(2_000):
        watch.observe(BAD if call % 10 == 9 else GOOD)
    assert ENOUGH <= watch.success.calls < ENOUGH + 100
    assert watch.success.expected < vague
    assert watch.success.expected == pytest.approx(0.1, abs=0.02)


def test_chart_a_vague_rate_is_expected_a_little_higher_and_worked_out_anew_while_it_is_learned() -> None:
    mean = 51 / 502  # a beta distribution of 51 and 451
    assert Chart.of(50, 500, 10_000).expected == pytest.approx(mean + 0.5 * math.sqrt(mean * (1 - mean) / 503))
    chart = Chart.of(1, 10, 10_000)
    expected = [chart.expected]
    for call in range(1, 500):
        chart.observe(call % 10 == 0)
        if chart.expected != expected[-1]:
            expected.append(chart.expected)
    # Anew at 20, 40, 80, 160, 320 and 500 calls, or a few later: only between two failures the level is 0.
    assert len(expected) == 7
    assert expected == sorted(expected, reverse=True)


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 4)), max_size=80), st.integers(0, 79))
def test_decay_watch_it_goes_on_from_json_bit_for_bit(calls: list[tuple[bool, float]], stop: int) -> None:
    whole, parts = DecayWatch.begin(confirmed(30)), DecayWatch.begin(confirmed(30))
    for place, (success, value) in enumerate(calls):
        if place == stop:
            parts = msgspec.json.decode(msgspec.json.encode(parts), type=DecayWatch)
        call = CallOutcome(success, value, value, value / 4)
        assert whole.observe(call) == parts.observe(call)
    assert parts == whole
