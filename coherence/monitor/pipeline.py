"""The pipeline of one agent: events in; readings, appraisals and decisions out. Live and in a replay it is the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from typing import NamedTuple

import msgspec

from coherence.baseline.appraiser import Appraiser, AppraiserState
from coherence.baseline.calibration import Calibration
from coherence.baseline.own_scale import LIGHT, gains_of
from coherence.baseline.runs import Runs
from coherence.baseline.vitals import VITALS, metric_set
from coherence.core.config import Budget, MonitorConfig
from coherence.core.decisions import KINDS, Appraisal, DecisionKind, Finding, Mode, Policy, worst_kind
from coherence.core.events import Event, Ticked, ToolCall
from coherence.core.protocols import Detector, MetricFn, Rule, ScalarMetricFn
from coherence.core.readings import Band, Failure, FrozenDict, Reading, Tick
from coherence.core.scale import Scale
from coherence.monitor.semantic_checks import SemanticChecks
from coherence.monitor.snapshots import CarryOver, Snapshot
from coherence.monitor.tick_result import TickResult
from coherence.policy.budgets import all_budget_findings, crosses_time
from coherence.policy.call_gate import answer, key_of, of_itself
from coherence.policy.corrections import Corrections
from coherence.policy.course_finding import course_finding, is_policy
from coherence.policy.danger.danger import Danger
from coherence.policy.danger.table import DEFAULT
from coherence.policy.danger.unasked import DangerDetector
from coherence.policy.guidance import guide, outcomes, pattern_of
from coherence.policy.hijack_findings import RULE as HIJACK
from coherence.policy.hijack_findings import asked_about, grey_zone_end, limits_of, made_call
from coherence.policy.plugin_rules import PluginRules
from coherence.policy.regulator import RegulatorMemory, make_decision, pressure_finding, received_finding, regulate
from coherence.policy.rules import builtin_rules
from coherence.policy.rules.quality import outcome_finding
from coherence.policy.second_opinion import Question, question_of
from coherence.providers.hashing import HashingEmbedder
from coherence.sensor.embedding_cache import EmbeddingCache
from coherence.sensor.index import BandEdges
from coherence.sensor.light import (
    RULE_SIGN,
    Asked,
    Edges,
    Light,
    asks_itself,
    combine,
    lit,
    monitor_scale,
    no_better,
    prior_shift,
    signs_of,
)
from coherence.sensor.sensor import CoherenceSensor
from coherence.state.data import Answer
from coherence.state.reducer import AgentState

SCORE_ALONE = 0.2
"""Value up to which a score of ``goal_hijack`` counts that nothing proves; the shipped threshold is 0.25."""

ENDING = "outcome"
"""Reason of a tick after which nothing comes: guidance would reach nobody."""


class Plugins(NamedTuple):
    """Plug-ins of a pipeline."""

    metrics: Sequence[MetricFn | ScalarMetricFn] = ()
    """Beside the four metrics of similarity, those of the settings' weights, and the vitals."""
    rules: Sequence[Rule] = ()
    """Beside those of this package."""
    detectors: Sequence[Callable[[], Detector]] = ()
    """Each is made anew for each pipeline: what it remembers belongs to one run."""
    dangers: Sequence[Danger] | None = None
    """Destructive calls, in place of the package's table."""


