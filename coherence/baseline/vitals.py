"""The vitals of one agent: metrics over its state, reported with every reading."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from coherence.core.config import Budget, MonitorConfig
from coherence.core.protocols import MetricFn, ScalarMetricFn
from coherence.core.registry import create_metric, is_scalar
from coherence.metrics import (
    ContextExhaustion,
    Cost,
    Drift,
    GoalCoherence,
    RecentErrorRate,
    Repetition,
    StepDrift,
    TokenUsage,
    Uncertainty,
    Unmeasured,
    WordedUncertainty,
)
from coherence.sensor.index import DEFAULT_WEIGHTS, INDEX_WEIGHTS, OTHER_WEIGHT
from coherence.sensor.sensor import default_metrics
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


COURSE = (
    "novelty",
    "stall",
    "identical_calls",
    "reversal",
    "failure_streak",
    "breakdown",
    "goal_loss",
    "cost_surge",
    "unknown_id",
)
"""Signs that a run leaves its course; reported with every reading."""


class MetricSet(NamedTuple):
    """Metrics that a monitor measures at a tick."""

    vectors: list[MetricFn]
    """Metrics that compare vectors."""
    scalars: list[ScalarMetricFn]
    weights: Mapping[str, float]
    """Metric -> its weight in the index; the others are reported only."""


def metric_set(
    config: MonitorConfig,
    state: AgentState,
    budget: Budget | None,
    added: Sequence[MetricFn | ScalarMetricFn] = (),
    *,
    embeds: bool = True,
) -> MetricSet:
    """Return what a monitor measures: the default metrics, those added, those that its weights name, and the vitals.

    Parameters
    ----------
    config : MonitorConfig
        Names the weights.
    state : AgentState
        The agent.
    budget : Budget, optional
        Of which shares are measured.
    added : sequence of MetricFn or ScalarMetricFn
        Further ones.
    embeds : bool
        Whether there is an embedder; without one, what compares vectors is left out, and an added metric is unknown.
    """
    vectors: list[Any] = default_metrics() if embeds else []
    scalars: list[Any] = []
    for metric in added:
        if is_scalar(metric):
            scalars.append(metric)
        elif embeds:
            vectors.append(metric)
        else:
            scalars.append(Unmeasured(metric.name, "it takes vectors, and nothing is embedded", metric.inverted))
    named = {metric.name for metric in added}
    scalars += [create_metric(name, state) for name in _weighted(config) if name not in named]
    weights = index_weights(config, [metric.name for metric in (*vectors, *scalars)])
    if not embeds:
        scalars.append(WordedUncertainty(state))
    else:
        vectors += [Uncertainty(state), Drift(state), GoalCoherence(), StepDrift(state)]
    limits = budget.limits() if budget is not None else {}
    tokens, dollars = limits.get("tokens"), limits.get("cost_usd")
    scalars += [
        *(create_metric(name, state) for name in COURSE if name not in named),
        RecentErrorRate(state),
        TokenUsage(state, int(tokens)) if tokens else Unmeasured("token_usage", "no budget of tokens is set"),
        Cost(state, dollars) if dollars else Unmeasured("cost", "no budget of money is set"),
        Repetition(state),
        ContextExhaustion(state),
    ]
    return MetricSet(vectors, scalars, weights)


DETECTORS = tuple(name for name in INDEX_WEIGHTS if name not in DEFAULT_WEIGHTS)
"""Metrics of the default weights that look at a run's events; they are measured wherever the weights name them."""


def _weighted(config: MonitorConfig) -> list[str]:
    weights = INDEX_WEIGHTS if config.weights == "default" else config.weights
    return [name for name in DETECTORS if name in weights] if isinstance(weights, Mapping) else []


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
        known = dict.fromkeys((*names, *DETECTORS, *VITALS, *COURSE))
        strange = next((name for name in config.weights if name not in known), None)
        if strange is not None:
            raise ValueError(
                f"weights: {strange!r} names no metric that is measured; there are {', '.join(known)}; "
                "any other registered one is measured where `metrics` names it too"
            )
        return config.weights
    table = INDEX_WEIGHTS if config.weights == "default" else {}
    counted = [*names, *(name for name in config.metrics if name in (*VITALS, *COURSE))]
    return {name: table.get(name, OTHER_WEIGHT) for name in counted}
