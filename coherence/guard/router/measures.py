"""From a monitor's result to the measures that the lines are made of."""

from __future__ import annotations

from coherence.guard.router.lines import KNOWN
from coherence.monitor.tick_result import TickResult

OF_BUDGETS = ("budget.", "tree_budget.")


def measures_of(result: TickResult | None) -> dict[str, float | None]:
    """Return what a result tells of the six lines: metrics, index, pressures, scores of rules, shares of budgets.

    Parameters
    ----------
    result : TickResult, optional
        ``monitor.result``; ``None`` = nothing was measured, and all is unknown.

    Examples
    --------
    >>> from coherence.monitor.monitor import Monitor
    >>> with Monitor(goal="make the tests pass", embedder=False) as m:
    ...     for _ in range(4):
    ...         m.tool_result("ImportError", error=True, tool="Bash")
    ...     _ = m.decide()
    ...     measures = measures_of(m.result)
    >>> measures["error_rate"], measures["pressure"], measures["goal_coherence"]
    (0.4, 0.5, None)
    """
    measures: dict[str, float | None] = dict.fromkeys(sorted(KNOWN))
    if result is None:
        return measures
    for finding in result.decision.findings:
        name = "budget" if finding.rule.startswith(OF_BUDGETS) else finding.rule
        if name in measures:
            measures[name] = max(finding.score, measures[name] or 0.0)
    reading, appraisal = result.reading, result.appraisal
    if reading is not None:
        # A metric's value goes before the score of a rule of the same name.
        measures.update({name: value for name, value in reading.metrics.items() if name in measures})
        if reading.coverage > 0:
            measures["coherence_index"] = reading.coherence_index
    measures["pressure"] = appraisal.pressure
    measures["received_pressure"] = appraisal.received.pressure if appraisal.received is not None else None
    return measures
