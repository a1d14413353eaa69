"""Values from outside, made so that they can always be written."""

from __future__ import annotations

import dataclasses
import datetime
import json
import math
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_sizes import examples

from coherence.core.validation import (
    MAX_TEXT,
    check_count,
    check_flag,
    check_number,
    check_text,
    clean,
    to_json,
)

ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.binary()
    | st.complex_numbers()
    | st.dates()
    | st.uuids()
    | st.decimals(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text(st.characters()) | st.integers() | st.floats() | st.none() | st.dates(), inner)
        | st.tuples(inner, inner)
        | st.frozensets(st.integers())
    ),
    max_leaves=12,
)


@examples(60)
@given(ANYTHING)
def test_to_json_anything_becomes_json_and_utf8(value: object) -> None:
    found = to_json("arguments", value)
    json.loads(found.decode("utf-8"), parse_constant=pytest.fail)


@given(st.text(st.characters(), max_size=50))
def test_validation_a_cleaned_text_can_be_written_and_cleaning_twice_changes_nothing(text: str) -> None:
    once = clean(text)
    once.encode("utf-8")
    assert clean(once) is once
    assert len(once) == len(text)


def test_validation_a_text_of_the_greatest_length_is_whole_and_a_longer_one_loses_its_middle() -> None:
    assert clean("x" * MAX_TEXT) == "x" * MAX_TEXT
    longer = clean("a" * (MAX_TEXT // 2) + "b" + "c" * (MAX_TEXT // 2))
    assert "[… 1 of 200,001 characters left out, hash " in longer
    assert clean("abcdefgh", 4).startswith("ab\n[… 4 of 8 characters left out")
    assert clean("a" * 300_000) != clean("a" * 150_000 + "b" + "a" * 149_999)  # told apart by what is left out


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"b": 1, "a": [True, None]}, '{"b":1,"a":[true,null]}'),
        ((1, 2), "[1,2]"),
        (math.nan, "null"),
        ([math.inf], "[null]"),
        (2**63, str(2**63)),
        (Decimal("1.50"), '"1.50"'),
        (Decimal("NaN"), '"NaN"'),
        (datetime.date(2026, 1, 2), '"2026-01-02"'),
        (uuid.UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
        (Path("a"), '"a"'),
        ("\ud800", '"\ufffd"'),
        ({"\ud800": 2j}, '{"\ufffd":"2j"}'),
        (["\ud800", 10**400], '["\ufffd","int of 1329 bits"]'),  # 400 log2(10) = 1328.8
    ],
    ids=repr,
)
def test_to_json_values_become(value: Any, expected: str) -> None:
    assert to_json("arguments", value).decode() == expected


def test_to_json_a_dataclass_becomes_its_fields() -> None:
    @dataclasses.dataclass
    class Point:
        x: int

    assert to_json("arguments", Point(1)) == b'{"x":1}'


@pytest.mark.slow
@pytest.mark.parametrize("kind", [list, dict, tuple])
def test_to_json_a_hundred_levels_are_kept_and_more_are_refused(kind: type) -> None:
    def nest(levels: int, inmost: Any) -> Any:
        for _ in range(levels):
            inmost = {"x": inmost} if kind is dict else kind([inmost])
        return inmost

    for inmost in (1, "\ud800", "[[["):
        assert to_json("arguments", nest(100, inmost))
        for levels in (101, 500, 100_000):
            with pytest.raises(ValueError, match=r"^arguments must be nested at most 100 levels deep$"):
                to_json("arguments", nest(levels, inmost))


def test_to_json_many_brackets_side_by_side_are_no_depth() -> None:
    value = [[], {}, '[[{"\\', "\\"] * 500
    assert json.loads(to_json("arguments", value)) == value


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda: check_text("f", 5), "f must be a str, not 5"),
        (lambda: check_text("f", " ", empty=False), "f must not be empty, not ' '"),
        (lambda: check_number("f", "1"), "f must be a number, not '1'"),
        (lambda: check_number("f", True), "f must be a number, not True"),
        (lambda: check_number("f", math.nan), "f must be a finite number, not nan"),
        (lambda: check_number("f", -math.inf), "f must be a finite number, not -inf"),
        (lambda: check_number("f", 2, least=0, most=1), r"f must be in \[0, 1\], not 2"),
        (lambda: check_number("f", -1, least=0), "f must be 0 or more and finite, not -1"),
        (lambda: check_number("f", 1, most=0), "f must be at most 0 and finite, not 1"),
        (lambda: check_number("f", 10**400, least=0), "f must be 0 or more and finite, not 1000"),
        (lambda: check_number("f", 10**5000), "f must be a finite number, not int"),
        (lambda: check_count("f", 1.0), "f must be an int, not 1.0"),
        (lambda: check_count("f", False), "f must be an int, not False"),
        (lambda: check_count("f", -1), "f must be 0 or more, not -1"),
        (lambda: check_count("f", 9, most=8), r"f must be in \[0, 8\], not 9"),
        (lambda: check_flag("f", 1), "f must be True or False, not 1"),
        (lambda: check_text("f", b"x" * 1_000), "f must be a str, not b'x{78}…$"),
    ],
)
def test_check_number_a_message_names_the_field_and_the_value(check: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"^{message}"):
        check()
