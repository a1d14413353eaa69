"""Names and counts that an answer states although no result has them."""

from __future__ import annotations

import pytest

from coherence.detect.records import MAX_RESULT, Kept, keep_result
from coherence.detect.sources import Given, take_source
from coherence.detect.terms import unknown_terms
from detect.judging import CHOSEN


def unknown(result: str, answer: str) -> list[str]:
    given, kept = Given(), Kept()
    take_source(given, 1, result, CHOSEN)
    keep_result(kept, 1, result)
    return [name for name, _ in unknown_terms(given, kept, answer)]


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


def test_unknown_terms_says_nothing_where_a_long_result_is_not_known_any_more() -> None:
    assert unknown("x --y " * MAX_RESULT, "Use --skip-sums.") == []
