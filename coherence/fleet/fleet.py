"""Many agents over one store, one embedder and, if wanted, one budget."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

import msgspec

from coherence.baseline.appraiser import mode_of
from coherence.core.config import Budget, MonitorConfig, disabled
from coherence.core.decisions import DecisionKind, Mode, worst_kind
from coherence.core.events import FleetContext, Received, Spent
from coherence.core.protocols import Embedder
from coherence.core.readings import Band
from coherence.core.validation import check_flag, check_number
from coherence.fleet.trust import Effective, TrustGraph, TrustState, read_name
from coherence.monitor.arguments import Lessons, as_budget, as_lessons, as_store
from coherence.monitor.background import BACKGROUND, FORK_WAIT_S
from coherence.monitor.known_state import KnownState
from coherence.monitor.monitor import Durability, Monitor
from coherence.monitor.worker import LOG, RETRY_S
from coherence.policy.budgets import together
from coherence.policy.regulator import received_finding
from coherence.sensor.embedding_cache import EmbeddingCache
from coherence.store.errors import StoreError

if TYPE_CHECKING:  # without a store, nothing of it is loaded
    from coherence.store.store import Store

MAX_HOPS = 16
"""Agents of a path that are recorded and told: of a longer one as many of both ends."""


class AgentStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One agent of a fleet, at its newest measurement."""

    agent: str
    parent: str | None
    decision: DecisionKind
    """Of the newest measurement, or what comes from other agents now, if that is more severe."""
    cause: str
    """The reason, if there is anything to say."""
    coherence_index: float | None
    """``None`` if nothing was measured."""
    band: Band | None
    pressure: float
    """The effective one: its own, or what comes from other agents, if that is more."""
    mode: Mode
    """Of this pressure."""
    calls: int
    errors: int
    spent: Spent
    scale: str = ""
    """Version of the scale that made the index; empty for a classic one, or if nothing was measured."""


