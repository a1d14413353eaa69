"""A scale that follows labelled runs."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from coherence.baseline.own_scale import LEAST, LIGHT, MOST, NEEDED, OwnScale, gains_of, learn_own_scale
from coherence.core.readings import FrozenDict
from coherence.core.scale import Curve, Scale
from coherence.sensor.light import DEFAULT_CURVE, combine, share_of_risk
from coherence.store.runs import StoredRun

STRAIGHT = Curve((0.0, 1.0), (0.0, 4.0))
SCALE = Scale(
    name="s-1", embedder="", base=-5.0, curves=FrozenDict(stall=STRAIGHT, failure_streak=STRAIGHT, odd=DEFAULT_CURVE)
)
VERSIONS = {"odd": "1", "stall": "1"}

Draw = Callable[[random.Random, bool], dict[str, float]]


def runs(count: int, draw: Draw, seed: int = 1) -> list[StoredRun]:
    """Return as many good and as many bad runs, with drawn gains of signs (log odds) and values of metrics."""
    rng = random.Random(seed)
    found = []
    for at in range(2 * count):
        good = at % 2 == 0
        maxima = {}
        for name, value in draw(rng, good).items():
            sign = name in ("stall", "failure_streak")
            maxima[(LIGHT + name, SCALE.name) if sign else (name, "1")] = value / MOST if sign else value
        found.append(StoredRun(at, "1", at, good, maxima))
    return found


def told(rng: random.Random, good: bool) -> dict[str, float]:
    """Stalls are how this agent works well; a metric of its own tells."""
    return {"stall": rng.uniform(1.0, 3.0), "odd": rng.gauss(0.1 if good else 0.3, 0.05)}


def noise(rng: random.Random, good: bool) -> dict[str, float]:
    return {"odd": rng.random()}


def test_learn_own_scale_a_metric_that_tells_gets_a_curve_and_a_sign_that_does_not_loses_weight() -> None:
    own = learn_own_scale(runs(NEEDED, told), SCALE, VERSIONS)
    assert own.used and (own.good, own.bad) == (NEEDED, NEEDED), own
    assert own.own_loss < 0.7 * own.shipped_loss
    assert own.weights["stall"] < 1.0 and own.curves["odd"].most > 1.0
    scale = own.applied(SCALE)
    assert scale.name == "s-1+60 own runs"
    high, low = ({"stall": 0.5, "odd": value} for value in (0.4, 0.1))
    assert (combine(high, SCALE).band, combine(low, SCALE).band) == ("green", "green")
    assert combine(high, scale).band == "orange" and combine(low, scale).band == "green"


def test_learn_own_scale_with_too_few_labels_nothing_is_learned() -> None:
    own = learn_own_scale(runs(NEEDED - 1, told), SCALE, VERSIONS)
    assert own == OwnScale(good=NEEDED - 1, bad=NEEDED - 1)
    assert own.applied(SCALE) is SCALE


@pytest.mark.slow
def test_learn_own_scale_labels_that_say_nothing_seldom_move_it() -> None:
    # two standard errors: chance alone gets there in 2.3 of 100 draws, and the ridge makes that fewer
    used = sum(learn_own_scale(runs(40, noise, seed), SCALE, VERSIONS).used for seed in range(8))
    assert used <= 1


def test_learn_own_scale_a_signs_sense_is_never_turned_round() -> None:
    def upside_down(rng: random.Random, good: bool) -> dict[str, float]:
        return {"stall": rng.uniform(2.0, 4.0) if good else rng.uniform(0.0, 1.0)}

    own = learn_own_scale(runs(60, upside_down), SCALE, VERSIONS)
    assert own.weights["stall"] == pytest.approx(LEAST)
    assert all(curve.most >= 0.0 for curve in own.applied(SCALE).curves.values())


def test_learn_own_scale_more_labels_are_trusted_more() -> None:
    few, many = (learn_own_scale(runs(count, told), SCALE, VERSIONS).curves["odd"].most for count in (30, 200))
    assert 0.0 < few < many


@pytest.mark.parametrize("own", [OwnScale(), OwnScale(weights=FrozenDict(stall=0.5), shift=1.0, used=True)])
def test_gains_of_what_each_shipped_curve_gave_is_found_again(own: OwnScale) -> None:
    light = combine({"stall": 0.5, "failure_streak": 0.25}, own.applied(SCALE))
    gains = gains_of(share_of_risk(light), light.risk, SCALE, own, 0.0)
    # the shipped curves give 4 x 0.5 = 2 and 4 x 0.25 = 1
    assert gains == pytest.approx({LIGHT + "stall": 0.2, LIGHT + "failure_streak": 0.1})
