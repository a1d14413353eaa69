"""Many agents over one store, one embedder and, if wanted, one budget."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Any, Literal, Self

import msgspec

from coherence.appraise.budget import together
from coherence.config import Budget, MonitorConfig
from coherence.events import Around, Received, Spent
from coherence.findings import DecisionKind, Mode
from coherence.monitor import Durability, Monitor, as_budget, as_store
from coherence.plain import check_number, check_text
from coherence.protocols import Embedder
from coherence.records import Band
from coherence.sensor.embedding import EmbeddingCache
from coherence.store.store import Store
from coherence.trust import Effective, TrustGraph, TrustState


class AgentStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One agent of a fleet, at its newest measurement."""

    agent: str
    parent: str | None
    decision: DecisionKind
    cause: str
    """Why, if there is anything to say."""
    coherence_index: float | None
    """``None`` if nothing was measured."""
    band: Band | None
    pressure: float
    mode: Mode
    calls: int
    errors: int
    spent: Spent


class Fleet:
    """Many monitors that share a store, an embedder and a budget.

    Parameters
    ----------
    store : path or Store, optional
        One file for all.
    budget : Budget or mapping, optional
        What all agents together may use up; each may have its own besides.
    config, embedder, durability
        As for :class:`~coherence.monitor.Monitor`, for every agent that is not given its own.

    Examples
    --------
    >>> from coherence.providers import HashingEmbedder
    >>> with Fleet(budget={"calls": 2}, embedder=HashingEmbedder()) as fleet:
    ...     _ = fleet.agent("planner").tool_call("Read", {"path": "a"})
    ...     _ = fleet.agent("coder", parent="planner").tool_call("Bash", {"command": "ls"})
    ...     print(fleet.agent("coder").check("Bash", {"command": "ls"}).kind)
    block
    """

    def __init__(
        self,
        *,
        store: str | Path | Store | None = None,
        budget: Budget | Mapping[str, Any] | None = None,
        config: MonitorConfig | Mapping[str, Any] | str | Path | None = None,
        embedder: Embedder | EmbeddingCache | Literal[False] | None = None,
        durability: Durability = "batched",
    ) -> None:
        self.budget = as_budget(budget)
        self.config = MonitorConfig.load(config)
        self._embedder = embedder
        self._durability: Durability = durability
        self._owns_store = not isinstance(store, Store)
        self.store = as_store(store)
        self._agents: dict[str, Monitor] = {}
        self._parents: dict[str, str | None] = {}
        self._lock = RLock()
        self.trust = _kept_trust(self.store)
        """Who relies on whom; with a store it is kept, and begins as it was left."""
        self._kept_edges = {(edge.source, edge.target): edge.weight for edge in self.trust.edges()}

    def agent(self, name: str, *, parent: str | None = None, **options: Any) -> Monitor:
        """Return an agent's monitor; the first call makes it, with the options of a monitor.

        Raises
        ------
        ValueError
            If the parent is not an agent of this fleet, or options are given for an agent that exists.
        """
        check_text("name", name, empty=False)
        with self._lock:
            found = self._agents.get(name)
            if found is not None:
                if options:
                    raise ValueError(f"agent {name!r} exists already: {', '.join(options)} cannot be changed")
                return found
            if parent is not None and parent not in self._agents:
                raise ValueError(f"parent {parent!r} is not an agent of this fleet")
            given = {
                "config": self.config,
                "embedder": self._embedder,
                "durability": self._durability,
                **options,
            }
            self.trust.add_agent(name)
            made = Monitor(
                agent=name,
                store=self.store,
                parent=parent,
                tree_budget=self.budget,
                neighbours=_Neighbours(self, name),
                **given,
            )
            self._agents[name], self._parents[name] = made, parent
            return made

    def remove_agent(self, name: str) -> None:
        """Close an agent's monitor and forget the agent here, with every edge from or to it; its record stays.

        Raises
        ------
        ValueError
            If there is no such agent.
        """
        with self._lock:
            if name not in self._agents:
                raise ValueError(f"{name!r} is not an agent of this fleet")
            monitor = self._agents.pop(name)
            del self._parents[name]
            self.trust.remove_agent(name)
        monitor.close()

    def add_edge(self, source: str, target: str, trust_weight: float = 1.0, *, fixed: bool = False) -> None:
        """Let the source's pressure leak to the target: times the weight, and on from there.

        Parameters
        ----------
        source, target : str
            Two agents of this fleet.
        trust_weight : float
            In [0, 1]; 0 = nothing leaks, 1 = everything.
        fixed : bool
            Whether outcomes of the target's tasks leave the weight alone.

        An edge that the store has kept from an earlier run goes on with what was learned, unless ``fixed``;
        :meth:`set_trust` changes it.

        Raises
        ------
        TypeError, ValueError
            For an unknown agent, an edge from an agent to itself, or a weight that is NaN or outside [0, 1].

        Examples
        --------
        >>> from coherence.providers import HashingEmbedder
        >>> with Fleet(embedder=HashingEmbedder()) as fleet:
        ...     sub, planner = fleet.agent("claude_sub"), fleet.agent("planner")
        ...     fleet.add_edge("claude_sub", "planner", trust_weight=0.4)
        ...     for _ in range(7):
        ...         sub.tool_result("boom", error=True, tool="Bash")
        ...     print(planner.decide().findings[0].why)
        claude_sub is in trouble, and 0.30 of it reaches this agent (claude_sub > planner)
        """
        with self._lock:
            for field, name in (("source", source), ("target", target)):
                if check_text(field, name, empty=False) not in self._agents:
                    raise ValueError(f"{field} {name!r} is not an agent of this fleet: make it with agent() first")
            kept = self._kept_edges.pop((source, target), None)
            weight = trust_weight if kept is None or fixed else kept
            check_number("trust_weight", trust_weight, least=0.0, most=1.0)
            self.trust.add_edge(source, target, weight, fixed=fixed)

    def remove_edge(self, source: str, target: str) -> None:
        """Let nothing leak directly from the source to the target any more."""
        self.trust.remove_edge(source, target)

    def set_trust(self, source: str, target: str, trust_weight: float, *, fixed: bool = True) -> None:
        """Change the weight of an edge and, unless told otherwise, keep outcomes from changing it."""
        self.trust.set_trust(source, target, trust_weight, fixed=fixed)

    def pressures(self) -> dict[str, Effective]:
        """Return agent -> its own pressure, the effective one, and the path on which that came."""
        with self._lock:
            return dict(self.trust.propagate({name: monitor.own_pressure for name, monitor in self._agents.items()}))

    def __iter__(self) -> Any:
        return iter(list(self._agents.values()))

    def status(self) -> list[AgentStatus]:
        """Return one entry an agent, in the order they were made, without measuring."""
        with self._lock:
            return [_status(monitor, self._parents[name]) for name, monitor in self._agents.items()]

    def _keep_trust(self) -> None:
        if self.store is not None and self.trust.edges():
            with self.store.transaction() as transaction:
                transaction.set_trust(time.time(), self.trust.state().to_json())

    def flush(self) -> None:
        """Write everything that was recorded."""
        with ExitStack() as all_of_them:  # one that fails must not keep the others from it
            all_of_them.callback(self._keep_trust)
            for monitor in self:
                all_of_them.callback(monitor.flush)

    def close(self) -> None:
        """Close every monitor, and the store if the fleet opened it."""
        with ExitStack() as all_of_them:
            if self.store is not None and self._owns_store:
                all_of_them.callback(self.store.close)
            all_of_them.callback(self._keep_trust)
            for monitor in self:
                all_of_them.callback(monitor.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _kept_trust(store: Store | None) -> TrustGraph:
    """Return the graph that a store holds. Its agents are known before they are made; so are their edges."""
    kept = store.trust() if store is not None else None
    return TrustGraph(TrustState.from_json(kept)) if kept is not None else TrustGraph()


class _Neighbours:
    """What an agent of a fleet sees of the others."""

    def __init__(self, fleet: Fleet, name: str) -> None:
        self._fleet = fleet
        self._name = name

    def look(self, *, fold: bool) -> Around:
        """Return what the others have spent, if there is a common budget, and the most pressure that reaches here."""
        fleet, name = self._fleet, self._name
        others = [(other, monitor) for other, monitor in list(fleet._agents.items()) if other != name]
        spent: Spent | None = None
        if fleet.budget is not None:
            spent = Spent()
            for _, monitor in others:
                spent = together(spent, monitor.spent if fold else monitor.known_spent)
        if not fleet.trust.has_sources(name):
            return Around(spent)
        own = {other: monitor.own_pressure if fold else monitor.known_pressure for other, monitor in others}
        try:
            reached = fleet.trust.propagate({**own, name: 0.0})[name]
        except (KeyError, ValueError):  # an agent came or went at this moment
            return Around(spent)
        return Around(spent, Received(reached.value, reached.path) if reached.value > 0.0 else None)

    def learn(self, *, success: bool) -> None:
        """Learn trust from how a task of this agent ended."""
        fleet = self._fleet
        if not fleet.trust.has_sources(self._name):
            return
        others = [(other, monitor) for other, monitor in list(fleet._agents.items()) if other != self._name]
        pressures = {other: monitor.own_pressure for other, monitor in others}
        with suppress(ValueError):  # an agent came or went at this moment
            fleet.trust.learn(self._name, success=success, pressures=pressures)


def _status(monitor: Monitor, parent: str | None) -> AgentStatus:
    verdict, counters = monitor.verdict, monitor.counters
    reading = verdict.reading if verdict is not None else None
    known = reading is not None and reading.coverage > 0
    return AgentStatus(
        agent=monitor.agent,
        parent=parent,
        decision=verdict.decision.kind if verdict is not None else "continue",
        cause=verdict.decision.message if verdict is not None else "",
        coherence_index=reading.coherence_index if reading is not None and known else None,
        band=reading.band if reading is not None and known else None,
        pressure=monitor.pressure,
        mode=monitor.mode,
        calls=counters.calls or 0,
        errors=counters.errors or 0,
        spent=monitor.spent,
    )
