"""Numbers that are given ones: rounded, or on another scale."""

from __future__ import annotations

import re
from typing import NamedTuple

from coherence.core.lazy import lazy_regex, one_of
from coherence.core.readings import Claim
from coherence.detect.number_words import MEASURES
from coherence.detect.sources import Given
from coherence.detect.values import CURRENCIES, NARROW, UNITS, number_form, quantity

CURRENCY_NAMES = frozenset(CURRENCIES.values())

MOST_ROUNDED = 0.05
"""Share of a value by which it differs at most from what "about" tells of."""

DAY, HOUR, MINUTE = 86_400.0, 3_600.0, 60.0

SCALES_OF = {
    "s": (DAY, HOUR, MINUTE, 1.0, 0.001),
    "m": (1000.0, 1.0, 0.01, 0.001),
    "g": (1e6, 1000.0, 1.0, 0.001),
    "byte": (1e12, 1e9, 1e6, 1e3, 1.0),
}
"""Base unit -> the units in which it is written, as how many of it."""

_LAST_WORD = lazy_regex(r"(?<![^\W\d_])[^\W\d_]{1,40}+\Z")
_ABOUT = lazy_regex(
    r"(?:\b(?:about|around|approx(?:imately|\.)?|roughly|nearly|almost|(?:just |a little |slightly )?(?:over|under)"
    r"|(?:more|less) than|close to|circa|ca\.|rund|etwa|ungefähr|knapp|gut|fast|über|unter|environ|près de|presque"
    r"|plus de|moins de|à peu près|unos|unas|alrededor del?|cerca del?|casi|más de|menos de|aproximadamente|quasi|oltre"
    r"|meno di|più di|cerca|ongeveer|bijna|rond|vers)(?: (?:the|a|an|el|le|la|il))?|[~≈]|约|約|大约|大約)\s?[$€£]?\Z",
    re.I,
)
_DOLLARS, _ENDS_ABOUT = frozenset("$€£"), frozenset(".~≈")
"""Signs between such words and a number, and what they end with other than a letter."""
_DEGREES = lazy_regex(r" ?(?:°|º|degrees? ?)? ?(?P<scale>[FC]|fahrenheit|celsius)\b", re.I)
_FURTHER = lazy_regex(
    r"\s?(?:-|–|to|and|or|bis|und|oder|à|et|ou|a|y|o|e|tot|en)\s?[-−]?\d{1,4}(?:[.,]\d)?(?![\d.,])", re.I
)
"""The second of two numbers that share what stands behind it."""
_UNIT = one_of(UNITS)
_WRITTEN = lazy_regex(rf"(\d[\d.,'{NARROW} ]{{0,40}}?)[ -]?(?:{_UNIT})", re.I)


class Asked(NamedTuple):
    """A number that is to be reckoned, in the unit in which it is written."""

    value: float
    half: float
    """Distance that a result may be away."""
    unit: str
    factor: float
    """Base units of the written one."""
    round: float = 0.5
    """Half of what its last digit is worth that is no zero: many things make a round number."""


def asked_of(text: str, claim: Claim) -> Asked:
    """Return the number of a claim as it is written, and how exactly it is meant.

    Examples
    --------
    >>> from coherence.detect.extractors import numbers
    >>> [asked_of(said, numbers(said)[0])[:4] for said in ("It is about 208,000 km", "It is 36 cm")]
    [(208000.0, 500.0, 'm', 1000.0), (36.0, 0.5, 'm', 0.01)]
    """
    value, factor = abs(claim.value or 0.0), 1.0
    if claim.unit and claim.unit in SCALES_OF:
        word = _LAST_WORD.search(claim.text)
        named = MEASURES.get(word[0].lower()) or UNITS.get(word[0].lower()) if word is not None else None
        factor = named[1] if named is not None and named[0] == claim.unit else claim.grain or 1.0
    value /= factor
    half = 0.5 * claim.grain / factor if claim.grain <= factor else 0.5
    zeros = len(f"{value:.0f}") - len(f"{value:.0f}".rstrip("0")) if not value % 1.0 and value else 0
    coarse = max(half, min(0.5 * 10.0**zeros, MOST_ROUNDED * value)) if zeros else half
    if is_about(text, claim):
        half = coarse
    return Asked(value, half, claim.unit, factor, coarse)


def is_about(text: str, claim: Claim) -> bool:
    """Tell whether a number is said to be a rough one."""
    at = claim.start - (text[claim.start - 1 : claim.start] in _DOLLARS)
    at -= text[at - 1 : at].isspace()
    last = text[at - 1 : at]
    if not last.isalpha() and last not in _ENDS_ABOUT:
        return False
    return _ABOUT.search(text, max(0, claim.start - 28), claim.start) is not None


def rounded(given: Given, text: str, claim: Claim) -> bool:
    """Tell whether a number is a given one, rounded to the digits that are stated; after "about" to two digits.

    A whole number counts as rounded only where the given one has a fraction: 1,234 is not 1,235. Where a source gives
    no unit, only the digits are compared: 45 is 45 minutes.
    """
    if claim.value is None:
        return False
    value, unit = abs(claim.value), claim.unit
    half = 0.5 * claim.grain
    if is_about(text, claim):
        half = max(half, 0.05 * value)
    half *= 1.0 + 1e-9  # a distance of exactly a half may be a little more in binary
    if unit == "clock":
        return False
    bare = _digits(claim, value) if unit else value
    thousand = 1000.0 * value if number_form(1000.0 * value, unit) in claim.forms else None  # 1.200 €
    for number in given.numbers:
        its, of = abs(number.value), number.unit
        if (not unit or not of or of == unit) and abs(its - value) <= half:
            return True
        if of:
            continue
        if its == thousand or abs(its - bare) * value <= half * bare:
            return True
        if unit == "%" and abs(100.0 * its - value) <= half:
            return True
    return False


def _digits(claim: Claim, value: float) -> float:
    """Return the number of an amount as it is written, 45 of 45 minutes; its value where that says more."""
    written = _WRITTEN.fullmatch(claim.text)
    got = quantity(written[1]) if written is not None else None
    return got.value if got is not None else value


def has_degrees(text: str, claim: Claim) -> bool:
    """Tell whether a number is one of degrees."""
    return _DEGREES.match(text, claim.start + len(claim.text)) is not None


def is_converted(given: Given, text: str, claim: Claim) -> bool:
    """Tell whether a temperature is a given one on the other scale.

    Examples
    --------
    >>> from coherence.detect.extractors import numbers
    >>> from coherence.detect.sources import take_source
    >>> given = Given()
    >>> claims = take_source(given, 1, "between 4 °C and 12 °C", [numbers])
    >>> [is_converted(given, said, numbers(said)[0]) for said in ("39 to 54 °F", "35 to 54 °F")]
    [True, False]
    """
    end = claim.start + len(claim.text)
    found = _DEGREES.match(text, end)
    if found is None and (further := _FURTHER.match(text, end)) is not None:
        found = _DEGREES.match(text, further.end())
    if found is None or claim.value is None:
        return False
    fahrenheit = found["scale"][0].lower() == "f"
    half = max(0.5 * claim.grain, 0.5) + 1e-9
    for number in given.numbers:
        other = number.value * 9 / 5 + 32 if fahrenheit else (number.value - 32) * 5 / 9
        if abs(other - claim.value) <= half:
            return True
    return False
