"""Two sessions side by side: differences of their rates, costs and findings."""

from __future__ import annotations

from collections.abc import Iterator

from coherence.store.tally import Tally
from coherence.views.shapes import RateView


def rates_of(one: Tally, other: Tally) -> tuple[RateView, ...]:
    """Return the amounts of two sessions, each with the other's minus the one's."""
    pairs = zip(_amounts(one), _amounts(other), strict=True)
    return tuple(
        RateView(name, unit, first, second, None if first is None or second is None else second - first)
        for (name, unit, first), (_, _, second) in pairs
    )


def _amounts(tally: Tally) -> Iterator[tuple[str, str, float | None]]:
    steps, ticks = tally.steps, tally.ticks
    yield "steps", "", float(steps)
    yield "mean index", "", tally.index_sum / tally.indices if tally.indices else None
    yield "lowest index", "", tally.lowest
    for kind in ("guide", "warn", "block"):
        yield f"{kind} rate", "of ticks", tally.kinds.get(kind, 0) / ticks if ticks else None
    yield "error rate", "of calls", tally.errors / tally.calls if tally.calls else None
    yield "tokens", "", float(tally.tokens)
    yield "tokens a step", "", tally.tokens / steps if steps else None
    yield "cost", "USD", tally.cost_usd
    yield "cost a step", "USD", tally.cost_usd / steps if steps and tally.cost_usd is not None else None


def findings_of(one: Tally, other: Tally) -> tuple[tuple[str, int, int], ...]:
    """Return (rule, times that it fired in the one, in the other), the largest difference first."""
    found = [(rule, one.rules.get(rule, 0), other.rules.get(rule, 0)) for rule in {*one.rules, *other.rules}]
    return tuple(sorted(found, key=lambda each: (-abs(each[1] - each[2]), each[0])))
