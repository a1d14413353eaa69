"""One number in the ways that people write it, and beside each another number."""

from __future__ import annotations

import pytest

from coherence.metrics import compute_grounding

SOURCES = (
    "revenue: 1,284,500 USD, users: 8,412,000, fund: 2,300,000,000",
    "Meeting on 2024-03-07 at 14:30 in room 9, 1300 m away",
)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("1.3M in revenue", "1.4M in revenue"),
        ("1.28M USD", "1.27M USD"),
        ("1.28m USD", "1.27m USD"),
        ("$1.28M", "$1.27M"),
        ("8.4M users", "8.5M users"),
        ("2.3B in the fund", "2.4B in the fund"),
        ("8412k users", "8413k users"),
        ("1.284.500 USD", "1.284.600 USD"),
        ("It is USD 1.284.500", "It is USD 1.284.600"),
        ("1'284'500 USD", "1'284'600 USD"),
        ("1 284 500 USD", "1 284 600 USD"),
        ("1\u202f284\u202f500 USD", "1\u202f284\u202f600 USD"),
        ("1.284.500,00 USD", "1.284.600,00 USD"),
        ("8.412.000 users", "8.413.000 users"),
        ("07.03.2024 at 2.30 p.m.", "07.03.2024 at 2.40 p.m."),
        ("1.3 km", "1.4 km"),
    ],
)
def test_a_format_passes_with_its_number_and_no_other(right: str, wrong: str) -> None:
    assert compute_grounding(right, SOURCES).flaws == ()
    assert compute_grounding(right, SOURCES).checked >= 1
    assert len(compute_grounding(wrong, SOURCES).flaws) == 1


def test_metres_are_no_millions() -> None:
    assert compute_grounding("8.4m users", SOURCES).value == 0.0
    assert compute_grounding("It is 1300m away", SOURCES).value == 1.0
    assert compute_grounding("It is 1300M away", SOURCES).value == 0.0


def test_a_letter_behind_a_number_is_no_billion() -> None:
    assert compute_grounding("He lives at 221b and runs Mistral 7B.", SOURCES).value is None


def test_numbers_that_merely_stand_in_a_row_are_several() -> None:
    assert compute_grounding("Rows: 310 284 500", ["284, 310, 500"]).checked == 3
