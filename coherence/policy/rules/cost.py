"""Rules about resources: exponential growth of cost, and the room left in the context window."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import ceil, exp, log, sqrt
from typing import NamedTuple

import numpy as np

from coherence.core.decisions import Appraisal, Finding
from coherence.core.readings import Reading
from coherence.core.validation import shown_amount
from coherence.policy.rules.finding_builders import found, quiet, score_of
from coherence.state.data import Spending
from coherence.state.reducer import AgentState

WINDOW = 5
"""Newest values to which the trend is fitted."""

LEAST_BEFORE = 5
"""Values before these that are needed to know what is usual."""

T_95 = 2.353
"""Student's t for ``WINDOW - 2`` degrees of freedom: its 95 % quantile."""

LEAST_RISE = 1.6
"""Times by which the window must rise from end to end: what grows more slowly is no spiral, and costs no fit."""

STEADINESS = 0.6
"""Least share of the growth (of the logarithm) in the window's first half that its second half must show. Exponential
growth keeps its rate (share 1); linear growth from near zero, or after one leap, loses it."""

MAX_EXPONENT = 700.0
"""Exponents above it are cut, so that a float can hold the result."""


class Forecast(NamedTuple):
    """Expected value of a series some steps ahead."""

    usual: float
    """Expectation without the newest growth: the highest value before, or where their straight line leads."""
    lower: float
    """Lower end of the 90 % prediction interval: 5 % of new values would lie below."""
    upper: float
    growth: float
    """Factor a step."""


def forecast(values: Sequence[float], ahead: int) -> Forecast | None:
    """Return the exponential forecast of a series, ``None`` where it does not grow like that.

    ``log y = a + b t`` is fitted by least squares to the newest five values. The interval is that of a new observation,
    ``s t sqrt(1 + 1/n + (t0 - mean t)^2 / sum (t - mean t)^2)``. A series grows so if the newest value is higher than
    all before the window, the window rises by more than any five values before it did, and the rise does not slow
    down. What is usual comes from the values before the window, and follows their straight line (slope of Theil and
    Sen), because a context grows evenly by nature.

    Parameters
    ----------
    values : sequence of float
        Above 0, oldest first.
    ahead : int
        Steps ahead of the newest value.

    Examples
    --------
    >>> forecast([1000.0 + 200.0 * step for step in range(20)], 5) is None
    True
    >>> found = forecast([1000.0] * 8 + [1500.0, 2250.0, 3375.0, 5062.5], 5)
    >>> round(found.growth, 3), found.usual, round(found.lower)  # 1000 * 1.5 ** 9
    (1.5, 1000.0, 38443)

    References
    ----------
    N. R. Draper, H. Smith: Applied Regression Analysis, 3rd ed., Wiley 1998, ch. 3 (prediction of a new observation).
    P. K. Sen: Estimates of the regression coefficient based on Kendall's tau, JASA 63 (1968), 1379-1389.
    """
    if len(values) < WINDOW + LEAST_BEFORE or values[-1] < LEAST_RISE * values[-WINDOW]:
        return None
    before = values[:-WINDOW]
    if values[-1] <= max(before) or values[-1] / values[-WINDOW] <= _steepest(before):
        return None
    logs = [log(value) for value in values[-WINDOW:]]
    half = WINDOW // 2
    rises = [two - one for one, two in pairwise(logs)]
    if min(rises[1:]) <= 0.0 or sum(rises[half:]) < STEADINESS * sum(rises[:half]):
        return None
    mean, mean_t = sum(logs) / WINDOW, (WINDOW - 1) / 2.0
    times = [at - mean_t for at in range(WINDOW)]
    spread = sum(time * time for time in times)
    slope = sum(time * value for time, value in zip(times, logs, strict=True)) / spread
    rest = sum((value - mean - slope * time) ** 2 for time, value in zip(times, logs, strict=True))
    distance = mean_t + ahead
    middle = mean + slope * distance
    margin = T_95 * sqrt(rest / (WINDOW - 2) * (1.0 + 1.0 / WINDOW + distance * distance / spread))
    return Forecast(
        usual=usual_level(before, WINDOW + ahead),
        lower=exp(min(middle - margin, MAX_EXPONENT)),
        upper=exp(min(middle + margin, MAX_EXPONENT)),
        growth=exp(slope),
    )


def _steepest(values: Sequence[float]) -> float:
    """Return the largest factor from end to end of a window's length, 1 if there is no such length."""
    return max((late / early for early, late in zip(values, values[WINDOW - 1 :], strict=False)), default=1.0)


def usual_level(values: Sequence[float], ahead: int) -> float:
    """Return the highest of some values, or where their rising straight line leads so many steps ahead, if higher.

    Examples
    --------
    >>> usual_level([5.0, 5.0, 6.0], 10), usual_level([1.0, 2.0, 3.0], 10)
    (10.5, 13.0)
    """
    slopes = [
        (values[late] - values[early]) / (late - early) for late in range(1, len(values)) for early in range(late)
    ]
    line = np.median(values) + np.median(slopes) * ((len(values) - 1) / 2.0 + ahead) if slopes else 0.0
    return max(max(values), float(line))


