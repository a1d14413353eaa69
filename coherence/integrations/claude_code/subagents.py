"""Reports to the main agent of subagents that end in trouble."""

from __future__ import annotations

from coherence.monitor.monitor import Monitor


class Reports:
    """Facts about subagents that have ended, until the main agent has been told."""

    def __init__(self) -> None:
        self._waiting: list[str] = []

    def ended(self, name: str, monitor: Monitor) -> None:
        """Take in how a subagent stands at its end.

        Parameters
        ----------
        name : str
            What the main agent calls it.
        monitor : Monitor
            The subagent's.
        """
        decision = monitor.decide()
        why = next((finding.why for finding in decision.findings if finding.active), "")
        if decision.kind not in ("warn", "block") or not why:
            return
        counters = monitor.counters
        failed = f" {counters.errors} of its {counters.calls} calls failed." if counters.errors else ""
        self._waiting.append(f"The subagent {name} ended in trouble: {why.rstrip('.')}.{failed}")

    def take(self) -> str:
        """Return what the main agent is to know, empty if there is nothing."""
        told, self._waiting = self._waiting, []
        return "\n".join(told)
