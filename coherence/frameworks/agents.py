"""The agents of a framework's runs, by name: each has a monitor, and all share a fleet."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from coherence.core.config import Budget, MonitorConfig
from coherence.core.validation import check_flag
from coherence.fleet.fleet import Fleet
from coherence.integrations.watch import Watch
from coherence.monitor.monitor import Monitor

if TYPE_CHECKING:  # without a store, nothing of it is loaded
    from coherence.store.store import Store

MAX_WRITTEN = 10_000
"""Marks of answers whose writers are remembered; the oldest are forgotten."""

_AT_WORK: ContextVar[tuple[Agents, str] | None] = ContextVar("coherence_at_work", default=None)
"""The agent whose tool runs now."""


class Agents:
    """Watch each agent of a framework under its name.

    Parameters
    ----------
    agent : str
        Name of the agent where the framework has no names.
    goal : str, optional
        Task of the first agent; the others, and the first without it, take the first user message they are given.
    store : path or Store, optional
        File that keeps everything.
    guide : bool
        Adds to a copy of a request what the decision has for the agent.
    budget : Budget or mapping, optional
        Limits on all agents together.
    config : MonitorConfig, mapping or path, optional
        Settings of the monitors.
    monitor : Monitor, optional
        A monitor of yours, for a run of one agent, in place of all arguments but ``guide``.
    fleet : Fleet, optional
        A fleet of yours, in place of ``store``, ``budget`` and ``config``.

    Raises
    ------
    ValueError
        For arguments that exclude each other.

    Examples
    --------
    >>> with Agents(goal="Write a report.") as agents:
    ...     agents.handed_over("planner", "writer")
    ...     print([edge.target for edge in agents.fleet.trust.edges()])
    ['writer']
    """

    def __init__(
        self,
        *,
        agent: str = "agent",
        goal: str | None = None,
        store: str | Path | Store | None = None,
        guide: bool = False,
        budget: Budget | Mapping[str, Any] | None = None,
        config: MonitorConfig | Mapping[str, Any] | str | Path | None = None,
        monitor: Monitor | None = None,
        fleet: Fleet | None = None,
    ) -> None:
        self._guide = check_flag("guide", guide)
        shared = store is not None or budget is not None or config is not None
        if monitor is not None and (shared or fleet is not None or goal is not None or agent != "agent"):
            raise ValueError("pass monitor= alone, or agent=, goal=, store=, config=, budget= or fleet= for new ones")
        if fleet is not None and shared:
            raise ValueError("store=, budget= and config= are those of the fleet: give them to Fleet(...)")
        self._agent, self._goal = agent, goal
        self._monitor = monitor
        self._owns = fleet is None
        self._fleet = (
            fleet if fleet is not None or monitor is not None else Fleet(store=store, budget=budget, config=config)
        )
        self._watches: dict[str, Watch] = {}
        self._writers: dict[str, tuple[str, ...]] = {}
        self._lock = threading.Lock()

    @property
    def fleet(self) -> Fleet:
        """The fleet of the agents.

        Raises
        ------
        ValueError
            If they are one monitor of the user's.
        """
        if self._fleet is None:
            raise ValueError("the agents are one monitor, which was given as monitor=; pass fleet= for a fleet")
        return self._fleet

    @property
    def monitor(self) -> Monitor:
        """The monitor of the first agent."""
        with self._lock:
            first = next(iter(self._watches.values()), None)
        return first.monitor if first is not None else self.watch().monitor

    @property
    def guides(self) -> bool:
        """True if agents are told what decisions have for them."""
        return self._guide

    def watch(self, name: str | None = None, **options: Any) -> Watch:
        """Return the watch of an agent, made when it is first asked for; ``None``: the agent of that run.

        ``options``: those of the monitor, if it is made now.
        """
        name = name if isinstance(name, str) and name.strip() else self._agent
        if self._monitor is not None:
            name = self._monitor.agent
        with self._lock:
            found = self._watches.get(name)
            if found is None:
                found = self._watches[name] = self._made(name, options)
            return found

    def _made(self, name: str, given: dict[str, Any]) -> Watch:
        if self._monitor is not None:
            return Watch(self._monitor, guide=self._guide, found_by="the monitor that you gave")
        first = not self._watches
        options: dict[str, Any] = {"source": "wrap", **given}
        if first and self._goal is not None:
            options["goal"] = self._goal
        known = {monitor.agent for monitor in self.fleet}
        monitor = self.fleet.agent(name, **({} if name in known else options))
        has_budget = self.fleet.budget is not None or monitor.state.budget is not None
        return Watch(monitor, guide=self._guide, has_budget=has_budget, found_by=f"the monitor of agent {name!r}")

    def handed_over(self, source: str, target: str) -> None:
        """Let the pressure of an agent reach another one, which goes on with its work or uses its answer.

        The weight is kept and learned as that of :meth:`~coherence.fleet.fleet.Fleet.add_edge`. Once for each pair;
        nothing for an agent itself, and for agents that are one monitor.
        """
        if self._fleet is None or source == target:
            return
        self.watch(source)
        self.watch(target)
        if not any((edge.source, edge.target) == (source, target) for edge in self._fleet.trust.edges()):
            self._fleet.add_edge(source, target)

    def taken_over(self, source: str, target: str) -> None:
        """Let an agent go on with the conversation of another one: what that has said and done is not its own."""
        if self._fleet is None or source == target:
            return
        before, after = self.watch(source), self.watch(target)
        try:
            self.handed_over(source, target)
            request = before.monitor.state.facts.request
            if request and request != after.monitor.state.facts.request:
                after.monitor.message("user", request)
            after.conversation.adopt(before.conversation)
        except Exception as error:  # the host goes on
            before.failed(error)

    @contextmanager
    def at_work(self, name: str) -> Iterator[None]:
        """Have an agent that begins meanwhile, in this task or thread, work for this one."""
        token = _AT_WORK.set((self, name))
        try:
            yield
        finally:
            _AT_WORK.reset(token)

    def works(self, name: str) -> None:
        """Have an agent that begins later, in this task or thread, work for this one."""
        _AT_WORK.set((self, name))

    def began(self, name: str) -> None:
        """Join an agent that begins with the one that it works for."""
        outer = _AT_WORK.get()
        if outer is not None and outer[0] is self:
            try:
                self.handed_over(name, outer[1])
            except Exception as error:  # the host goes on
                self.watch(name).failed(error)

    def wrote(self, name: str, marks: Iterable[str]) -> None:
        """Know that an answer is this agent's, by marks that it has wherever it is repeated."""
        with self._lock:
            for mark in marks:
                others = (writer for writer in self._writers.pop(mark, ()) if writer != name)
                self._writers[mark] = (*others, name)
            while len(self._writers) > MAX_WRITTEN:
                del self._writers[next(iter(self._writers))]

    def writers(self, marks: Iterable[str]) -> tuple[str, ...]:
        """Return the agents that wrote the answer of the first mark that is known; the last one wrote last."""
        with self._lock:
            return next((found for mark in marks if (found := self._writers.get(mark))), ())

    def flush(self) -> None:
        """Write everything that was recorded."""
        self._whole.flush()

    def close(self) -> None:
        """Close the monitors, but not a fleet or a monitor of the user's."""
        if self._owns and self._fleet is not None:
            self._fleet.close()
        else:
            self._whole.flush()

    @property
    def _whole(self) -> Fleet | Monitor:
        return self.fleet if self._monitor is None else self._monitor

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Watching:
    """Base of what a user makes of each framework: agents, watched until it is closed, as a block too.

    Parameters
    ----------
    agent : str
        Name of the agent, or of one that has none.
    agents : Agents, optional
        Those of another one, in place of ``options``.
    **options
        Arguments of :class:`Agents`: ``goal``, ``store``, ``guide``, ``budget``, ``config``, ``monitor`` and ``fleet``.

    Raises
    ------
    ValueError
        For ``agents`` together with options, and for options that exclude each other.
    """

    def __init__(self, agent: str = "agent", *, agents: Agents | None = None, **options: Any) -> None:
        if agents is not None and options:
            raise ValueError(f"{', '.join(options)} are those of the agents: give them to Agents(...)")
        if "monitor" not in options:
            options["agent"] = agent
        self.agents = Agents(**options) if agents is None else agents
        """All agents that are watched together."""
        self._agent = agent

    @property
    def monitor(self) -> Monitor:
        """The monitor of the first agent."""
        return self.agents.monitor

    def close(self) -> None:
        """Close the monitors, but not a fleet or a monitor of the user's."""
        self.agents.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
