"""What the experiments in a store say, pattern by pattern.

The measure that gives a verdict was named beforehand: the fall of the pressure five actions after the firing. Choosing
the most favourable of several measures afterwards would multiply the chances of a false verdict, so the other measures
and horizons are shown, and never decide. The probability of a false verdict holds for each pattern by itself: of twenty
patterns that do nothing, one may be expected to get a false verdict some day.
"""

from __future__ import annotations

import msgspec

from coherence.core.decisions import Policy
from coherence.policy.experiment import Judgement, judge, policy_of
from coherence.store.firings import Pairs, read_pairs
from coherence.store.rows import Measure
from coherence.store.store import Store

MEASURE: Measure = "pressure"
"""The measure that gives a verdict."""

HORIZON = 5
"""The horizon that gives a verdict, in actions."""


class Experiment(msgspec.Struct, frozen=True):
    """One pattern's pairs and what they say."""

    pairs: Pairs
    judgement: Judgement


def judge_pattern(store: Store, pattern: str, *, horizon: int = HORIZON, measure: Measure = MEASURE) -> Experiment:
    """Return what one pattern's pairs say by one measure; errors as in :func:`read_pairs` and :func:`judge`."""
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
