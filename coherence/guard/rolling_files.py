"""What an agent's calls did lately: counters, the newest calls in order, and sums by quarter of an hour."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable

import msgspec

from coherence.core.validation import check_count, check_flag, check_number

BUCKET_S = 900
"""Width of a bucket, seconds."""

MAX_WINDOW_H = 168.0
"""The longest window in hours; older buckets are dropped, so that at most 673 are kept."""

NEWEST = 100
"""How many of the newest calls are kept in order."""

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
    """Sums of the calls of one quarter of an hour; its number is the floor of steady time / :data:`BUCKET_S`."""

    number: int
    calls: int = 0
    failures: int = 0
    latency_s: float = 0.0
    latencies: int = 0
    cost: float = 0.0
    costs: int = 0
    index: float = 0.0
    indexes: int = 0

    def add(self, call: WindowCall) -> None:
        """Add one call."""
        self.calls += 1
        self.failures += not call.success
        if call.latency_s is not None:
            self.latency_s += call.latency_s
            self.latencies += 1
        if call.cost is not None:
            self.cost += call.cost
            self.costs += 1
        if call.index is not None:
            self.index += call.index
            self.indexes += 1


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

    Order comes from sequence numbers: failures in a row and the newest calls are right although calls end in another
    order than they began. Time comes from a :class:`~coherence.guard.monotonic.SteadyClock`; a time before the latest
    one counts as the latest. Sums over hours are taken from buckets: a call counts for the length of the window and up
    to :data:`BUCKET_S` longer. Nothing is locked: one thread at a time.

    Examples
    --------
    >>> rolling = Rolling()
    >>> for seq, success in enumerate([True, False, True, False, False]):
    ...     _ = rolling.record(seq, 3600.0 * seq, success=success, latency_s=1.0 + seq)
    >>> rolling.calls, rolling.failures, rolling.failures_in_row, rolling.failures_within(24)
    (5, 3, 2, 3)
    >>> rolling.over_newest(2).success_rate, rolling.over_hours(2).latency_mean_s
    (0.0, 4.0)
    """

    calls: int = 0
    """Calls so far."""
    failures: int = 0
    """Failed calls so far."""
    failures_in_row: int = 0
    """Failed calls after the newest success by sequence number. Of a success that comes in late, the failures after it
    that have left :attr:`newest` are not known."""
    succeeded_at: int = -1
    """Sequence number of the newest success, -1 before the first."""
    at_s: float | None = None
    """Steady time of the latest call, seconds."""
    newest: list[WindowCall] = msgspec.field(default_factory=list)
    """Up to :data:`NEWEST` calls with the highest sequence numbers, in their order."""
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
    ) -> bool:
        """Count one call; return False, and change nothing, if one of :attr:`newest` has this number already.

        Parameters
        ----------
        seq : int
            Sequence number of the call, 0 or more. A call older than all of a full :attr:`newest` is
            counted, but not kept.
        at_s : float
            Steady time at its end, seconds.
        success : bool
            Whether it succeeded.
        latency_s, cost, index : float or None
            Duration in seconds and cost, each 0 to :data:`MAX_AMOUNT`; coherence index in [0, 1].

        Raises
        ------
        TypeError, ValueError
            For an argument of another type or outside its range; nothing is counted then.
        """
        call = WindowCall(
            check_count("seq", seq),
            check_flag("success", success),
            None if latency_s is None else check_number("latency_s", latency_s, least=0, most=MAX_AMOUNT),
            None if cost is None else check_number("cost", cost, least=0, most=MAX_AMOUNT),
            None if index is None else check_number("index", index, least=0, most=1),
        )
        at = _steady(at_s)
        if not self._order(call):
            return False
        self.at_s = at if self.at_s is None else max(at, self.at_s)
        self.calls += 1
        self.failures += not success
        self._bucket(self.at_s).add(call)
        return True

    def failures_within(self, hours: float, *, now_s: float | None = None) -> int:
        """Return how many calls failed in the last ``hours`` (1 to :data:`MAX_WINDOW_H`) before ``now_s``."""
        return sum(bucket.failures for bucket in self._since(hours, now_s))

    def calls_within(self, hours: float, *, now_s: float | None = None) -> int:
        """Return how many calls ended in the last ``hours`` (1 to :data:`MAX_WINDOW_H`) before ``now_s``."""
        return sum(bucket.calls for bucket in self._since(hours, now_s))

    def over_newest(self, count: int = NEWEST) -> Summary:
        """Return the newest ``count`` calls (1 to :data:`NEWEST`) by sequence number in numbers."""
        calls = self.newest[-check_count("count", count, least=1, most=NEWEST) :]
        latencies = [call.latency_s for call in calls if call.latency_s is not None]
        costs = [call.cost for call in calls if call.cost is not None]
        indexes = [call.index for call in calls if call.index is not None]
        return Summary(
            len(calls),
            failures := sum(not call.success for call in calls),
            _ratio(len(calls) - failures, len(calls)),
            _ratio(math.fsum(latencies), len(latencies)),
            math.fsum(costs) if costs else None,
            _ratio(math.fsum(indexes), len(indexes)),
        )

    def over_hours(self, hours: float, *, now_s: float | None = None) -> Summary:
        """Return the calls of the last ``hours`` (1 to :data:`MAX_WINDOW_H`) before ``now_s`` in numbers."""
        buckets = list(self._since(hours, now_s))
        calls, failures = sum(b.calls for b in buckets), sum(b.failures for b in buckets)
        return Summary(
            calls,
            failures,
            _ratio(calls - failures, calls),
            _ratio(math.fsum(b.latency_s for b in buckets), sum(b.latencies for b in buckets)),
            math.fsum(b.cost for b in buckets) if any(b.costs for b in buckets) else None,
            _ratio(math.fsum(b.index for b in buckets), sum(b.indexes for b in buckets)),
        )

    def _order(self, call: WindowCall) -> bool:
        """Put a call where its number belongs; return False if the number is there."""
        kept = self.newest
        at = len(kept) if not kept or call.seq > kept[-1].seq else bisect_left(kept, call.seq, key=lambda one: one.seq)
        if at < len(kept) and kept[at].seq == call.seq:
            return False
        kept.insert(at, call)
        del kept[:-NEWEST]
        if call.seq > self.succeeded_at:
            if call.success:
                self.succeeded_at = call.seq
                self.failures_in_row = sum(one.seq > call.seq for one in kept)
            else:
                self.failures_in_row += 1
        return True

    def _bucket(self, at_s: float) -> Bucket:
        number = math.floor(at_s / BUCKET_S)
        if not self.buckets or self.buckets[-1].number < number:
            self.buckets.append(Bucket(number))
            oldest = math.floor((at_s - MAX_WINDOW_H * 3600) / BUCKET_S)
            if self.buckets[0].number < oldest:
                del self.buckets[: bisect_left(self.buckets, oldest, key=lambda one: one.number)]
        return self.buckets[-1]

    def _since(self, hours: float, now_s: float | None) -> Iterable[Bucket]:
        span = check_number("hours", hours, least=1, most=MAX_WINDOW_H) * 3600
        if self.at_s is None:
            return ()
        now = self.at_s if now_s is None else max(_steady(now_s), self.at_s)
        first = math.floor((now - span) / BUCKET_S)
        return self.buckets[bisect_left(self.buckets, first, key=lambda one: one.number) :]


def _steady(at_s: float) -> float:
    return check_number("steady time", at_s, least=-1e15, most=1e15)


def _ratio(total: float, count: int) -> float | None:
    return total / count if count else None
