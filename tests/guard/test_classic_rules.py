"""The values of the classic rules, edges of binary floats included."""

import math

import pytest

from coherence.guard.baseline import CallOutcome
from coherence.guard.classic import Metrics, Tally, rolled_back, worse


def tally(pattern: str, latency_s: float = 1.0) -> Tally:
    calls = Tally()
    for mark in pattern:
        calls.observe(CallOutcome(mark == "+", latency_s))
    return calls


@pytest.mark.parametrize(
    ("before", "after", "fires"),
    [
        (0.9, 0.8, False),
        (0.8, 0.7, True),
        (0.5, 0.4, False),
        (1, 0.9, False),
        (1, 0.899, True),
        (0.05, 0, False),
        (0.1, 0, False),
    ],
)
def test_worse_a_drop_of_more_than_ten_points_as_binary_floats_see_it(before: float, after: float, fires: bool) -> None:
    assert worse(Metrics(before), Metrics(after)) == ("success" if fires else None)


@pytest.mark.parametrize(
    ("before", "after", "fires"), [(1, 1.2, False), (1, 1.21, True), (0.1, 0.12, False), (0, 99, False), (5, 6, False)]
)
def test_worse_a_rise_of_the_mean_latency_of_more_than_a_fifth(before: float, after: float, fires: bool) -> None:
    assert worse(Metrics(1, before), Metrics(1, after)) == ("latency" if fires else None)


def test_worse_five_failures_in_a_row() -> None:
    assert worse(Metrics(), Metrics(failures_in_a_row=4)) is None
    assert worse(Metrics(), Metrics(failures_in_a_row=5)) == "failure_run"
    assert worse(Metrics(), Metrics()) is None
    assert worse(Metrics(0.9, 1.0), Metrics(math.nan, math.nan)) is None


@pytest.mark.parametrize(
    ("before", "after", "at", "why"),
    [
        ("+" * 9 + "-", "-" * 10, 10, "success"),
        ("+" * 9 + "-", "+" * 8 + "--", None, None),
        ("+" * 9 + "-", "+" * 7 + "---", 10, "success"),
        ("+" * 9 + "-", "+" * 8 + "----", 11, "success"),  # 0.9 - 8 / 11 = 0.173
        ("---", "-" * 9 + "+", None, None),
        ("---", "-" * 10, 10, "failure_run"),
        ("+-", "+-" * 5, None, None),
        ("+" * 9 + "-", "+" * 100 + "+-" * 50, 168, "success"),  # 68 calls of the decay
    ],
)
def test_tally_sequences_roll_back_at_the_classic_call(
    before: str, after: str, at: int | None, why: str | None
) -> None:
    was = tally(before).metrics
    calls = Tally()
    found = None
    for number, mark in enumerate(after, 1):
        calls.observe(CallOutcome(mark == "+", 1.0))
        if found is None and (reason := rolled_back(was, calls)):
            found = number, reason
    assert found == ((at, why) if at else None)
