"""Status of one agent of a fleet."""

from __future__ import annotations

import msgspec

from coherence.baseline.appraiser import mode_of
from coherence.core.decisions import DecisionKind, Mode, worst_kind
from coherence.core.events import Received, Spent
from coherence.core.readings import Band
from coherence.fleet.trust import Effective
from coherence.monitor.monitor import Monitor
from coherence.policy.regulator import received_finding


class AgentStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One agent of a fleet, at its newest measurement."""

    agent: str
    parent: str | None
    decision: DecisionKind
    """Of the newest measurement, or what comes from other agents now, if that is more severe."""
    cause: str
    """Why, if there is anything to say."""
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


def status_of(monitor: Monitor, parent: str | None, reached: Effective) -> AgentStatus:
    """Return how an agent stands, without measuring.

    Parameters
    ----------
    monitor : Monitor
        The agent's.
    parent : str, optional
        Who started it.
    reached : Effective
        Its own pressure, and the one that reaches it.
    """
    result, counters = monitor.result, monitor.counters
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
        calls=counters.calls or 0,
        errors=counters.errors or 0,
        spent=monitor.spent,
        scale=reading.scale if reading is not None and known else "",
    )
