"""Sums that an answer writes out are checked, and what a right one makes is grounded."""

from __future__ import annotations

import pytest

from coherence.detect.grounding import judge
from coherence.detect.workings import workings
from detect.judging import CHOSEN, flaws, given_by


@pytest.mark.parametrize(
    "text",
    [
        "17.3 x 1.5 = 25.95, 9 x 2 = 18 and 4 + 5 = 9",
        "2 * 89 € = 178 €",
        "12,50 € + 3,20 € = 15,70 €",
        "120 / 7 = 17.1",
        "1,200 + 350 = 1,550",
        "450 g : 3 = 150 g",
        "4 x 1.65 + 3.20 + 2 x 3.45 + 3 x 1.90 = 22.40",
        "10.0857 x 3 ≈ 30",
        "room 12 x 14, open 9-17, x + 3 = 5",
    ],
)
def test_workings_a_right_sum_is_right(text: str) -> None:
    assert all(each.is_right for each in workings(text))


@pytest.mark.parametrize(
    "text",
    ["17.3 x 1.5 = 29.95", "2 * 89 € = 187 €", "12,50 € + 3,20 € = 16,70 €", "1,200 + 350 = 1,650", "2024 - 2019 = 6"],
)
def test_workings_a_wrong_sum_is_found(text: str) -> None:
    assert [each.is_right for each in workings(text)] == [False]


def test_judge_a_written_sum_grounds_what_it_makes_and_a_wrong_one_names_the_right_result() -> None:
    orders = "; ".join(f"order {at}: ${137 * at * at + 0.31}" for at in range(1, 40))
    assert flaws(orders, "The refund is $55,348.62.") == ["$55,348.62"], "any sum may be one of 741 pairs"
    assert flaws(orders, "The refund is $548.31 + $54,800.31 = $55,348.62.") == []
    found = judge(given_by("a: 12.50, b: 3.20, c: 16.70"), "That is 12.50 + 3.20 = 16.70.", CHOSEN).grave
    assert [(flaw.text, flaw.flaw, flaw.near) for flaw in found] == [("16.70", "sum", "15.7")]
