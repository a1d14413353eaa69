"""Values of an answer that stand in another record of a result than the name beside them."""

from __future__ import annotations

import time

import pytest

from coherence.detect.misplaced import misplaced
from coherence.detect.records import MAX_RESULT, Kept, keep_result

FLATS = "flat 3: Kowalski\nflat 4: Okafor\nflat 5: Lindqvist"
ORDERS = '[{"order": 880, "status": "shipped", "eur": 25.0}, {"order": 881, "status": "pending", "eur": 40.0}]'
LEGS = (
    '{"legs": [{"flight": "OS 552", "gate": "F07", "seat": "14C"}, {"flight": "OS 417", "gate": "G31", "seat": "9A"}]}'
)
CHANGES = "## 3.4.2\n- fix crash on an empty legend\n## 3.4.1\n- tile loader: release buffers (leak, #771)"
TABLE = "| flat | rooms | rent |\n|---|---|---|\n| 1 | 3 | 910 |\n| 2 | 2 | 640 |"
RISE = "Bergen, CET\nDate        Rise   Set\n2025-05-13  4:15  21:33\n2025-05-14  4:10  21:38"
MARKS = "student,chem_mid,phys_mid\nAbara,71,64\nBischoff,48,77\nGrant,66,45"
TERMS = "7.1 Invoices are due at once.\n7.2 We may refuse cheques.\n8.1 Prices may rise once a year."


def wrong(result: str, answer: str) -> bool:
    kept = Kept()
    keep_result(kept, 3, result)
    return bool(list(misplaced(kept, answer, ())))


@pytest.mark.parametrize(
    ("result", "right", "other"),
    [
        (FLATS, "Okafor lives in flat 4.", "Lindqvist lives in flat 4."),
        (ORDERS, "Order 881 is pending.", "Order 881 is shipped."),
        (ORDERS, "Order 880 is worth 25 euros.", "Order 880 is worth 40 euros."),
        (LEGS, "OS 417: gate G31, seat 9A.", "OS 417: gate G31, seat 14C."),
        (CHANGES, "The tile loader's leak (#771) is gone in 3.4.1.", "The tile loader's leak (#771) is gone in 3.4.2."),
        ('{"rent": 850, "deposit": 2550}', "The deposit is 2,550.", "The deposit is 850."),
        (RISE, "On 14 May the sun rises at 4:10.", "On 14 May the sun rises at 4:15."),
        (TERMS, "Prices may rise once a year (clause 8.1).", "Prices may rise once a year (clause 7.2)."),
        ("[{'city': 'Linz', 'fee': 310}, {'city': 'Graz', 'fee': 450}]", "Graz: 450 euros", "Graz: 310 euros"),
    ],
)  # fmt: skip
def test_misplaced_tells_the_wrong_one_of_a_pair(result: str, right: str, other: str) -> None:
    assert not wrong(result, right)
    assert wrong(result, other)


@pytest.mark.parametrize(
    "answer",
    [
        "Order 881 is pending, but order 880 is shipped.",
        "Order 880 (25 euros) is cheaper than 881 (40 euros).",
        "Shall I exchange order 880 for 40 euros?",
        "You have two orders, 880 and 881.",
    ],
)
def test_misplaced_what_speaks_of_several_records_is_no_mistake(answer: str) -> None:
    assert not wrong(ORDERS, answer)


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        (
            "item     ug  range\nB12      412  200-900\nFolate   7.1  4-20\nD        14   20-50",
            "B12, Folate and the rest are fine.",
        ),
        ("ts,temp\n22:00,4.1\n01:00,9.2\n02:00,9.0", "At 1 and 2 am it was too warm (9.2 and 9.0)."),
        ("HARDWARE KIEL\n23.11.2023 16:48 till 2\nDrill W714 ... 549,00", "You bought the W714 on 23 November 2023."),
        ("Anna Berg was born in Oslo. She studied in Lund.", "Anna Berg studied in Lund."),
        ('[{"from": "DEN", "to": "DFW"}, {"from": "DFW", "to": "EWR"}]', "You fly DEN to EWR."),
    ],
)
def test_misplaced_right_answers_join_what_belongs_together(result: str, answer: str) -> None:
    assert not wrong(result, answer)


def test_misplaced_another_result_may_have_both() -> None:
    kept = Kept()
    keep_result(kept, 3, ORDERS)
    keep_result(kept, 5, "order 881, shipped at last: 40 EUR")
    assert not list(misplaced(kept, "Order 881 is shipped.", ()))


def test_misplaced_hostile_results_and_answers_take_no_longer_than_ordinary_ones() -> None:
    for piece in ("a, b. ", "1 | ", '{"a": ', "x: 1\n", "- A1 B2\n", "Flat 1 is 2; ", "[[", "is all of 2 "):
        kept = Kept()
        for at in range(3):
            keep_result(kept, at, f"{at}{piece}" * (MAX_RESULT // (len(piece) + 1)))
        begun = time.process_time()
        list(misplaced(kept, piece * (6_000 // len(piece)), ()))
        assert time.process_time() - begun < 0.5, piece
