"""Dates in digits, with the name of a month, and without a year."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import takewhile
from typing import TypeAlias

from coherence.core.lazy import lazy_regex, one_of
from coherence.core.readings import MAX_CLAIMS, Claim
from coherence.detect.digits import behind_digits, digit_matches, near_digits
from coherence.detect.values import MONTHS, date_form, words_once

_DATE = lazy_regex(
    r"(?=\d{1,4}[-./年])(?<![^\W\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af])(?<![./])(?:(?P<y>(?:19|20)\d\d)-(?P<m>\d\d?)-(?P<d>\d\d?)(?!\d)"
    r"|(?P<y6>(?:19|20)\d\d)-(?P<m6>0[1-9]|1[0-2])(?![\w/-])"  # 2024-05
    r"|(?P<a>\d\d?)[/.](?P<b>\d\d?)[/.](?P<y2>(?:19|20)\d\d)(?![\w/])"
    r"|(?P<d5>\d\d?)\.(?P<m5>[01]?\d)\.(?=[\s,;)]|\Z)"  # 14.5. without a year
    r"|(?P<a2>\d\d?)/(?P<b2>\d\d?)/(?P<y4>\d\d)(?![\w/])"
    r"|(?P<y3>(?:19|20)\d\d)(?:/(?P<m3>\d\d?)/(?P<d3>\d\d?)(?![\w/])|年(?P<m4>\d\d?)月(?P<d4>\d\d?)日))"
)
_MAYBE_DATE = lazy_regex(r"\d(?:(?<=(?:19|20)\d\d)[-/年]|[/.]\d\d?[/.])")
"""A part of every date in digits, which few texts have; it is found several times faster."""
_IN_DATES = frozenset("-/.年")
_MONTHS = lazy_regex(rf"[jfmasondeglJFMASONDEGL](?<!\w.)(?i:{one_of(MONTHS, '(?<=[{}{}])')})\b\.?")
_MONTH_NAMES = frozenset(MONTHS)
_DAY_BEFORE = lazy_regex(
    # the second day of "3-5 May"
    r"(\d(?:(?<![\d.:/-]\d)|(?<=\s\d-\d)|(?<=\s\d\d-\d))\d?)(?:st|nd|rd|th|\.)?(?:\s{1,30}|-|\s(?:of|de)\s)\Z",
    re.I,
)
# The number in "May 10:30" or "May 1,200" is no day.
_DAY_AFTER = lazy_regex(r"(?:\s{1,30}|-)(\d\d?)(?:st|nd|rd|th)?(?!:?\d|,\d{3}(?!\d))", re.I)
_YEAR_AFTER = lazy_regex(r"(?:,?\sof|\sde|,)?(?:\s{1,30}|-)((?:19|20)\d\d)\b")

_Day: TypeAlias = tuple[int | None, int, int | None]
"""Year, month and day of a date, as far as they are said."""


def dates(text: str) -> list[Claim]:
    """Dates in digits or with the name of a month; ``01/05/2024`` is either of two days. Days without a year count."""
    found: list[Claim] = []
    if not near_digits(text):
        return found
    in_digits = digit_matches(_DATE, text, _MAYBE_DATE) if not _IN_DATES.isdisjoint(behind_digits(text)) else ()
    for match in takewhile(lambda _: len(found) < MAX_CLAIMS, in_digits):
        if match["d5"]:
            if 1 <= int(match["d5"]) <= 31 and 1 <= int(match["m5"]) <= 12:
                found.append(_date(match[0], match.start(), (None, int(match["m5"]), int(match["d5"]))))
            continue
        if match["y6"]:
            found.append(_date(match[0], match.start(), (int(match["y6"]), int(match["m6"]), None)))
            continue
        if match["y"] or match["y3"]:
            year = int(match["y"] or match["y3"])
            month, day = int(match["m"] or match["m3"] or match["m4"]), int(match["d"] or match["d3"] or match["d4"])
            found.append(_date(match[0], match.start(), (year, month, day)))
        else:
            year = int(match["y2"] or f"20{match['y4']}")
            one, two = int(match["a"] or match["a2"]), int(match["b"] or match["b2"])
            found.append(_date(match[0], match.start(), (year, one, two), (year, two, one)))

    for match in takewhile(lambda _: len(found) < MAX_CLAIMS, _months(text)):
        start, end = match.span()
        before = text[max(0, start - 40) : start]
        spaces = len(before) - len(before.rstrip())
        # A match is a day of two digits at most, two letters and "of" before these spaces.
        found_day = _DAY_BEFORE.search(text, max(0, start - spaces - 8), start)
        if found_day is not None:
            start = found_day.start(1)
        elif (found_day := _DAY_AFTER.match(text, end)) is not None:
            end = found_day.end()
        found_year = _YEAR_AFTER.match(text, end)
        end = found_year.end() if found_year is not None else end
        if found_day is not None or found_year is not None:
            month = MONTHS[match[0].lower().rstrip(".")]
            in_year, on_day = int(found_year[1]) if found_year else None, int(found_day[1]) if found_day else None
            found.append(_date(text[start:end], start, (in_year, month, on_day)))
    return found


def _months(text: str) -> Iterator[re.Match[str]]:
    """Yield the names of months in a text that a digit may be near to."""
    for start, end in near_digits(text):
        if not text.isascii() or not _MONTH_NAMES.isdisjoint(words_once(text[start:end])):
            yield from _MONTHS.finditer(text, start, end)


def _date(text: str, start: int, *days: _Day) -> Claim:
    """Return the claim of a date that is one of some days."""
    forms, also = _day_forms(days)
    # A source may name a day that there is not, too.
    return Claim("date", text, start, forms or (f"d:{text.lower()}",), also)


@lru_cache(maxsize=5_000)
def _day_forms(days: tuple[_Day, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the forms of some days, and what a source that has them gives beside them."""
    forms, also = list[str](), list[str]()
    for year, month, day in days:
        form = date_form(year, month, day)
        if form is None:
            continue
        forms.append(form)
        if year is None:
            also.append(form.replace("d:", "anyyear:"))
        else:
            also += [f"d:{year:04d}-{month:02d}", f"n:{year}", *([f"d:{month:02d}-{day:02d}"] if day else [])]
    return tuple(forms), tuple(also)
