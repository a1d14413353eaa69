"""Extractors of values: what is passed over because another one has it, or because no part of it is in a text."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_sizes import examples

from coherence.core.readings import MAX_CLAIMS, Claim
from coherence.detect import dates, extractors, notations, sources
from coherence.detect.digits import behind_digits
from coherence.detect.extractors import BUILT_IN, DEFAULT, extract, extract_some, numbers
from coherence.detect.values import fold

CHOSEN = [BUILT_IN[name] for name in DEFAULT]
PARTS = [
    *("1", "12", "123", "2024", "07", "0.5", "1,234", "12 500", "3.14", "8:30", "٣"),
    *("$", "€", "USD ", "-", "−", "%", " km", " h", "h", "min", " days", "am", " pm", " uhr", "k"),
    *(" ", "\n", ". ", ", ", ":", "=", "/", "|", "(", ")", "#", "id: ", "price_usd: ", "step ", "\u202f"),
    *(
        "the ",
        "day ",
        "el día ",
        "st",
        "th",
        "3 May ",
        "May ",
        "of ",
        "2024-03-07",
        "7.3.",
        "src/a.py",
        ".txt",
        "v1.2.3",
        "AB-12",
    ),
]
TEXTS = st.lists(st.sampled_from(PARTS), max_size=14).map("".join)


@given(TEXTS)
@examples(3_000)
def test_extract_some_passes_over_no_number_that_no_other_extractor_has(text: str) -> None:
    folded = fold(text)

    def all_numbers(text: str) -> list[Claim]:
        return numbers(text)

    searched = [all_numbers if each is numbers else each for each in CHOSEN]
    assert extract_some(folded, CHOSEN) == extract_some(folded, searched)


def test_extract_some_looks_for_further_numbers_behind_many_that_are_parts_of_dates() -> None:
    days = "2024-03-07 " * MAX_CLAIMS  # three numbers each, none of them a claim
    assert [claim.text for claim in extract(days[: -len("2024-03-07 ")] + "and 4711 km", CHOSEN)][-1] == "4711 km"


@pytest.mark.parametrize(
    ("part", "whole"),
    [
        (dates._MAYBE_DATE, dates._DATE),
        (sources._MAYBE_LONE, sources._LONE_DAY),
    ],
)
@given(text=TEXTS)
@examples(2_000)
def test_extractors_look_for_nothing_of_which_no_part_is_there(
    part: re.Pattern[str], whole: re.Pattern[str], text: str
) -> None:
    assert whole.search(text) is None or part.search(text) is not None


@pytest.mark.parametrize(
    ("signs", "whole"),
    [
        (dates._IN_DATES, dates._DATE),
        (notations._WORDS_BEGIN, notations._WORDED),
        (notations._PARTS_BEGIN, notations._PARTED),
        (extractors._IN_TIMES, extractors._TIME),
        (frozenset("."), extractors._PAPER),
        (frozenset("/"), sources._RATIO),
    ],
)
@given(text=TEXTS)
@examples(1_000)
def test_extractors_look_for_nothing_of_which_no_sign_is_behind_a_digit(
    signs: frozenset[str], whole: re.Pattern[str], text: str
) -> None:
    assert whole.search(text) is None or not signs.isdisjoint(behind_digits(text))


_IN_CALLS = "def |fn  |function    |func     |foo|a|b_1|.|::|(|()|( |)|(x)| |\n|\t|é|self.|_|:".split("|")


@given(st.lists(st.sampled_from([*_IN_CALLS, "x" * 61, "x" * 62, "ab." * 7]), max_size=16).map("".join))
@examples(1_000)
def test_functions_are_looked_for_before_brackets_as_in_the_whole_text(text: str) -> None:
    for name, bracket in ((extractors._CALL, extractors._EMPTY_CALL), (extractors._ARGUED, extractors._NAMED_CALL)):
        found = [match.span() for match in extractors._calls(name, bracket, text)]
        assert found == [match.span() for match in name.finditer(text)]


def test_extract_a_colour_is_no_number_of_metres() -> None:
    assert [claim.text for claim in extract(fold("\x1b[31mred\x1b[0m, 5 m"), CHOSEN)] == ["5 m"]


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("USD -5", "n:-5usd"),
        ("$-5", "n:-5usd"),
        ("price_usd: 5", "n:5usd"),
        ('"price_usd": "5"', "n:5usd"),
        ("costUsd=5", "n:5usd"),
        ("16 days: 3", "n:3"),  # as an egg
        ("reuse 5", "n:5"),
    ],
)
def test_numbers_are_of_the_currency_that_stands_before_them_or_names_their_field(text: str, forms: str) -> None:
    assert numbers(text)[-1].forms[0] == forms
