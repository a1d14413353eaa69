from __future__ import annotations

import math

import pytest

from coherence.core.config import Budget
from coherence.core.events import Spent
from coherence.policy.budgets import budget_findings, together


@pytest.mark.parametrize(
    ("calls", "severity", "active"),
    [
        (0, "warn", False),
        (7, "warn", False),
        (8, "warn", True),  # 80 % is soft
        (9, "warn", True),
        (10, "block", True),  # the next call does not fit
        (99, "block", True),
    ],
)
def test_a_budget_warns_at_its_soft_share_and_blocks_at_its_limit(calls: int, severity: str, active: bool) -> None:
    (finding,) = budget_findings(Budget(calls=10), Spent(calls=calls))
    assert (finding.severity, finding.active, finding.score) == (severity, active, min(calls / 10, 1.0))


def test_budget_each_limit_has_a_finding_that_says_what_is_used() -> None:
    budget = Budget(tokens=1_000, cost_usd=2.0, wall_s=60.0, calls=4)
    found = budget_findings(budget, Spent(tokens=250, cost_usd=1.0, calls=1, wall_s=30.0, unpriced=2))
    assert [str(finding) for finding in found] == [
        "budget.tokens: 250 of 1,000 tokens are used (25%)",
        "budget.cost_usd: 1 of 2 US dollars are used (50%), without 2 model calls of unknown cost",
        "budget.wall_s: 30 of 60 seconds are used (50%)",
        "budget.calls: 1 of 4 calls are used (25%)",
    ]


def test_budget_a_tree_adds_up_and_its_longest_time_counts() -> None:
    own = Spent(tokens=1, cost_usd=0.5, calls=2, wall_s=9.0, unpriced=1)
    assert together(own, None) == own
    assert together(own, Spent(tokens=10, cost_usd=0.25, calls=3, wall_s=5.0, unpriced=1)) == Spent(11, 0.75, 5, 9.0, 2)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -5.0])
def test_budget_impossible_numbers_of_a_tree_count_nothing(bad: float) -> None:
    own = Spent(tokens=1, cost_usd=0.5, calls=2, wall_s=9.0)
    assert together(own, Spent(tokens=-7, cost_usd=bad, calls=-1, wall_s=bad, unpriced=-2)) == own
