"""Digits of a text, and what stands behind them: most values have some, and most of a text has none."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from coherence.core.lazy import lazy_regex
from coherence.detect.read_once import read_once

REACH = 200
"""Characters before and behind a digit within which every value ends that has it, with what is looked at around it."""

LEAST_PARTED = 1_000
"""Characters of a text in which stretches without digits are left out."""

_DIGIT = lazy_regex(r"\d")
_SPACE = lazy_regex(r"[ \n]")
_BEHIND = lazy_regex(r"\d[ -]?([^\d])", re.S)


@read_once
def near_digits(text: str) -> tuple[tuple[int, int], ...]:
    """Return the places of the digits of a text: stretches from white space to white space, none without a digit.

    No digit is outside of them, and none is near their ends but where the text ends: an expression whose every match
    has a digit finds in them what it finds in the text.

    Examples
    --------
    >>> near_digits("17 cats"), near_digits("cats")
    (((0, 7),), ())
    """
    if not (any(map(text.__contains__, "0123456789")) if text.isascii() else _DIGIT.search(text)):
        return ()
    if len(text) < LEAST_PARTED or not text.isascii():
        return ((0, len(text)),)
    places = np.flatnonzero(np.frombuffer(text.encode(), np.uint8) - np.uint8(ord("0")) < 10)
    bounds = np.concatenate(([-REACH], places, [len(text) + REACH]))
    found, start = [], 0
    for gap in np.flatnonzero(np.diff(bounds) > 2 * REACH).tolist():
        far, near = int(bounds[gap]) + REACH, int(bounds[gap + 1]) - REACH
        space = _SPACE.search(text, far, near)
        if space is not None:
            if gap:
                found.append((start, space.start()))
            start = max(text.rfind(" ", far, near), text.rfind("\n", far, near)) + 1
    if start <= places[-1]:
        found.append((start, len(text)))
    return tuple(found)


def digit_matches(pattern: re.Pattern[str], text: str, part: re.Pattern[str] | None = None) -> Iterator[re.Match[str]]:
    """Yield what an expression finds in a text, if every match of it has a digit, and a part that another one finds."""
    for start, end in near_digits(text):
        if part is None or part.search(text, start, end) is not None:
            yield from pattern.finditer(text, start, end)


@read_once
def behind_digits(text: str) -> frozenset[str]:
    """Return the characters behind the numbers of a text, or behind a space or a hyphen there.

    Examples
    --------
    >>> sorted(behind_digits("3 h, 12:30, 4-hour 17"))
    [',', ':', 'h']
    """
    return frozenset([sign for start, end in near_digits(text) for sign in _BEHIND.findall(text, start, end)])
