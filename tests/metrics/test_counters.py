from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence import CoherenceSensor
from coherence.core.protocols import ScalarMetricFn
from coherence.core.readings import Counters
from coherence.metrics import Cost, ErrorRate, TokenUsage
from coherence.providers import HashingEmbedder, StaticState


def counted(counters: Counters) -> StaticState:
    return StaticState(counters=counters)


@pytest.mark.parametrize(
    ("counters", "expected"),
    [
        (Counters(calls=4, errors=1), 0.25),
        (Counters(calls=4, errors=0), 0.0),
        (Counters(calls=4, errors=4), 1.0),
        (Counters(calls=4, errors=6), 1.0),  # more errors than calls is still a share
        (Counters(calls=3, errors=1), 1 / 3),
        (Counters(calls=0, errors=0), None),
        (Counters(calls=None, errors=2), None),
        (Counters(calls=4, errors=None), None),
        (Counters(), None),
    ],
)
def test_error_rate_is_the_share_of_calls_that_failed(counters: Counters, expected: float | None) -> None:
    assert ErrorRate(counted(counters)).compute() == expected


@pytest.mark.parametrize(
    ("cost", "budget", "expected"),
    [
        (0.05, 0.2, 0.25),
        (0.0, 0.2, 0.0),
        (0.2, 0.2, 1.0),
        (5.0, 0.2, 1.0),  # beyond the budget it stays at 1
        (None, 0.2, None),
    ],
)
def test_cost_is_the_spent_share_of_the_budget(cost: float | None, budget: float, expected: float | None) -> None:
    assert Cost(counted(Counters(cost_usd=cost)), budget_usd=budget).compute() == expected


@pytest.mark.parametrize(
    ("tokens_in", "tokens_out", "expected"),
    [
        (900, 100, 0.25),  # 1,000 of 4,000
        (0, 0, 0.0),
        (4000, 0, 1.0),
        (4000, 4000, 1.0),  # beyond the budget it stays at 1
        (1000, None, 0.25),  # a missing half counts as 0
        (None, 2000, 0.5),
        (None, None, None),
    ],
)
def test_token_usage_is_the_used_share_of_the_budget(
    tokens_in: int | None, tokens_out: int | None, expected: float | None
) -> None:
    source = counted(Counters(tokens_in=tokens_in, tokens_out=tokens_out))
    assert TokenUsage(source, budget=4000).compute() == expected


def test_counters_default_budgets_are_a_dollar_and_a_million_tokens() -> None:
    source = counted(Counters(cost_usd=0.5, tokens_in=250_000, tokens_out=500_000))
    assert Cost(source).compute() == 0.5
    assert TokenUsage(source).compute() == 0.75


def test_counters_a_smaller_budget_raises_the_value() -> None:
    source = counted(Counters(cost_usd=0.1, tokens_in=100))
    assert Cost(source, 0.2).compute() == 2 * (Cost(source, 0.4).compute() or 0)
    assert TokenUsage(source, 200).compute() == 2 * (TokenUsage(source, 400).compute() or 0)


def test_values_follow_the_counters() -> None:
    state = counted(Counters(calls=1, errors=0))
    rate = ErrorRate(state)
    assert rate.compute() == 0.0
    state.counters = Counters(calls=2, errors=1)
    assert rate.compute() == 0.5


known = st.none() | st.integers(0, 10**9)


@given(
    counters=st.builds(
        Counters, calls=known, errors=known, tokens_in=known, tokens_out=known, cost_usd=st.none() | st.floats(0, 1e12)
    )
)
@pytest.mark.parametrize("make", [ErrorRate, Cost, TokenUsage])
def test_counters_every_value_is_a_share_or_unknown(
    make: Callable[[StaticState], ErrorRate | Cost | TokenUsage], counters: Counters
) -> None:
    value = make(counted(counters)).compute()
    assert value is None or 0.0 <= value <= 1.0


@pytest.mark.parametrize("budget", [0.0, -1.0, math.inf, math.nan])
def test_counters_a_budget_that_nothing_can_be_a_share_of_is_refused(budget: float) -> None:
    with pytest.raises(ValueError, match=f"budget_usd must be above 0 and finite, not {budget}"):
        Cost(counted(Counters()), budget_usd=budget)
    with pytest.raises(ValueError, match=f"budget must be above 0 and finite, not {budget}"):
        TokenUsage(counted(Counters()), budget=budget)  # type: ignore[arg-type]


@pytest.mark.parametrize("make", [ErrorRate, Cost, TokenUsage])
def test_counters_each_is_a_scalar_metric_of_which_a_high_value_is_bad(
    make: Callable[[StaticState], ErrorRate | Cost | TokenUsage],
) -> None:
    metric = make(counted(Counters()))
    assert isinstance(metric, ScalarMetricFn)
    assert metric.inverted is True


def test_counters_a_sensor_takes_them_by_name_from_its_provider() -> None:
    state = counted(Counters(calls=4, errors=1, cost_usd=0.5))
    sensor = CoherenceSensor(
        state,
        embedder=HashingEmbedder(),
        metrics=[],
        scalar_metrics=["error_rate", "cost", "token_usage"],
        weights={"error_rate": 1.0, "cost": 1.0, "token_usage": 2.0},
    )
    reading = sensor.measure_sync()
    assert reading.metrics == {"error_rate": 0.25, "cost": 0.5, "token_usage": None}
    assert reading.coverage == 0.5  # weight 2 of 4 is known
    assert reading.coherence_index == pytest.approx(0.625)  # (0.75 + 0.5) / 2
    assert set(reading.unknown) == {"token_usage"}
