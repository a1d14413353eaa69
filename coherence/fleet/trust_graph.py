"""Agents and edges as numbers: the loudest path to every agent, found for all of them at once.

References
----------
The loudest path is the shortest by ``-log``: E. W. Dijkstra, *A note on two problems in connexion with graphs*, 1959.
Cycles of full trust are strongly connected components: S. R. Kosaraju's algorithm, published by M. Sharir in 1981.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from heapq import heapify, heappop, heappush

import numpy as np
import numpy.typing as npt

from coherence.core.validation import MAX_NAME, check_number, check_text, clean, shown

DAMPING = 0.9
"""What an edge of weight 1 counts as on a cycle of such edges: full trust in a ring would pass pressure on for ever."""

ROUNDS = 8
"""Hops that are followed for all agents at once; mostly all there are, and cheaper than one agent after the other."""

MAX_KEPT = 1_000_000
"""Names in the lists of sources that are kept, at most: 8 MB."""

UNKNOWN = "{field} {name} is not an agent of this graph: add it with add_agent"

Floats = npt.NDArray[np.float64]


class Wiring:
    """One version of a graph; never changed.

    Parameters
    ----------
    names : sequence of str
        The agents, sorted.
    edges : sequence of (source, target, weight)
        Sorted; between these agents.
    """

    def __init__(self, names: Sequence[str], edges: Sequence[tuple[str, str, float]]) -> None:
        self.names = tuple(names)
        self.index = {name: at for at, name in enumerate(names)}
        self._edges = edges
        self._upstreams: dict[str, tuple[str, ...]] = {}
        self._kept = 0
        numbered = [(self.index[source], self.index[target], weight) for source, target, weight in edges]
        ring = _rings(len(names), [(source, target) for source, target, weight in numbered if weight == 1.0])
        self.outgoing: list[list[tuple[int, float]]] = [[] for _ in names]
        weights = []
        for source, target, weight in numbered:
            weights.append(DAMPING if weight == 1.0 and ring[source] == ring[target] else weight)
            self.outgoing[source].append((target, weights[-1]))
        self.sources = np.array([source for source, _, _ in numbered], dtype=np.intp)
        self.targets = np.array([target for _, target, _ in numbered], dtype=np.intp)
        self.weights: Floats = np.array(weights, dtype=np.float64)

    def read(self, given: Mapping[str, float]) -> Floats:
        """Return the pressures, checked, in the order of the names."""
        if not isinstance(given, Mapping):
            raise TypeError(f"pressures must be a mapping of agents to numbers in [0, 1], not {shown(given)}")
        read = [0.0] * len(self.names)
        for name, pressure in given.items():
            at = self.index.get(name)
            if at is None and (at := self.index.get(read_name("agent", name))) is None:
                raise ValueError(UNKNOWN.format(field="agent", name=shown(name)))
            if type(pressure) is not float or not 0.0 <= pressure <= 1.0:
                pressure = check_number(f"pressure of {shown(name)}", pressure, least=0.0, most=1.0)
            read[at] = pressure
        return np.array(read, dtype=np.float64)

    def direct(self, name: str) -> list[str]:
        """Return the sources of the edges to an agent, sorted."""
        return [self._edges[number][0] for number in self._incoming[self.index[name]]]

    def is_reached(self, name: str) -> bool:
        """Tell whether another agent's pressure can reach this one."""
        return any(self._edges[number][2] > 0.0 for number in self._incoming[self.index[name]])

    def upstream(self, name: str) -> tuple[str, ...]:
        """Return everybody whose pressure can reach an agent, without itself, sorted."""
        found = self._upstreams.get(name)
        if found is None:
            sources, weights = self.sources.tolist(), self.weights.tolist()
            seen, waiting = {self.index[name]}, [self.index[name]]
            while waiting:
                edges = self._incoming[waiting.pop()]
                new = {sources[number] for number in edges if weights[number] > 0.0} - seen
                seen |= new
                waiting += new
            found = tuple(self.names[at] for at in sorted(seen - {self.index[name]}))
            self._kept += len(found) + 1
            if self._kept > MAX_KEPT:
                self._upstreams, self._kept = {}, len(found) + 1
            self._upstreams[name] = found
        return found

    @cached_property
    def _incoming(self) -> list[list[int]]:
        """Agent -> numbers of the edges to it."""
        incoming: list[list[int]] = [[] for _ in self.names]
        for number, target in enumerate(self.targets.tolist()):
            incoming[target].append(number)
        return incoming

    def spread(self, own: Floats) -> Floats:
        """Return the effective pressures: a few hops for all at once, then the loudest agent first."""
        values = own
        for _ in range(ROUNDS):
            before, values = values, values.copy()
            np.maximum.at(values, self.targets, before[self.sources] * self.weights)
            louder = np.flatnonzero(values > before)
            if not louder.size:
                return values
        found: list[float] = values.tolist()
        heap = [(-found[at], at) for at in louder.tolist()]
        heapify(heap)
        while heap:
            negative, at = heappop(heap)
            if -negative < found[at]:
                continue  # a louder path was found since
            for target, weight in self.outgoing[at]:
                leak = found[at] * weight
                if leak > found[target]:
                    found[target] = leak
                    heappush(heap, (-leak, target))
        return np.array(found, dtype=np.float64)

    def trace(self, own: Floats, values: Floats) -> list[int]:
        """Return the agent before each on its path, -1 where its own pressure is the highest.

        Breadth first in the order of the names finds the shortest path, and of those the first by its names.
        """
        leaks = (values[self.sources] * self.weights == values[self.targets]) & (values > own)[self.targets]
        following: dict[int, list[int]] = {}
        for source, target in zip(self.sources[leaks].tolist(), self.targets[leaks].tolist(), strict=True):
            following.setdefault(source, []).append(target)
        before = [-1] * len(self.names)
        reached = [source for source in following if values[source] == own[source]]
        while reached:
            newly = []
            for source in reached:
                for target in following.get(source, ()):
                    if before[target] < 0:
                        before[target] = source
                        newly.append(target)
            reached = newly
        return before


def _rings(count: int, edges: list[tuple[int, int]]) -> list[int]:
    """Return for each node the number of its strongly connected component."""
    onward: list[list[int]] = [[] for _ in range(count)]
    backward: list[list[int]] = [[] for _ in range(count)]
    for source, target in edges:
        onward[source].append(target)
        backward[target].append(source)
    finished: list[int] = []
    seen, stack = [False] * count, list(range(count))
    while stack:
        node = stack.pop()
        if node < 0:  # everything after it has been seen
            finished.append(~node)
        elif not seen[node]:
            seen[node] = True
            stack.append(~node)
            stack += onward[node]
    ring = [-1] * count
    for start in reversed(finished):
        stack = [start] if ring[start] < 0 else []
        while stack:
            node = stack.pop()
            if ring[node] < 0:
                ring[node] = start
                stack += backward[node]
    return ring


def read_name(field: str, value: object) -> str:
    """Return an agent's name as a graph keeps it: fit for UTF-8, without its middle if it is very long."""
    name = check_text(field, value, empty=False)
    return clean(name, MAX_NAME) if len(name) > MAX_NAME + 100 else clean(name)  # a name cut before stays as it is