class CostSpiral:
    """Each model call takes more than the one before by a factor, and soon one will take a multiple of the usual.

    Tokens and money of the last 30 model calls are looked at (see
    :func:`~coherence.policy.rules.cost.forecast`). Active if, five calls from now, the lower end of the 90 % interval
    is four times the usual level; growth by the same amount each call is no spiral. It asks to guide, and to warn once
    a call takes four times the usual. The score is 0.5 where that level is reached. ``None`` before the
    first model call.

    Examples
    --------
    >>> from coherence.core.events import Usage
    >>> from coherence.core.decisions import Mode
    >>> state, calm = AgentState(), Appraisal(seq=0, pressure=0.0, mode=Mode.OBSERVE)
    >>> for seq, tokens in enumerate([4_000] * 8 + [6_000, 9_000, 13_500], 1):
    ...     state.fold(seq, 0.0, Usage(input_tokens=tokens))
    >>> CostSpiral()(state, None, calm).active
    True
    """

    name = "cost_spiral"
    ahead, times = 5, 4.0
    """Calls to look ahead, and multiple of the usual level from which it is active."""

    def __call__(self, state: AgentState, reading: Reading | None, appraisal: Appraisal) -> Finding | None:
        """Judge the last model calls."""
        spending = state.facts.spending
        if not spending:
            return None
        newest = spending[-WINDOW:]
        seen: list[Finding | None] = []
        # A call without a price has no logarithm.
        if newest[-1].tokens > 0:
            seen = [self._rising([float(call.tokens) for call in spending if call.tokens], "tokens", newest)]
        if (newest[-1].cost_usd or 0.0) > 0.0:
            seen.append(self._rising([call.cost_usd for call in spending if call.cost_usd], "US dollars", newest))
        return max((one for one in seen if one is not None), key=lambda one: one.score, default=quiet(self.name))

    def _rising(self, values: list[float], unit: str, newest: Sequence[Spending]) -> Finding | None:
        expected = forecast(values, self.ahead)
        if expected is None or expected.lower <= expected.usual:
            return None
        times = min(expected.lower / expected.usual, 1e300)
        return found(
            self.name,
            score_of(log(times), log(self.times)),
            "warn" if values[-1] >= self.times * expected.usual else "guide",
            f"the {unit} of a model call grew {expected.growth:.2g}-fold each call, from "
            f"{shown_amount(values[-WINDOW])} to {shown_amount(values[-1])} within {WINDOW} calls; "
            f"{self.ahead} calls on, {_roughly(expected.lower)} to {_roughly(expected.upper)} are expected "
            f"where {_roughly(expected.usual)} would be usual",
            "find out what makes each prompt longer: repeated outputs, retries that carry all before them",
            [call.seq for call in newest],
        )


def _roughly(value: float) -> str:
    return shown_amount(float(f"{value:.2g}"))


NEAR_CALLS = 10
"""Model calls from whose growth the rule forecasts a full context."""


class ContextExhaustionRule:
    """The context window is nearly full.

    The score is the share of ``config.context_tokens`` that the newest model call took, input and output, at most 1.
    It is active from 0.8 and asks to warn from 0.95. ``None`` where the size of the window is not set, or nothing was
    counted since the last compaction.

    Examples
    --------
    >>> from coherence.core.config import MonitorConfig
    >>> from coherence.core.events import Usage
    >>> from coherence.core.decisions import Mode
    >>> state, calm = AgentState(MonitorConfig(context_tokens=100_000)), Appraisal(seq=0, pressure=0, mode=Mode.OBSERVE)
    >>> for seq, tokens in enumerate((76_000, 80_000, 84_000), 1):
    ...     state.fold(seq, 0.0, Usage(input_tokens=tokens))
    >>> print(ContextExhaustionRule()(state, None, calm))
    context_exhaustion: 84,000 of 100,000 tokens of context are used (84%); at 4,000 more a call it is full in 4 calls
    """

    name = "context_exhaustion"
    guide, warn = 0.8, 0.95
    """Shares of the window from which it is active, and asks to warn."""

    def __call__(self, state: AgentState, reading: Reading | None, appraisal: Appraisal) -> Finding | None:
        """Judge the newest model call."""
        used, size = state.facts.context_used, state.config.context_tokens
        if used is None or size is None:
            return None
        share = used / size
        if share < self.guide / 2.0:
            return Finding(rule=self.name, severity="guide", score=share, threshold=self.guide)
        spending = state.facts.spending
        return found(
            self.name,
            min(share, 1.0),
            "warn" if share >= self.warn else "guide",
            f"{used:,} of {size:,} tokens of context are used ({share:.0%}){_full_in(spending, size - used)}",
            "note down what matters, then compact the context or hand over",
            [call.seq for call in spending[-1:]],
            self.guide,
        )


def _full_in(spending: list[Spending], left: int) -> str:
    """Say when the context is full, from the median growth since it last shrank."""
    recent = [call.tokens for call in spending[-NEAR_CALLS:]]
    rises: list[float] = []
    for one, two in pairwise(recent):
        rises = [*rises, two - one] if two >= one else []
    growth = float(np.median(rises)) if rises else 0.0
    if left <= 0 or growth < 1.0:
        return ""
    calls = ceil(left / growth)
    return f"; at {growth:,.0f} more a call it is full in {calls:,} call{'s' * (calls > 1)}"
