"""The classic rollback rules, exactly: means since the patch against means before, from ten calls on.

They are kept for those who want them. They know no chance: with a baseline of 0.6 most harmless patches are rolled
back sooner or later, and a decay after many good calls is diluted by them.
"""

from __future__ import annotations

import msgspec

from coherence.guard.baseline import CallOutcome, usable

LEAST_CALLS = 10
SUCCESS_DROP = 0.10
LATENCY_RISE = 0.20
FAILURES_IN_A_ROW = 5


class Metrics(msgspec.Struct, frozen=True):
    """Plain means of some calls; all 0 for none."""

    success_rate: float = 0.0
    mean_latency_s: float = 0.0
    failures_in_a_row: int = 0
    """At the end."""


class Tally(msgspec.Struct):
    """Running sums of calls.

    Examples
    --------
    >>> before, after = Tally(), Tally()
    >>> for _ in range(10):
    ...     before.observe(CallOutcome(True, 1.0))
    ...     after.observe(CallOutcome(True, 1.3))
    >>> rolled_back(before.metrics, after)
    'latency'
    """

    calls: int = 0
    successes: int = 0
    latencies: int = 0
    latency_s: float = 0.0
    failures_in_a_row: int = 0

    def observe(self, outcome: CallOutcome) -> None:
        """Take in one call; an unknown latency is left out of the mean."""
        self.calls += 1
        self.successes += outcome.success
        self.failures_in_a_row = 0 if outcome.success else self.failures_in_a_row + 1
        if (latency_s := usable(outcome.latency_s)) is not None:
            self.latencies += 1
            self.latency_s += latency_s

    @property
    def metrics(self) -> Metrics:
        """Means so far."""
        return Metrics(
            self.successes / self.calls if self.calls else 0.0,
            self.latency_s / self.latencies if self.latencies else 0.0,
            self.failures_in_a_row,
        )


def worse(before: Metrics, after: Metrics) -> str | None:
    """Return which rule fires: ``success``, ``latency``, ``failure_run`` or ``None``.

    Comparisons are strict and binary floats decide at the edge.

    Examples
    --------
    >>> worse(Metrics(0.9), Metrics(0.8)), worse(Metrics(0.8), Metrics(0.7))
    (None, 'success')
    """
    if before.success_rate > 0 and before.success_rate - after.success_rate > SUCCESS_DROP:
        return "success"
    rise = after.mean_latency_s - before.mean_latency_s
    if before.mean_latency_s > 0 and rise / before.mean_latency_s > LATENCY_RISE:
        return "latency"
    return "failure_run" if after.failures_in_a_row >= FAILURES_IN_A_ROW else None


def rolled_back(before: Metrics, after: Tally) -> str | None:
    """Return which rule rolls back after the calls since a patch, ``None`` before the tenth."""
    return worse(before, after.metrics) if after.calls >= LEAST_CALLS else None
