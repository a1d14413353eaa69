"""Moments as people name them."""

from __future__ import annotations

import pytest

from coherence.cli.moments import parse_moment

NOW = 1_795_856_400.0  # 2026-11-28 09:00:00 UTC


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", NOW - 30),
        ("2h", NOW - 7_200),
        ("1.5 h ago", NOW - 5_400),
        ("1w", NOW - 604_800),
        ("2026-11-28", NOW - 9 * 3_600),
        ("2026-11-28T09:00", NOW),
        (" 2026-11-28 10:00:00+01:00 ", NOW),
    ],
)
def test_parse_moment_takes_ages_dates_and_times(text: str, seconds: float) -> None:
    assert parse_moment(text, NOW) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-2h", "2 hours", "2026-13-01", "9" * 400 + "h", "\x1b[31m", "nan"])
def test_parse_moment_what_is_none_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match="is no age such as 2h or 7d, and no date or time such as"):
        parse_moment(text, NOW)
