"""Randomised experiments on guidance: firings in pairs, and a verdict that stays valid however often one looks.

Patterns fire when things are bad, and after a bad moment things get better by themselves (regression to the mean), so
before and after prove nothing. Of two firings in a row of one pattern, one is therefore delivered and one is not, by a
coin that is fixed beforehand; what gets better by itself does so in both, and their difference is 0 on average unless
the delivery does something.

The measure that gives a verdict was named beforehand: the fall of the pressure five actions after the firing. Choosing
the most favourable of several measures afterwards would multiply the chances of a false verdict, so the other measures
and horizons are shown, and never decide. The probability of a false verdict holds for each pattern by itself: of twenty
patterns that do nothing, one may be expected to get a false verdict some day.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec
import numpy as np

from coherence.baseline.e_process import MAX_EVIDENCE, Floats, first_crossing, log_capital, lower_bound
from coherence.core.decisions import Policy
from coherence.store.firings import Pairs, read_pairs
from coherence.store.measures import Measure
from coherence.store.store import Store

EvidenceVerdict: TypeAlias = Literal["helps", "harms", "no difference", "no verdict yet"]
"""``helps``, ``harms``: the mean difference is not 0. ``no difference``: it is nearer to 0 than the margin. Whichever
was shown first; ``no verdict yet``: none of them, or too few pairs."""

ALPHA = 0.05
"""The probability of a false verdict of one pattern, however often one looks."""

PROOF = 2.0 / ALPHA
"""Capital that gives a verdict; two bets share the probability."""

LEAST_PAIRS = 30
"""Pairs without which there is no verdict."""

MARGIN = 0.05
"""An effect nearer to 0 than this does not matter."""


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """Effect of one pattern by its pairs; positive = helps."""

    pairs: int
    effect: float | None
    """Mean difference, treatment minus control; ``None`` without a pair."""
    low: float
    high: float
    """The confidence sequence: the mean lies between them at every look, with a probability of 1 - alpha."""
    e_helps: float
    """Evidence against "it does not help", 1 = none: the capital's highest so far. A verdict needs 2 / alpha."""
    e_harms: float
    """Evidence against "it does not harm"."""
    verdict: EvidenceVerdict
    decided_at: int | None = None
    """After how many pairs there was a verdict; ``None`` = there is none."""
    steady: bool = True
    """False if no single mean agrees with all pairs: the effect changed. ``low`` and ``high`` then enclose the gap."""


def judge(differences: Sequence[float] | Floats) -> Judgement:
    """Return what pairs say so far, with at most 5 % false verdicts however often this is asked.

    Two bets, each at half of 5 %: that the mean difference lies above 0, and below 0
    (:mod:`coherence.baseline.e_process`). The verdict is the first one that was shown as pair after pair came, and
    stays; so it does not depend on when one looks, as long as pairs are only ever appended. It is pronounced from
    30 pairs on; ``no difference`` means that the interval lies within -0.05 and 0.05.

    Parameters
    ----------
    differences : sequence of float
        Outcome of the treatment minus outcome of the control, pair after pair, in [-1, 1]; outcomes are such that
        higher is better.

    Examples
    --------
    >>> judge([0.4, 0.2] * 5).verdict
    'no verdict yet'
    >>> found = judge([0.4, 0.2] * 20)
    >>> found.verdict, found.decided_at, found.low > 0
    ('helps', 30, True)
    >>> judge([1.0, -1.0] * 100).verdict
    'no verdict yet'
    >>> judge([0.0] * 200).verdict
    'no difference'
    """
    numbers = np.asarray(differences, dtype=np.float64)
    verdict, decided_at = _first_verdict(numbers)
    low, high = lower_bound(numbers, PROOF), -lower_bound(-numbers, PROOF)
    return Judgement(
        pairs=numbers.size,
        effect=float(numbers.mean()) if numbers.size else None,
        low=min(low, high),
        high=max(low, high),
        e_helps=_evidence(numbers),
        e_harms=_evidence(-numbers),
        verdict=verdict,
        decided_at=decided_at,
        steady=low <= high,
    )


def policy_of(verdict: EvidenceVerdict) -> Policy | None:
    """Return what to do with a pattern: what helps is promoted; what harms, or makes no difference, is retired.

    A text that changes nothing still costs tokens and attention, so it is not kept for its own sake.

    Examples
    --------
    >>> [policy_of(verdict) for verdict in ("helps", "harms", "no difference", "no verdict yet")]
    ['promote', 'retire', 'retire', None]
    """
    if verdict == "no verdict yet":
        return None
    return "promote" if verdict == "helps" else "retire"


def _first_verdict(numbers: Floats) -> tuple[EvidenceVerdict, int | None]:
    """Return which of the three was shown first, and from when on it may be said."""
    if numbers.size < LEAST_PAIRS:
        return "no verdict yet", None
    shown: list[tuple[int, EvidenceVerdict]] = []
    if (at := first_crossing(numbers, 0.0, PROOF)) is not None:
        shown.append((at, "helps"))
    if (at := first_crossing(-numbers, 0.0, PROOF)) is not None:
        shown.append((at, "harms"))
    above, below = first_crossing(numbers, -MARGIN, PROOF), first_crossing(-numbers, -MARGIN, PROOF)
    if above is not None and below is not None:
        shown.append((max(above, below), "no difference"))
    if not shown:
        return "no verdict yet", None
    at, verdict = min(shown, key=lambda found: found[0])
    return verdict, max(at, LEAST_PAIRS)


def _evidence(numbers: Floats) -> float:
    highest = max(0.0, float(log_capital(numbers, 0.0).max(initial=0.0)))
    return float(np.exp(min(highest, np.log(MAX_EVIDENCE))))


MEASURE: Measure = "pressure"
"""The measure that gives a verdict."""

HORIZON = 5
"""The horizon that gives a verdict, in actions."""


class Experiment(msgspec.Struct, frozen=True):
    """One pattern's pairs and what they say."""

    pairs: Pairs
    judgement: Judgement


def judge_pattern(store: Store, pattern: str, *, horizon: int = HORIZON, measure: Measure = MEASURE) -> Experiment:
    """Return what one pattern's pairs say by one measure; errors as in :func:`read_pairs`."""
    pairs = read_pairs(store, pattern, horizon=horizon, measure=measure)
    return Experiment(pairs, judge(pairs.differences))


def policies(store: Store) -> dict[str, Policy]:
    """Return pattern -> what to do with it, of the patterns with a verdict, by name.

    Parameters
    ----------
    store : Store
        Where the firings are; sessions of the source ``test`` do not count.
    """
    found = {pattern: policy_of(judge_pattern(store, pattern).judgement.verdict) for pattern in store.patterns()}
    return {pattern: policy for pattern, policy in found.items() if policy is not None}
