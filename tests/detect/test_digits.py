"""What is looked for near digits alone is what is found in the whole text."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coherence.detect import dates, extractors, notations, sources
from coherence.detect.digits import LEAST_PARTED, REACH, behind_digits, digit_matches, near_digits

PATTERNS = [
    *(extractors._ID, extractors._NUMBER, extractors._PAPER, extractors._TIME),
    *(dates._DATE, notations._WORDED, notations._PARTED, sources._BEHIND_LETTERS, sources._LONE_DAY),
]
VALUES = """17 1,284.50 €5 2024-05-01 12/05/1990 14.5. 5.30pm
12:30:05 3h12m 2d 2:05 x4 Sn96.5 10.1234/abc+1 2310.06825v2
CVE-2021-44228 #12 id:7 DE89&3704&0044&0532&0130&00 +49&30&1234567 v1.2.3 the&7th 4&hours&and&5&min 12&500&kg"""
FAR = ["word " * 90, "line\n" * 120, "-" * (2 * REACH + 9), "a" * 500, "id " * 150, "May of " * 70, " " * 450]
PARTS = st.one_of(
    st.sampled_from([value.replace("&", " ") for value in VALUES.split()]),
    st.sampled_from(FAR),
    st.sampled_from([" ", "\n", "id: ", "é", "٣", "."]),
    st.text(max_size=5),
)


def spans(matches: Iterable[re.Match[str]]) -> list[tuple[int, int]]:
    """Return where values were found that have a digit; some expressions skip words on their way to one."""
    found = [(match, "found" if "found" in match.re.groupindex else 0) for match in matches]
    return [match.span(group) for match, group in found if re.search(r"\d", match[group] or "")]


@given(st.lists(PARTS, max_size=12))
@example(["line\n" * 120, "17", "word " * 90])
def test_digit_matches_are_those_in_the_whole_text(parts: list[str]) -> None:
    text = "".join(parts)
    for pattern in PATTERNS:
        assert spans(digit_matches(pattern, text)) == spans(pattern.finditer(text))


def test_near_digits_leaves_out_what_is_far_from_them_and_parts_no_word() -> None:
    far = "word " * 200
    assert near_digits(far) == near_digits("") == ()
    text = f"{far}17{far}{far}5"
    (start, end), (again, last) = near_digits(text)
    assert (text[start - 1], text[end], text[again - 1], last) == (" ", " ", " ", len(text))
    assert REACH <= text.index("17") - start < REACH + 9 and REACH <= end - text.index("17") < REACH + 9
    assert near_digits("a" * LEAST_PARTED + "1") == ((0, LEAST_PARTED + 1),)


@pytest.mark.parametrize(("text", "signs"), [("3 h", "h"), ("12:30 - 4-hour", ":-h"), ("17", ""), ("５時", "時")])
def test_behind_digits_tells_what_may_be_the_unit(text: str, signs: str) -> None:
    assert behind_digits(text) == set(signs)
