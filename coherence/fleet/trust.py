"""Trust between agents: a struggling agent's pressure leaks along weighted edges to those who rely on it.

The effective pressure of an agent is ``max(own, weight x effective of the source)`` over its incoming edges, the least
fixpoint of that. It is the loudest path: the largest ``own(origin) x weight x weight x ...`` of all paths that end at
the agent. Nothing is kept from one propagation to the next, so nothing echoes after a recovery.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from threading import RLock

import msgspec

from coherence.core.validation import check_flag, check_number, shown
from coherence.fleet.trust_graph import DAMPING, ROUNDS, UNKNOWN, Floats, Wiring, read_name

__all__ = ["DAMPING", "ROUNDS", "Edge", "Effective", "Propagation", "TrustGraph", "TrustState", "Upstream"]

LEARNING_RATE = 0.1
"""Share of the gap that one outcome closes, in (0, 1], under full pressure of the source; higher forgets sooner."""

LEAST_LEARNED, MAX_LEARNED = 0.05, 0.95
"""Between these weights outcomes teach: no source is ever ignored, and none believed blindly, because of them."""


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
        """Return this state with what somebody else has changed since both were ``before``, without idle agents.

        Where both have changed an edge this one counts, unless only the other's is fixed now.

        Examples
        --------
        >>> before = TrustState(("a", "b", "c"), (Edge("a", "b", 0.4), Edge("b", "c", 0.4)))
        >>> ours = TrustState(("a", "b", "c"), (Edge("a", "b", 0.5), Edge("b", "c", 0.4)))
        >>> other = TrustState(("a", "b", "c"), (Edge("a", "b", 0.1, True), Edge("b", "c", 0.3)))
        >>> [(edge.weight, edge.fixed) for edge in ours.merged(before, other).edges]
        [(0.1, True), (0.3, False)]
        """
        was, now, merged = before._by_ends(), self._by_ends(), other._by_ends()
        for ends in sorted(was.keys() | now.keys()):
            edge, there = now.get(ends), merged.get(ends)
            held = there is not None and there.fixed and there != was.get(ends) and not (edge and edge.fixed)
            if edge == was.get(ends) or held:
                continue
            merged.pop(ends, None)
            if edge is not None:
                merged[ends] = edge
        return TrustState(tuple(sorted({name for ends in merged for name in ends})), tuple(sorted(merged.values())))

    def _by_ends(self) -> dict[tuple[str, str], Edge]:
        return {(edge.source, edge.target): edge for edge in self.edges}


class TrustGraph:
    """Agents, and how much the pressure of one matters to another. Thread-safe.

    The result of :meth:`propagate` depends on agents, edges and pressures alone, not on the order in which they were
    added. A cycle decays because its weights are below 1. Where all weights of a cycle are 1, each edge of weight 1
    between two of its agents counts as 0.9. Names above 600 characters lose their middle; all are made fit for UTF-8.

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
        self._wiring: Wiring | None = None
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

    def has_sources(self, name: str) -> bool:
        """Tell whether another agent's pressure can reach this one; none can where the agent is unknown."""
        name = read_name("name", name)
        with self.lock:
            return name in self._agents and self._wired().is_reached(name)

    def sources(self, name: str) -> tuple[str, ...]:
        """Return the sources of the edges to an agent that outcomes may change, sorted."""
        with self.lock:
            name = self._known("name", name)
            return tuple(source for source in self._wired().direct(name) if not self._edges[source, name].fixed)

    def upstream(self, name: str) -> Upstream:
        """Return those whose pressure can reach an agent now, to ask what does."""
        with self.lock:
            return Upstream(self._known("name", name), self._wired())

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
        r"""Learn from how a task ended while sources were under pressure; return the edges that changed, sorted.

        A source whose troubles go before the target's failures matters, and its weight rises; if the target succeeds
        although the source struggles, it falls. A calm source teaches nothing, and a fixed edge never moves:
        :math:`w \leftarrow w + 0.1\,p\,(g - w)` with the source's pressure :math:`p` and the bound :math:`g`, 0.95
        after a failure and 0.05 after a success. So a weight tends to ``0.05 + 0.9 x`` the share of failures among the
        outcomes under pressure. It never leaves [0.05, 0.95]; one that a user set beyond moves inwards only.

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
        with self.lock:
            target = self._known("target", target)
            wiring = self._wired()
            loud = dict(zip(wiring.names, wiring.read(pressures).tolist(), strict=True))
            changed = {}
            for source in wiring.direct(target):
                edge = self._edges[source, target]
                gap = min(LEAST_LEARNED - edge.weight, 0.0) if success else max(MAX_LEARNED - edge.weight, 0.0)
                weight = edge.weight + LEARNING_RATE * loud[source] * gap
                if not edge.fixed and weight != edge.weight:
                    changed[source, target] = msgspec.structs.replace(edge, weight=weight)
            if changed:
                self._edges |= changed
                self._wiring = None
        return tuple(changed.values())

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
        return Propagation(wiring, wiring.read(own))

    def _wired(self) -> Wiring:
        if self._wiring is None:
            edges = [(edge.source, edge.target, edge.weight) for edge in self.edges()]
            self._wiring = Wiring(self.agents, edges)
        return self._wiring

    def _known(self, field: str, name: str) -> str:
        name = read_name(field, name)
        if name not in self._agents:
            raise ValueError(UNKNOWN.format(field=field, name=shown(name)))
        return name


class Propagation(Mapping[str, Effective]):
    """Agent -> :class:`Effective`, sorted by name. Paths are put together where they are asked for."""

    def __init__(self, wiring: Wiring, own: Floats) -> None:
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


class Upstream:
    """An agent's sources, near and far, as they were when the graph was asked; later changes do not reach it.

    Examples
    --------
    >>> state = TrustState(("coder", "planner", "scribe"), (Edge("coder", "planner", 0.4),))
    >>> found = TrustGraph(state).upstream("planner")
    >>> found.names, found.receive({"coder": 0.5})
    (('coder',), Effective(own=0.0, value=0.2, path=('coder', 'planner')))
    """

    def __init__(self, agent: str, wiring: Wiring) -> None:
        self.agent = agent
        self.names = wiring.upstream(agent)
        """All whose pressure can reach the agent, sorted."""
        self._wiring = wiring

    def receive(self, own: Mapping[str, float]) -> Effective:
        """Return the agent's effective pressure, given the own ones of its sources; those left out are calm."""
        return Propagation(self._wiring, self._wiring.read(own))[self.agent]
