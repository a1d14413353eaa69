"""Trust between agents: a struggling agent's pressure leaks along weighted edges to those who rely on it.

The effective pressure of an agent is ``max(own, weight x effective of the source)`` over its incoming edges, the least
fixpoint of that. It is the loudest path: the largest ``own(origin) x weight x weight x ...`` of all paths that end at
the agent. Nothing is kept from one propagation to the next, so nothing echoes after a recovery.

References
----------
The loudest path is the shortest by ``-log``: E. W. Dijkstra, *A note on two problems in connexion with graphs*, 1959.
Cycles of full trust are strongly connected components: S. R. Kosaraju's algorithm, published by M. Sharir in 1981.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from heapq import heapify, heappop, heappush
from threading import RLock

import msgspec
import numpy as np
import numpy.typing as npt

from coherence.core.validation import MAX_NAME, check_flag, check_number, check_text, clean, shown

LEARNING_RATE = 0.1
"""Share of the gap that one outcome closes, in (0, 1], under full pressure of the source; higher forgets sooner."""

LEAST_LEARNED, MAX_LEARNED = 0.05, 0.95
"""Between these weights outcomes teach: no source is ever ignored, and none believed blindly, because of them."""

DAMPING = 0.9
"""An edge of weight 1 counts as this on a cycle of such edges, so that pressure decays on its way round."""

ROUNDS = 8
"""Hops that are followed for all agents at once; mostly all there are, and cheaper than one agent after the other."""

MAX_UPSTREAMS = 1_000
"""Agents whose sources are remembered."""

Floats = npt.NDArray[np.float64]


class Edge(msgspec.Struct, frozen=True, order=True):
    """Weight of one agent's pressure for another."""

    source: str
    """Whose pressure leaks."""
    target: str
    """To whom."""
    weight: float
    """Trust, in [0, 1]; 0 = nothing leaks, 1 = everything."""
    fixed: bool = False
    """True if outcomes leave it alone."""


class Effective(msgspec.Struct, frozen=True):
    """One agent's pressure with what leaks to it."""

    own: float
    """In [0, 1], 0 = calm."""
    value: float
    """In [own, 1]."""
    path: tuple[str, ...]
    """From the agent where the pressure comes from to this one; this one alone where its own is the highest."""


