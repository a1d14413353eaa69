"""What one propagation of pressure between agents costs, with every agent's path; prints figures, asserts nothing.

Run as ``python tests/bench/trust.py``. The target is 2 ms for 1,000 agents of 3 edges each.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable

from showing import row, say

from coherence.trust import Edge, TrustGraph, TrustState

EDGES = 3
TIMES = 300
TARGET_MS = 2.0

Shape = Callable[[int, random.Random], list[tuple[int, int, float]]]


def at_random(agents: int, rng: random.Random) -> list[tuple[int, int, float]]:
    """Any three targets, any weight."""
    return [
        (source, (source + step) % agents, rng.random())
        for source in range(agents)
        for step in rng.sample(range(1, agents), EDGES)
    ]


def as_chain(agents: int, rng: random.Random) -> list[tuple[int, int, float]]:
    """To the next three, nearly everything leaks: a path leads past hundreds of agents."""
    return [
        (source, source + step, 0.999 - 0.001 * step * rng.random())
        for source in range(agents)
        for step in range(1, EDGES + 1)
        if source + step < agents
    ]


def with_cycles(agents: int, rng: random.Random) -> list[tuple[int, int, float]]:
    """Back, on, and across, with full trust in a third of them: the damped case."""
    return [
        (source, (source + step) % agents, rng.choice((1.0, 0.9, 0.5)))
        for source in range(agents)
        for step in (-1, 1, rng.randrange(2, agents - 1))
    ]


SHAPES: dict[str, Shape] = {"random": at_random, "chain": as_chain, "cycles": with_cycles}


def build(agents: int, shape: Shape) -> TrustGraph:
    names = tuple(f"agent-{at:05}" for at in range(agents))
    edges = shape(agents, random.Random(1))
    return TrustGraph(TrustState(names, tuple(Edge(names[source], names[target], w) for source, target, w in edges)))


def measure(agents: int, shape: Shape, *, struggling: float) -> tuple[list[float], list[float], float]:
    """Return the milliseconds of propagations with other pressures each, of reading all paths, and of the first one."""
    graph = build(agents, shape)
    rng = random.Random(2)
    names = graph.agents
    times, readings = [], []
    for _ in range(TIMES if agents <= 1_000 else TIMES // 10):
        own = {name: rng.random() if rng.random() < struggling else 0.1 * rng.random() for name in names}
        own[names[0]] = 1.0
        started = time.perf_counter_ns()
        found = graph.propagate(own)
        propagated = time.perf_counter_ns()
        for effective in found.values():
            assert effective.path
        times.append((propagated - started) / 1e6)
        readings.append((time.perf_counter_ns() - propagated) / 1e6)
    return times[1:], readings[1:], times[0]


def main() -> None:
    for agents in (1_000, 10_000):
        for name, shape in SHAPES.items():
            for struggling in (0.01, 0.5):
                times, readings, first = measure(agents, shape, struggling=struggling)
                label = f"trust: {agents:,} agents x {EDGES}, {name}, {struggling:.0%} struggle"
                if agents == 1_000:
                    row(f"{label}, median", statistics.median(times), TARGET_MS, " ms")
                else:
                    say(f"{label}, median", f"{statistics.median(times):,.2f} ms", "-")
                say(f"{label}, p99", f"{sorted(times)[int(0.99 * len(times))]:,.2f} ms", "-")
                say(f"{label}, reading all paths", f"{statistics.median(readings):,.2f} ms", "-")
                say(f"{label}, first after a change", f"{first:,.2f} ms", "-")


if __name__ == "__main__":
    main()
