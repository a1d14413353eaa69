"""Tokens: what counts as one, how much it weighs, and that no text breaks it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.detect.text_analysis import MAX_CHARS, overlap, tokens, weight


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("IBAN US133000000121212121212", {"iban", "us133000000121212121212"}),
        ("get_most_recent_transactions", {"recent", "transaction"}),  # "get" and "most" are function words
        ("createCalendarEvent", {"creat", "calendar", "event"}),
        ("https://Example.com/a/", {"https://example.com/a"}),
        ("star eve/notes. See https://x.org/a, ok?", {"star", "eve/notes", "see", "https://x.org/a", "ok"}),
        ("due 2024-05-01, 1,300.50 EUR", {"due", "2024-05-01", "1,300.50", "eur"}),
        ("東京都", {"東京", "京都"}),
        ("отправить деньги", {"отправить", "деньги"}),
        ("測試/測試", {"測試"}),
        ("the of and", set()),
        ("", set()),
    ],
)
def test_a_text_falls_into_its_tokens(text: str, expected: set[str]) -> None:
    assert tokens(text) == expected


@pytest.mark.parametrize(("token", "expected"), [("a.b", 3.0), ("x/y", 3.0), ("abc1", 2.0), ("12", 0.5), ("cat", 1.0)])
def test_tokens_names_and_numbers_weigh_more(token: str, expected: float) -> None:
    assert weight(token) == expected


def test_tokens_only_the_ends_of_a_long_text_are_read() -> None:
    found = tokens("first " + "filler " * MAX_CHARS + "last")
    assert found <= {"first", "filler", "fill", "last"} and {"first", "last"} <= found  # the cut may split a word


@given(st.text(alphabet=st.characters(), max_size=300), st.text(max_size=300))
def test_overlap_is_symmetric_and_bounded(one: str, other: str) -> None:
    first, second = tokens(one), tokens(other)
    assert overlap(first, second) == overlap(second, first)
    assert 0.0 <= overlap(first, second) <= 1.0 + 1e-12
    assert not first or overlap(first, first) == pytest.approx(1.0)
