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
        ("$1.28M", "$1.27M"),
        ("8.4M users", "8.5M users"),
        ("2.3B in the fund", "2.4B in the fund"),
        ("1.284.500 USD", "1.284.600 USD"),
        ("1'284'500 USD", "1'284'600 USD"),
        ("1 284 500 USD", "1 284 600 USD"),
        ("1\u202f284\u202f500 USD", "1\u202f284\u202f600 USD"),
        ("07.03.2024 at 2.30 p.m.", "07.03.2024 at 2.40 p.m."),
        ("1.3 km", "1.4 km"),
        ("1284500$, $8,412,000", "1284500£, $8,412,000"),
    ],
)
def test_number_formats_a_format_passes_with_its_number_and_no_other(right: str, wrong: str) -> None:
    assert compute_grounding(right, SOURCES).flaws == ()
    assert compute_grounding(right, SOURCES).checked >= 1
    assert len(compute_grounding(wrong, SOURCES).flaws) == 1


def test_number_formats_metres_are_no_millions() -> None:
    assert compute_grounding("8.4m users", SOURCES).value == 0.0
    assert compute_grounding("It is 1300m away", SOURCES).value == 1.0
    assert compute_grounding("It is 1300M away", SOURCES).value == 0.0


@pytest.mark.parametrize(
    ("answer", "source"),
    [
        ("Rows: 310 284 500", "284, 310, 500"),
        ("In room 12 500 people", "500 people, room 12"),
        ("500 people in room 12", "room 12 500 people"),
        ("| 2 100 |", "cells: 2 and 100"),
        ("On May 12 500 people came", "May 12: 500 people"),
        ("Call 555 123 456", "tel. 555-123-456"),
        ("It is 22 12 34 56", "22 12 34 56"),
        ("at 10,20", "[10,20]"),
        ("1300 of them", "[1200,1300,1400]"),
        ("Oslo: 709037", "city,people,rank\nOslo,709037,5"),
        ("2,100 in all", "2 100 in all"),
    ],
)
def test_number_formats_numbers_that_merely_stand_in_a_row_are_several(answer: str, source: str) -> None:
    found = compute_grounding(answer, [source])
    assert (found.grave, found.checked > 0) == ((), True)


@pytest.mark.parametrize("answer", ["Rows: 310 284 501", "In room 12 501 people", "1 200 000", "12,51 kg", "1,284"])
def test_number_formats_a_row_of_which_one_was_not_given_is_found(answer: str) -> None:
    found = compute_grounding(answer, ["284, 310, 500 people, room 12; 200; 12 kg; 1"])
    assert len(found.flaws) == 1


@pytest.mark.parametrize(
    ("answer", "source"),
    [
        ("1 200 000 people", "1200000 people"),
        ("12 500 people", "12,500 people"),
        ("12\u202f500,75 kg", "12500.75 kg"),
        ("1٬200", "1200"),
        ("12,5 kg", "12.5 kg"),
        ("1.234 €", "1234 EUR"),
        ("1.234 €", "price: 1234"),
        ("1.200 Euro", '{"amount": 1200}'),
        ("1.234,56 €", "1234.56 EUR"),
        ("1'234.50 CHF", "CHF 1234.50"),
        ("₹1,23,456", "123456 INR"),
        ("1.5 lakh", "150000"),
        ("1200円です", "JPY 1200"),
        ("120万円", "1200000 JPY"),
        ("単価AB-1200は", "AB-1200"),
    ],
)
def test_number_formats_numbers_of_other_languages_pass_and_with_another_digit_do_not(answer: str, source: str) -> None:
    found = compute_grounding(answer, [source])
    assert (found.value, found.checked) == (1.0, 1)
    at = max(at for at, char in enumerate(answer) if char in "123456789")
    assert len(compute_grounding(f"{answer[:at]}8{answer[at + 1 :]}", [source]).flaws) == 1


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("7. März 2024", "8. März 2024"),
        ("7 de marzo de 2024", "8 de marzo de 2024"),
        ("2024年3月7日", "2024年3月8日"),
        ("07/03/24", "07/04/24"),
        ("in 2024", "in 2023"),  # 2024 and 1 stand near each other, by chance
        ("Call +4722123456", "Call +4722123457"),
        ("Call (+47) 22-12-34-56", "Call (+47) 22-12-34-57"),
        ("It is 12½ %", "It is 13½ %"),
        ("It runs Mistral-7B", "It runs Mistral-8B"),
    ],
)
def test_number_formats_dates_and_names_in_other_ways(right: str, wrong: str) -> None:
    source = "On 2024-03-07, page 1: Mistral 7B takes 12.5 %; ask +47 22 12 34 56"
    assert compute_grounding(right, [source]).value == 1.0
    assert len(compute_grounding(wrong, [source]).flaws) == 1


def test_number_formats_a_method_of_oneself_is_the_method() -> None:
    code = ["def load_weights(path): ..."]
    assert compute_grounding("Call self.load_weights(path).", code).value == 1.0
    assert compute_grounding("Call self.load_wights(path).", code).value == 0.0


def test_number_formats_a_huge_power_of_ten_hides_no_other_number() -> None:
    found = compute_grounding("0e999 of 8,413,000 users", ("users: 8,412,000",))
    assert [flaw.text for flaw in found.flaws] == ["0e999", "8,413,000"]
