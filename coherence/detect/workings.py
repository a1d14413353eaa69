"""Sums that an answer writes out, checked against the result that it states."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from coherence.core.lazy import lazy_regex
from coherence.core.readings import Claim
from coherence.detect.arithmetic import asked_of
from coherence.detect.values import quantity

AROUND = 60
"""Characters between a sum and what it makes: 26 g from the tofu (17.3 x 1.5)."""

MAX_WORKINGS = 30
"""Sums of one text that are checked."""

_SIGN = lazy_regex(
    r"[ +×*÷x](?:(?<=[\d%€$£)] )[+×*÷]|(?<=[\d%€$£)][+×*÷])|(?<=\d )x(?= ?[$€£]?\d)|(?<=\dx)(?= ?[$€£]?\d)"
    r"|(?<=[\d%€$£] )[-−–/:](?= [$€£]?\d))"
)
"""A sign between numbers; those that part other things too, with spaces around."""
_NUMBER = r"[$€£]?\d[\d.,']{0,20}(?<=\d) ?[€$£]?"
_FIRST = lazy_regex(rf"(?<![\w.,]){_NUMBER}\Z")
_TERM = lazy_regex(rf" ?(?P<sign>[+×*÷/:x−–-]) ?(?P<number>{_NUMBER})(?![\w%]|[.,]\d)")
_RESULT = lazy_regex(
    rf"\s?(?P<exact>[=≈]|which is|makes|ergibt|macht|gibt|font|fait|son|da|fanno)\s?(?:about|etwa|ca\.)?\s?"
    rf"(?P<number>{_NUMBER})(?![\w]|[.,]\d)",
    re.I,
)


class Working(NamedTuple):
    """A sum that is written out."""

    result: float
    start: int
    end: int
    said: str
    """Product that it is said to make; empty where nothing directly behind says so."""
    said_start: int
    is_right: bool
    """True if that is so, as exactly as it is said."""


def workings(text: str) -> Iterator[Working]:
    """Yield the sums of a folded text.

    Examples
    --------
    >>> [(each.result, each.said, each.is_right) for each in workings("3 x 1.90 + 2.50 = 8.20, and 12.5 + 3 = 16.5.")]
    [(8.2, '8.20', True), (15.5, '16.5', False)]
    """
    end = count = 0
    for sign in _SIGN.finditer(text):
        if sign.start() < end or count >= MAX_WORKINGS:
            continue
        first = _FIRST.search(text, max(end, sign.start() - 24), sign.start())
        if first is None:
            continue
        terms, at = [("+", *_read(first[0]))], sign.start()
        while (term := _TERM.match(text, at)) is not None and len(terms) < MAX_WORKINGS:
            terms.append((term["sign"], *_read(term["number"])))
            at = term.end()
        end = at
        if len(terms) < 2 or any(value is None for _, value, _ in terms):
            continue
        count += 1
        found = _evaluate([(sign, value or 0.0, grain) for sign, value, grain in terms])
        if found is None:
            continue
        result, error = found
        told = _RESULT.match(text, at)
        value, grain = _read(told["number"]) if told is not None else (None, 0.0)
        if told is None or value is None:
            yield Working(result, first.start(), at, "", 0, is_right=True)
            continue
        end = told.end()
        near = 0.5 * grain + error + 1e-9 * abs(result)
        right = abs(value - result) <= (near if told["exact"] != "≈" else max(near, 0.05 * abs(result)))
        yield Working(result, first.start(), end, told["number"].strip(), told.start("number"), is_right=right)


def _read(text: str) -> tuple[float | None, float]:
    got = quantity(text.strip(" $€£"))
    return (got.value, got.grain) if got is not None else (None, 0.0)


def _evaluate(terms: list[tuple[str, float, float]]) -> tuple[float, float] | None:
    """Return what terms make, products first, and how far rounded terms may put it off."""
    sums: list[tuple[float, float]] = []
    for sign, value, grain in terms:
        error = 0.5 * grain if grain < 1.0 else 0.0
        if sign in "+-−–":
            sums.append((-value if sign in "-−–" else value, error))
            continue
        before, its = sums.pop()
        if sign in "×*x":
            sums.append((before * value, abs(before) * error + abs(value) * its))
        elif value:
            sums.append((before / value, abs(before / value) * (error / abs(value)) + its / abs(value)))
        else:
            return None
    return sum(value for value, _ in sums), sum(error for _, error in sums) if len(terms) > len(sums) else 0.0


def gives(working: Working, claim: Claim) -> bool:
    """Tell whether a number is what a sum makes that stands near it."""
    if claim.value is None or not working.is_right:
        return False
    if claim.start != working.said_start:
        away = max(working.start - claim.start, claim.start - working.end)
        if not 0 <= away <= AROUND:
            return False
    asked = asked_of("", claim)
    return abs(asked.value - abs(working.result)) <= asked.half * (1.0 + 1e-9)
