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
from functools import cached_property
from heapq import heapify, heappop, heappush
from operator import attrgetter
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

HOPS, FEW = 24, 100
"""Hops that are followed for all agents at once, while so many become louder by one: mostly all there are. What is left
costs less one agent after the other, the loudest first, which never goes on from the same agent twice."""

MAX_UPSTREAMS = 1_000
"""Agents whose sources are remembered."""

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]


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
        self._topology: _Topology | None = None
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
            edges = wiring.edges_to(self._known("name", name))
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
                self._topology = self._wiring = None

    def remove_agent(self, name: str) -> None:
        """Remove an agent and every edge from or to it."""
        with self.lock:
            name = self._known("name", name)
            self._agents.remove(name)
            self._edges = {ends: edge for ends, edge in self._edges.items() if name not in ends}
            self._topology = self._wiring = None

    def add_edge(self, source: str, target: str, trust_weight: float = 1.0, *, fixed: bool = False) -> None:
        """Let ``trust_weight`` of the source's pressure leak to the target: 0 = nothing, 1 = everything.

        An edge that is there already is replaced. The weight of a ``fixed`` one is not changed by :meth:`learn`.
        """
        weight, fixed = check_number("trust_weight", trust_weight, least=0.0, most=1.0), check_flag("fixed", fixed)
        with self.lock:
            source, target = self._known("source", source), self._known("target", target)
            if source == target:
                raise ValueError(f"source and target must be two agents, not {shown(source)} twice: name another one")
            if (source, target) not in self._edges:
                self._topology = None
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
            self._topology = self._wiring = None

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
                weight = edge.weight + LEARNING_RATE * float(loud[wiring.topology.index[source]]) * gap
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
        if self._topology is None:
            self._topology = _Topology(self.agents, self._edges)
        if self._wiring is None:
            self._wiring = _Wiring(self._topology, self._edges)
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
        self._names, self._index = wiring.topology.names, wiring.topology.index
        self._before = wiring.trace(own, values)
        self._own, self._values = own.tolist(), values.tolist()

    def __getitem__(self, name: str) -> Effective:
        at = self._index[read_name("name", name)]
        path, step = [self._names[at]], self._before[at]
        while step >= 0:
            path.append(self._names[step])
            step = self._before[step]
        return Effective(self._own[at], self._values[at], tuple(reversed(path)))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class _Topology:
    """Connections of a graph as numbers; never changed, and the same whatever the weights.

    Parameters
    ----------
    names : tuple of str
        The agents, sorted.
    ends : iterable of tuple of str
        Source and target of each edge, between these agents.
    """

    def __init__(self, names: tuple[str, ...], ends: Iterable[tuple[str, str]]) -> None:
        self.names = names
        self.index = {name: at for at, name in enumerate(names)}
        count = len(names)
        given = list(ends)
        at_ends = np.array([self.index[name] for pair in given for name in pair], dtype=np.intp).reshape(-1, 2)
        # The order of the numbers is that of the names.
        order = np.argsort(at_ends[:, 0] * count + at_ends[:, 1])
        self.ends = [given[number] for number in order.tolist()]
        """The edges, sorted by source and target; their places are their numbers."""
        self.sources, self.targets = at_ends[order, 0], at_ends[order, 1]
        self.by_target = np.argsort(self.targets, kind="stable")
        """Numbers of the edges, sorted by target and source."""
        self.incoming = np.searchsorted(self.targets[self.by_target], np.arange(count + 1))
        """Agent -> place in that order at which the edges to it begin; they end where those of the next begin."""
        self.outgoing = np.searchsorted(self.sources, np.arange(count + 1))
        """Agent -> number of the first edge from it; the last one ends where that of the next begins."""


