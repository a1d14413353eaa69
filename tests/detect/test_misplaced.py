"""Answers held against short results: values beside another record's name, and names that no result has."""

from __future__ import annotations

import time

import msgspec
import pytest

from coherence.detect.misplaced import misplaced
from coherence.detect.records import MAX_KEPT, MAX_RESULT, Kept, keep_result
from coherence.detect.terms import unknown_terms
from coherence.detect.text_tables import table_of
from detect.judging import given_by

FLATS = "flat 3: Kowalski\nflat 4: Okafor\nflat 5: Lindqvist"
ORDERS = '[{"order": 880, "status": "shipped", "eur": 25.0}, {"order": 881, "status": "pending", "eur": 40.0}]'
LEGS = (
    '{"legs": [{"flight": "OS 552", "gate": "F07", "seat": "14C"}, {"flight": "OS 417", "gate": "G31", "seat": "9A"}]}'
)
RISE = "Bergen, CET\nDate        Rise   Set\n2025-05-13  4:15  21:33\n2025-05-14  4:10  21:38"
TERMS = "7.1 Invoices are due at once.\n7.2 We may refuse cheques.\n8.1 Prices may rise once a year."


def kept_of(*results: str) -> Kept:
    kept = Kept()
    for seq, result in enumerate(results, 3):
        keep_result(kept, seq, result)
    return kept


def wrong(answer: str, *results: str) -> bool:
    return bool(list(misplaced(kept_of(*results), answer, ())))


@pytest.mark.parametrize(
    ("result", "right", "other"),
    [
        (FLATS, "Okafor lives in flat 4.", "Lindqvist lives in flat 4."),
        (ORDERS, "Order 881 is pending.", "Order 881 is shipped."),
        (ORDERS, "Order 880 is worth 25 euros.", "Order 880 is worth 40 euros."),
        (LEGS, "OS 417: gate G31, seat 9A.", "OS 417: gate G31, seat 14C."),
        ('{"rent": 850, "deposit": 2550}', "The deposit is 2,550.", "The deposit is 850."),
        (RISE, "On 14 May the sun rises at 4:10.", "On 14 May the sun rises at 4:15."),
        (TERMS, "Prices may rise once a year (clause 8.1).", "Prices may rise once a year (clause 7.2)."),
        ("[{'city': 'Linz', 'fee': 310}, {'city': 'Graz', 'fee': 450}]", "Graz: 450 euros", "Graz: 310 euros"),
    ],
)  # fmt: skip
def test_misplaced_tells_the_wrong_one_of_a_pair(result: str, right: str, other: str) -> None:
    assert not wrong(right, result)
    assert wrong(other, result)


@pytest.mark.parametrize(
    ("answer", "results"),
    [
        ("Order 881 is pending, but order 880 is shipped.", (ORDERS,)),
        ("Order 880 (25 euros) is cheaper than 881 (40 euros).", (ORDERS,)),
        ("Shall I exchange order 880 for 40 euros?", (ORDERS,)),
        ("You have two orders, 880 and 881.", (ORDERS,)),
        ("Order 881 is shipped.", (ORDERS, "order 881, shipped at last: 40 EUR")),  # another result has both
        ("Lindqvist lives in flat 4.", (FLATS, "x" * (MAX_RESULT + 1))),  # one that was too long may have both
        ("At 1 and 2 am it was too warm (9.2 and 9.0).", ("ts,temp\n22:00,4.1\n01:00,9.2\n02:00,9.0",)),
        ("You bought the W714 on 23 November 2023.", ("HARDWARE\n23.11.2023 16:48 till 2\nDrill W714 ... 549,00",)),
        ("Anna Berg studied in Lund.", ("Anna Berg was born in Oslo. She studied in Lund.",)),
        ("You fly DEN to EWR.", ('[{"from": "DEN", "to": "DFW"}, {"from": "DFW", "to": "EWR"}]',)),
    ],
)
def test_misplaced_passes_over_what_belongs_together_or_may(answer: str, results: tuple[str, ...]) -> None:
    assert not wrong(answer, *results)


def test_misplaced_hostile_results_and_answers_take_no_longer_than_ordinary_ones() -> None:
    for piece in ("a, b. ", "1 | ", '{"a": ', "x: 1\n", "- A1 B2\n", "Flat 1 is 2; ", "[[", "is all of 2 "):
        kept = kept_of(*(f"{at}{piece}" * (MAX_RESULT // (len(piece) + 1)) for at in range(3)))
        begun = time.thread_time()
        list(misplaced(kept, piece * (6_000 // len(piece)), ()))
        assert time.thread_time() - begun < 0.5, piece


def test_keep_result_forgets_the_oldest_and_can_be_stored() -> None:
    kept = kept_of(*["y" * MAX_RESULT] * 10, "\ud800 a lone surrogate")
    assert sum(len(each.text) for each in kept.results) <= MAX_KEPT
    assert not kept.whole
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(kept), type=Kept) == kept


@pytest.mark.parametrize(
    ("text", "head", "rows"),
    [
        ("a;b\n1;2\n3;4", ["a", "b"], 2),
        ("Report of May\nname | seats\n-----|-----\nHeron | 12\nLynx | 8", ["name", "seats"], 2),
        ("           lift  dish\nMerrow     5     11\nKestrel    7     12", ["", "lift", "dish"], 2),
        ("UNIT      STATE       SINCE\nweb-1     UP          9d\ndb-main-7 READ - 2d", ["UNIT", "STATE", "SINCE"], 1),
        ("kind,vegan\nBrie,no\nTofu,yes\nSkyr,no", ["kind", "vegan"], 3),
        ("Dear Ann,\nthank you, Bo,\nfor 2 tickets,", [], 0),
        ("e91  Tom  Tue  ok\n77a  Ruth  Tue  ok\n0d5  Tom  Mon  ok", [], 0),
        ("", [], 0),
    ],
)
def test_table_of_finds_head_and_rows_and_takes_no_list_for_a_table(text: str, head: list[str], rows: int) -> None:
    found = table_of(text.split("\n"))
    assert (found[0] if found else []) == head
    assert len(found[1] if found else []) >= rows


def unknown(result: str, answer: str) -> list[str]:
    return [name for name, _ in unknown_terms(given_by(result), kept_of(result), answer)]


@pytest.mark.parametrize(
    ("result", "right", "wrong", "name"),
    [
        ("usage: get [--no-verify]", "Use --no-verify.", "Use --skip-sums.", "--skip-sums"),
        ('env::var("PLAIN_TERM")', "Set PLAIN_TERM.", "Set NO_COLOR.", "NO_COLOR"),
        ("Err(RuleError::Blank)", "It gives RuleError::Blank.", "It gives RuleError::Empty.", "RuleError::Empty"),
        ("def open_port(name, wait_s=2.0)", "Pass `wait_s`.", "Pass `timeout`.", "timeout"),
        ("dob: DD/MM/YYYY", "It wants DD/MM/YYYY.", "It wants MM/DD/YYYY.", "MM/DD/YYYY"),
        ("HIGH: 4, LOW: 0", "Nothing low was found.", "Nothing high was found.", "Nothing high"),
        ("images 18 MB uncompressed", "The images are uncompressed.", "The images are compressed.", "compressed"),
    ],
)
def test_unknown_terms_names_what_no_result_has(result: str, right: str, wrong: str, name: str) -> None:
    assert unknown(result, right) == []
    assert unknown(result, wrong) == [name]
    assert unknown(result + "x " * MAX_RESULT, wrong) == []  # a long result is not known any more
