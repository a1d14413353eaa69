"""The vitals of one agent: metrics over its state, reported with every reading."""

from __future__ import annotations

from coherence.core.config import Budget
from coherence.core.protocols import MetricFn, ScalarMetricFn
from coherence.metrics import (
    ContextExhaustion,
    Cost,
    Drift,
    GoalCoherence,
    RecentErrorRate,
    Repetition,
    TokenUsage,
    Uncertainty,
    Unlimited,
)
from coherence.state.reducer import AgentState

VITALS = (
    "uncertainty",
    "drift",
    "goal_coherence",
    "error_rate",
    "token_usage",
    "cost",
    "repetition",
    "context_exhaustion",
)
"""Names of the vitals, in the order in which they are shown."""


def vector_vitals(state: AgentState) -> list[MetricFn]:
    """Return the vitals that compare texts."""
    return [Uncertainty(state), Drift(state), GoalCoherence()]


def scalar_vitals(state: AgentState, budget: Budget | None) -> list[ScalarMetricFn]:
    """Return the vitals that count."""
    limits = budget.limits() if budget is not None else {}
    tokens, dollars = limits.get("tokens"), limits.get("cost_usd")
    return [
        RecentErrorRate(state),
        TokenUsage(state, int(tokens)) if tokens else Unlimited("token_usage", "tokens"),
        Cost(state, dollars) if dollars else Unlimited("cost", "money"),
        Repetition(state),
        ContextExhaustion(state),
    ]
