"""Six scores from measures: each term on its own, the worst term, what is unknown, and trends."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.guard.router.lines import KNOWN, LINES, TERMS, known_measures, line_score, line_scores, trends

VALUES = st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True), st.integers())
MEASURES = st.dictionaries(st.sampled_from([*sorted(KNOWN), "colour", ""]), VALUES)


@pytest.mark.parametrize("line", LINES)
def test_line_score_each_term_alone_reaches_both_ends_of_its_line(line: str) -> None:
    for name, term in TERMS[line].items():  # type: ignore[index]
        assert line_score(line, {name: term.good}) == 1.0  # type: ignore[arg-type]
        assert line_score(line, {name: term.bad}) == 0.0  # type: ignore[arg-type]


def test_no_measure_belongs_to_two_lines() -> None:
    assert len(KNOWN) == sum(len(terms) for terms in TERMS.values())


def test_line_score_half_of_a_line_is_its_worst_term() -> None:
    # error_rate 0.5 scores 0, the others 1: mean 3/4, worst 0, so 0.375.
    measures = {"success_rate": 1.0, "error_rate": 0.5, "pressure": 0.0, "coherence_index": 0.9}
    assert line_score("stability", measures) == 0.375
    assert line_score("stability", measures | {"error_rate": 0.1}) == 0.875  # 0.8: mean 0.95, worst 0.8


def test_line_scores_an_unknown_term_leaves_its_line_and_an_unknown_line_is_none() -> None:
    assert line_score("stability", {"success_rate": 0.8, "pressure": None}) == 0.8
    assert line_scores({"success_rate": math.nan, "goal_hijack": None}) == (None,) * 6


@given(MEASURES)
def test_known_measures_scores_are_in_range_whatever_the_measures(measures: dict[str, float | None]) -> None:
    for score in line_scores(measures):
        assert score is None or 0.0 <= score <= 1.0
    assert all(math.isfinite(value) for value in known_measures(measures).values())


@given(MEASURES, MEASURES)
def test_trends_are_in_range_and_turn_their_sign_with_time(
    earlier: dict[str, float | None], later: dict[str, float | None]
) -> None:
    for there, back in zip(trends(earlier, later), trends(later, earlier), strict=True):
        assert (there is None) == (back is None)
        assert there is None or (-1.0 <= there <= 1.0 and back == -there)


def test_trends_a_term_that_comes_or_goes_is_no_trend() -> None:
    earlier, later = {"success_rate": 1.0}, {"success_rate": 1.0, "error_rate": 0.5}
    assert line_score("stability", later) == 0.25  # which a plain difference would take for a fall by 0.75
    assert trends(earlier, later)[0] == 0.0
