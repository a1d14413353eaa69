"""The monitor: the whole pipeline for one agent, in your own loop."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, get_args
from weakref import ref

import msgspec

import coherence.core.events as events
from coherence.baseline.appraiser import mode_of
from coherence.baseline.calibration import Calibration
from coherence.baseline.combiner import risk_of
from coherence.core.clock import ClockThread, IntervalClock
from coherence.core.config import Budget, MonitorConfig, disabled
from coherence.core.decisions import Decision, Guidance, Mode
from coherence.core.events import Correction, Event, Source, Spent
from coherence.core.protocols import Detector, Embedder, MetricFn, Rule, ScalarMetricFn
from coherence.core.readings import Counters, Reading, Tick
from coherence.core.redact import goal_text, redact
from coherence.core.registry import check_detector, check_metric, check_rule
from coherence.core.validation import check_count, check_flag, check_number, check_text, shown, to_json
from coherence.monitor.arguments import LOG, Lessons, as_budget, as_lessons, as_store, check_name, check_plugins
from coherence.monitor.inputs import message_text, result_text
from coherence.monitor.pipeline import ENDING
from coherence.monitor.session import OpenSession, SessionSpec, open_session
from coherence.monitor.tick_result import Record, TickResult
from coherence.monitor.worker import Peers, Worker
from coherence.policy.call_gate import unjudged
from coherence.policy.correction_prompt import MAX_PROMPT, inject
from coherence.policy.corrections import CorrectionPattern
from coherence.policy.danger.danger import Danger, check_danger
from coherence.sensor.embedding_cache import EmbeddingCache
from coherence.state.reducer import AgentState
from coherence.store.errors import StoreError

if TYPE_CHECKING:  # without a store, nothing of it is loaded
    from coherence.core.protocols import Judge
    from coherence.lessons.store import LessonStore
    from coherence.monitor.lesson_recall import LessonRecall
    from coherence.monitor.second_stage import SecondStage
    from coherence.store.store import Store

Durability: TypeAlias = Literal["batched", "full"]
"""``batched``: a power cut loses at most the last second or 100 events, a killed process nothing that was flushed.
``full``: each method returns after its event is safe on the disk."""


Label: TypeAlias = Literal["good", "bad"]
"""Label of a run; ``bad`` also for a run that reached its goal while an attacker steered it."""


class Monitor:
    """Turn the events of one agent into readings, pressure and decisions.

    Recording costs microseconds; the rest happens on a thread of the package, or in :meth:`decide`. All methods may be
    called from any thread, and inside an event loop, where :meth:`adecide` leaves the loop free.

    Parameters
    ----------
    agent : str
        Name of the agent; baselines and lessons belong to it.
    goal : str, optional
        Task of the agent; default: the first user message.
    store : path or Store, optional
        File that keeps everything. Without it the last 10,000 events are held in memory.
    durability : {"batched", "full"}
        ``batched``: a power cut loses at most the last second or 100 events. ``full``: it loses nothing whose method
        returned.
    budget : Budget or mapping, optional
        Limits on tokens, money, time and calls.
    embedder : Embedder or EmbeddingCache, optional
        Default: the shipped MiniLM model. ``False``: nothing is embedded; words alone are compared.
    config : MonitorConfig, mapping or path, optional
        All other settings; a path is that of a TOML file.
    session : str, optional
        Name of the session to continue, or of a new one. Default: a new, calm session that begins with the agent's
        baselines and corrections.
    resume : bool
        Continue the agent's newest session, as after a restart in the middle of a task.
    source : {"api", "hook", "wrap", "replay", "test"}
        Source written with every row; ``test`` never reaches statistics or baselines.
    metrics : sequence of MetricFn or ScalarMetricFn
        Own metrics, besides the shipped ones.
    rules : sequence of Rule
        Own rules, besides the shipped ones.
    detectors : sequence of callable
        Classes of own detectors, or functions that create one; each run has its own.
    dangers : sequence of Danger, optional
        Calls that ``check`` counts as destructive; default: ``coherence.policy.danger.table.DEFAULT``.
    lessons : LessonStore, path, Store or bool, optional
        Store of errors and their fixes. Default: in ``store``, if there is one. ``False``: none.
    judge : Judge, optional
        Second opinion on acting calls in the grey zone of ``goal_hijack``, within the limits of ``config.judge``. Its
        answer is recorded, and a replay does not ask again.
    strict : bool
        Raise for a bad argument of a recording method, and for a store that cannot be written. By default a bad
        argument is recorded as a fault and logged once.
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
        resume: bool = False,
        source: Source = "api",
        metrics: Sequence[MetricFn | ScalarMetricFn] = (),
        rules: Sequence[Rule] = (),
        detectors: Sequence[Callable[[], Detector]] = (),
        dangers: Sequence[Danger] | None = None,
        lessons: Lessons = None,
        judge: Judge | None = None,
        strict: bool = False,
        parent: str | None = None,
        tree_budget: Budget | None = None,
        peers: Peers | None = None,
    ) -> None:
        self._calls = itertools.count(1)
        self._call_prefix = f"call-{os.urandom(3).hex()}"
        self.agent = check_name("agent", agent)
        self.strict = check_flag("strict", strict)
        self._told: set[str] = set()
        if goal is not None:
            check_text("goal", goal, empty=False)
        if durability not in get_args(Durability):
            raise ValueError(f"durability must be 'batched' or 'full', not {durability!r}")
        if source not in events.SOURCES:
            raise ValueError(f"source must be one of {', '.join(events.SOURCES)}, not {source!r}")
        check_plugins("metrics", metrics, check_metric)
        check_plugins("rules", rules, check_rule)
        check_plugins("detectors", detectors, check_detector)
        check_plugins("dangers", () if dangers is None else dangers, check_danger)
        self.durability = durability
        self.config = MonitorConfig.load(config)
        second_stage = None if judge is None else _second_stage(judge, self.config)
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
        self.lessons: LessonStore | None = None
        """What is known of errors; ``None`` without a store."""
        try:
            if source != "replay":  # a recorded run is judged by itself
                self.lessons = as_lessons(lessons, self.store, embedder)
            opened = _open(wanted, self.store)
        except BaseException:
            if self.lessons is not None and self.lessons is not lessons:
                self.lessons.close()
            if self.store is not None and self._owns_store:
                self.store.close()
            raise
        self._owns_lessons = self.lessons is not lessons
        self._worker = Worker(
            opened,
            self.config,
            full=durability == "full",
            peers=peers,
            lesson_recall=_recall(self.lessons, (self.agent, opened.session), source),
            second_stage=second_stage,
        )
        self.session = opened.session
        """The session's name."""
        if goal is not None and goal_text(goal, hide_secrets=self.config.redact) != opened.pipeline.state.facts.goal:
            self.goal(goal)
        self._clock: ClockThread | None = None
        if not isinstance(self.config.tick, str) and not self._off:
            clock = IntervalClock(self.config.tick, wait_first=True)
            self._clock = clock.thread(_Ticker(self, clock))
            self._clock.__enter__()

    def goal(self, text: str) -> None:
        """Set the task of the agent from now on."""
        self._record(lambda: events.Goal(check_text("text", text, empty=False)))

    def message(
        self,
        role: events.Role,
        text: str | Sequence[Any] | None,
        *,
        model: str | None = None,
        response_id: str | None = None,
        logprobs: Sequence[float] | None = None,
    ) -> None:
        """Record a message: a user's begins a turn, an assistant's completes a step.

        Parameters
        ----------
        role : {"user", "assistant", "system", "tool"}
            Who speaks.
        text : str, sequence of content blocks, or None
            The message; empty or ``None`` beside tool calls, as clients give it. Of content blocks (mappings or
            objects of an SDK) the texts count.
        model, response_id : str, optional
            As the provider names them.
        logprobs : sequence of float, optional
            Natural logarithms of the tokens' probabilities, 0 or below; a summary is kept.
        """

        def make() -> Event:
            roles = get_args(events.Role)
            if not isinstance(role, str) or role not in roles:
                raise ValueError(f"role must be one of {', '.join(roles)}, not {shown(role)}")
            return events.Message(
                roles[roles.index(role)],
                message_text("text", text),
                _optional_text("model", model),
                _optional_text("response_id", response_id),
                None if logprobs is None else events.summarise_logprobs(logprobs),
            )

        self._record(make)

    def tool_call(self, tool: str, arguments: Any = None, *, call: str | None = None) -> str:
        """Record that the agent calls a tool; return the call's id.

        Parameters
        ----------
        tool : str
            The tool's name.
        arguments : any
            A mapping mostly; what JSON does not know is recorded as text, NaN and infinity as null. It is copied.
        call : str, optional
            The host's own id; default: a new one.
        """
        # With the process id: a forked child counts on from the same number.
        own = f"{self._call_prefix}-{os.getpid()}-{next(self._calls)}"
        call_id = str.__str__(call) if isinstance(call, str) and call else own

        def make() -> Event:
            _optional_text("call", call)
            name = check_text("tool", tool, empty=False)
            return events.ToolCall(name, msgspec.Raw(to_json("arguments", arguments)), call_id)

        self._record(make)
        return call_id

    def tool_result(
        self,
        text: Any,
        *,
        error: bool = False,
        duration_s: float | None = None,
        call: str | None = None,
        tool: str | None = None,
        error_type: str | None = None,
    ) -> None:
        """Record the answer of a tool; this completes a step.

        Parameters
        ----------
        text : any
            The result, or the error's text: a text mostly. Of content blocks the texts count; other data becomes JSON.
        error : bool
            ``True`` if the call failed.
        duration_s : float, optional
            Seconds it took, 0 or more.
        call : str, optional
            Id of the call; default: the last call without a result. An unknown id, which another process may have
            used, is no error: the result counts as one of ``tool``, else of ``unknown``.
        tool : str, optional
            Name of the tool, if its call was not recorded.
        error_type : str, optional
            The error's class, such as ``timeout``.
        """

        def make() -> Event:
            return events.ToolResult(
                result_text("text", text),
                check_flag("error", error),
                _optional_text("call", call),
                _optional_text("tool", tool),
                _optional_text("error_type", error_type),
                None if duration_s is None else check_number("duration_s", duration_s, least=0.0),
            )

        self._record(make)

    def usage(
        self,
        *,
        tokens_in: int | None = None,
        tokens_out: int | None = None,
        cost_usd: float | None = None,
        model: str | None = None,
    ) -> None:
        """Record the tokens and the cost of one model call. ``None`` = unknown, or priced by ``config.prices``."""

        def make() -> Event:
            return events.Usage(
                None if tokens_in is None else check_count("tokens_in", tokens_in, most=10**12),
                None if tokens_out is None else check_count("tokens_out", tokens_out, most=10**12),
                None if cost_usd is None else check_number("cost_usd", cost_usd, least=0.0, most=1e12),
                _optional_text("model", model),
            )

        self._record(make)

    def feedback(self, score: float | None = None, *, text: str = "") -> None:
        """Record a judgement of the agent's work: a score in [-1, 1], 1 = good, or words."""

        def make() -> Event:
            rated = None if score is None else check_number("score", score, least=-1.0, most=1.0)
            return events.Feedback(rated, check_text("text", text))

        self._record(make)

    def correction(self, text: str) -> None:
        """Record a correction of the agent by a person; it counts as a further request."""
        self._record(lambda: events.Correction(check_text("text", text, empty=False)))

    def edit_correction(self, id: str, text: str) -> None:
        """Change the text of a correction; its id is that of a note of :meth:`corrections`.

        Raises
        ------
        ValueError
            If there is no such correction.
        """

        def make() -> Event:
            edited = Correction(check_text("text", text, empty=False), check_text("id", id, empty=False))
            with self._worker.settled() as pipeline:
                if id not in pipeline.corrections.notes:
                    raise ValueError(f"no correction has the id {shown(id)}: corrections() lists them")
            return edited

        self._record(make)

    def forget_correction(self, id: str) -> None:
        """Take back a correction or all of a pattern; the id is one that :meth:`Monitor.corrections` tells."""
        self._record(lambda: events.Correction("", check_text("id", id, empty=False), removed=True))

    def delivered(self, guidance: Guidance | str) -> None:
        """Record that a guidance has reached the agent; only then it counts as sent.

        Parameters
        ----------
        guidance : Guidance or str
            ``decision.guidance``, or its ``id``.
        """

        def make() -> Event:
            id = guidance.id if isinstance(guidance, Guidance) else check_text("guidance", guidance, empty=False)
            return events.Message("system", "", firing=id)

        self._record(make)

    def label(self, guidance: Guidance | str, good: bool) -> None:
        """Record a judgement of a guidance: ``good=False`` = it was wrong."""

        def make() -> Event:
            id = guidance.id if isinstance(guidance, Guidance) else check_text("guidance", guidance, empty=False)
            if id == events.BLOCK:
                raise ValueError("guidance must be a firing or its id; unblock() ends a block")
            return events.Feedback(1.0 if check_flag("good", good) else -1.0, about=id)

        self._record(make)

    def unblock(self, reason: str = "", decision: Decision | int | None = None) -> None:
        """End a block: what blocks now counts as a warning until it has calmed down once.

        A budget that is used up is lifted too, for as long as it would refuse; and the newest call that was refused for
        what it is itself may run, with a warning, until there is another goal.

        Parameters
        ----------
        reason : str
            For the record.
        decision : Decision or int, optional
            The refusal that is answered, or its ``seq``, where the agent may have asked for something else since: that
            call may run, and no block ends that did not refuse it. One of the newest 64 since the newest goal; any
            other changes nothing.
        """
        self.decide()  # what blocks is known from a tick

        def make() -> Event:
            if isinstance(decision, Decision) and decision:
                raise ValueError(f"decision must be a refusal, not {decision.kind!r}")
            seq = decision.seq if isinstance(decision, Decision) else decision
            seq = None if seq is None else check_count("decision", seq)
            return events.Feedback(text=check_text("reason", reason), about=events.BLOCK, decision=seq)

        self._record(make)

    def memory(self, text: str, *, id: str | None = None, removed: bool = False) -> None:
        """Record something that the agent remembers; a later text of the same ``id`` replaces it."""

        def make() -> Event:
            return events.Memory(check_text("text", text), _optional_text("id", id), check_flag("removed", removed))

        self._record(make)

    def compaction(self, summary: str = "") -> None:
        """Record that the host shortened the context to a summary."""
        self._record(lambda: events.Compaction(check_text("summary", summary)))

    def outcome(self, success: bool | None = None, *, score: float | None = None, text: str = "") -> Decision | None:
        """Record the end of the task; with ``config.grounding.gate``, judge its last answer too.

        Parameters
        ----------
        success : bool, optional
            ``True`` if it succeeded, as far as the host knows. It is recorded as given.
        score : float, optional
            In [0, 1], 1 = good.
        text : str
            Anything else.

        Returns
        -------
        Decision or None
            ``None`` without a gate. Else the decision of a tick at the end: an active finding ``ungrounded_outcome``
            says that the run counts as failed, whatever was told; ``m.result`` holds it, and a replay finds it again.

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

    def fault(self, where: str, error: BaseException | str) -> None:
        """Record something that failed silently in the host."""

        def make() -> Event:
            if not isinstance(error, str | BaseException):
                raise TypeError(f"error must be an exception or a str, not {shown(error)}")
            return events.make_fault(check_text("where", where, empty=False), error)

        self._record(make)

    def decide(self) -> Decision:
        """Return the decision now. Measures if anything happened since the newest tick; else nothing changes."""
        result = self._ask(lambda: self._worker.decide("decide"))
        return result.decision if result is not None else Decision(seq=0, kind="continue")

    async def adecide(self) -> Decision:
        """Do what :meth:`decide` does, on another thread: the event loop stays free."""
        import asyncio  # which who calls this has loaded

        return await asyncio.to_thread(self.decide)

    def check(self, tool: str, arguments: Any = None) -> Decision:
        """Return whether a call may run, before it does. Kind ``block`` = it should not; nothing is stopped by itself.

        A budget that is used up refuses the next call. A call is refused by itself, no other is, and no number of
        refusals lets it through: where it follows text inside a tool's result rather than the user, does what nobody
        wants unless asked for (wipes, force-pushes, runs a download, sends credentials), is on the deny list, or breaks
        what somebody has forbidden in words. :meth:`unblock` lets it through. The question is recorded.
        """
        try:
            call = events.ToolCall(
                check_text("tool", tool, empty=False), msgspec.Raw(to_json("arguments", arguments)), ""
            )
        except (TypeError, ValueError) as error:
            self._misused("check", error)
            fault = events.make_fault("check", error)
            self._record(lambda: fault)
            call = events.ToolCall("unknown", msgspec.Raw(b"null"), "")
        if self._off:
            return Decision(seq=0, kind="continue")
        result = None if self._worker.closed else self._ask(lambda: self._worker.check(call))
        return unjudged(call.tool_name, bytes(call.arguments)) if result is None else result.decision

    @property
    def latest(self) -> Reading | None:
        """The newest reading that is ready, ``None`` before the first. Never waits for a measurement."""
        return self._worker.readings.latest

    def history(self, n: int | None = None) -> list[Reading]:
        """Return up to ``n`` of the last 256 readings, newest first."""
        return self._worker.readings.newest(n)

    @property
    def vitals(self) -> dict[str, float | None]:
        """Vital -> value in [0, 1] at the newest tick; ``None`` = unknown."""
        with self._worker.settled() as pipeline:
            return pipeline.vitals

    @property
    def pressure(self) -> float:
        """The pressure now, in [0, 1], 0 = calm: the own one, or what comes from other agents, if that is more."""
        received = self._worker.received()
        with self._worker.settled() as pipeline:
            return max(pipeline.appraiser.mood.pressure, received)

    @property
    def own_pressure(self) -> float:
        """The agent's own pressure now, in [0, 1], 0 = calm."""
        with self._worker.settled() as pipeline:
            return pipeline.appraiser.mood.pressure

    @property
    def known_pressure(self) -> float:
        """The agent's own pressure as far as its events have been folded; never waits."""
        return self._worker.pipeline.appraiser.mood.pressure

    @property
    def mode(self) -> Mode:
        """The mode of the pressure now."""
        return mode_of(self.pressure, self._worker.pipeline.appraiser.config)

    @property
    def spent(self) -> Spent:
        """Tokens, money, calls and time that the agent has used."""
        with self._worker.settled() as pipeline:
            return pipeline.state.spent

    @property
    def known_spent(self) -> Spent:
        """Amounts that the agent has used, as far as its events have been folded; never waits."""
        return self._worker.pipeline.state.spent

    @property
    def counters(self) -> Counters:
        """Tool results, errors, tokens and cost so far."""
        with self._worker.settled() as pipeline:
            return pipeline.state.get_counters()

    @property
    def state(self) -> AgentState:
        """The agent's state with everything folded; to be read, not changed."""
        with self._worker.settled() as pipeline:
            return pipeline.state

    @property
    def inverted(self) -> frozenset[str]:
        """Names of the metrics whose high values are bad."""
        return self._worker.pipeline.sensor.inverted

    @property
    def result(self) -> TickResult | None:
        """Reading, appraisal and decision of the newest measurement."""
        with self._worker.settled() as pipeline:
            return pipeline.measured

    def events(self, n: int | None = None) -> list[Record]:
        """Return up to ``n`` of the last 10,000 events of this process, newest first."""
        with self._worker.settled():
            found = list(self._worker.events)[::-1]
        return found if n is None else found[: max(n, 0)]

    def label_run(self, label: Label | None) -> None:
        """Label the present run, or the one that has just ended, as good or bad; ``None`` removes the label.

        Thresholds and weights of the agent's later sessions are learned from it. A run is a task: after an outcome the
        next goal, user's message or call begins another. A label counts more than an outcome, the newest label counts.
        Runs of the sources ``test`` and ``replay`` count for nothing.

        Raises
        ------
        ValueError
            With ``strict``, if it is no label, or there is no store to keep it in.
        StoreError
            With ``strict``, if it cannot be written.
        """
        if self._off:
            return
        with self._worker.settled() as pipeline:
            run = pipeline.runs.run.number
        recorder = self._worker.recorder
        try:
            if label is not None and label not in get_args(Label):
                raise ValueError(f"label must be 'good', 'bad' or None, not {shown(label)}")
            if recorder is None:
                raise ValueError("a label needs a store to be kept in: Monitor(store=...)")
            recorder.label_run(run, None if label is None else label == "good")
        except (TypeError, ValueError, StoreError) as error:
            self._misused("label_run", error)

    @property
    def calibration(self) -> Calibration:
        """Thresholds of the alarms and weights of the risk; fixed when the session began."""
        return self._worker.pipeline.calibration

    @property
    def risk(self) -> float | None:
        """The risk at the newest measurement in [0, 1], higher = worse; ``None``: nothing was measured.

        The calibrated risk; of a classic index ``1 - coherence_index``, unless labelled runs have taught other weights.
        """
        with self._worker.settled() as pipeline:
            reading = pipeline.measured.reading if pipeline.measured is not None else None
            if reading is None:
                return None
            return risk_of(reading, pipeline.calibration.combination, pipeline.runs.inverted)

    def corrections(self) -> list[CorrectionPattern]:
        """Return the repeated corrections of users, the heaviest first.

        A pattern is three corrections or more on similar requests, or the same one on different requests; old ones
        fade. ``examples`` are its notes; their ids serve :meth:`edit_correction` and :meth:`forget_correction`.
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
        """Return a prompt with what users corrected on requests like it before it, as quotations, or unchanged.

        Parameters
        ----------
        prompt : str
            What the agent will be asked; it is not recorded here.
        limit : int
            Most characters to put before it.

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
        check_count("limit", limit)
        self._file_corrections()
        with self._worker.settled() as pipeline:
            kept = pipeline.corrections
            if not kept.notes:
                return prompt
            vector = pipeline.semantics.embed(request)
            return inject(prompt, kept.relevant(request, vector, pipeline.semantics.step), limit=limit)

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
        """Fold and write everything that was recorded; afterwards a kill of the process loses none of it.

        Raises
        ------
        StoreError
            With ``strict``, if the store cannot be written; the events go on waiting.
        """
        if not self._worker.closed and not self._off:
            self._worker.flush(raising=self.strict)

    def close(self) -> None:
        """Write everything and end; calling it again does nothing."""
        if self._worker.closed:
            return
        if self._clock is not None:
            self._clock.__exit__(None, None, None)
        try:
            self._worker.close(raising=self.strict)
            retention = self.config.retention
            if retention is not None and self.store is not None:
                self.store.prune(max_events=retention.max_events, max_age_s=retention.max_age_s)
        except StoreError as error:
            self._misused("store", error)
        finally:
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

    def _repr_html_(self) -> str:
        """Draw the bands of the newest readings as one strip, for notebooks."""
        from coherence.core.strip import strip_html  # which only a notebook needs

        return strip_html(repr(self), self.history()[::-1])

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
            self._misused("record", error)
            event = events.make_fault("record", error)
        if self._worker.closed:
            self._misused("closed", ValueError(f"monitor of agent {self.agent!r} is closed"))
            return
        try:
            self._worker.post(event)
        except StoreError as error:  # durability "full"; the event waits in memory
            self._misused("store", error)

    def _misused(self, what: str, error: Exception) -> None:
        """Raise what went wrong with ``strict``; else tell it once in the log, with what to do."""
        if self.strict:
            raise error
        # of a store that cannot be written the recorder tells
        if what not in self._told and not isinstance(error, StoreError):
            self._told.add(what)
            LOG.warning(_TOLD.get(what, _TOLD["record"]), redact(str(error)))