class Fleet:
    """Many monitors that share a store, an embedder and a budget.

    Parameters
    ----------
    store : path or Store, optional
        One file for all agents.
    budget : Budget or mapping, optional
        Limits on all agents together; each may have its own limits, too.
    lessons : LessonStore, path, Store or bool, optional
        Store of errors and their fixes, shared by all agents. Default: in ``store``, if there is one.
    resume : bool
        Continue the newest session of each agent and the spent budget, as after a restart.
    config, embedder, durability
        As for :class:`~coherence.monitor.monitor.Monitor`, for every agent that is not given its own.

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
        lessons: Lessons = None,
        resume: bool = False,
    ) -> None:
        self.resume = check_flag("resume", resume)
        self.budget = as_budget(budget)
        self.config = MonitorConfig.load(config)
        self._embedder = embedder
        self._durability: Durability = durability
        self.store = as_store(store)
        self._owns_store = self.store is not store
        self._agents: dict[str, Monitor] = {}
        self._parents: dict[str, str | None] = {}
        self._lock = RLock()
        try:
            self.lessons = as_lessons(lessons, self.store, embedder)
            """Lessons about errors; ``None`` without a store."""
            self._owns_lessons = self.lessons is not lessons
            self.trust = TrustGraph(read_trust(self.store)) if self.store is not None else TrustGraph()
            """Trust between the agents, to be read; with a store it is kept, and begins as it was left."""
        except BaseException:
            if self.store is not None and self._owns_store:
                self.store.close()
            raise
        self._kept_edges = {(edge.source, edge.target) for edge in self.trust.edges()}
        self._keeper = _Keeper(self)

    def agent(self, name: str, *, parent: str | None = None, **options: Any) -> Monitor:
        """Return an agent's monitor; the first call makes it, with the options of a monitor.

        Raises
        ------
        ValueError
            If the parent is not an agent of this fleet, or options are given for an agent that exists.
        """
        name = read_name("name", name)
        parent = None if parent is None else read_name("parent", parent)
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
                "resume": self.resume,
                "lessons": self.lessons if self.lessons is not None else False,
                **options,
            }
            made = Monitor(
                agent=name,
                store=self.store,
                parent=parent,
                tree_budget=self.budget,
                peers=_Neighbours(self, name),
                **given,
            )
            self.trust.add_agent(name)
            self._agents[name], self._parents[name] = made, parent
            return made

    def __repr__(self) -> str:
        with self._lock:
            agents = [
                f"{name} {m.latest.short() if m.latest else 'no reading yet'}" for name, m in self._agents.items()
            ]
        shown = ", ".join(agents[:8]) + (f" and {len(agents) - 8} more" if len(agents) > 8 else "")
        return f"<Fleet {shown or 'without agents'}>"

    def _repr_html_(self) -> str:
        """Draw a strip of each agent's newest readings, for notebooks."""
        with self._lock:
            agents = list(self._agents.values())
        return f"<div>{''.join(m._repr_html_() for m in agents) or 'no agents'}</div>"

    def remove_agent(self, name: str) -> None:
        """Close an agent's monitor and forget the agent here, with every edge from or to it; its record stays.

        Raises
        ------
        ValueError
            If there is no such agent.
        """
        name = read_name("name", name)
        with self._lock:
            if name not in self._agents:
                raise ValueError(f"{name!r} is not an agent of this fleet")
            monitor = self._agents.pop(name)
            del self._parents[name]
            self.trust.remove_agent(name)
            self._kept_edges = {ends for ends in self._kept_edges if name not in ends}
        # Outside the lock: it writes, and the other agents go on meanwhile.
        monitor.close()

    def add_edge(self, source: str, target: str, trust_weight: float = 1.0, *, fixed: bool = False) -> None:
        """Let the pressure of the source reach the target, multiplied by the weight, and those beyond it.

        An edge that the store kept from an earlier run continues with its kept weight. :meth:`set_trust` and ``fixed``
        change it.

        Parameters
        ----------
        source, target : str
            Two agents of this fleet.
        trust_weight : float
            In [0, 1]; 0 = no pressure passes, 1 = all of it.
        fixed : bool
            Keep the weight whatever the outcomes of the target's tasks are.

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
        source, target = read_name("source", source), read_name("target", target)
        trust_weight = check_number("trust_weight", trust_weight, least=0.0, most=1.0)
        with self._lock:
            if (source, target) not in self._kept_edges or check_flag("fixed", fixed):
                self.trust.add_edge(source, target, trust_weight, fixed=fixed)
            self._kept_edges.discard((source, target))

    def remove_edge(self, source: str, target: str) -> None:
        """Remove the direct edge from the source to the target."""
        with self._lock:
            self.trust.remove_edge(source, target)
            self._kept_edges.discard((read_name("source", source), read_name("target", target)))

    def set_trust(self, source: str, target: str, trust_weight: float, *, fixed: bool = True) -> None:
        """Change the weight of an edge and, unless told otherwise, keep outcomes from changing it."""
        self.trust.set_trust(source, target, trust_weight, fixed=fixed)

    def pressures(self) -> dict[str, Effective]:
        """Return agent -> its own pressure, the effective one, and the path on which that came."""
        own = {name: monitor.own_pressure for name, monitor in list(self._agents.items())}
        with self._lock:  # no agent goes between the two lines
            own = {name: pressure for name, pressure in own.items() if name in self._agents}
            reached = self.trust.propagate(own)
        return {name: reached[name] for name in own}

    def __iter__(self) -> Any:
        return iter(list(self._agents.values()))

    def status(self, *, wait: bool = True) -> list[AgentStatus]:
        """Return one entry an agent, in the order they were made, without measuring.

        With ``wait=False`` the answer comes at once, also while an agent is measured or made: it is what has been
        processed so far.
        """
        agents = list(self._agents.values())  # a copy: agents come and go on other threads
        known = {monitor.agent: _state_of(monitor, wait=wait) for monitor in agents}
        with self.trust.lock:  # no agent goes between the two lines
            there = set(self.trust.agents)
            reached = self.trust.propagate({name: each.pressure for name, each in known.items() if name in there})
        return [
            _status_of(monitor, self._parents.get(monitor.agent), reached[monitor.agent], known[monitor.agent])
            for monitor in agents
            if monitor.agent in there
        ]

    def explain(self) -> str:
        """Say in words how each agent's newest index came about, and by which scale; without measuring."""
        with self._lock:
            newest = {name: monitor.latest for name, monitor in self._agents.items()}
        told = (f"{name}: {'no reading yet' if one is None else one.explain()}" for name, one in newest.items())
        return "\n".join(told)

    def flush(self) -> None:
        """Write everything that was recorded."""
        with ExitStack() as all_of_them:  # one that fails must not keep the others from it
            all_of_them.callback(self._keeper.keep)
            for monitor in self:
                all_of_them.callback(monitor.flush)

    def close(self) -> None:
        """Close every monitor, and the store if the fleet opened it."""
        with ExitStack() as all_of_them:
            # Called in reverse order: the monitors, what they have taught, and the files last.
            if self.store is not None and self._owns_store:
                all_of_them.callback(self.store.close)
            if self.lessons is not None and self._owns_lessons:
                all_of_them.callback(self.lessons.close)
            all_of_them.callback(self._keeper.keep)
            for monitor in self:
                all_of_them.callback(monitor.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _state_of(monitor: Monitor, *, wait: bool) -> KnownState:
    if not wait:
        return monitor.known_state
    with monitor._worker.settled() as pipeline:
        return KnownState.of(pipeline)


def _status_of(monitor: Monitor, parent: str | None, reached: Effective, known_state: KnownState) -> AgentStatus:
    """Return how an agent stands, without measuring: its own pressure, and the one that reaches it."""
    result = known_state.result
    reading = result.reading if result is not None else None
    known = reading is not None and reading.coherence_index is not None
    decision: DecisionKind = result.decision.kind if result is not None else "continue"
    cause = result.decision.message if result is not None else ""
    received = Received(reached.value, reached.path) if len(reached.path) > 1 else None
    config = monitor._worker.pipeline.config.pressure  # with what was learned
    finding = received_finding(received, config)
    if finding is not None and worst_kind([decision, finding.acts]) != decision:
        decision, cause = finding.acts, finding.why
    return AgentStatus(
        agent=monitor.agent,
        parent=parent,
        decision=decision,
        cause=cause,
        coherence_index=reading.coherence_index if reading is not None and known else None,
        band=reading.band if reading is not None and known else None,
        pressure=reached.value,
        mode=mode_of(reached.value, config),
        calls=known_state.calls,
        errors=known_state.errors,
        spent=known_state.spent,
        scale=reading.scale if reading is not None and known else "",
    )


LEARN_WAIT_S = 1.0
"""Seconds that the end of a task waits at most for what other agents have been told to be folded."""


class _Keeper:
    """Writes learned trust to the store: soon after it was learned, at a flush, and at the end."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._written = fleet.trust.state()
        """The newest state that the store and the graph held in common, as far as this process knows."""
        self._lock = RLock()
        self._holds = False
        self._off = fleet.store is None or disabled()
        if not self._off:
            BACKGROUND.known.add(self)

    def learned(self) -> None:
        """Write at once with full durability, else soon."""
        if self._fleet._durability == "full":
            self.keep()
        elif not self._off:
            BACKGROUND.call(self)

    def keep(self) -> None:
        """Write what has changed here; what others have changed in the store stays."""
        store, trust = self._fleet.store, self._fleet.trust
        with self._lock:
            state = trust.state()
            if self._off or store is None or state.edges == self._written.edges:
                return
            with store.transaction() as transaction:
                # Read inside the transaction, so that nobody writes between the two.
                merged = state.merged(self._written, read_trust(store))
                transaction.set_trust(time.time(), merged.to_json())
            # not what was merged: the graph here does not hold what others have changed
            self._written = state

    def work(self) -> float | None:
        """Write; for the background thread."""
        store = self._fleet.store
        if store is None or store.closed:
            return None
        try:
            self.keep()
        except (StoreError, ValueError) as error:  # an agent must not stop for it
            LOG.warning("coherence: learned trust could not be written: %s", error)
            return RETRY_S
        return None

    def finish(self) -> None:
        """Write what is left; at the end of the process."""
        self.work()

    def before_fork(self) -> None:
        """Hold the edges still: a child must not inherit half a change. The other locks may wait for the store."""
        self._holds = self._fleet.trust.lock.acquire(timeout=FORK_WAIT_S)

    def after_fork_in_parent(self) -> None:
        """Go on."""
        if self._holds:
            self._fleet.trust.lock.release()

    def after_fork_in_child(self) -> None:
        """Go on with locks of its own."""
        self._lock, self._fleet._lock, self._fleet.trust.lock = RLock(), RLock(), RLock()


def read_trust(store: Store) -> TrustState:
    """Return who relies on whom, as a store holds it.

    Raises
    ------
    ValueError
        If another version has written it.
    """
    kept = store.trust()
    return TrustState.from_json(kept) if kept is not None else TrustState()


class _Neighbours:
    """View of an agent of a fleet on the others."""

    def __init__(self, fleet: Fleet, name: str) -> None:
        self._fleet = fleet
        self._name = name

    def look(self, *, until: float | None) -> FleetContext:
        """Return what the others have spent, if there is a common budget, and the most pressure that reaches here."""
        fleet = self._fleet
        spent: Spent | None = None
        if fleet.budget is not None:
            spent = Spent()
            # a copy: agents come and go on other threads
            for other, monitor in list(fleet._agents.items()):
                if other != self._name:
                    # without a time the caller holds its lock, and may not ask for another agent's
                    spent = together(spent, monitor.known_spent if until is None else monitor._worker.spent(until))
        with suppress(ValueError, KeyError):  # an agent was removed at this moment
            own = self._pressures(fleet.trust.upstream(self._name), until)
            if own and (reached := fleet.trust.propagate(own)[self._name]).value > 0.0:
                return FleetContext(spent, Received(reached.value, _short(reached.path)))
        return FleetContext(spent)

    def learn(self, *, success: bool) -> None:
        """Learn trust from how a task of this agent ended."""
        trust = self._fleet.trust
        with suppress(ValueError):  # an agent was removed at this moment
            pressures = self._pressures(trust.sources(self._name), time.monotonic() + LEARN_WAIT_S)
            if pressures and trust.learn(self._name, success=success, pressures=pressures):
                self._fleet._keeper.learned()

    def _pressures(self, names: Sequence[str], until: float | None) -> dict[str, float]:
        """Return the own pressure of those that are not calm."""
        found = {}
        for name in names:
            monitor = self._fleet._agents.get(name)
            if monitor is not None:
                pressure = monitor.known_pressure if until is None else monitor._worker.pressure(until)
                if pressure > 0.0:
                    found[name] = pressure
        return found


def _short(path: tuple[str, ...]) -> tuple[str, ...]:
    """Return both ends of a path that is too long to be recorded and shown with every tick."""
    left_out = len(path) - MAX_HOPS
    if left_out <= 1:
        return path
    half = MAX_HOPS // 2
    return (*path[:half], f"… {left_out} more …", *path[-half:])
