"""Values that a monitor shows: readings, pressure, spending, and the events behind them."""

from __future__ import annotations

from coherence.baseline.appraiser import mode_of
from coherence.baseline.calibration import Calibration
from coherence.baseline.runs import risk_of
from coherence.core.decisions import Blocking, Decision, Mode, refusal_id
from coherence.core.events import Spent
from coherence.core.readings import Counters, Reading
from coherence.monitor.deferred import Deferred
from coherence.monitor.known_state import KnownState
from coherence.monitor.tick_result import Record, TickResult
from coherence.monitor.worker import Worker
from coherence.state.reducer import AgentState


class MonitorView:
    """Properties of a monitor.

    All but ``latest``, ``deferred`` and the ``known`` ones first process what has been recorded.
    """

    _worker: Worker

    @property
    def latest(self) -> Reading | None:
        """The newest reading that is ready, ``None`` before the first. Never waits for a measurement."""
        return self._worker.readings.latest

    def history(self, n: int | None = None) -> list[Reading]:
        """Return up to ``n`` of the last 256 readings, newest first."""
        return self._worker.readings.newest(n)

    @property
    def deferred(self) -> Deferred:
        """The readings that :meth:`Monitor.record_later` was given and that wait."""
        return self._worker.deferred

    @property
    def vitals(self) -> dict[str, float | None]:
        """Vital -> value in [0, 1] at the newest tick; ``None`` = unknown."""
        with self._worker.settled() as pipeline:
            return pipeline.vitals

    @property
    def pressure(self) -> float:
        """The pressure now, in [0, 1], 0 = calm: the agent's own, or what comes from other agents if that is more."""
        return max(self._worker.received(), self._worker.pressure())

    @property
    def own_pressure(self) -> float:
        """The agent's own pressure now, in [0, 1], 0 = calm."""
        return self._worker.pressure()

    @property
    def known_pressure(self) -> float:
        """The agent's own pressure as far as its events have been processed; never waits."""
        return self._worker.pipeline.appraiser.mood.pressure

    @property
    def mode(self) -> Mode:
        """The mode of the pressure now."""
        return mode_of(self.pressure, self._worker.pipeline.appraiser.config)

    @property
    def blocking(self) -> Blocking:
        """Rules, as of the newest tick, and refused call that refuse calls now and would end by ``unblock``.

        Examples
        --------
        >>> from coherence import Monitor
        >>> with Monitor(goal="List the files.", embedder=False) as m:
        ...     calm = bool(m.blocking)
        ...     refused = m.check("Bash", {"command": "rm -rf /"})
        ...     blocking = m.blocking
        >>> calm, blocking.rules, blocking.call == refused.seq
        (False, (), True)
        """
        with self._worker.settled() as pipeline:
            return pipeline.regulator.data.blocks

    def refusal_id(self, decision: Decision) -> str:
        """Return the id by which ``coherence explain`` takes a refusal of this task; empty for any other decision."""
        pipeline = self._worker.pipeline
        ts = pipeline.refusals().get(decision.seq)
        return "" if ts is None else refusal_id(*pipeline.name, ts)

    @property
    def known_decision(self) -> Decision:
        """The decision as far as events have been measured; never waits. :meth:`Monitor.decide` measures first."""
        result = self._worker.known()
        return result.decision if result is not None else Decision(seq=0, kind="continue")

    @property
    def known_state(self) -> KnownState:
        """State of the agent as far as its events have been processed; never waits, also for a measurement."""
        return self._worker.known_state

    @property
    def spent(self) -> Spent:
        """Tokens, money, calls and time that the agent has used."""
        return self._worker.spent()

    @property
    def known_spent(self) -> Spent:
        """Amounts that the agent has used, as far as its events have been processed; never waits."""
        return self._worker.pipeline.state.spent

    @property
    def counters(self) -> Counters:
        """Tool results, errors, tokens and cost so far."""
        with self._worker.settled() as pipeline:
            return pipeline.state.get_counters()

    @property
    def state(self) -> AgentState:
        """The agent's state after all recorded events; read it, do not change it."""
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

    @property
    def calibration(self) -> Calibration:
        """Thresholds of the alarms; fixed when the session began."""
        return self._worker.pipeline.calibration

    @property
    def risk(self) -> float | None:
        """The risk at the newest measurement in [0, 1], higher = worse; ``None``: nothing was measured.

        It is the calibrated risk or, with a classic index, ``1 - coherence_index``.
        """
        with self._worker.settled() as pipeline:
            reading = pipeline.measured.reading if pipeline.measured is not None else None
            return None if reading is None else risk_of(reading)

    def events(self, n: int | None = None) -> list[Record]:
        """Return up to ``n`` of the last 10,000 events of this process, newest first; at most 8 MB."""
        with self._worker.settled():
            found = list(self._worker.events)[::-1]
        return found if n is None else found[: max(n, 0)]

    def _repr_html_(self) -> str:
        """Draw a card with a strip of the newest readings, for notebooks."""
        from coherence.core.cards import monitor_card  # which only a notebook needs

        with self._worker.settled() as pipeline:
            measured, goal, spent = pipeline.measured, pipeline.state.facts.goal, pipeline.state.spent
            name, private = "/".join(pipeline.name), pipeline.config.privacy == "no-text"
        return monitor_card(
            name,
            self.history()[::-1],
            appraisal=measured.appraisal if measured is not None else None,
            decision=self.known_decision if measured is not None else None,
            spent=spent,
            goal=goal,
            closed=self._worker.closed,
            private=private,
        )