class _Wiring:
    """One version of a graph: its topology with weights; never changed.

    Parameters
    ----------
    topology : _Topology
        Of the graph.
    edges : mapping
        Source and target -> edge.
    """

    def __init__(self, topology: _Topology, edges: Mapping[tuple[str, str], Edge]) -> None:
        self.topology = topology
        self._edges = [edges[ends] for ends in topology.ends]
        self._upstreams: dict[str, tuple[str, ...]] = {}
        self._weights: Floats = np.fromiter(map(attrgetter("weight"), self._edges), np.float64, len(self._edges))
        full = np.flatnonzero(self._weights == 1.0)
        if full.size:
            ends = [topology.sources[full].tolist(), topology.targets[full].tolist()]
            ring = np.array(_rings(len(topology.names), list(zip(*ends, strict=True))))
            self._weights[full[ring[topology.sources[full]] == ring[topology.targets[full]]]] = DAMPING

    def edges_to(self, name: str) -> list[Edge]:
        """Return the edges to an agent, sorted by source."""
        topology, at = self.topology, self.topology.index[name]
        numbers = topology.by_target[topology.incoming[at] : topology.incoming[at + 1]]
        return [self._edges[number] for number in numbers.tolist()]

    def read(self, given: Mapping[str, float]) -> Floats:
        """Return the pressures, checked, in the order of the names."""
        if not isinstance(given, Mapping):
            raise TypeError(f"pressures must be a mapping of agents to numbers in [0, 1], not {shown(given)}")
        index, read = self.topology.index, np.zeros(len(self.topology.names))
        if type(given) is dict and set(map(type, given.values())) == {float} and given.keys() <= index.keys():
            pressures = np.fromiter(given.values(), np.float64, len(given))
            if bool(((pressures >= 0.0) & (pressures <= 1.0)).all()):
                read[np.fromiter(map(index.__getitem__, given), np.intp, len(given))] = pressures
                return read
        for name, pressure in given.items():
            at = index.get(name)
            if at is None and (at := index.get(read_name("agent", name))) is None:
                raise ValueError(_unknown("agent", name))
            read[at] = check_number(f"pressure of {shown(name)}", pressure, least=0.0, most=1.0)
        return read

    def upstream(self, name: str) -> tuple[str, ...]:
        """Return everybody whose pressure can reach an agent, without itself, sorted."""
        if name not in self._upstreams:
            seen, waiting = {name}, [name]
            while waiting:
                new = {edge.source for edge in self.edges_to(waiting.pop()) if edge.weight > 0.0} - seen
                seen |= new
                waiting += new
            if len(self._upstreams) >= MAX_UPSTREAMS:
                self._upstreams.clear()
            self._upstreams[name] = tuple(sorted(seen - {name}))
        return self._upstreams[name]

    def spread(self, own: Floats) -> Floats:
        """Return the effective pressures: hops of all agents at once, and then the loudest agent first."""
        values = own.copy()
        louder, hops = np.flatnonzero(own), 0
        while louder.size > FEW and hops < HOPS:
            louder = self._leak(values, louder)
            hops += 1
        if not louder.size:
            return values
        found: list[float] = values.tolist()
        begin, targets, trusted = self._onward
        heap = [(-found[at], at) for at in louder.tolist()]
        heapify(heap)
        while heap:
            negative, at = heappop(heap)
            if -negative < found[at]:
                continue  # a louder path was found since
            for number in range(begin[at], begin[at + 1]):
                leak, target = found[at] * trusted[number], targets[number]
                if leak > found[target]:
                    found[target] = leak
                    heappush(heap, (-leak, target))
        return np.array(found, dtype=np.float64)

    def _leak(self, values: Floats, agents: Places) -> Places:
        """Let what some agents leak raise the values of those to whom they leak; return who became louder, sorted."""
        first = self.topology.outgoing[agents]
        many = self.topology.outgoing[agents + 1] - first
        ends = np.cumsum(many)
        numbers = np.repeat(first - ends + many, many) + np.arange(ends[-1])
        leaks = np.repeat(values[agents], many) * self._weights[numbers]
        targets = self.topology.targets[numbers]
        rises = leaks > values[targets]
        targets = targets[rises]
        # .at, because several edges may lead to one agent: plain indexing would take the last of them alone.
        np.maximum.at(values, targets, leaks[rises])
        is_louder = np.zeros(len(values), dtype=np.bool_)
        is_louder[targets] = True
        return np.flatnonzero(is_louder)

    @cached_property
    def _onward(self) -> tuple[list[int], list[int], list[float]]:
        """First edge of each agent, and target and weight of each edge."""
        return self.topology.outgoing.tolist(), self.topology.targets.tolist(), self._weights.tolist()

    def trace(self, own: Floats, values: Floats) -> list[int]:
        """Return the agent before each on its path, -1 where its own pressure is the highest.

        Breadth first in the order of the names finds the shortest path, and of those the first by its names.
        """
        # Equal to the bit: the value of who was reached is one of these very products.
        equal = values[self.topology.sources] * self._weights == values[self.topology.targets]
        leaks = np.flatnonzero(equal & (values > own)[self.topology.targets])
        sources, targets = self.topology.sources[leaks], self.topology.targets[leaks]
        before = np.full(len(own), -1)
        before[targets] = sources
        found: list[int] = before.tolist()
        if leaks.size == np.count_nonzero(before >= 0):
            return found  # no two paths are as strong
        begin: list[int] = np.searchsorted(sources, np.arange(len(own) + 1)).tolist()
        following: list[int] = targets.tolist()
        found = [-1] * len(own)
        origins = np.unique(sources)
        reached: list[int] = origins[values[origins] == own[origins]].tolist()
        while reached:
            newly = []
            for source in reached:
                for target in following[begin[source] : begin[source + 1]]:
                    if found[target] < 0:
                        found[target] = source
                        newly.append(target)
            reached = newly
        return found


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
