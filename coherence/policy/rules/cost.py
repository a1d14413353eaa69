"""A rule about spending that gets out of hand, told before it has."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log

from coherence.core.config import Budget
from coherence.core.decisions import Appraisal, Finding
from coherence.core.readings import Reading
from coherence.core.validation import check_count, check_number, shown_amount
from coherence.policy.rules.finding_builders import found, quiet, score_of
from coherence.policy.rules.forecast import LEAST_RISE, WINDOW, forecast
from coherence.state.data import Spending
from coherence.state.reducer import AgentState


class CostSpiral:
    """Each model call takes more than the one before by a factor, and soon one will take a multiple of the usual.

    Tokens and money of the last 30 model calls are looked at (see
    :func:`~coherence.policy.rules.forecast.forecast`). Active if, ``ahead`` calls from now, the lower end of the
    90 % interval is ``times`` the usual level; growth by the same amount each call is no spiral. It asks to guide, and
    to warn once a call takes ``times`` the usual. With a budget it is also active if ``left`` calls use up what is
    left, even if each is as small as the smallest of the last five; that asks to guide, the budget itself does the
    rest. The score is 0.5 where either is reached. ``None`` before the first model call.

    Parameters
    ----------
    budget : Budget, optional
        What may be used up.
    ahead : int
        Calls to look ahead, 1 or more; more is earlier and less sure.
    times : float
        Above 1; lower is earlier and less sure.
    left : int
        Calls before the end of a budget, 1 or more.

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

    def __init__(self, budget: Budget | None = None, *, ahead: int = 5, times: float = 4.0, left: int = 3) -> None:
        self.budget = budget
        self.ahead = check_count("ahead", ahead, least=1, most=100)
        self.times = check_number("times", times, least=1.01, most=1e6)
        self.left = check_count("left", left, least=1, most=1000)
        self._quiet = quiet(self.name)

    def __call__(self, state: AgentState, reading: Reading | None, appraisal: Appraisal) -> Finding | None:
        """Judge the last model calls."""
        facts = state.facts
        spending = facts.spending
        if not spending:
            return None
        seen = []
        newest = spending[-WINDOW:]
        if _may_rise(newest[0].tokens, newest[-1].tokens):
            seen.append(self._rising([float(call.tokens) for call in spending if call.tokens], "tokens", newest))
        if _may_rise(newest[0].cost_usd or 0.0, newest[-1].cost_usd or 0.0):
            seen.append(self._rising([call.cost_usd for call in spending if call.cost_usd], "US dollars", newest))
        budget = self.budget
        if budget is not None and budget.tokens:
            left = budget.tokens - (facts.tokens_in or 0) - (facts.tokens_out or 0)
            seen.append(self._ending([float(call.tokens) for call in newest], budget.tokens, left, "tokens", newest))
        if budget is not None and budget.cost_usd:
            dollars = [call.cost_usd or 0.0 for call in newest]
            left_usd = budget.cost_usd - (facts.cost_usd or 0.0)
            seen.append(self._ending(dollars, budget.cost_usd, left_usd, "US dollars", newest))
        return max((one for one in seen if one is not None), key=lambda one: one.score, default=self._quiet)

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

    def _ending(
        self, speeds: list[float], limit: float, left: float, unit: str, newest: Sequence[Spending]
    ) -> Finding | None:
        slowest = min(speeds)
        if len(speeds) < WINDOW or slowest <= 0.0 or not 0.0 < left <= 2.0 * self.left * slowest:
            return None
        late, soon = (ceil(round(left / speed, 6)) for speed in (slowest, max(speeds)))
        calls = f"{soon} to {late} calls" if soon < late else f"{late} call{'s' * (late > 1)}"
        return found(
            self.name,
            score_of(self.left, late),
            "guide",
            f"{shown_amount(left)} of {shown_amount(limit)} {unit} are left; "
            f"{calls} like the last {WINDOW} use them up",
            "finish what matters most",
            [call.seq for call in newest],
        )


def _may_rise(first: float, last: float) -> bool:
    """Tell quickly whether a forecast is worth it: most of the time it is not."""
    return last > 0.0 and last >= LEAST_RISE * first


def _roughly(value: float) -> str:
    return shown_amount(float(f"{value:.2g}"))
