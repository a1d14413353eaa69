"""One metric's threshold: shipped, own, and set anew when it no longer holds."""

from __future__ import annotations

import numpy as np
import pytest

from coherence.baseline.calibration import ALPHA, PROOF, SHIPPED, Watch, watch
from coherence.detect.hijack import ALARM_1, FAR


def fed(values: list[float], *, shipped: float | None = 0.5, budget: float = 0.05, seed: int = 0) -> Watch:
    found = Watch(metric="m", version="1", budget=budget, shipped=shipped)
    coins = np.random.default_rng(seed).random(len(values))
    for value, coin in zip(values, coins, strict=True):
        found.observe(value, float(coin))
    return found


def test_below_39_runs_the_shipped_threshold_is_kept_and_checked() -> None:
    runs = [0.6, *(i / 100 for i in range(37))]
    found = fed(runs).threshold()
    assert (found.how, found.value, found.runs, found.alarmed) == ("shipped", 0.5, 38, 1)
    assert found.words == (
        "threshold 0.5: at most 5 % of good runs, shipped; of 38 own good runs 1 alarmed; own runs set it from 39 on"
    )
    own = fed([*runs, 0.37]).threshold()
    assert (own.how, own.value, own.runs, own.alarmed) == ("own", 0.37, 39, 0), "the 38th of 39"
    assert own.words == "threshold 0.37: at most 5 % of good runs, from 39 own runs"


def test_without_a_shipped_threshold_there_is_none_before() -> None:
    found = fed([0.1] * 38, shipped=None).threshold()
    assert (found.how, found.value, found.drift) == ("none", None, "holds")
    assert found.words == "no threshold: a 5 % budget needs 39 own good runs, there are 38"
    assert fed([0.1] * 39, shipped=None).value == 0.1


def test_a_shipped_threshold_that_alarms_far_too_often_is_found_out_and_replaced_as_soon_as_own_runs_can() -> None:
    few = fed([0.6, 0.7] * 4)
    assert few.drift == "too loud" and few.value == 0.5, "8 runs cannot hold a budget of 5 %"
    words = few.threshold().words
    assert "does not hold: 8 of 8 good runs alarmed" in words and words.endswith("own runs set it from 19 on")
    many = fed([0.6 + i / 100 for i in range(19)])
    assert (many.own, many.value, many.renewed) == (True, 0.78, 1), "the largest of 19"
    assert "set anew: 19 of 19 good runs alarmed" in many.threshold().words


def test_runs_that_rise_are_found_and_the_newest_39_set_the_threshold() -> None:
    rng = np.random.default_rng(1)
    calm, worse = rng.beta(1, 12, 80).tolist(), rng.beta(4, 12, 60).tolist()
    found = fed(calm)
    before = found.threshold()
    assert before.drift == "holds" and before.renewed == 0
    after = 0
    while found.renewed == 0:
        found.observe(worse[after], 0.5)
        after += 1
    assert after <= 30
    assert found.values == [*calm, *worse[:after]][-39:] and found.ordered == sorted(found.values)
    assert found.value is not None and before.value is not None and found.value > before.value
    assert "set anew" in found.threshold().words and found.drift == "holds" and found.alarmed == 0


def test_watch_runs_that_rise_without_an_alarm_are_found_too() -> None:
    """Half of the runs reached 0.5 before, all do now: none lies above the threshold."""
    found = fed([0.1, 0.5] * 40)
    assert found.renewed == 0 and found.value == 0.5
    for coin in np.random.default_rng(6).random(150):
        found.observe(0.5, float(coin))
    assert found.renewed == 1 and found.alarms.evidence < PROOF
    assert "the risk of good runs had risen" in found.threshold().words


def test_watch_runs_that_fall_are_found_too() -> None:
    rng = np.random.default_rng(2)
    found = fed(rng.beta(4, 12, 60).tolist())
    for value in rng.beta(1, 30, 60).tolist():
        found.observe(value, 0.5)
        if found.renewed:
            break
    assert found.renewed == 1
    assert "the risk of good runs had fallen" in found.threshold().words


def test_a_calibration_that_holds_is_rarely_found_not_to_however_often_one_looks() -> None:
    """100 agents, 200 runs, looked at after each: at most 5 % false alarms, and 3 standard errors (2.2 % each)."""
    false = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        false += (
            fed(rng.beta(rng.uniform(0.5, 4.0), rng.uniform(0.5, 4.0), 200).tolist(), shipped=None, seed=seed).renewed
            > 0
        )
    assert false / 100 <= ALPHA + 3 * np.sqrt(ALPHA * (1 - ALPHA) / 100)


def test_runs_that_are_all_alike_set_no_threshold_that_the_first_other_call_exceeds() -> None:
    def after(values: list[float], budget: float = 0.05) -> Watch:
        found = watch("goal_hijack", SHIPPED["goal_hijack"].version, budget)
        for value in values:
            found.observe(value, 0.5)
        return found

    found = after([0.095] * 60)
    assert (found.threshold().how, found.value) == ("own", FAR)
    assert found.threshold().words.endswith("from 60 own runs, and no lower for runs that are all alike")
    strict = after([0.095] * 250, 0.01)
    assert (strict.threshold().how, strict.value) == ("own", ALARM_1), "what is usual elsewhere is not refused"
    varied = after([i * 17 % 61 / 250 for i in range(1, 61)])
    assert varied.value == 58 / 250, "0.004 to 0.24, mixed; floor(61 x 0.05) = 3: the third largest"


def test_watch_shipped_thresholds_belong_to_their_version_and_budget() -> None:
    shipped = SHIPPED["goal_hijack"]
    assert watch("goal_hijack", shipped.version, 0.05).value == shipped.thresholds[0.05].value
    assert watch("goal_hijack", "another", 0.05).value is None
    assert watch("goal_hijack", shipped.version, 0.005).value is None, "nothing so strict is shipped"
    said = watch("goal_hijack", shipped.version, 0.05).threshold().words
    assert shipped.thresholds[0.05].source in said


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_watch_a_metric_that_never_moves_neither_alarms_nor_drifts(value: float) -> None:
    found = fed([value] * 300, shipped=None)
    assert found.value == value and found.renewed == 0 and found.alarmed == 0
    assert max(found.higher.evidence, found.lower.evidence) < PROOF
