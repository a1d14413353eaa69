r"""A confirmed configuration goes on being watched, for what gets worse later.

A chart in whole numbers for each metric: ``up`` for a call beyond the cut (a failure), ``down`` for one within, never
below 0, an alarm at ``limit``. The steps have the ratio of the log likelihoods of the rate that is expected and of one
halfway to 1 (success halved), so the sum is the evidence for a change at the best moment. The mean number of calls to a
false alarm is exact for a given rate: the chart is a Markov chain with ``limit`` states, whose hitting times solve a
linear system.

After an alarm the sum stays at ``limit`` at most, and what is bad is reported again only once the sum has been back at
0, or as a step further: calls since the alarm have a chart of their own, for the rate that has been reached.

References
----------
Reynolds, Stoumbos (1999), A CUSUM chart for monitoring a proportion when inspecting continuously, Journal of Quality
Technology 31(1): the Bernoulli CUSUM and its chain. Page (1954), Continuous inspection schemes, Biometrika 41.
"""

from __future__ import annotations

import math
from fractions import Fraction

import msgspec
import numpy as np

from coherence.guard.baseline import METRICS, Baseline, CallOutcome, Spread

CALLS_TO_FALSE_ALARM = 10_000
"""On average at least, all metrics together, for independent calls."""

SUCCESS_WEIGHT = 4.0
"""Of false alarms; latency, cost and index have 1 each, if the baseline knows them."""

CAUTION = 0.5
"""Standard deviations by which the rate that is expected lies above the one that was learned."""

ENOUGH = 500
"""Calls from which a rate is learned, as long as they come without an alarm; then it stays, or a slow decay would
become the habit."""

HIGHEST_RATE = 0.9
"""Share of calls beyond the cut from which there is nothing to be lost that one could see."""

FINEST = 4
"""The smaller step is at most this: finer ones find a change no sooner."""

RECOVERY = 3
"""After an alarm the level may rise to so many times the limit: a lucky row of calls is no recovery."""

MAX_STATES = 512
"""Of a chart; only one for a rate above 0.8 comes near."""

_WORDS = {"success": "failed", "latency": "were slower than {:.3g} s", "cost": "cost more than {:.3g}"}
_INDEX = "had an index below {:.3g}"


class Alert(msgspec.Struct, frozen=True):
    """Something has got worse."""

    metric: str
    """``success``, ``latency``, ``cost`` or ``index``."""
    calls: int
    """Calls ago, this one included, when it most likely began."""
    beyond: int
    """Those of them that were beyond the cut: failures, or calls in what was the worst third."""
    expected: float
    """The share of calls beyond it that was expected at most."""
    cut: float | None = None
    """The cut; None for success."""

    @property
    def why(self) -> str:
        """Sentence that names what has got worse.

        Examples
        --------
        >>> Alert("success", 9, 7, 0.12).why
        'success got worse: 7 of the last 9 calls failed, 12% were expected to'
        >>> Alert("latency", 9, 9, 1 / 3, 4.56789).why
        'latency got worse: 9 of the last 9 calls were slower than 4.57 s, 33% were expected to'
        """
        what = _WORDS.get(self.metric, _INDEX).format(self.cut)
        last = "the last call" if self.calls == 1 else f"{self.beyond} of the last {self.calls} calls"
        return f"{self.metric} got worse: {last} {what}, {100.0 * self.expected:.2g}% were expected to"


class Chart(msgspec.Struct):
    """One metric's chart. Make one with :meth:`of`."""

    calls_to_alarm: float
    """To a false one, on average at least."""
    beyond: int
    calls: int
    """Calls from which the rate is learned."""
    up: int = 0
    down: int = 0
    limit: int = 0
    """0 = off."""
    expected: float = 0.0
    redesign: int = 0
    """Once the rate is learned from so many calls, the steps are worked out anew."""
    level: int = 0
    since: int = 0
    since_beyond: int = 0
    """Calls since the level was 0 the last time."""
    further: Chart | None = None
    """After an alarm, until the level is 0 again: for what gets worse still."""

    @classmethod
    def of(cls, beyond: int, calls: int, calls_to_alarm: float) -> Chart:
        """Return a chart for a rate of which ``beyond`` of ``calls`` have been seen.

        Examples
        --------
        A failure counts 7, a success -3 and the alarm is at 33. For a tenth of failures it is rarer than asked:

        >>> chart = Chart.of(50, 500, 10_000)
        >>> chart.up, chart.down, chart.limit, round(calls_to_alarm(0.1, chart.up, chart.down, chart.limit))
        (7, 3, 33, 18406)
        """
        chart = cls(calls_to_alarm, beyond, calls)
        chart._design()
        return chart

    def observe(self, is_beyond: bool) -> tuple[int, int, float] | None:
        """Take in one call; return the calls since a change, how many were beyond, and the share that was expected."""
        self.since += 1
        self.since_beyond += is_beyond
        if self.limit:
            self.level = self.level + self.up if is_beyond else max(self.level - self.down, 0)
            if self.further is not None:
                self.level = min(self.level, RECOVERY * self.limit)
                found = self.further.observe(is_beyond)
                if self.level == 0:
                    self.further = None
                    self._restart()
                return found
            if self.level >= self.limit:
                self.level, self.further = self.limit, Chart.of(self.since_beyond, self.since, self.calls_to_alarm)
                return self.since, self.since_beyond, self.expected
        # not above 0: a decline that has begun would be learned as usual
        if self.level == 0:
            self._learn()
        return None

    def _learn(self) -> None:
        if self.calls < ENOUGH:
            self.calls += self.since
            self.beyond += self.since_beyond
            if self.calls >= self.redesign:
                self._design()
        self._restart()

    def _restart(self) -> None:
        self.level = self.since = self.since_beyond = 0

    def _design(self) -> None:
        """Work out steps and limit for a rate a little above the learned one: too low a one would alarm often."""
        self.redesign = min(2 * max(self.calls, 5), ENOUGH)
        size = self.calls + 1.0
        mean = (self.beyond + 1.0) / (size + 1.0)
        self.expected = mean + CAUTION * math.sqrt(mean * (1.0 - mean) / (size + 2.0))
        self.up, self.down = steps(min(self.expected, HIGHEST_RATE))
        if self.expected > HIGHEST_RATE:
            self.limit = 0
        else:
            self.limit = limit_for(self.expected, self.up, self.down, self.calls_to_alarm)


