"""A live monitor as a scored run: what it has measured itself, not computed again."""

from __future__ import annotations

from coherence.monitor.monitor import Monitor
from coherence.report.run_of_records import run_of_records
from coherence.report.score import ScoredRun


def scored_monitor(monitor: Monitor, name: str = "") -> ScoredRun | None:
    """Measure what waits, and return a monitor's run as far as its newest 10,000 events hold it.

    Each step has the worst of its readings and of its decisions, refused calls included; a step without any has those
    of the step before.

    Parameters
    ----------
    monitor : Monitor
        The monitor, open or closed.
    name : str
        Id of the run; default: ``agent/session``.

    Returns
    -------
    ScoredRun or None
        ``None`` if there is no step yet.
    """
    monitor.decide()
    return run_of_records(
        name or f"{monitor.agent}/{monitor.session}",
        monitor.events()[::-1],
        format="monitor",
        goal=monitor.state.facts.goal,
        inverted=monitor.inverted,
    )