class AgentPipeline:
    """State, sensor, appraiser and regulator of one agent.

    Only :meth:`fold` and :meth:`apply` change anything. Not thread-safe.

    Parameters
    ----------
    config : MonitorConfig
        What to measure and how to judge.
    cache : EmbeddingCache, optional
        The embedder; without one nothing is embedded, and what compares meanings is unknown.
    name : tuple of str
        Agent and session.
    budget, tree_budget : Budget, optional
        The agent's own, and the one it shares.
    plugins : Plugins
        Metrics, rules, detectors and dangers of somebody else.
    policies : mapping
        Pattern -> what its verdict made of it.
    calibration : Calibration, optional
        From which risks on metrics alarm. Default: what is shipped.
    state : AgentState, optional
        The state that the metrics among ``plugins`` were made for.
    measures : bool
        Whether a tick measures. Else its reading is empty, and texts are embedded only where two are compared.
    """

    def __init__(
        self,
        config: MonitorConfig,
        cache: EmbeddingCache | None,
        *,
        name: tuple[str, str] = ("main", "1"),
        budget: Budget | None = None,
        tree_budget: Budget | None = None,
        plugins: Plugins | None = None,
        policies: Mapping[str, Policy] | None = None,
        calibration: Calibration | None = None,
        state: AgentState | None = None,
        measures: bool = True,
    ) -> None:
        plugins = plugins or Plugins()
        self.config = config
        self.name = name
        self.budget = budget
        self.tree_budget = tree_budget
        self.dangers = plugins.dangers
        self.policies = policies or {}
        self.calibration = calibration or Calibration()
        self.limits = limits_of(config, HIJACK, self.calibration)
        self.measures = measures
        self.until: float | None = None
        """Time (monotonic) by which the next measurement is to be done; ``None``: ``config.timeout_s`` from then."""
        self.measured: TickResult | None = None
        """Of the newest tick with a reading."""
        self._sound: Answer | None = None
        """The newest answer, if a tick asked for by the host would find nothing in it."""
        self.state = state = state or AgentState(config)
        state.budget = budget if budget is not None else config.budget
        limits = [each.tool_calls for each in (budget, tree_budget) if each is not None]
        state.limited = frozenset(tool for each in limits for tool in each)
        self._foreign_metrics = bool(plugins.metrics)
        measured = metric_set(config, state, budget, plugins.metrics, embeds=cache is not None)
        self.weights = measured.weights
        """Metric -> weight, of a classic index."""
        self.scale: Scale | None = None
        shipped = Edges() if config.weights == "default" else BandEdges()
        self.edges = Edges(*(shipped if config.bands is None else config.bands))
        if config.weights == "default":
            fingerprint = getattr(cache.embedder, "fingerprint", None) if cache is not None else None
            own = (*config.metrics, *(metric.name for metric in plugins.metrics))
            self.scale = monitor_scale(fingerprint, config.rules, own, config.given_scale)
        self.appraiser = Appraiser(state, budget)
        self.runs = Runs(state.hijack, measured.vectors, measured.scalars, cache)
        self.shipped = self.scale
        """The scale before labels."""
        if self.scale is not None:
            self.runs.versions.update((LIGHT + name, self.scale.name) for name in self.scale.curves)
            self.scale = self.calibration.own.applied(self.scale)
        self.regulator = RegulatorMemory(state)
        self.semantics = SemanticChecks(state, self.regulator, cache, name[1])
        self.semantics.eager = not measures
        self.plugin_rules = PluginRules(plugins.rules, plugins.detectors, config.timeout_s)
        self.rules = builtin_rules(config)
        self._moving = [at for at, rule in enumerate(self.rules) if getattr(rule, "steady", False) is not True]
        self._ruled: list[Finding | None] = []
        """Finding of each rule when it was asked last."""
        self._ruled_of: tuple[int, int, bool] | None = None
        """View that the steady ones had then."""
        self._light: tuple[tuple[object, ...], list[Asked], Light] | None = None
        """The newest light, after the signs and the bands asked for that it was made of."""
        state.detectors.add(self.semantics, before=state.name)  # it looks at the request before the event
        self.danger_detector = DangerDetector(self.dangers, config.forbid)
        ours: list[Detector] = [self.appraiser, self.danger_detector, self.runs, self.regulator]
        followers = [*ours, *self.plugin_rules.detectors]
        for detector in followers:
            state.detectors.add(detector)
        self.sensor = CoherenceSensor(
            state,
            embedder=cache or HashingEmbedder(8),  # which is never asked
            metrics=measured.vectors,
            scalar_metrics=measured.scalars,
            weights=measured.weights if self.scale is None else {},
            thresholds=config.bands,
            missing=config.missing,
            history_size=0,  # the worker keeps readings, under the numbers of their events
            timeout_s=config.timeout_s,
        )

    def limit(self, until: float | None) -> None:
        """Set the time (monotonic) by which the next tick is to be done; ``None``: ``config.timeout_s`` from then."""
        self.until = self.semantics.until = until

    @property
    def changed(self) -> bool:
        """True if anything has happened since the newest tick that measured."""
        return self.measured is None or self.state.facts.changed_seq > self.measured.appraisal.seq

    @property
    def unjudged(self) -> bool:
        """True if there is an answer that a tick asked for by the host would judge."""
        facts = self.state.facts
        answer, account = facts.answer, self.state.grounding.data
        if answer is None or answer.final:
            return False
        if not facts.calls:
            return True
        if self._sound is answer:  # nothing has come since it was looked at
            return False
        claims = self.state.claims.data
        told = claims.said == answer.seq and account.asked_seq != answer.seq
        flawed = account.waits(answer.seq) or (told and claims.passes_over(answer.text) is not None)
        self._sound = None if flawed else answer
        return flawed

    def foresee(self) -> None:
        """Look at the newest answer as a tick asked for by the host would, so that it finds that done.

        Nothing that is recorded changes: only what is kept of pure functions of the texts.
        """
        if self.measures and not self.changed and self.unjudged and not self.state.facts.calls:
            self.semantics.drift(asked=True)

    def unembedded(self) -> list[str]:
        """Return the texts that the next measurement would have to embed, if an embedder of this package does."""
        return self.sensor.unembedded() if self.measures and self.changed else []

    def embed(self, texts: Sequence[str], until: float) -> None:
        """Embed texts ahead of the next measurement, until a time (monotonic); any thread may, at any time."""
        if self.semantics.cache is not None:
            self.semantics.cache.make(texts, until, [])

    @property
    def corrections(self) -> Corrections:
        """Corrections that users have given."""
        return self.semantics.data

    def open_question(self, call: ToolCall | None = None) -> Question | None:
        """Return what a judge is to be asked of a call that may run, else of the one that stands out now."""
        if call is None:
            judged = self.state.hijack.data.standing
        else:
            judged = asked_about(call.tool_name, bytes(call.arguments), self.state)
        return None if judged is None else question_of(judged, self.state, grey_zone_end(self.config, self.limits))

    def time_is_up(self, now: float) -> bool:
        """Tell whether a budget of time has crossed a limit since the newest measurement: idling counts."""
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
        reading: Reading | None = None,
        found: Sequence[Finding] | None = None,
    ) -> TickResult | None:
        """Take in the next event; a tick gives a result.

        Parameters
        ----------
        seq, ts, event
            As :meth:`~coherence.state.reducer.AgentState.fold` takes them.
        reading : Reading, optional
            In place of a measurement.
        found : sequence of Finding, optional
            In place of asking the rules and detectors of somebody else.
        """
        self.state.fold(seq, ts, event)
        if type(event) is not Ticked:
            return None
        if event.tool_name is not None:
            result = self._check(seq, event, found)
        else:
            result = self._judge(event, reading or self._measure(seq, ts, event.reason), found)
        self._remember(ts, event, result)
        return result

    def apply(self, seq: int, ts: float, event: Event, recorded: TickResult | None = None) -> None:
        """Take in an event with what was measured and decided when it was recorded; nothing is computed again."""
        self.state.fold(seq, ts, event)
        if type(event) is not Ticked or recorded is None:
            return
        if recorded.reading is not None:
            # Both learn at each measurement; what was found and decided is in the recording.
            self.appraiser.appraise(recorded.reading)
            self.semantics.settle()
        self._remember(ts, event, recorded)

    def _measure(self, seq: int, ts: float, reason: str) -> Reading:
        """Measure; if nothing has happened since the newest measurement and all metrics are our own, that one holds."""
        if not self.measures:
            return _empty(seq, ts)
        newest = self.measured.reading if self.measured is not None else None
        if newest is None or self.changed or newest.errors or self._foreign_metrics:
            return self.sensor.measure_sync(Tick(seq, ts, reason), until=self.until)
        return msgspec.structs.replace(newest, tick_seq=seq, ts=ts)

    def _remember(self, ts: float, event: Ticked, result: TickResult) -> None:
        """Remember what was measured and decided."""
        decision, regulated = result.decision, self.regulator.data
        if event.tool_name is not None:
            self.runs.run.add_findings(decision.findings)
            regulated.add_check(decision, self.config, key_of(event) if not decision else b"", ts)
        else:
            regulated.add_decision(decision, self.state.facts, self.appraiser.mood.pressure, result.outcomes)
        if result.reading is not None:
            self.runs.add(result.reading.metrics, self._gains(result.reading))
            self.measured = result

    def refusals(self) -> dict[int, float]:
        """Return number -> Unix time of the refused calls since the newest goal, and of what the newest tick blocks."""
        found = {call.seq: call.ts for call in self.regulator.data.refused_calls if call.seq > 0 and call.ts}
        measured = self.measured
        if measured is not None and measured.reading is not None and not measured.decision:
            found[measured.decision.seq] = measured.reading.ts
        return found

    def with_guidance(self) -> TickResult | None:
        """Return the newest result with the guidance that waits for delivery: it may have fired at an earlier tick."""
        measured = self.measured
        guidance = self.regulator.data.guidance(self.state.facts.steps)
        if measured is None or measured.decision.guidance is not None or guidance is None:
            return measured
        if not any(found.active and pattern_of(found) == guidance.pattern for found in measured.decision.findings):
            return measured  # what it is about is over
        decision = msgspec.structs.replace(measured.decision, guidance=guidance)
        return msgspec.structs.replace(measured, decision=decision)

    def _judge(self, event: Ticked, reading: Reading, found: Sequence[Finding] | None) -> TickResult:
        appraisal = self.appraiser.appraise(reading)
        if event.received is not None:
            appraisal = msgspec.structs.replace(appraisal, received=event.received)
        self.semantics.settle()
        findings, failures = self._findings(event, reading, appraisal, found)
        if failures:
            reading = msgspec.structs.replace(reading, errors=(*reading.errors, *failures))
        facts, regulated = self.state.facts, self.regulator.data
        reading, findings, kind = self._lit(reading, findings)
        decision = make_decision(reading.tick_seq, findings, kind=kind)
        if event.reason != ENDING:
            settings, name = self.config.guidance, self.name
            fired = guide(decision, regulated, self.state, settings, name=name, ts=reading.ts, policies=self.policies)
            decision = msgspec.structs.replace(decision, guidance=fired) if fired is not None else decision
        known = outcomes(regulated, facts, appraisal.pressure)
        return TickResult(appraisal, decision, reading, kept=bool(reading.errors), outcomes=known)

    def _lit(self, reading: Reading, findings: list[Finding]) -> tuple[Reading, list[Finding], DecisionKind | None]:
        """Make one light of a measurement and what was found: the reading with it, the findings, the decision."""
        scale = self.scale
        asked = [
            Asked(finding.rule, finding.acts, finding.acts == "block" and is_policy(finding.rule))
            for finding in findings
            if finding.active and (scale is None or asks_itself(finding.rule, scale))
        ]
        if scale is None:
            return no_better(reading, asked, self.edges), findings, None
        signs = self.signs(reading, findings)
        known = tuple(map(signs.get, scale.curves, repeat("")))  # "" is no value, not even an unknown one
        if self._light is None or self._light[:2] != (known, asked):
            light = combine(signs, scale, asked, edges=self.edges, prior=self.config.prior)
            self._light = known, asked, light
        light = self._light[2]
        reading = lit(reading, light, scale)
        if light.risk is not None and light.kind != "continue":
            worst = worst_kind([finding.acts for finding in findings])
            # No finding asks for as much: the risk becomes one itself, or the decision would name no reason.
            if KINDS.index(light.kind) > KINDS.index(worst):
                findings = [*findings, course_finding(reading, light.kind, self.edges, self.state)]
        return reading, findings, light.kind

    def _gains(self, reading: Reading) -> dict[str, float]:
        """Return what each sign gave at a reading, for the labels that may come."""
        if self.shipped is None or not reading.losses:
            return {}
        return gains_of(
            reading.losses, reading.risk, self.shipped, self.calibration.own, prior_shift(self.config.prior)
        )

    def signs(self, reading: Reading, findings: Sequence[Finding]) -> dict[str, float | None]:
        """Return what the scale may have a curve for, higher = worse: metrics, changes, rules' scores.

        A value of ``goal_hijack`` that no dataflow proves, of an agent that few runs are known of, counts up to
        :data:`SCORE_ALONE`: it may ask for guidance, not for a warning.
        """
        signs = signs_of(reading.metrics, self.runs.inverted)
        signs.update(self.appraiser.mood.changes)
        signs.update((RULE_SIGN + finding.rule, finding.score) for finding in findings)
        alone = any(found.rule == HIJACK and found.active and found.severity == "guide" for found in findings)
        if alone and (score := signs.get(HIJACK)) is not None:
            signs[HIJACK] = min(score, SCORE_ALONE)
        return signs

    def _check(self, seq: int, event: Ticked, found: Sequence[Finding] | None) -> TickResult:
        """Judge whether a call may run."""
        mood, regulated = self.appraiser.mood, self.regulator.data
        appraisal = Appraisal(
            seq=seq, pressure=mood.pressure, mode=self.mode, floor=mood.floor, received=event.received
        )
        reading = self.measured.reading if self.measured is not None else None
        findings, failures = self._findings(event, reading, appraisal, found)
        # A rule that fails might have refused the call, so its silence is told as a warning.
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
        itself = of_itself(seq, event, self.state, regulated, self.config, self.limits, self.danger_detector)
        decision = answer(seq, event, findings, regulated, self.state.facts.steps, self.config, table, itself)
        # a table of somebody's own is not in the recording
        return TickResult(appraisal, decision, kept=bool(failures) or self.dangers is not None)

    def _findings(
        self, event: Ticked, reading: Reading | None, appraisal: Appraisal, found: Sequence[Finding] | None
    ) -> tuple[list[Finding], list[Failure]]:
        """Return what budgets, pressure, detectors and rules find, as the settings have them, and what failed."""
        state, made = self.state, event.tool_name is None  # a question about a call is about no text
        raw = [pressure_finding(appraisal, self.config.pressure, state)]
        received = received_finding(event.received, self.config.pressure)
        if received is not None:
            raw.append(received)
        raw += all_budget_findings(state, self.budget, self.tree_budget, event.tree, event.tool_name)
        if made:
            raw += state.detectors.findings(state, reading, appraisal)
            called = made_call(state, self.limits)
            failed = outcome_finding(state, self.config) if event.reason == ENDING else None
            raw += [finding for finding in (called, failed) if finding is not None]
        raw += [finding for finding in self._ask_rules(reading, appraisal) if finding is not None]
        failures: list[Failure] = []
        # in a replay they are given: nobody has the foreign rules there
        if found is None and self.plugin_rules:
            theirs, failures = self.plugin_rules.findings(state, reading, appraisal, made=made, until=self.until)
            raw += theirs
        findings = regulate(raw, self.regulator.data, state.facts.steps, self.config.rules)
        return [*findings, *(found or ())], failures

    def _ask_rules(self, reading: Reading | None, appraisal: Appraisal) -> list[Finding | None]:
        """Return what each rule finds; a steady one is asked again once anything was said, done or taken for final."""
        state, rules = self.state, self.rules
        answer = state.facts.answer
        seen = (state.told, state.grounding.data.asked_seq, answer is not None and answer.final)
        if seen == self._ruled_of:
            for at in self._moving:
                self._ruled[at] = rules[at](state, reading, appraisal)
        else:
            self._ruled = [rule(state, reading, appraisal) for rule in rules]
            self._ruled_of = seen
        return self._ruled

    def renumber(self) -> None:
        """Let the next event be number 1: the state of one session begins another."""
        self.state.detectors.renumber()
        self.measured = None

    def snapshot(self) -> Snapshot:
        """Return everything that folding has changed; it is the data itself, to be packed before the next event."""
        return Snapshot(self.state.detectors.snapshot(), self.measured)

    def restore(self, kept: Snapshot) -> None:
        """Go on where a snapshot was taken."""
        self.state.detectors.restore(kept.parts)
        self.measured = kept.measured

    def carry_over(self) -> CarryOver:
        """Return what the next session of the agent, of another name, inherits."""
        return CarryOver(self.appraiser.mood.baselines, self.corrections, self.semantics.step)

    def inherit(self, carried: CarryOver) -> None:
        """Begin with what an earlier session left."""
        self.appraiser.restore(AppraiserState(baselines=carried.baselines))
        self.semantics.restore(carried.corrections)
        self.regulator.data.born = carried.steps


def _empty(seq: int, ts: float) -> Reading:
    """Return the reading of a tick that measures nothing."""
    return Reading(tick_seq=seq, ts=ts, metrics=FrozenDict(), coherence_index=None, band=Band.UNKNOWN, coverage=0.0)