class DecayWatch(msgspec.Struct):
    """Watches a confirmed configuration. A call costs the same however many there were; the state is plain data.

    Make one with :meth:`begin`, from the patched calls that confirmed it (or any calls of the configuration).

    Examples
    --------
    >>> watch = DecayWatch.begin(Baseline(calls=400, successes=360))
    >>> for call in range(20):
    ...     alerts = watch.observe(CallOutcome(success=call % 2 == 0))
    ...     if alerts:
    ...         break
    >>> call + 1, alerts[0].metric, alerts[0].calls, alerts[0].beyond
    (16, 'success', 15, 8)
    """

    baseline: Baseline
    success: Chart
    latency: Chart | None = None
    cost: Chart | None = None
    index: Chart | None = None

    @classmethod
    def begin(cls, baseline: Baseline) -> DecayWatch:
        """Return a watch."""
        spreads = (baseline.latency, baseline.cost, baseline.index)
        share = CALLS_TO_FALSE_ALARM * (SUCCESS_WEIGHT + sum(spread is not None for spread in spreads))
        success = Chart.of(baseline.calls - baseline.successes, baseline.calls, share / SUCCESS_WEIGHT)
        return cls(baseline, success, *(_chart(spread, share) for spread in spreads))

    def observe(self, outcome: CallOutcome) -> tuple[Alert, ...]:
        """Take in one call; return what has got worse, once, and again if it gets worse still or after a recovery."""
        found: list[Alert] = []
        for metric, is_beyond in self.baseline.beyond(outcome):
            chart: Chart = getattr(self, metric)
            if seen := chart.observe(is_beyond):
                found.append(Alert(metric, *seen, None if metric == "success" else self.baseline.limit(metric)))
        return tuple(found)

    @property
    def charts(self) -> dict[str, Chart]:
        """Charts by metric, of those that the baseline knows."""
        found = {metric: getattr(self, metric) for metric in METRICS}
        return {metric: chart for metric, chart in found.items() if chart is not None}

    @property
    def worse(self) -> tuple[str, ...]:
        """The metrics that have got worse and have not recovered."""
        return tuple(metric for metric, chart in self.charts.items() if chart.further is not None)


def _chart(spread: Spread | None, calls_to_alarm: float) -> Chart | None:
    return None if spread is None else Chart.of(spread.known - spread.within, spread.known, calls_to_alarm)


def steps(rate: float) -> tuple[int, int]:
    """Return what a call beyond the cut adds and one within takes away, in whole numbers.

    Their ratio is that of the log likelihoods of ``rate`` and ``(1 + rate) / 2``, in (0, 0.9].

    Examples
    --------
    >>> steps(0.1), steps(1 / 3), steps(0.9)
    ((5, 2), (1, 1), (1, 13))
    """
    ratio = math.log((1.0 + rate) / (2.0 * rate)) / math.log(2.0)
    more, less = max(ratio, 1.0 / ratio), FINEST if 1.0 / FINEST < ratio < FINEST else 1
    found = Fraction(more).limit_denominator(less)
    return (found.numerator, found.denominator) if ratio >= 1.0 else (found.denominator, found.numerator)


def calls_to_alarm(rate: float, up: int, down: int, limit: int) -> float:
    """Return the mean number of calls until a chart that begins at 0 alarms, all calls being beyond at ``rate``.

    Examples
    --------
    Two failures in a row of every second call take 6 calls on average:

    >>> round(calls_to_alarm(0.5, 1, 1, 1), 6), round(calls_to_alarm(0.5, 1, 2, 2), 6)
    (2.0, 6.0)
    """
    states = np.arange(limit)
    chain = np.eye(limit)
    np.add.at(chain, (states, np.maximum(states - down, 0)), rate - 1.0)
    rising = states[states + up < limit]
    np.add.at(chain, (rising, rising + up), -rate)
    return float(np.linalg.solve(chain, np.ones(limit))[0])


def limit_for(rate: float, up: int, down: int, calls: float) -> int:
    """Return the lowest limit with a mean of at least ``calls`` to an alarm, or ``MAX_STATES``."""
    low, high = 0, up
    # doubled before it is halved: each try solves a system of so many equations
    while high < MAX_STATES and calls_to_alarm(rate, up, down, high) < calls:
        low, high = high, min(2 * high, MAX_STATES)
    while high - low > 1:
        middle = (low + high) // 2
        if calls_to_alarm(rate, up, down, middle) >= calls:
            high = middle
        else:
            low = middle
    return high
