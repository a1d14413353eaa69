"""False verdicts where telling does nothing, looked at after every pair; power where it does something."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import median

import numpy as np
import pytest

from coherence.baseline.e_process import Floats
from coherence.policy.experiment import judge
from coherence.policy.guidance import draw_arm

PAIRS = 300
FIRES_AT, AHEAD, COOLDOWN = 0.55, 5, 10
Rng = np.random.Generator


def fair_signs(rng: Rng) -> Floats:
    return rng.choice([-1.0, 1.0], PAIRS)


def mostly_ties(rng: Rng) -> Floats:
    return rng.choice([-1.0, 0.0, 1.0], PAIRS, p=[0.05, 0.9, 0.05])


def skewed_outcomes(rng: Rng) -> Floats:
    told, untold = rng.beta(0.4, 3.0, (2, PAIRS))
    return cut(told - untold)


def rarely_everything(rng: Rng) -> Floats:
    large = rng.choice([-1.0, 0.0, 1.0], PAIRS, p=[0.01, 0.98, 0.01])
    return np.where(large != 0, large, rng.uniform(-0.02, 0.02, PAIRS))


def pressures(rng: Rng) -> Floats:
    """Pressure that is pulled back to a level, which itself drifts over the life of the agent."""
    steps = 16_000
    level = 0.3 + 0.2 * np.sin(np.arange(steps) / 2000 + rng.uniform(0, 6))
    noise = rng.normal(0, 0.13, steps)
    found, now = [], 0.3
    for at in range(steps):
        now = min(max(level[at] + 0.8 * (now - level[at]) + noise[at], 0.0), 1.0)
        found.append(now)
    return np.array(found)


def firings(pressure: Floats) -> list[float]:
    """Return how far the pressure fell after each firing; nobody is told anything."""
    falls, last = [], -COOLDOWN
    for at in np.flatnonzero(pressure[:-AHEAD] > FIRES_AT).tolist():
        if at - last >= COOLDOWN:
            falls.append(float(pressure[at] - pressure[at + AHEAD]))
            last = at
    return falls[: 2 * PAIRS]


def arms(falls: list[float], seed: int) -> dict[str, list[float]]:
    told: dict[str, list[float]] = {"treatment": [], "control": []}
    for count, fall in enumerate(falls[: len(falls) // 2 * 2]):
        told[draw_arm(seed, "main", "pressure", count)].append(fall)
    return told


def cut(differences: Floats) -> Floats:
    return np.minimum(np.maximum(differences, -1.0), 1.0)


def regressing(rng: Rng) -> Floats:
    told = arms(firings(pressures(rng)), int(rng.integers(2**31)))
    return cut(np.array(told["treatment"]) - np.array(told["control"]))


NULLS: tuple[Callable[[Rng], Floats], ...] = (fair_signs, mostly_ties, skewed_outcomes, rarely_everything, regressing)


def false_verdicts(null: Callable[[Rng], Floats], runs: int) -> int:
    """Count runs with a verdict at any look: one that was given stays, so the last look knows of all."""
    seeds = (np.random.default_rng([2024, run]) for run in range(runs))
    return sum(judge(null(seed)).verdict in ("helps", "harms") for seed in seeds)


@pytest.mark.parametrize("null", NULLS[:4])
def test_judge_false_verdicts_are_rare_however_often_one_looks(null: Callable[[Rng], Floats]) -> None:
    assert false_verdicts(null, 200) <= 10  # 5 % of 200


@pytest.mark.slow
@pytest.mark.parametrize("null", NULLS)
def test_judge_false_verdicts_of_a_thousand_experiments(null: Callable[[Rng], Floats]) -> None:
    assert false_verdicts(null, 1000) <= 50  # 5 % of 1,000


def test_before_and_after_shows_an_effect_that_is_not_there_and_pairs_do_not() -> None:
    """Regression to the mean: a pattern fires when pressure is high, and high pressure falls by itself."""
    for run in range(5):
        rng = np.random.default_rng([7, run])
        told = arms(firings(pressures(rng)), run)
        before_after = judge(told["control"])
        assert before_after.verdict == "helps" and before_after.effect is not None and before_after.effect > 0.15
        paired = judge(cut(np.array(told["treatment"]) - np.array(told["control"])))
        assert paired.pairs >= 200
        assert paired.verdict in ("no verdict yet", "no difference")
        assert paired.low < 0 < paired.high


def pairs_needed(effect: float, deviation: float, runs: int, most: int = 3000) -> list[float]:
    """Return for each run after how many pairs it says that telling helps; infinity = not within ``most``."""
    needed = []
    for run in range(runs):
        numbers = np.random.default_rng([5, run]).normal(effect, deviation, most)
        found = judge(cut(numbers))
        needed.append(float(found.decided_at or math.inf) if found.verdict == "helps" else math.inf)
    return sorted(needed)


@pytest.mark.parametrize(("effect", "deviation"), [(0.3, 0.5), (0.2, 0.5), (0.1, 0.5), (0.1, 0.25)])
def test_judge_a_real_effect_is_found(effect: float, deviation: float) -> None:
    # A sample of fixed size, looked at once, has 80 % power with this many pairs: 22, 49, 196 and 49.
    fixed = (1.96 + 0.84) ** 2 * (deviation / effect) ** 2
    assert median(pairs_needed(effect, deviation, 200, 600)) <= max(45, 1.6 * fixed)
