"""The monitor: the whole column for one agent, in your own loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias, get_args
from weakref import ref

import msgspec

import coherence.core.events as events
from coherence.baseline.pressure import mode_of
from coherence.core.clock import ClockThread, IntervalClock
from coherence.core.config import Budget, MonitorConfig, disabled
from coherence.core.decisions import Decision, Mode
from coherence.core.events import Event, Source, Spent
from coherence.core.protocols import Embedder, MetricFn, Rule, ScalarMetricFn
from coherence.core.readings import Counters, Reading, Tick
from coherence.core.registry import check_metric, check_rule
from coherence.core.validation import check_flag, check_text, to_json
from coherence.lessons.store import LessonStore
from coherence.monitor.arguments import Lessons, as_budget, as_lessons, as_store, check_name, check_plugins
from coherence.monitor.codec import Record, Verdict
from coherence.monitor.event_api import make_fault
from coherence.monitor.labels_api import Procedural
from coherence.monitor.lesson_recall import remember
from coherence.monitor.sanitize import goal_text
from coherence.monitor.session import Wanted, open_column
from coherence.monitor.worker import Engine, Neighbours
from coherence.policy.call_gate import unjudged
from coherence.policy.danger.danger import Danger
from coherence.sensor.embedding_cache import EmbeddingCache
from coherence.state.reducer import AgentState
from coherence.store.errors import StoreError
from coherence.store.store import Store

Durability: TypeAlias = Literal["batched", "full"]
"""``batched``: a power cut loses at most the last second or 100 events, a killed process nothing that was flushed.
``full``: each method returns after its event is safe on the disk."""


class Monitor(Procedural):
    """One agent's events in; readings, pressure and decisions out.

    Recording costs microseconds: checking, then the rest happens on a thread of the package, or when a decision is
    asked for. All methods may be called from any thread; they also work inside an event loop, where
    :meth:`adecide` leaves the loop free while texts are embedded.

    Parameters
    ----------
    agent : str
        Whose baselines these are.
    goal : str, optional
        What the agent is asked to do; else the first user message is.
    store : path or Store, optional
        Where everything is kept; the agent goes on where it stopped. Without it the last 10,000 events are held in
        memory.
    durability : {"batched", "full"}
        What a crash may lose, see :data:`Durability`.
    budget : Budget or mapping, optional
        What the agent may use up.
    embedder : Embedder or EmbeddingCache, optional
        Default: the shipped MiniLM model. ``False``: nothing is embedded; then words alone are compared, and the index
        is made of the detectors alone.
    config : MonitorConfig, mapping or path, optional
        Everything else; a path is that of a TOML file.
    session : str, optional
        Which session to go on with, or the name of a new one. Default: the agent's newest.
    source : {"api", "hook", "wrap", "replay", "test"}
        Written with every row; ``test`` never reaches statistics or baselines.
    metrics : sequence of MetricFn or ScalarMetricFn
        Own metrics, beside those of the settings' weights and the vitals.
    rules : sequence of Rule
        Own rules, beside those of the package.
    dangers : sequence of Danger, optional
        What ``check`` takes for destructive; default: ``coherence.policy.danger.table.DEFAULT``.
    lessons : LessonStore, path, Store or bool, optional
        Where errors find what fixed them before, and where new fixes are kept. Default: in ``store``, if there is one.
    lenient : bool
        Whether bad arguments become a recorded fault instead of an exception.
    parent : str, optional
        The agent that started this one.

    Raises
    ------
    TypeError, ValueError
        For a bad argument, which the message names.
    StoreError
        If the store cannot be opened.

    Examples
    --------
    >>> from coherence.providers import HashingEmbedder
    >>> with Monitor(goal="make the tests pass", embedder=HashingEmbedder()) as m:
    ...     for _ in range(4):
    ...         call = m.tool_call("Bash", {"command": "pytest -q"})
    ...         m.tool_result("ImportError: no module named x", error=True, call=call)
    ...     decision = m.decide()
    >>> decision.kind, decision.findings[0].evidence
    ('warn', (3, 6, 9, 12))
    """

    def __init__(
        self,
        *,
        agent: str = "main",
        goal: str | None = None,
        store: str | Path | Store | None = None,
        durability: Durability = "batched",
        budget: Budget | Mapping[str, Any] | None = None,
        embedder: Embedder | EmbeddingCache | Literal[False] | None = None,
        config: MonitorConfig | Mapping[str, Any] | str | Path | None = None,
        session: str | None = None,
        source: Source = "api",
        metrics: Sequence[MetricFn | ScalarMetricFn] = (),
        rules: Sequence[Rule] = (),
        dangers: Sequence[Danger] | None = None,
        lessons: Lessons = None,
        lenient: bool = False,
        parent: str | None = None,
        tree_budget: Budget | None = None,
        neighbours: Neighbours | None = None,
    ) -> None:
        super().__init__()
        self.agent = check_name("agent", agent)
        self.lenient = check_flag("lenient", lenient)
        if goal is not None and not lenient:
            check_text("goal", goal, empty=False)
        if durability not in get_args(Durability):
            raise ValueError(f"durability must be 'batched' or 'full', not {durability!r}")
        if source not in events.SOURCES:
            raise ValueError(f"source must be one of {', '.join(events.SOURCES)}, not {source!r}")
        check_plugins("metrics", metrics, check_metric)
        check_plugins("rules", rules, check_rule)
        self.durability = durability
        self.config = MonitorConfig.load(config)
        self._off = disabled()
        wanted = Wanted(
            agent=self.agent,
            session=None if session is None else check_name("session", session),
            source=source,
            config=self.config,
            budget=as_budget(budget) or self.config.budget,
            tree_budget=tree_budget,
            embedder=embedder,
            metrics=tuple(metrics),
            rules=tuple(rules),
            dangers=None if dangers is None else tuple(dangers),
            parent=None if parent is None else check_name("parent", parent),
        )
        self._owns_store = not isinstance(store, Store)
        self.store: Store | None = None if self._off else as_store(store)
        """The store; pass it on to share the file."""
        self.lessons: LessonStore | None = None
        """What is known of errors; ``None`` without a store."""
        self._owns_lessons = not isinstance(lessons, LessonStore)
        try:
            if source != "replay":  # a recorded run is judged by itself
                self.lessons = as_lessons(lessons, self.store, embedder)
            opened = open_column(wanted, self.store)
        except BaseException:
            if self.lessons is not None and self._owns_lessons:
                self.lessons.close()
            if self.store is not None and self._owns_store:
                self.store.close()
            raise
        self._engine = Engine(
            opened,
            self.config,
            full=durability == "full",
            neighbours=neighbours,
            remembering=remember(self.lessons, (self.agent, opened.session), source),
        )
        self.session = opened.session
        """The session's name."""
        if goal is not None and goal_text(goal, hide_secrets=self.config.redact) != opened.column.state.facts.goal:
            self.goal(goal)
        self._clock: ClockThread | None = None
        if not isinstance(self.config.tick, str) and not self._off:
            clock = IntervalClock(self.config.tick, wait_first=True)
            self._clock = clock.thread(_Ticker(self, clock))
            self._clock.__enter__()

    def decide(self) -> Decision:
        """Return the decision now. Measures if anything happened since the newest tick; else nothing changes."""
        verdict = self._guarded(lambda: self._engine.decide("decide"))
        return verdict.decision if verdict is not None else Decision(seq=0, kind="continue")

    async def adecide(self) -> Decision:
        """Do what :meth:`decide` does, on another thread: the event loop stays free."""
        return await asyncio.to_thread(self.decide)

    def check(self, tool: str, arguments: Any = None) -> Decision:
        """Return whether a call may run, before it does. Kind ``block`` = it should not; nothing is stopped by itself.

        A budget that is used up refuses the next call. A call that follows text inside a tool's result rather than the
        user is refused by itself: no other is, and no number of refusals lets it through. The question is recorded.
        """
        try:
            call = events.ToolCall(
                check_text("tool", tool, empty=False), msgspec.Raw(to_json("arguments", arguments)), ""
            )
        except (TypeError, ValueError) as error:
            if not self.lenient:
                raise
            fault = make_fault("check", error)
            self._record(lambda: fault)
            call = events.ToolCall("unknown", msgspec.Raw(b"null"), "")
        if self._off:
            return Decision(seq=0, kind="continue")
        verdict = None if self._engine.closed else self._asked(lambda: self._engine.check(call))
        return unjudged(call.tool_name, bytes(call.arguments)) if verdict is None else verdict.decision

    def unblock(self, reason: str = "", decision: Decision | int | None = None) -> None:
        """End what :class:`~coherence.monitor.event_api.Recording` says, as of now: blocks are known from ticks."""
        self.decide()
        super().unblock(reason, decision)

    def _guarded(self, ask: Callable[[], Verdict | None]) -> Verdict | None:
        if self._off:
            return None
        if self._engine.closed:
            with self._engine.settled() as column:
                return column.measured
        return self._asked(ask)

    def _asked(self, ask: Callable[[], Verdict | None]) -> Verdict | None:
        """Ask, then write; a store that fails must not change the answer."""
        verdict = ask()
        try:
            self._engine.after()
        except StoreError:  # durability "full"
            if not self.lenient:
                raise
        return verdict

    @property
    def latest(self) -> Reading | None:
        """The newest reading that is ready, ``None`` before the first. Never waits for a measurement."""
        return self._engine.readings.latest

    def history(self, n: int | None = None) -> list[Reading]:
        """Return up to ``n`` of the last 256 readings, newest first."""
        return self._engine.readings.newest(n)

    @property
    def vitals(self) -> dict[str, float | None]:
        """Vital -> value in [0, 1] at the newest tick; ``None`` = unknown."""
        with self._engine.settled() as column:
            return column.vitals

    @property
    def pressure(self) -> float:
        """The pressure now, in [0, 1], 0 = calm: the own one, or what comes from other agents, if that is more."""
        received = self._engine.received()
        with self._engine.settled() as column:
            return max(column.appraiser.mood.pressure, received)

    @property
    def own_pressure(self) -> float:
        """The agent's own pressure now, in [0, 1], 0 = calm."""
        with self._engine.settled() as column:
            return column.appraiser.mood.pressure

    @property
    def known_pressure(self) -> float:
        """The agent's own pressure as far as its events have been folded; never waits."""
        return self._engine.column.appraiser.mood.pressure

    @property
    def mode(self) -> Mode:
        """The mode of the pressure now."""
        return mode_of(self.pressure, self._engine.column.appraiser.config)

    @property
    def spent(self) -> Spent:
        """What the agent has used up."""
        with self._engine.settled() as column:
            return column.state.spent

    @property
    def known_spent(self) -> Spent:
        """What the agent has used up as far as it has been folded; never waits."""
        return self._engine.column.state.spent

    @property
    def counters(self) -> Counters:
        """Tool results, errors, tokens and cost so far."""
        with self._engine.settled() as column:
            return column.state.get_counters()

    @property
    def state(self) -> AgentState:
        """The agent's state with everything folded; to be read, not changed."""
        with self._engine.settled() as column:
            return column.state

    @property
    def inverted(self) -> frozenset[str]:
        """Names of the metrics whose high values are bad."""
        return self._engine.column.sensor.inverted

    @property
    def verdict(self) -> Verdict | None:
        """Reading, appraisal and decision of the newest measurement."""
        with self._engine.settled() as column:
            return column.measured

    def events(self, n: int | None = None) -> list[Record]:
        """Return up to ``n`` of the last 10,000 events of this process, newest first."""
        with self._engine.settled():
            found = list(self._engine.events)[::-1]
        return found if n is None else found[: max(n, 0)]

    def flush(self) -> None:
        """Fold and write everything that was recorded; afterwards a kill of the process loses none of it.

        Raises
        ------
        StoreError
            If the store cannot be written; the events go on waiting. Not with ``lenient``.
        """
        if not self._engine.closed and not self._off:
            self._engine.flush(raising=not self.lenient)

    def close(self) -> None:
        """Write everything and end; calling it again does nothing."""
        if self._engine.closed:
            return
        if self._clock is not None:
            self._clock.__exit__(None, None, None)
        try:
            self._engine.close(raising=not self.lenient)
            retention = self.config.retention
            if retention is not None and self.store is not None:
                self.store.prune(max_events=retention.max_events, max_age_s=retention.max_age_s)
        except StoreError:
            if not self.lenient:
                raise
        finally:
            if self.lessons is not None and self._owns_lessons:
                self.lessons.close()
            if self.store is not None and self._owns_store:
                self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _record(self, make: Callable[[], Event]) -> None:
        if self._off:
            return
        try:
            event = make()
        except (TypeError, ValueError, RecursionError) as error:
            if not self.lenient:
                raise
            event = make_fault("record", error)
        if self._engine.closed:
            if self.lenient:
                return
            raise ValueError(f"monitor of agent {self.agent!r} is closed")
        try:
            self._engine.post(event)
        except StoreError:  # durability "full"; the event waits in memory
            if not self.lenient:
                raise


class _Ticker:
    """What an interval clock drives."""

    def __init__(self, monitor: Monitor, clock: IntervalClock) -> None:
        self._monitor = ref(monitor)
        self._clock = clock

    def measure_sync(self, tick: Tick | None = None, /) -> object:
        """Measure if anything has happened."""
        monitor = self._monitor()
        if monitor is None:  # dropped without being closed
            self._clock.stop()
            return None
        with suppress(StoreError):  # durability "full"; the engine has said so, and the events wait
            return monitor._guarded(lambda: monitor._engine.decide("interval"))
        return None
