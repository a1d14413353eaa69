"""Lead time of forecasts of rising spending, and false alarms of healthy agents; prints figures, asserts nothing.

Run as ``python tests/bench/forecast.py``. A life is a list of tokens a model call; ``cost_spiral`` looks at it after
every call. The runs in ``tests/data/runs`` tell no tokens: a quarter of the characters said so far stands for them.
"""

from __future__ import annotations

import gzip
import json
import random
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path

from showing import row, say

from coherence.core.decisions import Appraisal, Mode
from coherence.core.events import Usage
from coherence.policy.rules.cost import CostSpiral
from coherence.state.reducer import AgentState

LIVES = 300
CALLS = 120
RUNS = Path(__file__).parents[1] / "data" / "runs"
CALM = Appraisal(seq=0, pressure=0.0, mode=Mode.OBSERVE)

Life = Callable[[random.Random], list[float]]


def growing(rng: random.Random) -> list[float]:
    """The context grows evenly and is compacted when it is full."""
    made, level, step = [], 8_000.0, rng.choice((300.0, 1_500.0, 6_000.0))
    for _ in range(CALLS):
        level = 20_000.0 if level > 150_000.0 else level + step * rng.lognormvariate(0.0, 0.5)
        made.append(level)
    return made


def from_nothing(rng: random.Random) -> list[float]:
    """The context grows evenly from a very short prompt."""
    step = rng.choice((200.0, 2_000.0))
    return [step * (at + 1) * rng.uniform(0.95, 1.05) for at in range(CALLS)]


def flat(rng: random.Random) -> list[float]:
    """Every call is much like the one before."""
    return [4_000.0 * rng.lognormvariate(0.0, 0.15) for _ in range(CALLS)]


def heavy_tailed(rng: random.Random) -> list[float]:
    """Calls without a common context, few of them very long."""
    return [2_000.0 * rng.lognormvariate(0.0, 1.0) for _ in range(CALLS)]


def bursty(rng: random.Random) -> list[float]:
    """The context grows by what is read, now and then a large file, and is compacted when it is full."""
    made, level = [], 6_000.0
    for _ in range(CALLS):
        read = rng.uniform(5_000.0, 30_000.0) if rng.random() < 0.2 else 400.0 * rng.paretovariate(1.3)
        level = 15_000.0 if level > 180_000.0 else level + min(read, 60_000.0)
        made.append(level)
    return made


def turns(rng: random.Random) -> list[float]:
    """Short tasks one after another, each with a new context."""
    made: list[float] = []
    while len(made) < CALLS:
        level = 3_000.0
        for _ in range(rng.randrange(3, 15)):
            level += rng.lognormvariate(7.5, 1.0)
            made.append(level)
    return made[:CALLS]


def mixed(rng: random.Random) -> list[float]:
    """A large model with a growing context and small calls between."""
    return [
        level if rng.random() < 0.6 else rng.uniform(500.0, 3_000.0)
        for level in (10_000.0 + 900.0 * at * rng.uniform(0.9, 1.1) for at in range(CALLS))
    ]


HEALTHY: tuple[Life, ...] = (growing, from_nothing, flat, heavy_tailed, bursty, turns, mixed)


def spiral(rng: random.Random, factor: float, noise: float, slope: float) -> tuple[list[float], int]:
    """Return a life that begins to spiral, and the call at which it has become ten times as dear."""
    start = rng.randrange(8, 60)
    before = [5_000.0 + slope * at for at in range(start)]
    level = before[-1]
    after = [level * factor**step for step in range(1, 30)]
    tenfold = start + next(at for at, value in enumerate(after) if value >= 10.0 * level)
    return [value * rng.lognormvariate(0.0, noise) for value in before + after], tenfold


def alarms(life: list[float]) -> list[int]:
    """Return the calls at which an alarm begins."""
    state, rule, found, was = AgentState(), CostSpiral(), [], False
    for seq, tokens in enumerate(life, 1):
        state.fold(seq, float(seq), Usage(input_tokens=int(tokens)))
        finding = rule(state, None, CALM)
        now = finding is not None and finding.active
        if now and not was:
            found.append(seq - 1)
        was = now
    return found


def real_lives() -> Iterator[list[float]]:
    """Yield a quarter of the characters said before each message of the agent."""
    for path in sorted(RUNS.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for run in map(json.loads, file):
                said, life = len(run["goal"] or "") + len(run.get("system") or ""), []
                for step in run["steps"]:
                    said += len(step.get("tool_result") or step["content"] or "")
                    said += len(json.dumps(step.get("tool_calls") or ""))
                    if step["role"] == "assistant":
                        life.append(said / 4.0)
                yield life


def main() -> None:
    for make in HEALTHY:
        rng = random.Random(11)
        counts = [len(alarms(make(rng))) for _ in range(LIVES)]
        name = f"healthy, {make.__name__.replace('_', ' ')}: alarms a life of {CALLS} calls"
        row(name, statistics.fmean(counts), 0.05, "")
    lives = list(real_lives())
    hit = sum(bool(alarms(life)) for life in lives)
    row(f"healthy, {len(lives)} real runs (characters / 4): runs with an alarm", 100.0 * hit / len(lives), 1.0, " %")
    for factor in (1.3, 1.5, 2.0):
        for noise in (0.02, 0.1, 0.2):
            for slope in (0.0, 300.0):
                _show_spirals(factor, noise, slope)


def _show_spirals(factor: float, noise: float, slope: float) -> None:
    rng = random.Random(12)
    ahead = []
    for _ in range(LIVES):
        life, tenfold = spiral(rng, factor, noise, slope)
        first = next((at for at in alarms(life) if at >= tenfold - 12), None)
        ahead.append(tenfold - first if first is not None else -99)
    name = f"spiral x{factor} a call, noise {noise:.0%}, {'growing' if slope else 'flat'} before"
    row(f"{name}: foreseen before 10x", 100.0 * statistics.fmean(lead > 0 for lead in ahead), 90.0, " %", least=True)
    say(f"{name}: calls of warning, median", f"{statistics.median(ahead):g}", "-")


if __name__ == "__main__":
    main()