class TrustState(msgspec.Struct, frozen=True):
    """Everything a graph holds, sorted; plain data, so that learned weights can be kept and taken up again."""

    agents: tuple[str, ...] = ()
    edges: tuple[Edge, ...] = ()
    version: int = 1

    def to_json(self) -> str:
        """Return it as JSON; equal graphs give equal texts."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls, data: str | bytes) -> TrustState:
        """Return the state of a JSON text, or raise ValueError if it is none that this version reads."""
        try:
            state = msgspec.json.decode(data, type=cls)
        except (msgspec.DecodeError, UnicodeError) as error:
            raise ValueError(f"not a trust state: {error}") from error
        if state.version != 1:
            raise ValueError(f"trust state has version {state.version}, and this package reads version 1 only")
        return state

    def merged(self, before: TrustState, other: TrustState) -> TrustState:
        """Return what somebody else has made of ``before``, with the edges changed here since, without idle agents.

        Of an edge that both have changed this one counts, unless only the other's is fixed.

        Examples
        --------
        >>> before = TrustState(("a", "b", "c"), (Edge("a", "b", 0.4), Edge("b", "c", 0.4)))
        >>> ours = TrustState(("a", "b", "c"), (Edge("a", "b", 0.5), Edge("b", "c", 0.4)))
        >>> other = TrustState(("a", "b", "c"), (Edge("a", "b", 0.1), Edge("b", "c", 0.3)))
        >>> [edge.weight for edge in ours.merged(before, other).edges]
        [0.5, 0.3]
        """
        changed = _ends({*before.edges} ^ {*self.edges})
        fixed_there = _ends(edge for edge in {*other.edges} - {*before.edges} if edge.fixed)
        changed -= fixed_there - _ends(edge for edge in self.edges if edge.fixed)
        kept = [edge for edge in other.edges if (edge.source, edge.target) not in changed]
        edges = sorted([*kept, *(edge for edge in self.edges if (edge.source, edge.target) in changed)])
        return TrustState(tuple(sorted({name for edge in edges for name in (edge.source, edge.target)})), tuple(edges))


def _ends(edges: Iterable[Edge]) -> set[tuple[str, str]]:
    return {(edge.source, edge.target) for edge in edges}


class TrustGraph:
    """Agents, and how much the pressure of one matters to another. Thread-safe.

    The result of :meth:`propagate` depends on agents, edges and pressures alone, not on the order in which they were
    added. An edge of weight 1 on a cycle of such edges counts as 0.9. Names above 600 characters lose their middle; all
    are made fit for UTF-8.

    Parameters
    ----------
    state : TrustState, optional
        Where to go on.

    Raises
    ------
    TypeError
        From any method, for an argument of the wrong type; True and False are no numbers.
    ValueError
        From any method, for an agent or an edge that is not there, an empty name, an edge from an agent to itself, or
        a weight or a pressure that is NaN or outside [0, 1]. Nothing has changed then.

    Examples
    --------
    >>> graph = TrustGraph()
    >>> for name in ("claude_sub", "planner", "orchestrator"):
    ...     graph.add_agent(name)
    >>> graph.add_edge("claude_sub", "planner", trust_weight=0.4)
    >>> graph.add_edge("planner", "orchestrator", trust_weight=0.9)
    >>> found = graph.propagate({"claude_sub": 0.71})
    >>> round(found["planner"].value, 4), round(found["orchestrator"].value, 4)
    (0.284, 0.2556)
    >>> found["orchestrator"].path
    ('claude_sub', 'planner', 'orchestrator')
    """

    def __init__(self, state: TrustState | None = None) -> None:
        self.lock = RLock()
        """Held while anything changes; a fork holds it, and gives the child's graph another one."""
        self._agents: set[str] = set()
        self._edges: dict[tuple[str, str], Edge] = {}
        self._wiring: _Wiring | None = None
        state = state if state is not None else TrustState()
        for name in state.agents:
            self.add_agent(name)
        for edge in state.edges:
            self.add_edge(edge.source, edge.target, edge.weight, fixed=edge.fixed)

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents' names, sorted."""
        with self.lock:
            return tuple(sorted(self._agents))

    def edges(self) -> tuple[Edge, ...]:
        """Return every edge, sorted by source and target."""
        with self.lock:
            return tuple(sorted(self._edges.values()))

    def edge(self, source: str, target: str) -> Edge:
        """Return the edge between two agents."""
        ends = self._known("source", source), self._known("target", target)
        found = self._edges.get(ends)
        if found is None:
            raise ValueError(f"there is no edge from {shown(ends[0])} to {shown(ends[1])}: add it with add_edge")
        return found

    def sources(self, name: str) -> tuple[str, ...]:
        """Return the sources of the edges to an agent that outcomes may change, sorted."""
        with self.lock:
            wiring = self._wired()
            edges = [wiring.edges[number] for number in wiring.incoming[wiring.index[self._known("name", name)]]]
        return tuple(edge.source for edge in edges if not edge.fixed)

    def upstream(self, name: str) -> tuple[str, ...]:
        """Return all whose pressure can reach an agent, without itself, sorted."""
        with self.lock:
            return self._wired().upstream(self._known("name", name))

    def state(self) -> TrustState:
        """Return what is needed to make this graph again."""
        with self.lock:
            return TrustState(self.agents, self.edges())

    def add_agent(self, name: str) -> None:
        """Add an agent; one that is there already stays as it is, with its edges."""
        name = read_name("name", name)
        with self.lock:
            if name not in self._agents:
                self._agents.add(name)
                self._wiring = None

    def remove_agent(self, name: str) -> None:
        """Remove an agent and every edge from or to it."""
        with self.lock:
            name = self._known("name", name)
            self._agents.remove(name)
            self._edges = {ends: edge for ends, edge in self._edges.items() if name not in ends}
            self._wiring = None

    def add_edge(self, source: str, target: str, trust_weight: float = 1.0, *, fixed: bool = False) -> None:
        """Let ``trust_weight`` of the source's pressure leak to the target: 0 = nothing, 1 = everything.

        An edge that is there already is replaced. The weight of a ``fixed`` one is not changed by :meth:`learn`.
        """
        weight, fixed = check_number("trust_weight", trust_weight, least=0.0, most=1.0), check_flag("fixed", fixed)
        with self.lock:
            source, target = self._known("source", source), self._known("target", target)
            if source == target:
                raise ValueError(f"source and target must be two agents, not {shown(source)} twice: name another one")
            self._edges[source, target] = Edge(source, target, weight, fixed)
            self._wiring = None

    def set_trust(self, source: str, target: str, trust_weight: float, *, fixed: bool = True) -> None:
        """Change the weight of an edge and, unless told otherwise, keep outcomes from changing it."""
        with self.lock:
            self.edge(source, target)
            self.add_edge(source, target, trust_weight, fixed=fixed)

    def remove_edge(self, source: str, target: str) -> None:
        """Let nothing leak directly from the source to the target any more."""
        with self.lock:
            edge = self.edge(source, target)
            del self._edges[edge.source, edge.target]
            self._wiring = None

    def learn(self, target: str, *, success: bool, pressures: Mapping[str, float]) -> tuple[Edge, ...]:
        """Learn from how a task ended while sources were under pressure; return the edges that changed, sorted.

        If the target fails while a source struggles, the source's weight rises; if the target succeeds all the same, it
        falls. Nothing is learned about a calm source, and a fixed edge never moves. The new weight is
        ``w + 0.1 p (g - w)``, with the source's pressure ``p`` and the bound ``g``: 0.95 after a failure, 0.05 after a
        success. So a weight tends to ``0.05 + 0.9 x`` the share of failures among the outcomes under pressure. It never
        leaves [0.05, 0.95]; a weight that a user has set outside moves inwards only.

        Parameters
        ----------
        target, success
            Whose task ended, and how.
        pressures : mapping
            Agent -> own pressure in [0, 1] during the task; agents left out were calm. Not the effective pressure: in
            a cycle that contains the target's own.

        Examples
        --------
        >>> graph = TrustGraph(TrustState(("coder", "planner"), (Edge("coder", "planner", 0.4),)))
        >>> [round(edge.weight, 3) for edge in graph.learn("planner", success=False, pressures={"coder": 0.8})]
        [0.444]
        """
        check_flag("success", success)
        changed = []
        with self.lock:
            target, wiring = self._known("target", target), self._wired()
            loud = wiring.read(pressures)
            for source in self.sources(target):
                edge = self._edges[source, target]
                gap = min(LEAST_LEARNED - edge.weight, 0.0) if success else max(MAX_LEARNED - edge.weight, 0.0)
                weight = edge.weight + LEARNING_RATE * float(loud[wiring.index[source]]) * gap
                if weight != edge.weight:
                    self._edges[source, target] = msgspec.structs.replace(edge, weight=weight)
                    changed.append(self._edges[source, target])
                    self._wiring = None
        return tuple(changed)

    def propagate(self, own: Mapping[str, float]) -> Propagation:
        """Return the effective pressure of every agent, by name, and the path it came by.

        Of several paths of the same strength the one with the fewest agents counts, then the first by its names.

        Parameters
        ----------
        own : mapping
            Agent -> own pressure in [0, 1], 0 = calm; agents left out are calm.
        """
        with self.lock:
            wiring = self._wired()
        # outside the lock: a wiring is never changed
        return Propagation(wiring, wiring.read(own))

    def _wired(self) -> _Wiring:
        if self._wiring is None:
            self._wiring = _Wiring(self.agents, self.edges())
        return self._wiring

    def _known(self, field: str, name: str) -> str:
        name = read_name(field, name)
        if name not in self._agents:
            raise ValueError(_unknown(field, name))
        return name