_TOLD = {
    "record": "coherence: %s; recorded as a fault. Monitor(strict=True) raises instead. Told once.",
    "closed": "coherence: %s, so what is told now is lost: keep it open while the agent runs. Told once.",
    "label_run": "coherence: %s; no label was kept. Monitor(strict=True) raises instead. Told once.",
}
"""What went wrong -> what the log says."""


def _open(spec: SessionSpec, store: Store | None) -> OpenSession:
    if store is None:
        return open_session(spec)
    from coherence.monitor.stored_session import open_stored_session

    return open_stored_session(spec, store)


def _recall(lessons: LessonStore | None, name: tuple[str, str], source: Source) -> LessonRecall | None:
    if lessons is None:
        return None
    from coherence.monitor.lesson_recall import LessonRecall

    return LessonRecall(lessons, name, learns=source != "test")


def _second_stage(judge: Judge, config: MonitorConfig) -> SecondStage:
    from coherence.monitor.second_stage import SecondStage

    return SecondStage(judge, config.judge)


class _Ticker:
    """Target of an interval clock."""

    def __init__(self, monitor: Monitor, clock: IntervalClock) -> None:
        self._monitor = ref(monitor)
        self._clock = clock

    def measure_sync(self, tick: Tick | None = None, /) -> object:
        """Measure if anything has happened."""
        monitor = self._monitor()
        if monitor is None:  # dropped without being closed
            self._clock.stop()
            return None
        with suppress(StoreError):  # durability "full"; the worker has said so, and the events wait
            return monitor._ask(lambda: monitor._worker.decide("interval"))
        return None


def _optional_text(field: str, value: object) -> str | None:
    """Return a text or None, or raise TypeError that names the field."""
    return None if value is None else check_text(field, value)
