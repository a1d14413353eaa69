"""The vitals of one agent: metrics over its state, reported with every reading."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from coherence.core.config import Budget, MonitorConfig
from coherence.core.protocols import MetricFn, ScalarMetricFn
from coherence.metrics import (
    ContextExhaustion,
    Cost,
    Drift,
    GoalCoherence,
    GoalHijack,
    OutcomeRisk,
    RecentErrorRate,
    Repetition,
    TokenUsage,
    Uncertainty,
    Unlimited,
    UnsupportedAssumption,
)
from coherence.sensor.index import INDEX_WEIGHTS, OTHER_WEIGHT
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


DETECTORS = (GoalHijack, UnsupportedAssumption, OutcomeRisk)


def detectors(config: MonitorConfig, state: AgentState, named: Iterable[str]) -> list[ScalarMetricFn]:
    """Return the detectors that the settings' weights need and that nobody has named."""
    weights = INDEX_WEIGHTS if config.weights == "default" else config.weights
    if not isinstance(weights, Mapping):
        return []
    wanted = weights.keys() - {*named}
    return [detector(state) for detector in DETECTORS if detector.name in wanted]


def index_weights(config: MonitorConfig, names: Iterable[str]) -> Mapping[str, float]:
    """Return the weight of each metric of these names, and of the vitals that the settings name.

    Raises
    ------
    ValueError
        If a table of one's own names something that is not measured.

    Examples
    --------
    >>> index_weights(MonitorConfig(weights="classic", metrics=("repetition",)), ["goal_drift"])
    {'goal_drift': 0.25, 'repetition': 0.25}
    >>> index_weights(MonitorConfig(weights="default"), ["goal_drift", "goal_hijack"])
    {'goal_drift': 0.0125, 'goal_hijack': 0.55}
    """
    if isinstance(config.weights, Mapping):
        known = dict.fromkeys((*names, *(detector.name for detector in DETECTORS), *VITALS))
        strange = next((name for name in config.weights if name not in known), None)
        if strange is not None:
            raise ValueError(
                f"weights: {strange!r} names no metric that is measured; there are {', '.join(known)}; "
                "any other registered one is measured where `metrics` names it too"
            )
        return config.weights
    table = INDEX_WEIGHTS if config.weights == "default" else {}
    counted = [*names, *(name for name in config.metrics if name in VITALS)]
    return {name: table.get(name, OTHER_WEIGHT) for name in counted}