class Propagation(Mapping[str, Effective]):
    """Agent -> :class:`Effective`, sorted by name. Paths are put together where they are asked for."""

    def __init__(self, wiring: _Wiring, own: Floats) -> None:
        values = wiring.spread(own)
        self._wiring, self._before = wiring, wiring.trace(own, values)
        self._own, self._values = own.tolist(), values.tolist()

    def __getitem__(self, name: str) -> Effective:
        at = self._wiring.index[read_name("name", name)]
        path, step = [self._wiring.names[at]], self._before[at]
        while step >= 0:
            path.append(self._wiring.names[step])
            step = self._before[step]
        return Effective(self._own[at], self._values[at], tuple(reversed(path)))

    def __iter__(self) -> Iterator[str]:
        return iter(self._wiring.names)

    def __len__(self) -> int:
        return len(self._wiring.names)


class _Wiring:
    """One version of a graph as numbers; never changed.

    Parameters
    ----------
    names : tuple of str
        The agents, sorted.
    edges : tuple of Edge
        Sorted; between these agents.
    """

    def __init__(self, names: tuple[str, ...], edges: tuple[Edge, ...]) -> None:
        self.names, self.edges = names, edges
        self.index = {name: at for at, name in enumerate(names)}
        self.incoming: list[list[int]] = [[] for _ in names]
        """Agent -> numbers of the edges to it."""
        self._outgoing: list[list[tuple[int, float]]] = [[] for _ in names]
        self._upstreams: dict[str, tuple[str, ...]] = {}
        ends = [(self.index[edge.source], self.index[edge.target]) for edge in edges]
        ring = _rings(len(names), [pair for pair, edge in zip(ends, edges, strict=True) if edge.weight == 1.0])
        weights = []
        for number, (source, target) in enumerate(ends):
            weight = edges[number].weight
            weights.append(DAMPING if weight == 1.0 and ring[source] == ring[target] else weight)
            self.incoming[target].append(number)
            self._outgoing[source].append((target, weights[-1]))
        self._sources = np.array([source for source, _ in ends], dtype=np.intp)
        self._targets = np.array([target for _, target in ends], dtype=np.intp)
        self._weights: Floats = np.array(weights, dtype=np.float64)

    def read(self, given: Mapping[str, float]) -> Floats:
        """Return the pressures, checked, in the order of the names."""
        if not isinstance(given, Mapping):
            raise TypeError(f"pressures must be a mapping of agents to numbers in [0, 1], not {shown(given)}")
        read = [0.0] * len(self.names)
        for name, pressure in given.items():
            at = self.index.get(name)
            if at is None and (at := self.index.get(read_name("agent", name))) is None:
                raise ValueError(_unknown("agent", name))
            if type(pressure) is not float or not 0.0 <= pressure <= 1.0:
                pressure = check_number(f"pressure of {shown(name)}", pressure, least=0.0, most=1.0)
            read[at] = pressure
        return np.array(read, dtype=np.float64)

    def upstream(self, name: str) -> tuple[str, ...]:
        """Return everybody whose pressure can reach an agent, without itself, sorted."""
        if name not in self._upstreams:
            seen, waiting = {name}, [name]
            while waiting:
                edges = [self.edges[number] for number in self.incoming[self.index[waiting.pop()]]]
                new = {edge.source for edge in edges if edge.weight > 0.0} - seen
                seen |= new
                waiting += new
            if len(self._upstreams) >= MAX_UPSTREAMS:
                self._upstreams.clear()
            self._upstreams[name] = tuple(sorted(seen - {name}))
        return self._upstreams[name]

    def spread(self, own: Floats) -> Floats:
        """Return the effective pressures: a few hops for all at once, then the loudest agent first."""
        values = own
        for _ in range(ROUNDS):
            before, values = values, values.copy()
            # .at, because several edges may lead to one agent: plain indexing would take the last of them alone.
            np.maximum.at(values, self._targets, before[self._sources] * self._weights)
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
            for target, weight in self._outgoing[at]:
                leak = found[at] * weight
                if leak > found[target]:
                    found[target] = leak
                    heappush(heap, (-leak, target))
        return np.array(found, dtype=np.float64)

    def trace(self, own: Floats, values: Floats) -> list[int]:
        """Return the agent before each on its path, -1 where its own pressure is the highest.

        Breadth first in the order of the names finds the shortest path, and of those the first by its names.
        """
        sources, targets = self._sources, self._targets
        # Equal to the bit: the value of who was reached is one of these very products.
        leaks = (values[sources] * self._weights == values[targets]) & (values > own)[targets]
        following: dict[int, list[int]] = {}
        for source, target in zip(sources[leaks].tolist(), targets[leaks].tolist(), strict=True):
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
    # Against the edges, last finished first: what is reached so lies on a ring with the start.
    for start in reversed(finished):
        stack = [start] if ring[start] < 0 else []
        while stack:
            node = stack.pop()
            if ring[node] < 0:
                ring[node] = start
                stack += backward[node]
    return ring


def _unknown(field: str, name: str) -> str:
    return f"{field} {shown(name)} is not an agent of this fleet: make it with agent() first"


def read_name(field: str, value: object) -> str:
    """Return an agent's name as a graph keeps it: fit for UTF-8, without its middle if it is very long."""
    name = check_text(field, value, empty=False)
    return clean(name, MAX_NAME) if len(name) > MAX_NAME + 100 else clean(name)  # a name cut before stays as it is
