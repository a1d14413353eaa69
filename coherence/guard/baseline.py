"""Baseline of a patch: the newest calls before it, without the burst of failures that called for it."""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

from coherence.core.validation import check_count

WINDOW = 500
"""Calls that are kept. A loss of 15 points from 0.9 is found after 37 patched calls (one in ten: 113 or more); with a
baseline of 200 calls after 44 (181)."""

APART = 4
"""A burst is left out of a baseline if so many times its calls lie before it; else it may be all there is."""


SLOWER = 1.1
"""Latency and cost up to so many times the cut do not count as beyond it: nobody would roll back for that."""

LOWER = 0.02
"""An index so little below the cut does not count either."""

METRICS = ("success", "latency", "cost", "index")
"""Measures of a call that are judged, in the order of their importance."""


class CallOutcome(msgspec.Struct, frozen=True):
    """Outcome of one call; ``None`` = not known. NaN, infinite and negative numbers count as not known."""

    success: bool
    latency_s: float | None = None
    """In seconds, 0 or more."""
    cost: float | None = None
    """In any unit, 0 or more."""
    index: float | None = None
    """Coherence of the run, in [0, 1]; higher is better."""


class Spread(msgspec.Struct, frozen=True):
    """Spread of the values of one metric."""

    known: int
    """Values, 1 or more."""
    cut: float
    """The value between the better two thirds and the rest: itself one of the values."""
    within: int
    """Its rank among the values from the good end, in [1, known]."""


class Baseline(msgspec.Struct, frozen=True):
    """A frozen summary of calls. It may be empty.

    Examples
    --------
    >>> calls = Recent()
    >>> for second in (1.0, 2.0, 4.0):
    ...     calls.observe(CallOutcome(True, latency_s=second))
    >>> baseline = calls.freeze()
    >>> baseline.calls, baseline.successes, baseline.latency.cut, baseline.cost
    (3, 3, 4.0, None)
    """

    calls: int = 0
    successes: int = 0
    latency: Spread | None = None
    """In seconds."""
    cost: Spread | None = None
    index: Spread | None = None

    def limit(self, metric: str) -> float | None:
        """Return the value up to which (the index: down to which) a call is no worse, ``None`` = not known before."""
        spread: Spread | None = getattr(self, metric)
        if spread is None:
            return None
        return spread.cut - LOWER if metric == "index" else SLOWER * spread.cut

    def beyond(self, call: CallOutcome) -> Iterator[tuple[str, bool]]:
        """Yield whether a call is worse than the cut, by metric; those that are known both before and now.

        Examples
        --------
        >>> before = Baseline(3, 3, latency=Spread(3, 2.0, 2))
        >>> list(before.beyond(CallOutcome(True, latency_s=2.1))), list(before.beyond(CallOutcome(False, 2.3, 9.0)))
        ([('success', False), ('latency', False)], [('success', True), ('latency', True)])
        """
        yield "success", not call.success
        if self.latency is not None and (value := usable(call.latency_s)) is not None:
            yield "latency", value > SLOWER * self.latency.cut
        if self.cost is not None and (value := usable(call.cost)) is not None:
            yield "cost", value > SLOWER * self.cost.cut
        if self.index is not None and (value := usable(call.index)) is not None:
            yield "index", value < self.index.cut - LOWER


class Recent(msgspec.Struct):
    """The newest calls of one configuration. A call costs the same however many there were.

    Examples
    --------
    A burst of two failures is left out, with the success before it:

    >>> calls = Recent()
    >>> for success in [True, True, False, True] * 5 + [False, False]:
    ...     calls.observe(CallOutcome(success))
    >>> whole, without = calls.freeze(), calls.freeze(failures=2)
    >>> (whole.successes, whole.calls), (without.successes, without.calls)
    ((15, 22), (14, 19))
    """

    window: int = WINDOW
    """Calls that are kept, 1 or more."""
    at: int = 0
    """Place of the next call once the window is full."""
    newest: list[CallOutcome] = msgspec.field(default_factory=list)

    def __post_init__(self) -> None:
        check_count("window", self.window, least=1)

    def observe(self, outcome: CallOutcome) -> None:
        """Take in one call; the oldest one goes where the window is full."""
        if len(self.newest) < self.window:
            self.newest.append(outcome)
            return
        self.newest[self.at] = outcome
        self.at = (self.at + 1) % self.window

    def freeze(self, failures: int = 0) -> Baseline:
        """Return a summary of the calls before the burst in which the newest ``failures`` failures lie.

        The burst reaches back to the last success before those failures, that success included. Seen backwards this
        is a time at which one stops because of what lies behind it alone, so the calls before are an unselected
        sample, as long as calls are independent; a cut at the place that divides good from bad best would flatter
        the baseline. It costs one good call.

        Where fewer than :data:`APART` times as many calls lie before it, all calls count, as for an agent whose fifth
        failure ever calls for its first patch: what lies before its first failure would be successes only. A burst
        that counts makes the baseline worse than it was, which spares patches; calls made meanwhile correct it.

        Parameters
        ----------
        failures : int
            0 or more: as many as triggered the patch. 0 = there is no burst. If there were fewer, the burst reaches
            back to the first of them.
        """
        check_count("failures", failures)
        calls = self.newest[self.at :] + self.newest[: self.at]
        begin = _burst(calls, failures)
        return summary(calls if begin < APART * (len(calls) - begin) else calls[:begin])


def _burst(calls: list[CallOutcome], failures: int) -> int:
    """Return where the burst begins."""
    begin = len(calls)
    found = 0
    for place in range(len(calls) - 1, -1, -1) if failures else ():
        if not calls[place].success:
            found += 1
            begin = place
        elif found >= failures:
            return place
    return begin


def summary(calls: list[CallOutcome]) -> Baseline:
    """Return the summary of some calls, in any order."""
    latencies = [value for call in calls if (value := usable(call.latency_s)) is not None]
    costs = [value for call in calls if (value := usable(call.cost)) is not None]
    indexes = [value for call in calls if (value := usable(call.index)) is not None]
    return Baseline(
        calls=len(calls),
        successes=sum(call.success for call in calls),
        latency=_spread(latencies),
        cost=_spread(costs),
        index=_spread(indexes, rising=False),
    )


def usable(value: float | None) -> float | None:
    """Return a finite number that is 0 or more, otherwise ``None``."""
    return value if value is not None and 0.0 <= value < math.inf else None


def _spread(values: list[float], *, rising: bool = True) -> Spread | None:
    if not values:
        return None
    rank = -(-2 * (len(values) + 1) // 3)  # rounded up: the share beyond it is a third on average, or a bit less
    rank = min(rank, len(values))
    cut = sorted(values, reverse=not rising)[rank - 1]
    return Spread(len(values), float(cut), rank)
