from __future__ import annotations

import math

import pytest

from coherence import CoherenceSensor
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


@pytest.mark.parametrize("budget", [0.0, -1.0, math.inf, math.nan])
def test_counters_a_budget_that_nothing_can_be_a_share_of_is_refused(budget: float) -> None:
    with pytest.raises(ValueError, match=f"budget_usd must be above 0 and finite, not {budget}"):
        Cost(counted(Counters()), budget_usd=budget)
    with pytest.raises(ValueError, match=f"budget must be above 0 and finite, not {budget}"):
        TokenUsage(counted(Counters()), budget=budget)  # type: ignore[arg-type]


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
