"""The column: one agent's events in, readings, appraisals and decisions out. Live and in a replay it is the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from coherence.appraise.appraiser import Appraiser, Measured, Mood
from coherence.appraise.vitals import VITALS, scalar_vitals, vector_vitals
from coherence.config import Budget, MonitorConfig
from coherence.decide.regulator import all_budget_findings, make_decision, pressure_finding
from coherence.events import Event, Spent, Ticked
from coherence.evidence.rows import Verdict
from coherence.facts import Action, Facts, Item, OpenCall, Said
from coherence.findings import Appraisal, Finding, Mode
from coherence.metrics import ContradictionPressure, GoalDrift, MemoryRetention, SemanticDiffusion
from coherence.protocols import MetricFn, ScalarMetricFn
from coherence.records import Tick, frozen_hook
from coherence.registry import is_scalar
from coherence.sensor.core import CoherenceSensor
from coherence.sensor.embedding import EmbeddingCache
from coherence.state import AgentState

SNAPSHOT_VERSION = 1


class Snapshot(msgspec.Struct):
    """Everything that folding has changed; plain data."""

    facts: Facts
    mood: Mood
    version: int = SNAPSHOT_VERSION
    measured: Verdict | None = None


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Snapshot, dec_hook=frozen_hook)


class Column:
    """State, sensor, appraiser and regulator of one agent.

    Only :meth:`fold` changes anything. Not thread-safe.

    Parameters
    ----------
    config : MonitorConfig
        What to measure and how to judge.
    cache : EmbeddingCache
        The embedder.
    budget, tree_budget : Budget, optional
        The agent's own, and the one it shares.
    metrics : sequence of MetricFn or ScalarMetricFn
        Further ones, beside the four default metrics and the vitals.
    state : AgentState, optional
        The state that ``metrics`` were made for.
    """

    def __init__(
        self,
        config: MonitorConfig,
        cache: EmbeddingCache,
        *,
        budget: Budget | None = None,
        tree_budget: Budget | None = None,
        metrics: Sequence[MetricFn | ScalarMetricFn] = (),
        state: AgentState | None = None,
    ) -> None:
        self.config = config
        self.budget = budget
        self.tree_budget = tree_budget
        self.state = state or AgentState(config)
        self.appraiser = Appraiser(config, budget)
        self.measured: Verdict | None = None
        """Of the newest tick with a reading."""
        vectors: list[Any] = [GoalDrift(), MemoryRetention(), ContradictionPressure(), SemanticDiffusion()]
        further: list[Any] = [metric for metric in metrics if not is_scalar(metric)]
        scalars: list[Any] = [metric for metric in metrics if is_scalar(metric)]
        weights = config.weights
        if weights is None:
            names = [metric.name for metric in (*vectors, *further, *scalars)]
            weights = dict.fromkeys([*names, *(name for name in config.metrics if name in VITALS)], 0.25)  # type: ignore[assignment]
        self.sensor = CoherenceSensor(
            self.state,
            embedder=cache,
            metrics=[*vectors, *further, *vector_vitals(self.state)],
            scalar_metrics=[*scalars, *scalar_vitals(self.state, budget)],
            weights=weights,
            thresholds=config.bands,
            missing=config.missing,
            history_size=0,
            timeout_s=config.timeout_s,
        )

    @property
    def changed(self) -> bool:
        """Whether anything has happened since the newest tick that measured."""
        return self.measured is None or self.state.facts.changed_seq > self.measured.appraisal.seq

    def time_is_up(self, now: float) -> bool:
        """Whether a budget of time has crossed its soft or hard limit since the newest measurement: idling counts."""
        facts = self.state.facts
        if facts.first_ts is None or self.measured is None:
            return False
        for budget in (self.budget, self.tree_budget):
            if budget is not None and budget.wall_s is not None:
                limits = (budget.soft * budget.wall_s, budget.wall_s)
                was, lasts = facts.latest_ts - facts.first_ts, now - facts.first_ts
                if any(was < limit <= lasts for limit in limits):
                    return True
        return False

    @property
    def mode(self) -> Mode:
        """The mode now."""
        return self.appraiser.mode

    @property
    def vitals(self) -> dict[str, float | None]:
        """The vitals of the newest reading."""
        metrics = self.measured.reading.metrics if self.measured and self.measured.reading else {}
        return {name: metrics.get(name) for name in VITALS}

    def fold(self, seq: int, ts: float, event: Event, recorded: Verdict | None = None) -> Verdict | None:
        """Take in the next event; a tick gives a verdict.

        Parameters
        ----------
        seq, ts, event
            As :meth:`~coherence.state.AgentState.fold` takes them.
        recorded : Verdict, optional
            What came of this tick when it was recorded. It is taken as it is where it is ``kept``, and its reading
            saves the measurement otherwise.
        """
        self.state.fold(seq, ts, event)
        self.appraiser.observe(event, self.state)
        if type(event) is not Ticked:
            return None
        if event.tool_name is not None:
            verdict = self._check(seq, event.tree)
        else:
            reading = recorded.reading if recorded is not None else None
            if reading is None:
                reading = self.sensor.measure_sync(Tick(seq, ts, event.reason))
            appraisal = self.appraiser.appraise(reading, self.state)
            decision = make_decision(seq, self._findings(appraisal, event.tree))
            verdict = Verdict(appraisal, decision, reading, kept=bool(reading.errors))
        if recorded is not None and recorded.kept:
            verdict = recorded
        self.note(verdict)
        return verdict

    def note(self, verdict: Verdict | None) -> None:
        """Take a verdict as the newest, if it holds a measurement."""
        if verdict is not None and verdict.reading is not None:
            self.measured = verdict

    def refold(self, seq: int, ts: float, event: Event, reading: Measured | None) -> None:
        """Take in an event again, with what was measured then; quick, and without a verdict."""
        self.state.fold(seq, ts, event)
        self.appraiser.observe(event, self.state)
        if reading is not None:
            self.appraiser.appraise(reading, self.state)

    def _check(self, seq: int, tree: Spent | None) -> Verdict:
        """Judge whether a call may run: only a budget refuses one."""
        mood = self.appraiser.mood
        appraisal = Appraisal(seq=seq, pressure=mood.pressure, mode=self.mode, floor=mood.floor)
        findings = [
            msgspec.structs.replace(finding, severity="warn")
            if finding.rule == "pressure" and finding.severity == "block"
            else finding
            for finding in self._findings(appraisal, tree)
        ]
        return Verdict(appraisal, make_decision(seq, findings))

    def _findings(self, appraisal: Appraisal, tree: Spent | None) -> list[Finding]:
        budgets = all_budget_findings(self.state, self.budget, self.tree_budget, tree)
        return [pressure_finding(appraisal, self.config.pressure, self.state), *budgets]

    def renumber(self) -> None:
        """Let the next event be number 1: the state of one session begins another."""
        facts = self.state.facts
        numbered: tuple[Item | OpenCall | Action | Said, ...] = (
            *facts.context,
            *facts.open_calls,
            *facts.actions,
            *facts.said,
        )
        for part in numbered:
            part.seq = 0
        facts.seq = facts.changed_seq = facts.step_seq = facts.compacted_seq = 0
        facts.joinable = False
        self.measured = None

    def snapshot(self) -> bytes:
        """Return everything that folding has changed."""
        return _ENCODER.encode(Snapshot(self.state.facts, self.appraiser.mood, measured=self.measured))

    def restore(self, data: bytes) -> None:
        """Go on where a snapshot was taken.

        Raises
        ------
        ValueError
            If it is no snapshot of this version.
        """
        try:
            kept = _DECODER.decode(data)
        except msgspec.DecodeError as error:
            raise ValueError(f"not a snapshot: {error}") from error
        if kept.version != SNAPSHOT_VERSION:
            raise ValueError(f"a snapshot of version {kept.version}, expected {SNAPSHOT_VERSION}")
        self.state.facts = kept.facts
        self.state.forget_caches()
        self.appraiser.mood = kept.mood
        self.measured = kept.measured
