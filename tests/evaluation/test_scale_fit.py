"""Curves fitted to labelled steps."""

from __future__ import annotations

import math

import numpy as np
import pytest

from coherence.core.scale import Curve
from coherence.evaluation.ranking import Floats
from coherence.evaluation.scale_fit import (
    RIDGE,
    Start,
    Steps,
    descend,
    fit_scale,
    hinges_of,
    reliability,
)
from coherence.sensor.light import PRIOR

STATED = 1e3
"""Strength with which a curve is held that is not to be moved."""

STRAIGHT = Curve((0.0, 1.0), (0.0, 1.0))


def steps(seed: int = 1) -> Steps:
    """Draw steps whose first sign tells, whose second does not, and whose third is better when high."""
    rng = np.random.default_rng(seed)
    off = (np.arange(600) % 6 == 0).astype(float)
    told = np.clip(rng.normal(0.2 + 0.5 * off, 0.15), 0.0, 1.0)
    better = np.clip(rng.normal(0.7 - 0.5 * off, 0.15), 0.0, 1.0)
    weight: Floats = np.full(600, 1 / 600)
    return Steps(np.stack([told, rng.random(600), better], axis=1), off, weight)


def starts(hold: float = RIDGE) -> dict[str, Start]:
    return {name: Start.of(STRAIGHT, hold) for name in ("told", "noise", "better")}


def test_fit_scale_a_sign_that_tells_gains_and_one_that_does_not_loses_but_never_turns() -> None:
    scale = fit_scale(steps(), starts(), name="s", embedder="e", asks={"blind_edit": "guide"})
    assert (scale.name, scale.embedder, dict(scale.asks)) == ("s", "e", {"blind_edit": "guide"})
    assert scale.curves["told"].most > 3.0
    assert "noise" not in scale.curves or scale.curves["noise"].most < 1.0
    assert "better" not in scale.curves, "its slope would have to be below 0"


def test_fit_scale_a_stated_curve_stays() -> None:
    scale = fit_scale(steps(), starts(STATED) | {"told": Start.of(STRAIGHT)}, name="s")
    assert scale.curves["noise"] == scale.curves["better"] == STRAIGHT != scale.curves["told"]


def test_fit_scale_the_base_is_moved_to_the_prior() -> None:
    """With curves that add nothing, the risk is the share of steps off course, brought to the shipped prior."""
    flat = {name: Start(np.array([0.0, 1.0]), np.array([0.0]), STATED) for name in ("told", "noise", "better")}
    free = flat | {"told": Start(np.array([8.0, 9.0]), np.array([0.0]))}  # which no value reaches
    scale = fit_scale(steps(), free, name="s")
    assert not scale.curves and scale.base == pytest.approx(math.log(PRIOR / (1 - PRIOR)), abs=1e-3)


def loss(hinges: Floats, data: Steps, slopes: Floats, base: float, held: Floats, start: Floats) -> float:
    odds = np.where(data.off == 1.0, 1.0, -1.0) * (hinges @ slopes + base)
    return float(data.weight @ np.logaddexp(0.0, -odds) + (held * (slopes - start) ** 2).sum() / 2)


def test_descend_no_step_to_any_side_is_better() -> None:
    data, begun = steps(), starts()
    hinges = hinges_of(data.values, begun)
    start, hold = np.ones(3), np.full(3, RIDGE)
    slopes, base = descend(hinges, data.off, data.weight, start, hold)
    least = loss(hinges, data, slopes, base, hold, start)
    for at in range(3):
        for side in (-0.05, 0.05):
            other = slopes.copy()
            other[at] = max(other[at] + side, 0.0)
            assert loss(hinges, data, other, base, hold, start) >= least - 1e-9
    for side in (-0.05, 0.05):
        assert loss(hinges, data, slopes, base + side, hold, start) > least


def test_reliability_bins_are_weighted_to_the_prior() -> None:
    # Four steps at 0.1, one of them off, and four at 0.5, three of them off. A step off weighs 0.03 / 4, a good one
    # 0.97 / 4: of the lower bin 0.03 / (0.03 + 3 x 0.97) is off, of the upper one 3 x 0.03 / (3 x 0.03 + 0.97).
    risks, off = np.array([0.1] * 4 + [0.5] * 4), np.array([0.0, 0, 0, 1, 0, 1, 1, 1])
    found = reliability(risks, off, count=2)
    low, high = 0.03 / 2.94, 0.09 / 1.06
    assert np.array(found.bins) == pytest.approx(np.array([(0.1, low), (0.5, high)]))
    assert found.error == pytest.approx(2.94 / 4 * (0.1 - low) + 1.06 / 4 * (0.5 - high))
