"""The unit of a number may stand in the name of its field, or only in what the agent says."""

from __future__ import annotations

import pytest

from coherence.metrics import compute_grounding

TRIP = """{"price_usd": 1200, "distanceKm": 12, "size_mb": 1.5, 'weight (kg)': 3, "Total in EUR": 70.5,
"rate_pct": 4.5, "price_cents": 4999, "temp_min": 17, "day": 25, "duration_s": 90, "length": 45, "max_m": 800}"""


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("It costs $1,200.", "It costs €1,200."),
        ("It is 12 km away.", "It is 12 miles away."),
        ("It is 12,000 m away.", "It is 1,200 m away."),
        ("It has 1500 KB.", "It has 1500 MB."),
        ("It weighs 3 kg.", "It weighs 3 lbs."),
        ("70.50 EUR in all", "70.50 USD in all"),
        ("The rate is 4.5 %.", "The rate is 4.6 %."),
        ("It costs $49.99.", "It costs $48.99."),
        ("It takes 1.5 minutes.", "It takes 2.5 minutes."),
        ("It takes 45 minutes.", "It takes 46 minutes."),  # where no unit is given, the digits count
        ("It is 45 cm long.", "It is 44 cm long."),
    ],
)
def test_field_units_a_unit_in_the_name_of_a_field_counts(right: str, wrong: str) -> None:
    assert compute_grounding(right, [TRIP]).value == 1.0
    assert [flaw.kind for flaw in compute_grounding(wrong, [TRIP]).flaws] == ["amount"]


@pytest.mark.parametrize(
    "answer", ["The price is 1200.", "It is 17 degrees at least.", "It is day 25.", "At most 800 people", "4999"]
)
def test_field_units_the_bare_number_passes_too(answer: str) -> None:
    assert compute_grounding(answer, [TRIP]).value == 1.0


def test_field_units_an_amount_passes_in_its_own_unit_alone() -> None:
    assert compute_grounding("12 miles", ["12 km"]).value == 0.0
    assert compute_grounding("120 km", ["12 km"]).value == 0.0
