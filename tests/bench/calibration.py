"""Simulated agents: whether budgets of alarms hold, and whether drift is found.

Run ``python tests/bench/calibration.py``; it takes half a minute. ``hijack.py`` shows budgets on labelled runs.
"""

from __future__ import annotations

import sys

import numpy as np

from coherence.baseline.calibration import Watch

BUDGET = 0.05
AGENTS = 400


def tell(text: str = "") -> None:
    sys.stdout.write(text + "\n")


def simulated_thresholds() -> None:
    """Agents whose good runs do not change, and such as do."""
    covered: dict[int, list[float]] = {39: [], 60: [], 200: []}
    found = 0
    for seed in range(AGENTS):
        rng = np.random.default_rng(seed)
        agent = Watch(metric="m", version="1", budget=BUDGET)
        shape = rng.uniform(0.5, 3.0), rng.uniform(3.0, 12.0)
        for at, value in enumerate(rng.beta(*shape, 300).tolist()):
            if at in covered:
                assert agent.value is not None
                covered[at].append(float((rng.beta(*shape, 200) > agent.value).mean()))
            agent.observe(value, float(rng.random()))
        found += agent.renewed > 0
    tell(f"\nsimulated agents ({AGENTS}; beta-distributed risks of their own shape)")
    for count, rates in covered.items():
        tell(f"  good runs alarmed, {count:>3} own runs: {100 * np.mean(rates):.2f}% of a budget of {BUDGET:.0%}")
    tell(f"  drift found in 300 runs where there is none: {100 * found / AGENTS:.1f}% (level 5%)")
    for name, shape in (("double", (2.2, 11.0)), ("treble", (3.6, 10.8)), ("fall to a third", (1.0, 38.0))):
        delays = [_delay(seed, shape) for seed in range(100)]
        middle, most = np.percentile([300 if delay is None else delay for delay in delays], [50, 90])
        never = sum(delay is None for delay in delays)
        tell(
            f"  risks that {name} after 80 runs: found after {middle:.0f}, 90 % within {most:.0f}, never {never} of 100"
        )


def _delay(seed: int, shape: tuple[float, float]) -> int | None:
    rng = np.random.default_rng(seed)
    agent = Watch(metric="m", version="1", budget=BUDGET)
    for value in rng.beta(1.0, 12.0, 80).tolist():
        agent.observe(value, float(rng.random()))
    before = agent.renewed
    for at in range(1, 301):
        agent.observe(float(rng.beta(*shape)), float(rng.random()))
        if agent.renewed > before:
            return at
    return None


def main() -> None:
    simulated_thresholds()


if __name__ == "__main__":
    main()
