"""Values of an answer that stand in another record of a result than the name beside them."""

from __future__ import annotations

import time

import msgspec
import pytest

from coherence.detect.records import MAX_KEPT, MAX_RESULT, Kept, keep_result, misplaced

FLATS = "flat 3: Kowalski\nflat 4: Okafor\nflat 5: Lindqvist"
ORDERS = '[{"order": 880, "status": "shipped", "eur": 25.0}, {"order": 881, "status": "pending", "eur": 40.0}]'
LEGS = (
    '{"legs": [{"flight": "OS 552", "gate": "F07", "seat": "14C"}, {"flight": "OS 417", "gate": "G31", "seat": "9A"}]}'
)
CHANGES = "## 3.4.2\n- fix crash on an empty legend\n## 3.4.1\n- tile loader: release buffers (leak, #771)"
TABLE = "| flat | rooms | rent |\n|---|---|---|\n| 1 | 3 | 910 |\n| 2 | 2 | 640 |"
PORTS = "[db]\nport = 5432\n[cache]\nport = 6379"
STAFF = "Dr. Inga Falk - head, seismology group\nProf. Leon Ortiz - head, volcanology group"
SENSORS = "S1 online\nS2 offline\nS3 online\nS4 offline\nS5 online\nS6 offline"


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
        (TABLE, "Flat 2 costs 640 a month.", "Flat 2 costs 910 a month."),
        (PORTS, "The cache uses port 6379.", "The cache uses port 5432."),
        (STAFF, "Dr. Inga Falk heads the group.", "Prof. Inga Falk heads the group."),
        ('{"rent": 850, "deposit": 2550}', "The deposit is 2,550.", "The deposit is 850."),
        (SENSORS, "Three of the six sensors are offline.", "Four of the six sensors are offline."),
        ("PJ-02 lent until May\nPJ-05 in store", "Only PJ-02 is lent.", "Both projectors are lent."),
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


def test_misplaced_another_result_may_have_both() -> None:
    kept = Kept()
    keep_result(kept, 3, ORDERS)
    keep_result(kept, 5, "order 881, shipped at last: 40 EUR")
    assert not list(misplaced(kept, "Order 881 is shipped.", ()))


def test_keep_result_says_nothing_once_a_result_was_too_long() -> None:
    kept = Kept()
    keep_result(kept, 3, FLATS)
    assert list(misplaced(kept, "Lindqvist lives in flat 4.", ()))
    keep_result(kept, 4, "x" * (MAX_RESULT + 1))
    assert not list(misplaced(kept, "Lindqvist lives in flat 4.", ()))


def test_keep_result_forgets_the_oldest_and_can_be_stored() -> None:
    kept = Kept()
    for at in range(10):
        keep_result(kept, at, "y" * MAX_RESULT)
    assert sum(len(each.text) for each in kept.results) <= MAX_KEPT
    assert not kept.whole
    keep_result(kept, 11, "\ud800 a lone surrogate")
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(kept), type=Kept) == kept


def test_misplaced_hostile_results_and_answers_take_no_longer_than_ordinary_ones() -> None:
    for piece in ("a, b. ", "1 | ", '{"a": ', "x: 1\n", "- A1 B2\n", "Flat 1 is 2; ", "[[", "is all of 2 "):
        kept = Kept()
        for at in range(3):
            keep_result(kept, at, f"{at}{piece}" * (MAX_RESULT // (len(piece) + 1)))
        begun = time.process_time()
        list(misplaced(kept, piece * (6_000 // len(piece)), ()))
        assert time.process_time() - begun < 0.5, piece
