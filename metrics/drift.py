"""Drift: how far recent text and behaviour are from the session's intent."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import log2
from typing import ClassVar

from coherence.core.readings import Kind, MetricInput
from coherence.state.reducer import AgentState

RECENT = 5
RECENT_RESULTS = 10
BEHAVIOUR = 0.3
"""Share of the behaviour in the drift."""


@dataclass(frozen=True)
class Drift:
    r"""How far recent text and behaviour are from the session's intent.

    ``0.7 text + 0.3 behaviour``. *Text* is one minus the mean, over the last five messages, of the highest cosine with
    a goal. *Behaviour* is the Jensen-Shannon divergence between the tools of the last ten results and those of the
    whole session, 0 until there are twenty.

    Range [0, 1], inverted: 0 = on course. ``None`` without goals or context.

    Parameters
    ----------
    state : AgentState
        The agent.

    Notes
    -----
    The level is mostly topic; only its change against the agent's own baseline means something.

    References
    ----------
    J. Lin, "Divergence measures based on the Shannon entropy", 1991.
    """

    state: AgentState
    name = "drift"
    inverted = True
    in_place = True
    reads: ClassVar[tuple[Kind, ...]] = ("goals", "context")

    def compute(self, data: MetricInput) -> float | None:
        """Return the drift."""
        cosines = data.cosines("goals", "context")
        if not cosines.size:
            return None
        nearest = cosines[:, -RECENT:].max(axis=0)
        text = 1.0 - sum(map(float, nearest)) / len(nearest)
        return (1.0 - BEHAVIOUR) * min(max(text, 0.0), 1.0) + BEHAVIOUR * self._behaviour()

    def _behaviour(self) -> float:
        facts = self.state.facts
        if facts.results < 2 * RECENT_RESULTS:
            return 0.0
        recent = Counter(action.tool for action in facts.actions[-RECENT_RESULTS:])
        return _divergence(recent, facts.tools)


def _divergence(left: dict[str, int], right: dict[str, int]) -> float:
    """Return the Jensen-Shannon divergence of two histograms, in [0, 1]."""
    sums = sum(left.values()), sum(right.values())
    total = 0.0
    for name in sorted({*left, *right}):
        p, q = left.get(name, 0) / sums[0], right.get(name, 0) / sums[1]
        middle = (p + q) / 2
        total += sum(share * log2(share / middle) for share in (p, q) if share) / 2
    return min(max(total, 0.0), 1.0)
