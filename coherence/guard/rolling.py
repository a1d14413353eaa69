"""The rolling account of an agent's calls: counters, the newest calls in order, and counts by quarter of an hour."""

from __future__ import annotations

import math
from bisect import bisect_left

import msgspec

from coherence.core.validation import check_number

BUCKET_S = 900
"""Width of a bucket, seconds."""

MAX_WINDOW_H = 168.0
"""The longest window in hours; older buckets are dropped, so that at most 673 are kept."""

NEWEST = 100
"""Number of the newest calls that are kept in order."""

MAX_AMOUNT = 1e12
"""The largest latency (seconds) and cost of one call."""


class WindowCall(msgspec.Struct, frozen=True, array_like=True):
    """One call as the window of the newest calls keeps it; None where something was not measured."""

    seq: int
    success: bool
    latency_s: float | None = None
    cost: float | None = None
    index: float | None = None


class Bucket(msgspec.Struct, array_like=True):
    """Counts of one quarter of an hour; its number is the floor of steady time / :data:`BUCKET_S`."""

    number: int
    calls: int = 0
    failures: int = 0


class Summary(msgspec.Struct, frozen=True):
    """Some calls in numbers; a mean over no measurement is None, never 0."""

    calls: int
    failures: int
    success_rate: float | None
    """Successes / calls, in [0, 1]."""
    latency_mean_s: float | None
    cost: float | None
    """Sum over the calls of which the cost is known, in the host's currency."""
    index_mean: float | None
    """Mean coherence index, in [0, 1]."""


class Rolling(msgspec.Struct):
    """The rolling account of one agent: O(1) a call, bounded, and the same whatever the wall clock does.

    Time comes from a :class:`~coherence.guard.monotonic.SteadyClock`; a time before the latest one counts as the
    latest. A call counts for the length of a window and up to :data:`BUCKET_S` longer. Nothing is locked: one thread
    at a time.

    Examples
    --------
    >>> rolling = Rolling()
    >>> for seq, success in enumerate([True, False, True, False, False]):
    ...     rolling.record(seq, 3600.0 * seq, success=success, latency_s=1.0 + seq)
    >>> rolling.calls, rolling.failures, rolling.failures_in_row, rolling.failures_within(24)
    (5, 3, 2, 3)
    >>> rolling.over_newest().latency_mean_s
    3.0
    """

    calls: int = 0
    """Calls so far."""
    failures: int = 0
    """Failed calls so far."""
    failures_in_row: int = 0
    """Failed calls after the newest success."""
    at_s: float | None = None
    """Steady time of the latest call, seconds."""
    newest: list[WindowCall] = msgspec.field(default_factory=list)
    """Up to :data:`NEWEST` calls, oldest first."""
    buckets: list[Bucket] = msgspec.field(default_factory=list)
    """Buckets with calls, oldest first."""

    def record(
        self,
        seq: int,
        at_s: float,
        *,
        success: bool,
        latency_s: float | None = None,
        cost: float | None = None,
        index: float | None = None,
    ) -> None:
        """Count the next call, which is number ``seq`` of the trail and ended at a steady time."""
        self.newest.append(WindowCall(seq, success, latency_s, cost, index))
        del self.newest[:-NEWEST]
        self.at_s = at_s = at_s if self.at_s is None else max(at_s, self.at_s)
        self.calls += 1
        self.failures += not success
        self.failures_in_row = 0 if success else self.failures_in_row + 1
        number = math.floor(at_s / BUCKET_S)
        if not self.buckets or self.buckets[-1].number < number:
            self.buckets.append(Bucket(number))
            del self.buckets[: self._first(MAX_WINDOW_H, at_s)]
        self.buckets[-1].calls += 1
        self.buckets[-1].failures += not success

    def failures_within(self, hours: float, *, now_s: float | None = None) -> int:
        """Return how many calls failed in the last ``hours`` (1 to :data:`MAX_WINDOW_H`) before ``now_s``."""
        return sum(bucket.failures for bucket in self.buckets[self._first(hours, now_s) :])

    def calls_within(self, hours: float, *, now_s: float | None = None) -> int:
        """Return how many calls ended in the last ``hours`` (1 to :data:`MAX_WINDOW_H`) before ``now_s``."""
        return sum(bucket.calls for bucket in self.buckets[self._first(hours, now_s) :])

    def over_newest(self) -> Summary:
        """Return the newest :data:`NEWEST` calls in numbers."""
        calls, failures = self.newest, sum(not call.success for call in self.newest)
        costs = [call.cost for call in calls if call.cost is not None]
        return Summary(
            len(calls),
            failures,
            None if not calls else (len(calls) - failures) / len(calls),
            _mean([call.latency_s for call in calls if call.latency_s is not None]),
            math.fsum(costs) if costs else None,
            _mean([call.index for call in calls if call.index is not None]),
        )

    def _first(self, hours: float, now_s: float | None) -> int:
        """Return the place of the first bucket that reaches into a window."""
        span_s = check_number("hours", hours, least=1, most=MAX_WINDOW_H) * 3600
        latest_s = 0.0 if self.at_s is None else self.at_s
        end_s = latest_s if now_s is None else max(now_s, latest_s)
        return bisect_left(self.buckets, math.floor((end_s - span_s) / BUCKET_S), key=lambda one: one.number)


def _mean(values: list[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
