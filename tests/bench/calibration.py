"""Simulated agents: whether budgets of alarms hold, whether drift is found, what the combiner does.

Run ``python tests/bench/calibration.py``; it takes half a minute. ``hijack.py`` shows budgets on labelled runs.
"""

from __future__ import annotations

import sys

import numpy as np

from coherence.baseline.calibration import Watch
from coherence.baseline.combiner import Combiner, weighted

BUDGET = 0.05
AGENTS = 400
METRICS = tuple("abcdef")


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


def simulated_combiners() -> None:
    """Agents whose six metrics say nothing, all the same, or of which one says it all."""
    tell("\nthe combiner: six metrics, 500 labelled runs, 200 agents; after = median run")
    tell(f"  {'what tells':<18} {'bad runs':>8} {'switched':>9} {'after':>7} {'AUROC fixed':>12} {'in use':>7}")
    for what, by in (("nothing", 0.0), ("all a little", 0.08), ("one of six", 0.3)):
        for bad in (0.5, 0.2):
            rows = [_combine(seed, what, by, bad) for seed in range(200)]
            switched = [at for at, _, _ in rows if at is not None]
            after = f"{np.median(switched):.0f}" if switched else "-"
            fixed, used = np.mean([row[1] for row in rows]), np.mean([row[2] for row in rows])
            tell(f"  {what:<18} {bad:>8.0%} {100 * len(switched) / 200:>8.1f}% {after:>7} {fixed:>12.3f} {used:>7.3f}")


def _combine(seed: int, what: str, by: float, bad: float) -> tuple[int | None, float, float]:
    rng = np.random.default_rng(seed)

    def run(good: bool) -> dict[str, float]:
        risks = rng.beta(2, 6, len(METRICS))
        if not good:
            risks[: 1 if what == "one of six" else len(METRICS)] += by
        return dict(zip(METRICS, np.minimum(risks, 1.0).tolist(), strict=True))

    combiner = Combiner(start=dict.fromkeys(METRICS, 0.25))
    switched = None
    for at in range(1, 501):
        good = bool(rng.random() >= bad)
        combiner.observe(run(good), good=good)
        switched = at if switched is None and combiner.proven else switched
    fresh = [run(False) for _ in range(40)], [run(True) for _ in range(40)]
    now = combiner.combination()
    fixed = [[weighted(combiner.start, risks) or 0.0 for risks in part] for part in fresh]
    used = [[now.risk(risks) or 0.0 for risks in part] for part in fresh]
    return switched, _auroc(*fixed), _auroc(*used)


def _auroc(bad: list[float], good: list[float]) -> float:
    one, other = np.array(bad)[:, None], np.array(good)[None]
    return float(((one > other) + 0.5 * (one == other)).mean())


def main() -> None:
    simulated_thresholds()
    simulated_combiners()


if __name__ == "__main__":
    main()
