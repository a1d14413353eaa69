"""Experiments on guidance, as the faces show them."""

from __future__ import annotations

from coherence.policy.experiment import LEAST_PAIRS, judge_pattern, policy_of
from coherence.store.store import Store
from coherence.views.shapes import ExperimentView


def experiment_views(store: Store) -> tuple[ExperimentView, ...]:
    """Return the effect of each pattern's guidance."""
    found = []
    for pattern in store.patterns():
        one = judge_pattern(store, pattern)
        pairs, judged = one.pairs, one.judgement
        found.append(
            ExperimentView(
                pattern=pattern,
                firings=pairs.firings,
                treatments=pairs.treatments,
                delivered=pairs.delivered,
                pairs=judged.pairs,
                effect=judged.effect,
                low=judged.low,
                high=judged.high,
                verdict=judged.verdict,
                decided_at=judged.decided_at,
                steady=judged.steady,
                policy=policy_of(judged.verdict),
                needed=LEAST_PAIRS,
            )
        )
    return tuple(found)
