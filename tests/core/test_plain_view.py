"""A text without what stands between its characters, and the way back to their places."""

from __future__ import annotations

import re

import pytest
from growth import check_growth
from hypothesis import given
from hypothesis import strategies as st

from coherence.core.plain_view import PlainView, found_decoded, found_without_escapes, without

PIECES = [
    "word",
    "a",
    "%3D",
    "%2f",
    "%252F",
    "%",
    " ",
    "\n",
    "\x1b[31m",
    "\x1b[0m",
    "\x1b]8;;http://h\x07",
    "\\u001b[1m",
    "é",
]
texts = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


def places_of(seen: str, what: str) -> list[tuple[int, int, str]]:
    return [(found.start(), found.end(), what) for found in re.finditer(re.escape(what), seen)]


@given(st.lists(st.tuples(st.text("ab", max_size=3), st.booleans()), max_size=8))
def test_plain_view_each_character_is_found_again_at_its_place(parts: list[tuple[str, bool]]) -> None:
    text = "".join(f"<{part}>" if hidden else part for part, hidden in parts)
    view = without(text, re.compile("<[ab]*>"))
    assert view.text == "".join(part for part, hidden in parts if not hidden)
    for at, char in enumerate(view.text):
        start, end = view.span(at, at + 1)
        assert text[start:end] == char


def test_plain_view_a_piece_that_stands_for_a_longer_one_is_found_whole() -> None:
    view = PlainView([("a", 0, 1), ("=", 1, 4), ("b", 4, 5)])
    assert [view.span(*place) for place in ((0, 1), (1, 2), (0, 2), (1, 3), (0, 3))] == [
        (0, 1),
        (1, 4),
        (0, 4),
        (1, 5),
        (0, 5),
    ]


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("\x1b[31mghost", 10),
        ("g\x1b[31mho\x1b[0mst", 14),
        ("g\x1b]8;;http://h\x07host", 19),
        ("g\x1b]0;title\x1b\\host", 16),
        ("g\\u001b[31mhost", 15),
        ("g\\x1b[1;31mhost", 15),
        ("g\\033[Khost", 11),
    ],
)
def test_found_without_escapes_colours_and_titles_are_seen_through(text: str, end: int) -> None:
    places = list(found_without_escapes(text, lambda seen: places_of(seen, "ghost")))
    assert places[0] == (text.index("g", 5 if text[0] == "\x1b" else 0), end, "ghost")


def test_found_without_escapes_a_colour_ends_a_word_too() -> None:
    text = "word\x1b[31mghost"
    places = list(found_without_escapes(text, lambda seen: places_of(seen, " ghost")))
    assert places == [(8, 14, " ghost")]


def test_found_without_escapes_an_address_within_a_sequence_is_looked_at() -> None:
    text = "\x1b]8;;http://ghost\x07see\x1b]8;;\x07"
    assert list(found_without_escapes(text, lambda seen: places_of(seen, "ghost"))) == [(12, 17, "ghost")]


@pytest.mark.parametrize(
    ("text", "what", "place"),
    [
        ("?k=a%2Fb&c", "a/b", (3, 8)),
        ("?k=a%252Fb&c", "a/b", (3, 10)),
        ("k%3da", "k=a", (0, 5)),
        ("x %41%42", "AB", (2, 8)),
    ],
)
def test_found_decoded_an_encoded_character_is_one(text: str, what: str, place: tuple[int, int]) -> None:
    assert list(found_decoded(text, lambda seen: places_of(seen, what))) == [(*place, what)]


@pytest.mark.parametrize("text", ["", "100% sure", "%", "%zz", "%e9t%e9", "no code"])
def test_found_decoded_what_is_not_encoded_is_not_looked_at(text: str) -> None:
    assert list(found_decoded(text, lambda seen: [(0, len(seen), "all")])) == []


@given(texts)
def test_found_places_are_places_of_the_text(text: str) -> None:
    for find in (found_without_escapes, found_decoded):
        for start, end, _ in find(text, lambda seen: places_of(seen, "word")):
            assert 0 <= start < end <= len(text)
            assert text[start:end].startswith("word"[:1]) and text[start:end].endswith("word"[-1:])


def test_found_in_views_costs_time_in_proportion_to_the_text() -> None:
    pieces = [
        "%41",
        "%",
        "a%41 ",
        "\x1b",
        "\x1b[",
        "\x1b[31",
        "\x1b[31m",
        "\x1b]8;;",
        "\\u001b[",
        "\\\\u001b[1m",
        "a\x1b[0m",
        "%25",
    ]
    check_growth(lambda text: list(found_decoded(text, lambda seen: places_of(seen, "w"))), pieces)
    check_growth(lambda text: list(found_without_escapes(text, lambda seen: places_of(seen, "w"))), pieces)
