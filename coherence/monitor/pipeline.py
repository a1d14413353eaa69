"""The column: one agent's events in, readings, appraisals and decisions out. Live and in a replay it is the same."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from coherence.baseline.appraiser import Appraiser, Mood
from coherence.baseline.calibration_store import Calibration
from coherence.baseline.runs import Runs
from coherence.baseline.vitals import VITALS, detectors, index_weights, scalar_vitals, vector_vitals
from coherence.core.config import Budget, MonitorConfig
from coherence.core.decisions import Appraisal, Finding, Mode, Policy
from coherence.core.events import Correction, Event, Message, Ticked, ToolResult
from coherence.core.protocols import MetricFn, Rule, ScalarMetricFn
from coherence.core.readings import Band, Failure, FrozenDict, Reading, Tick
from coherence.core.registry import is_scalar
from coherence.lessons.learn import Solved
from coherence.metrics import ContradictionPressure, GoalDrift, MemoryRetention, SemanticDiffusion
from coherence.monitor.codec import Told, Verdict
from coherence.monitor.semantic_checks import Meaning
from coherence.monitor.snapshots import Legacy, Snapshot
from coherence.policy.budgets import all_budget_findings, crosses_time
from coherence.policy.call_gate import answer, key_of, of_itself
from coherence.policy.danger.danger import Danger
from coherence.policy.danger.table import DEFAULT
from coherence.policy.guidance import guide, outcomes, pattern_of
from coherence.policy.hijack_findings import RULE as HIJACK
from coherence.policy.hijack_findings import limits_of, made_call
from coherence.policy.known_errors import Judged, known_error
from coherence.policy.plugin_rules import run_rules
from coherence.policy.regulator import make_decision, pressure_finding, received_finding, regulate
from coherence.policy.regulator_state import Standing
from coherence.policy.rules import own_rules
from coherence.policy.rules.quality import outcome_finding
from coherence.providers.hashing import HashingEmbedder
from coherence.sensor.embedding_cache import EmbeddingCache
from coherence.sensor.plugin_calls import Breaker
from coherence.sensor.sensor import CoherenceSensor
from coherence.state.data import Action
from coherence.state.reducer import AgentState

KEPT_LESSONS = 64
"""Lessons that wait to be written at most; older ones leave."""

MOST_LOOKED_UP = 3
"""Errors that are looked up at one tick."""

ENDING = "outcome"
"""Reason of a tick after which nothing comes: nobody could be told anything any more."""


class Column:
    """State, sensor, appraiser and regulator of one agent.

    Only :meth:`fold` changes anything. Not thread-safe.

    Parameters
    ----------
    config : MonitorConfig
        What to measure and how to judge.
    cache : EmbeddingCache, optional
        The embedder; without one nothing is embedded, and what compares meanings is unknown.
    budget, tree_budget : Budget, optional
        The agent's own, and the one it shares.
    metrics : sequence of MetricFn or ScalarMetricFn
        Further ones, beside the four metrics of similarity, those of the settings' weights, and the vitals.
    rules : sequence of Rule
        Further ones, beside those of this package.
    policies : mapping
        Pattern -> what its verdict made of it.
    name : tuple of str
        Agent and session.
    state : AgentState, optional
        The state that ``metrics`` were made for.
    dangers : sequence of Danger, optional
        What is destructive, in place of the package's table.
    calibration : Calibration, optional
        From which risks on metrics alarm. Default: what is shipped.
    measures : bool
        Whether a tick measures. Else its reading is empty, and texts are embedded only where two are compared.
    """

    def __init__(
        self,
        config: MonitorConfig,
        cache: EmbeddingCache | None,
        *,
        budget: Budget | None = None,
        tree_budget: Budget | None = None,
        metrics: Sequence[MetricFn | ScalarMetricFn] = (),
        rules: Sequence[Rule] = (),
        policies: Mapping[str, Policy] | None = None,
        name: tuple[str, str] = ("main", "1"),
        state: AgentState | None = None,
        dangers: Sequence[Danger] | None = None,
        calibration: Calibration | None = None,
        measures: bool = True,
    ) -> None:
        self.config = config
        self.name = name
        self.policies = policies or {}
        self.dangers = dangers
        self.rules = tuple(rules)
        self._breakers = {rule.name: Breaker() for rule in self.rules}
        self._foreign = bool(metrics)
        self.own_rules = own_rules(config, budget)
        self.standing = Standing()
        self.budget = budget
        self.tree_budget = tree_budget
        self.state = state or AgentState(config)
        self.meaning = Meaning(self.state, self.standing, cache, name[1])
        self.meaning.eager = not measures
        self.measures = measures
        self.appraiser = Appraiser(config, budget)
        self.measured: Verdict | None = None
        """Of the newest tick with a reading."""
        self.learned: deque[Solved | Judged] = deque(maxlen=KEPT_LESSONS)
        """What events have taught, until somebody takes it; not part of the state."""
        vectors, vitals = list[Any](), list[Any]()
        if cache is not None:
            vectors = [GoalDrift(), MemoryRetention(), ContradictionPressure(), SemanticDiffusion()]
            vectors += [metric for metric in metrics if not is_scalar(metric)]
            vitals = vector_vitals(self.state)
        scalars: list[Any] = [metric for metric in metrics if is_scalar(metric)]
        scalars += detectors(config, self.state, [metric.name for metric in metrics])
        self.sensor = CoherenceSensor(
            self.state,
            embedder=cache or HashingEmbedder(8),  # which is never asked
            metrics=[*vectors, *vitals],
            scalar_metrics=[*scalars, *scalar_vitals(self.state, budget)],
            weights=index_weights(config, [metric.name for metric in (*vectors, *scalars)]),
            thresholds=config.bands,
            missing=config.missing,
            history_size=0,
            timeout_s=config.timeout_s,
        )
        self.calibration = calibration or Calibration()
        self.limits = limits_of(config, HIJACK, self.calibration)
        self.runs = Runs([*vectors, *vitals], [*scalars, *scalar_vitals(self.state, budget)], cache)

    @property
    def changed(self) -> bool:
        """Whether anything has happened since the newest tick that measured."""
        return self.measured is None or self.state.facts.changed_seq > self.measured.appraisal.seq

    @property
    def unjudged(self) -> bool:
        """Whether there is an answer that a tick asked for by the host would judge."""
        facts = self.state.facts
        answer = facts.answer
        return answer is not None and not answer.final and (not facts.calls or facts.grounds.waits(answer.seq))

    @property
    def unexplained(self) -> list[Action]:
        """Failed actions since the newest tick whose error nobody has looked up, the newest first, three at most.

        Those count after which the agent has called nothing yet (a parallel call may have succeeded), and those that
        still wait for their fix.
        """
        facts, recollection = self.state.facts, self.standing.recollection
        waiting = {trouble.newest for trouble in recollection.troubles.open}
        found: list[Action] = []
        newest_call = 0
        for action in reversed(facts.actions[-max(facts.results - self.standing.results, 1) :]):
            new = action.error and not action.came.rate_limited and action.seq > recollection.looked
            if new and (newest_call < action.seq or action.seq in waiting):
                found.append(action)
            newest_call = max(newest_call, action.called)
        return found[:MOST_LOOKED_UP]

    def time_is_up(self, now: float) -> bool:
        """Whether a budget of time has crossed its soft or hard limit since the newest measurement: idling counts."""
        first = self.state.facts.first_ts
        if first is None or self.measured is None or self.measured.reading is None:
            return False
        return crosses_time((self.budget, self.tree_budget), self.measured.reading.ts - first, now - first)

    @property
    def mode(self) -> Mode:
        """The mode now."""
        return self.appraiser.mode

    @property
    def vitals(self) -> dict[str, float | None]:
        """The vitals of the newest reading."""
        metrics = self.measured.reading.metrics if self.measured and self.measured.reading else {}
        return {name: metrics.get(name) for name in VITALS}

    def fold(
        self,
        seq: int,
        ts: float,
        event: Event,
        recorded: Verdict | None = None,
        told: Sequence[Finding] | None = None,
    ) -> Verdict | None:
        """Take in the next event; a tick gives a verdict.

        Parameters
        ----------
        seq, ts, event
            As :meth:`~coherence.state.reducer.AgentState.fold` takes them.
        recorded : Verdict, optional
            What came of this tick when it was recorded. It is taken as it is where it is ``kept``, and its reading
            saves the measurement otherwise.
        told : sequence of Finding, optional
            What somebody else's rules found when it was recorded; they are not asked again.
        """
        self._observe(seq, ts, event)
        if type(event) is not Ticked:
            return None
        if recorded is not None and recorded.kept:
            if recorded.reading is not None:
                self.appraiser.appraise(recorded.reading, self.state)
                self.meaning.settle()
            self._take(event, Told(recorded.decision, recorded.outcomes))
            self.note(recorded)
            return recorded
        verdict = self._check(seq, event, told) if event.tool_name is not None else None
        if verdict is None:
            reading = recorded.reading if recorded is not None else None
            if reading is None:
                reading = self._measure(seq, ts, event.reason)
            verdict = self._judge(event, reading, told)
        self._take(event, Told(verdict.decision, verdict.outcomes))
        self.note(verdict)
        return verdict

    def _measure(self, seq: int, ts: float, reason: str) -> Reading:
        """Measure; if nothing has happened since the newest measurement and all metrics are our own, that one holds."""
        if not self.measures:
            return _empty(seq, ts)
        newest = self.measured.reading if self.measured is not None else None
        if newest is None or self.changed or newest.errors or self._foreign:
            return self.sensor.measure_sync(Tick(seq, ts, reason))
        return msgspec.structs.replace(newest, tick_seq=seq, ts=ts)

    def _observe(self, seq: int, ts: float, event: Event) -> None:
        standing, facts = self.standing, self.state.facts
        request, answered = facts.request, facts.step_seq > facts.request_seq
        self.state.fold(seq, ts, event)
        self.appraiser.observe(event, self.state)
        self.runs.observe(event, seq, facts.hijack.worst)
        if type(event) is Ticked:
            if event.recalled is not None and facts.actions:
                standing.recollection.recall(facts.actions[-1].seq, event.recalled)
            return
        standing.observe(event)
        called = facts.actions[-1].called if type(event) is ToolResult else 0
        self.learned.extend(standing.recollection.observe(seq, event, called=called))
        if type(event) is Correction or type(event) is Message:
            self.meaning.correct(seq, event, request, answered=answered)

    def _take(self, event: Ticked, told: Told) -> None:
        """Remember what was decided."""
        if event.tool_name is not None:
            self.runs.take_findings(told.decision.findings)
            self.standing.take_check(told.decision, self.config, key_of(event) if not told.decision else b"")
        else:
            self.standing.take(told.decision, self.state.facts, self.appraiser.mood.pressure, told.outcomes)

    def note(self, verdict: Verdict | None) -> None:
        """Take a verdict as the newest, if it holds a measurement."""
        if verdict is not None and verdict.reading is not None:
            self.measured = verdict
            self.runs.take(verdict.reading.metrics, self.state.facts.hijack.worst)

    def with_guidance(self) -> Verdict | None:
        """Return the newest verdict with the guidance that is still to be told: it may have fired at a tick before."""
        measured = self.measured
        guidance = self.standing.guidance(self.state.facts.steps)
        if measured is None or measured.decision.guidance is not None or guidance is None:
            return measured
        if not any(found.active and pattern_of(found) == guidance.pattern for found in measured.decision.findings):
            return measured  # what it is about is over
        decision = msgspec.structs.replace(measured.decision, guidance=guidance)
        return msgspec.structs.replace(measured, decision=decision)

    def refold(self, seq: int, ts: float, event: Event, told: Told | None) -> None:
        """Take in an event again, with what was measured and decided then; quick, and without a verdict."""
        self._observe(seq, ts, event)
        if type(event) is not Ticked or told is None:
            return
        if told.reading is not None:
            self.appraiser.appraise(told.reading, self.state)
            self.meaning.settle()
            self.runs.take(told.reading.metrics, self.state.facts.hijack.worst)
        self._take(event, told)

    def _judge(self, event: Ticked, reading: Reading, told: Sequence[Finding] | None) -> Verdict:
        appraisal = self.appraiser.appraise(reading, self.state)
        if event.received is not None:
            appraisal = msgspec.structs.replace(appraisal, received=event.received)
        self.meaning.settle()
        findings, failures = self._findings(event, reading, appraisal, told)
        if failures:
            reading = msgspec.structs.replace(reading, errors=(*reading.errors, *failures))
        facts, standing = self.state.facts, self.standing
        decision = make_decision(reading.tick_seq, findings)
        if event.reason != ENDING:
            settings, name = self.config.guidance, self.name
            fired = guide(decision, standing, facts, settings, name=name, ts=reading.ts, policies=self.policies)
            decision = msgspec.structs.replace(decision, guidance=fired) if fired is not None else decision
        known = outcomes(standing, facts, appraisal.pressure)
        return Verdict(appraisal, decision, reading, kept=bool(reading.errors), outcomes=known)

    def _check(self, seq: int, event: Ticked, told: Sequence[Finding] | None) -> Verdict:
        """Judge whether a call may run."""
        mood = self.appraiser.mood
        appraisal = Appraisal(
            seq=seq, pressure=mood.pressure, mode=self.mode, floor=mood.floor, received=event.received
        )
        reading = self.measured.reading if self.measured is not None else None
        findings, failures = self._findings(event, reading, appraisal, told)
        findings += [
            Finding(
                rule=failure.source.removeprefix("rule "),
                severity="warn",
                active=True,
                score=1.0,
                threshold=1.0,
                why=f"the rule could not be asked: {failure}",
            )
            for failure in failures
        ]
        table = self.dangers if self.dangers is not None else DEFAULT
        own = of_itself(seq, event, self.state.facts, self.standing, self.config, self.limits)
        decision = answer(seq, event, findings, self.standing, self.state.facts.steps, self.config, table, own)
        return Verdict(appraisal, decision, kept=bool(failures) or self.dangers is not None)

    def _findings(
        self, event: Ticked, reading: Reading | None, appraisal: Appraisal, told: Sequence[Finding] | None
    ) -> tuple[list[Finding], list[Failure]]:
        """Return what budgets, pressure and rules find, as the configuration has them, and which rules failed."""
        state = self.state
        raw = [pressure_finding(appraisal, self.config.pressure, state)]
        received = received_finding(event.received, self.config.pressure)
        if received is not None:
            raw.append(received)
        raw += all_budget_findings(state, self.budget, self.tree_budget, event.tree)
        if event.tool_name is None:  # a question about a call is about no text
            raw += self.meaning.findings()
            known = known_error(self.standing.recollection)
            made = made_call(state.facts, self.limits)
            failed = outcome_finding(state.facts, self.config) if event.reason == ENDING else None
            raw += [found for found in (known, made, failed) if found is not None]
        for rule in self.own_rules:
            finding = rule(state, reading, appraisal)
            if finding is not None:
                raw.append(finding)
        failures: list[Failure] = []
        if told is None and self.rules:
            asked, failures = run_rules(self.rules, state, reading, appraisal, self.config.timeout_s, self._breakers)
            raw += asked
        findings = regulate(raw, self.standing, state.facts.steps, self.config.rules)
        return (findings if told is None else [*findings, *told]), failures

    def renumber(self) -> None:
        """Let the next event be number 1: the state of one session begins another."""
        self.state.facts.renumber()
        self.standing.renumber()
        self.measured = None
        self.runs.run.renumber()

    def snapshot(self) -> Snapshot:
        """Return everything that folding has changed; it is the state itself, to be packed before the next event."""
        return Snapshot(self.state.facts, self.appraiser.mood, self.standing, measured=self.measured, run=self.runs.run)

    def legacy(self) -> Legacy:
        """Return what the agent's next session, of another name, begins with."""
        return Legacy(self.appraiser.mood.baselines, self.standing.corrections, self.meaning.step)

    def inherit(self, legacy: Legacy) -> None:
        """Begin with what an earlier session left."""
        self.appraiser.mood = Mood(baselines=legacy.baselines)
        self.standing.corrections = legacy.corrections
        self.standing.born = legacy.steps
        self.meaning.begin(self.standing)

    def restore(self, kept: Snapshot) -> None:
        """Go on where a snapshot was taken."""
        self.state.facts = kept.facts
        self.state.forget_caches()
        self.meaning.begin(kept.standing)
        self.appraiser.mood = kept.mood
        self.standing = kept.standing
        self.measured = kept.measured
        self.runs.run = kept.run


def _empty(seq: int, ts: float) -> Reading:
    """Return the reading of a tick that measures nothing."""
    return Reading(tick_seq=seq, ts=ts, metrics=FrozenDict(), coherence_index=1.0, band=Band.GREEN, coverage=0.0)
