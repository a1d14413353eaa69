"""The monitor: the whole pipeline for one agent, in your own loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, TypeVar, get_args
from weakref import ReferenceType, ref

import msgspec

import coherence.core.events as events
from coherence.core.clock import ClockThread, IntervalClock
from coherence.core.config import Budget, MonitorConfig, disabled
from coherence.core.decisions import Decision
from coherence.core.events import Correction, Event, Source
from coherence.core.plain import type_name
from coherence.core.protocols import Detector, Embedder, MetricFn, Rule, ScalarMetricFn, Sink
from coherence.core.readings import Failure, Tick
from coherence.core.redact import goal_text, redact
from coherence.core.reentrancy import do_later, is_inside
from coherence.core.registry import check_detector, check_metric, check_rule
from coherence.core.strangers import THREAD, Asking, error_text
from coherence.core.validation import check_count, check_flag, check_number, check_text, plain_text, shown, to_json
from coherence.monitor.arguments import LOG, Lessons, as_budget, as_lessons, as_store, check_name, check_plugins
from coherence.monitor.folding import Peers
from coherence.monitor.host_events import HostEvents, check_refusal
from coherence.monitor.monitor_view import MonitorView
from coherence.monitor.pipeline import ENDING
from coherence.monitor.session import SessionSpec, open_session
from coherence.monitor.sinks import Sinks, check_sink
from coherence.monitor.tick_result import TickResult
from coherence.monitor.worker import Worker
from coherence.policy.call_gate import unjudged
from coherence.policy.correction_prompt import MAX_PROMPT, inject
from coherence.policy.corrections import CorrectionPattern
from coherence.policy.danger.danger import Danger, check_danger
from coherence.sensor.embedding_cache import EmbeddingCache
from coherence.store.errors import StoreError

if TYPE_CHECKING:  # without a store, nothing of it is loaded
    from coherence.core.protocols import Judge
    from coherence.lessons.store import LessonStore
    from coherence.monitor.lesson_recall import LessonRecall
    from coherence.monitor.second_stage import SecondStage
    from coherence.store.store import Store

T = TypeVar("T")

Durability: TypeAlias = Literal["batched", "full"]
"""``batched``: a power cut loses about the last second, or what has not been read yet if more is recorded than can be
read; a killed process loses nothing that was flushed.
``full``: each method returns after its event is safe on the disk."""


Label: TypeAlias = Literal["good", "bad"]
"""Label of a run; ``bad`` also for a run that reached its goal while an attacker steered it."""


class Monitor(HostEvents, MonitorView):
    """Turn the events of one agent into readings, pressure and decisions.

    Recording costs microseconds; the rest happens on a background thread, or in :meth:`decide`. All methods may be
    called from any thread and inside an event loop, where :meth:`adecide` leaves the loop free.

    Parameters
    ----------
    agent : str
        Name of the agent; baselines and lessons belong to it.
    goal : str, optional
        Task of the agent; default: the first user message.
    store : path or Store, optional
        File that keeps everything. Without it, the last 10,000 events are held in memory, at most 8 MB of them.
    durability : {"batched", "full"}
        ``batched``: a power cut loses about the last second. ``full``: each method returns after its event is safe on
        the disk; a burst of events is measured once, at its end.
    budget : Budget or mapping, optional
        Limits on tokens, money, time and calls.
    embedder : Embedder or EmbeddingCache, optional
        Default: the shipped MiniLM model. ``False``: nothing is embedded; only words are compared.
    config : MonitorConfig, mapping or path, optional
        All other settings; a path names a TOML file.
    session : str, optional
        Name of the session to continue, or of a new one. Default: a new, calm session that begins with the agent's
        baselines and corrections.
    resume : bool
        Continue the agent's newest session, as after a restart in the middle of a task.
    source : {"api", "hook", "wrap", "replay", "test"}
        Origin of the events, written with every row; ``test`` never reaches statistics or baselines.
    metrics : sequence of MetricFn or ScalarMetricFn
        Your own metrics, besides the shipped ones.
    rules : sequence of Rule
        Your own rules, besides the shipped ones.
    detectors : sequence of callable
        Classes of your own detectors, or functions that create one; each run gets its own detector.
    dangers : sequence of Danger, optional
        Calls that ``check`` counts as destructive; default: ``coherence.policy.danger.table.DEFAULT``.
    lessons : LessonStore, path, Store or bool, optional
        Store of errors and their fixes. Default: in ``store``, if there is one. ``False``: no lessons.
    judge : Judge, optional
        Second opinion on acting calls in the grey zone of ``goal_hijack``, within the limits of ``config.judge``. Its
        answer is recorded, and a replay does not ask again.
    sinks : sequence of Sink
        Where every record goes too, as soon as it is read: an exporter of ``coherence.export``, or your own.
    strict : bool
        Raise for a bad argument of a recording method, and for a store that cannot be written. By default a bad
        argument is recorded as a fault and logged once.
    parent : str, optional
        The agent that started this one.
    tree_budget : Budget, optional
        Budget that all agents of a :class:`~coherence.fleet.fleet.Fleet` share; the fleet passes it.
    peers : Peers, optional
        The other agents of a fleet, whose pressure reaches this one; the fleet passes it.

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
        resume: bool = False,
        source: Source = "api",
        metrics: Sequence[MetricFn | ScalarMetricFn] = (),
        rules: Sequence[Rule] = (),
        detectors: Sequence[Callable[[], Detector]] = (),
        dangers: Sequence[Danger] | None = None,
        lessons: Lessons = None,
        judge: Judge | None = None,
        sinks: Sequence[Sink] = (),
        strict: bool = False,
        parent: str | None = None,
        tree_budget: Budget | None = None,
        peers: Peers | None = None,
    ) -> None:
        super().__init__()
        self.agent = check_name("agent", agent)
        self.strict = check_flag("strict", strict)
        self._told: set[str] = set()
        if goal is not None:
            goal = check_text("goal", goal, empty=False)
        if plain_text(durability) not in get_args(Durability):
            raise ValueError(f"durability must be 'batched' or 'full', not {shown(durability)}")
        if plain_text(source) not in events.SOURCES:
            raise ValueError(f"source must be one of {', '.join(events.SOURCES)}, not {shown(source)}")
        check_plugins("metrics", metrics, check_metric)
        check_plugins("rules", rules, check_rule)
        check_plugins("detectors", detectors, check_detector)
        check_plugins("sinks", sinks, check_sink)
        check_plugins("dangers", () if dangers is None else dangers, check_danger)
        self.durability = durability
        self.config = MonitorConfig.load(config)
        second_stage: SecondStage | None = None
        if judge is not None:
            from coherence.monitor.second_stage import SecondStage

            second_stage = SecondStage(judge, self.config.judge)
        self._asking = Asking(self.config.wait_s, self._fault)
        self._off = disabled()
        wanted = SessionSpec(
            agent=self.agent,
            session=None if session is None else check_name("session", session),
            source=source,
            config=self.config,
            budget=as_budget(budget) or self.config.budget,
            tree_budget=tree_budget,
            embedder=embedder,
            metrics=tuple(metrics),
            rules=tuple(rules),
            detectors=tuple(detectors),
            dangers=None if dangers is None else tuple(dangers),
            parent=None if parent is None else check_name("parent", parent),
            resume=check_flag("resume", resume),
        )
        self.store: Store | None = None if self._off else as_store(store)
        """The store; pass it on to share the file."""
        self._owns_store = self.store is not store
        self._owns_lessons = False
        self.lessons: LessonStore | None = None
        """The store of errors and their fixes; ``None`` without a store."""
        try:
            if self.config.privacy == "no-text":
                if lessons is not None and lessons is not False:
                    raise ValueError("lessons are texts: with privacy='no-text' leave them out")
            elif source != "replay":  # a recorded run is judged by itself
                self.lessons = self._secured(lambda: as_lessons(lessons, self.store, embedder))
                self._owns_lessons = self.lessons is not lessons
            if (kept := self.store) is None:
                opened = open_session(wanted)
            else:
                from coherence.monitor.stored_session import open_stored_session

                opened = self._secured(lambda: open_stored_session(wanted, kept))
        except BaseException:
            self._close_files()
            raise
        lesson_recall: LessonRecall | None = None
        if self.lessons is not None:
            from coherence.monitor.lesson_recall import LessonRecall

            lesson_recall = LessonRecall(self.lessons, (self.agent, opened.session), learns=source != "test")
        self._worker = Worker(
            opened,
            self.config,
            full=durability == "full",
            peers=peers,
            lesson_recall=lesson_recall,
            second_stage=second_stage,
        )
        if sinks:
            self._worker.sinks = Sinks(self.agent, opened.session, sinks)
        self.session = opened.session
        """The session's name."""
        # A session that goes on has its goal; setting it again would begin another task.
        if goal is not None and goal_text(goal, hide_secrets=self.config.redact) != opened.pipeline.state.facts.goal:
            self.goal(goal)
        self._clock: ClockThread | None = None
        if not isinstance(self.config.tick, str) and not self._off:
            clock = IntervalClock(self.config.tick, wait_first=True)
            self._clock = ClockThread(clock, partial(_tick, ref(self), clock))
            self._clock.__enter__()

    def edit_correction(self, id: str, text: str) -> None:
        """Change the text of a correction; ``id`` is the id of one of its notes in :meth:`corrections`.

        Raises
        ------
        ValueError
            If there is no such correction.
        """

        def make() -> Event:
            edited = Correction(check_text("text", text, empty=False), check_text("id", id, empty=False))
            with self._worker.settled() as pipeline:
                if edited.id not in pipeline.corrections.notes:
                    raise ValueError(f"no correction has the id {shown(edited.id)}: corrections() lists them")
            return edited

        self._record(make)

    def unblock(self, reason: str = "", decision: Decision | int | None = None) -> None:
        """End a block: what blocks now counts as a warning until it has calmed down once.

        A used-up budget is lifted too. The newest individually refused call may run, with a warning, until the goal
        changes.

        Parameters
        ----------
        reason : str
            For the record.
        decision : Decision or int, optional
            The refusal to answer, or its ``seq``. Pass it if the agent may have asked for something else since: then
            the call of this refusal may run, and only blocks that refused it end. It must be one of the newest 64
            refusals since the newest goal; any other changes nothing.
        """
        self.decide()  # what blocks is known from a tick

        def make() -> Event:
            seq = None if decision is None else check_refusal(decision)
            return events.Feedback(text=check_text("reason", reason), about=events.BLOCK, decision=seq)

        self._record(make)

    def outcome(self, success: bool | None = None, *, score: float | None = None, text: str = "") -> Decision | None:
        """Record the end of the task; with ``config.grounding.gate``, judge its last answer too.

        Parameters
        ----------
        success : bool, optional
            ``True`` if it succeeded, as far as the host knows. It is recorded as given.
        score : float, optional
            In [0, 1], 1 = good.
        text : str
            Remarks.

        Returns
        -------
        Decision or None
            ``None`` without a gate. Otherwise the decision of a final tick. An active finding ``ungrounded_outcome``
            says that the run counts as failed, whatever ``success`` says. ``m.result`` holds the decision, and a
            replay finds it again.

        Examples
        --------
        >>> from coherence.monitor.monitor import Monitor
        >>> m = Monitor(goal="What does it cost?", embedder=False, config={"grounding": {"gate": 0.9}})
        >>> m.tool_result("price: 1200 USD", tool="shop")
        >>> m.message("assistant", "It costs 1,250 dollars.")
        >>> print(m.outcome(success=True).findings[0].why.partition(";")[0])
        the run counts as failed: grounding 0.00 is below 0.9
        """

        def make() -> Event:
            return events.Outcome(
                None if success is None else check_flag("success", success),
                None if score is None else check_number("score", score, least=0.0, most=1.0),
                check_text("text", text),
            )

        self._record(make)
        if self.config.grounding.gate is None:
            return None
        result = self._ask(lambda: self._worker.decide(ENDING))
        return result.decision if result is not None else None

    def decide(self) -> Decision:
        """Return the decision now. Measure first if anything happened since the newest tick."""
        result = self._ask(lambda: self._worker.decide("decide"))
        return result.decision if result is not None else Decision(seq=0, kind="continue")

    async def adecide(self) -> Decision:
        """Do what :meth:`decide` does on another thread, so that the event loop stays free."""
        import asyncio  # which who calls this has loaded

        return await asyncio.to_thread(self.decide)

    def check(self, tool: str, arguments: Any = None, *, wait: bool = True) -> Decision:
        """Return whether a call may run, before it does. Kind ``block`` = it should not; your code has to stop it.

        A used-up budget refuses the next call. A rule that blocks refuses the calls that ``config.block`` names. Other
        calls are refused individually, and repeating them does not help:

        - a call that follows text inside a tool's result rather than the user;
        - a call that does what nobody wants unless asked for: it wipes, force-pushes, runs a download or sends
          credentials;
        - a call on the deny list ``config.forbid``;
        - a call that breaks what somebody has forbidden in words.

        :meth:`unblock` lets such a call through. The question is recorded.

        With ``wait=False``, the answer does not wait for the measurement of what has just been recorded, which follows:
        budgets and all that is refused individually are judged as ever, a block by the light from the step before.
        """
        before, THREAD.asking = THREAD.asking, self._asking
        try:
            call = events.ToolCall(
                check_text("tool", tool, empty=False), msgspec.Raw(to_json("arguments", arguments)), ""
            )
        except Exception as error:
            self._misused("check", error)
            fault = events.make_fault("check", error)
            self._record(lambda: fault)
            # Judged as a call of an unknown tool: without an answer the host might let it run.
            call = events.ToolCall("unknown", msgspec.Raw(b"null"), "")
        finally:
            THREAD.asking = before
        if self._off:
            return Decision(seq=0, kind="continue")
        result = None if self._worker.closed else self._ask(lambda: self._worker.check(call, measures=wait))
        return unjudged(call.tool_name, bytes(call.arguments)) if result is None else result.decision

    def label_run(self, label: Label | None) -> None:
        """Label the current run, or the one that has just ended, as good or bad; ``None`` removes the label.

        Thresholds and weights of the agent's later sessions are learned from labels. A run is a task: after an outcome,
        the next goal, user message or call begins another. A label overrides an outcome, and a newer label an older
        one. Nothing is learned from runs of the sources ``test`` and ``replay``.

        Raises
        ------
        ValueError
            With ``strict``, if the label is none of these, or there is no store to keep it in.
        StoreError
            With ``strict``, if the label cannot be written.
        """
        if self._off:
            return
        if is_inside():
            do_later(lambda: self.label_run(label))
            return
        with self._worker.settled() as pipeline:
            run = pipeline.runs.run.number
        recorder = self._worker.recorder
        before, THREAD.asking = THREAD.asking, self._asking
        try:
            if label is not None and plain_text(label) not in get_args(Label):
                raise ValueError(f"label must be 'good', 'bad' or None, not {shown(label)}")
            if recorder is None:
                raise ValueError("a label needs a store to be kept in: Monitor(store=...)")
            recorder.label_run(run, None if label is None else plain_text(label) == "good")
        except (TypeError, ValueError, StoreError) as error:
            self._misused("label_run", error)
        finally:
            THREAD.asking = before

    def corrections(self) -> list[CorrectionPattern]:
        """Return the repeated corrections of users, the heaviest first.

        A pattern is three or more corrections on similar requests, or the same correction on different requests. Old
        ones fade. ``examples`` are its notes; :meth:`edit_correction` and :meth:`forget_correction` take their ids.
        """
        self._file_corrections()
        with self._worker.settled() as pipeline:
            return pipeline.corrections.patterns(pipeline.semantics.step)

    def _file_corrections(self) -> None:
        """Have a tick if corrections wait for one, at which they are embedded and grouped."""
        with self._worker.settled() as pipeline:
            waiting = pipeline.changed and bool(pipeline.corrections.pending())
        if waiting and not self._worker.closed:
            self._worker.decide("corrections")
            self._worker.after()

    def inject_corrections(self, prompt: str, *, limit: int = MAX_PROMPT) -> str:
        """Return a prompt after quotations of what users corrected on similar requests; unchanged if there are none.

        Parameters
        ----------
        prompt : str
            What the agent will be asked; it is not recorded here.
        limit : int
            Largest number of characters to put before it; default 1,200.

        Examples
        --------
        >>> from coherence.monitor.monitor import Monitor
        >>> m = Monitor(embedder=False)
        >>> m.message("user", "What is the weather in Oslo?")
        >>> for text in ("Celsius, not Fahrenheit", "no wind speeds", "name the day"):
        ...     m.correction(text)
        >>> print(m.inject_corrections("What is the weather in Oslo today?"))
        <past_corrections>
        Users corrected this agent 3 times on similar requests. Their words, quoted, newest first:
        - "name the day" (session 1, step 0)
        - "no wind speeds" (session 1, step 0)
        - "Celsius, not Fahrenheit" (session 1, step 0)
        </past_corrections>
        <BLANKLINE>
        What is the weather in Oslo today?
        """
        request = check_text("prompt", prompt)
        limit = check_count("limit", limit)
        self._file_corrections()
        with self._worker.settled() as pipeline:
            kept = pipeline.corrections
            if not kept.notes:
                return prompt
            vector = pipeline.semantics.embed(request)
            return inject(request, kept.relevant(request, vector, pipeline.semantics.step), limit=limit)

    def _ask(self, ask: Callable[[], TickResult | None]) -> TickResult | None:
        """Ask, then write; a store that fails must not change the answer. Once closed, return the newest result."""
        if self._off:
            return None
        if self._worker.closed:
            with self._worker.settled() as pipeline:
                return pipeline.measured
        result = ask()
        try:
            self._worker.after()
        except StoreError as error:  # durability "full"
            self._misused("store", error)
        return result

    def flush(self) -> None:
        """Process and write everything recorded so far; a later kill of the process loses none of it.

        Raises
        ------
        StoreError
            With ``strict``, if the store cannot be written; the events stay in memory and are written later.
        """
        if not self._worker.closed and not self._off:
            self._worker.flush(raising=self.strict)

    def close(self) -> None:
        """Write everything and end; calling it again does nothing."""
        if self._worker.closed:
            return
        if is_inside():  # a finalizer or a signal handler in the middle of a call
            do_later(self.close)
            return
        # First, or a tick may still come while the worker ends.
        if self._clock is not None:
            self._clock.__exit__(None, None, None)
        try:
            self._worker.close(raising=self.strict)
            self._worker.retain()  # after the last events, which count too
        except StoreError as error:
            self._misused("store", error)
        finally:
            if self._worker.sinks is not None:
                self._worker.sinks.end()
            self._close_files()

    def _secured(self, action: Callable[[], T]) -> T:
        """Do something with the store; where its file turns out to be damaged, again with a new one."""
        return action() if self.store is None else self.store.secured(action)

    def _close_files(self) -> None:
        """Close the stores that this monitor has opened itself."""
        if self.lessons is not None and self._owns_lessons:
            self.lessons.close()
        if self.store is not None and self._owns_store:
            self.store.close()

    def __repr__(self) -> str:
        name = f"{self.agent!r} session {self.session!r}"
        reading, pressure = self._worker.readings.latest, self.known_pressure
        now = "no reading yet" if reading is None else f"{reading.short()}, pressure {pressure:.2f}"
        closed = ", closed" if self._worker.closed else ""
        return f"<Monitor {name}: {now}{closed}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _record(self, make: Callable[[], Event]) -> None:
        if self._off:
            return
        before, THREAD.asking = THREAD.asking, self._asking
        try:
            event = make()
        except Exception as error:  # a bad argument; or a fault of this package, which must not reach the host
            self._misused("record", error)
            event = events.make_fault("record", error)
        finally:
            THREAD.asking = before
        if self._worker.closed:
            self._misused("closed", ValueError(f"monitor of agent {self.agent!r} is closed"))
            return
        try:
            self._worker.post(event)
        except StoreError as error:  # durability "full"; the event waits in memory
            self._misused("store", error)

    def record_later(self, read: Callable[[], None], *, size: int = 0) -> None:
        """Have something be read soon, on another thread, and before anything else is recorded or asked.

        ``read`` records what it finds by this monitor, with the time of this call. ``size`` is the number of bytes that
        it holds; where too many wait, or each event is written before its call returns, it is called at once.
        """
        if not self._off:
            self._worker.post_later(read, size=size)

    def _misused(self, what: str, error: Exception) -> None:
        """Raise the error with ``strict``; else log it once, with what to do."""
        if self.strict:
            raise error
        # a store that cannot be written is logged by the worker
        if what not in self._told and not isinstance(error, StoreError):
            self._told.add(what)
            LOG.warning(_TOLD.get(what, _TOLD["record"]), redact(error_text(error) or type_name(error)))

    def _fault(self, field: str, failure: Failure) -> None:
        """Record that an argument could not be read as a whole; the rest of it is recorded too."""
        if not self._worker.closed:
            fault = events.Fault("record", failure.kind, f"{field}: {failure.source} cannot be read: {failure.message}")
            with suppress(StoreError):  # durability "full"; the worker has said so, and the event waits
                self._worker.post(fault)


_TOLD = {
    "record": "coherence: %s; recorded as a fault. Monitor(strict=True) raises instead. Told once.",
    "closed": "coherence: %s, so what is told now is lost: keep it open while the agent runs. Told once.",
    "label_run": "coherence: %s; no label was kept. Monitor(strict=True) raises instead. Told once.",
}
"""Misuse -> message in the log."""


def _tick(monitor: ReferenceType[Monitor], clock: IntervalClock, tick: Tick) -> None:
    """Measure at a tick of an interval clock if anything has happened; a monitor that was dropped ends its clock."""
    alive = monitor()
    if alive is None:
        clock.stop()
        return
    with suppress(StoreError):  # durability "full"; the worker has said so, and the events wait
        alive._ask(lambda: alive._worker.decide("interval"))
