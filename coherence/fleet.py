"""Many agents over one store, one embedder and, if wanted, one budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Any, Self

import msgspec

from coherence.appraise.budget import together
from coherence.config import Budget, MonitorConfig
from coherence.events import Spent
from coherence.findings import DecisionKind, Mode
from coherence.monitor import Durability, Monitor, as_budget, as_store
from coherence.plain import check_text
from coherence.protocols import Embedder
from coherence.records import Band
from coherence.sensor.embedding import EmbeddingCache
from coherence.store.store import Store


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
        embedder: Embedder | EmbeddingCache | None = None,
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
            made = Monitor(
                agent=name,
                store=self.store,
                parent=parent,
                tree_budget=self.budget,
                tree_spent=self._others(name) if self.budget is not None else None,
                **given,
            )
            self._agents[name], self._parents[name] = made, parent
            return made

    def _others(self, name: str) -> Callable[[bool], Spent]:
        """Return what tells the spending of all agents but one, as far as folded or after folding the rest."""

        def spent(fold: bool) -> Spent:
            total = Spent()
            for other, monitor in list(self._agents.items()):
                if other != name:
                    total = together(total, monitor.spent if fold else monitor.known_spent)
            return total

        return spent

    def __iter__(self) -> Any:
        return iter(list(self._agents.values()))

    def status(self) -> list[AgentStatus]:
        """Return one entry an agent, in the order they were made, without measuring."""
        with self._lock:
            return [_status(monitor, self._parents[name]) for name, monitor in self._agents.items()]

    def flush(self) -> None:
        """Write everything that was recorded."""
        with ExitStack() as all_of_them:  # one that fails must not keep the others from it
            for monitor in self:
                all_of_them.callback(monitor.flush)

    def close(self) -> None:
        """Close every monitor, and the store if the fleet opened it."""
        with ExitStack() as all_of_them:
            if self.store is not None and self._owns_store:
                all_of_them.callback(self.store.close)
            for monitor in self:
                all_of_them.callback(monitor.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


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
