"""Cost of one propagation of pressure between agents, beside a peer's, and of a tick in a fleet; asserts nothing.

Run as ``python tests/bench/trust.py``. The target is 2 ms for 1,000 agents of 3 edges each.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from peers.client import Peer
from showing import row, say

from coherence.fleet.fleet import Fleet
from coherence.fleet.trust import Edge, TrustGraph, TrustState
from coherence.monitor.monitor import Monitor
from coherence.providers import HashingEmbedder

EDGES = 3
TIMES = 100
TARGET_MS = 2.0
SOMA = Path(".venv-soma/bin/python")

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


def against_soma(agents: int = 1_000) -> None:
    if not SOMA.exists():
        say("soma-ai 2026.4.30, one propagation", "make bench", "", "not installed")
        return
    ours, _, _ = measure(agents, at_random, struggling=1.0)
    edges = [(edge.source, edge.target, edge.weight) for edge in build(agents, at_random).edges()]
    with Peer(SOMA, Path(__file__).parent / "peers" / "soma_graph.py") as peer:
        say(f"one propagation, {agents:,} agents x {EDGES}, beside soma-ai", "ours", "theirs")
        for what, vectors in (("one pressure an agent", False), ("one for each signal, as its engine does", True)):
            theirs = peer.ask(op="propagate", edges=edges, times=TIMES // 5, vectors=vectors)
            for name, mine in (("median", statistics.median(ours)), ("p99", sorted(ours)[int(0.99 * len(ours))])):
                other = theirs[f"{name}_ms"]
                say(f"{what}, {name}", f"{mine:.2f} ms", f"{other:.1f} ms", f"{other / mine:.0f}x")


def step(monitor: Monitor) -> float:
    """Return the milliseconds of a step with its tick, folded here."""
    started = time.perf_counter_ns()
    monitor.tool_result("ok", tool="Read")
    monitor.flush()
    return (time.perf_counter_ns() - started) / 1e6


def in_a_fleet(agents: int = 1_000) -> None:
    with Fleet(embedder=HashingEmbedder(8), config={"tick": "step"}) as fleet:
        alone = fleet.agent("alone")
        names = [f"agent-{at:05}" for at in range(agents)]
        for name in names:
            fleet.agent(name)
        for source, target, weight in at_random(agents, random.Random(1)):
            fleet.add_edge(names[source], names[target], weight)
        one, other = fleet.agent(names[0]), fleet.agent(names[1])
        say("a step with its tick, no edges, median", f"{statistics.median(map(step, [alone] * TIMES)):.2f} ms", "-")
        for state in ("all calm", "one struggles"):
            took = statistics.median(map(step, [one] * TIMES))
            say(f"the same, in a fleet of {agents:,} agents x {EDGES}, {state}", f"{took:.2f} ms", "-")
            for _ in range(6):
                other.tool_result("no such file", error=True, tool="Read")
            other.flush()


def main() -> None:
    against_soma()
    in_a_fleet()
    propagating(1_000)


def propagating(*sizes: int) -> None:
    """Print what a propagation costs by the number of agents and the shape of their trust."""
    for agents in sizes:
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
    propagating(10_000)
