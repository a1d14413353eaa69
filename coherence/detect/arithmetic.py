"""Numbers that follow from given ones: rounded, or by one simple step between values that stand near each other.

Any number is the sum of some two of a thousand. So only few are combined: neighbours in one source, the column of one
label, and the grounded numbers that the answer itself states.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import combinations, islice, pairwise, permutations

from coherence.core.lazy import lazy_regex
from coherence.core.readings import Claim
from coherence.detect.sources import Given, SeenNumber
from coherence.detect.values import CURRENCIES, NARROW, UNITS, number_form, quantity

NEIGHBOURS = 2
"""Places in a source between two numbers that are combined."""

COLUMN = 40
"""Numbers of one label in one source that are added up at most."""

FEW = 6
"""Numbers of a source up to which any of them is compared with any other."""

MULTIPLIED = 100
"""Given numbers of which multiples, and sums of any two, are known; the newest."""

LARGE = 100.0
"""A whole number from which twice of it, and what a year makes of a month, is no chance."""

CENT = 0.01

CURRENCY_NAMES = frozenset(CURRENCIES.values())

STATED = 12
"""Grounded numbers of the answer that are combined."""

_ABOUT = lazy_regex(
    r"(?:\babout|\baround|\bapprox(?:imately|\.)?|\broughly|\bnearly|\balmost|\bover|\bmore than|\bless than|\bunder"
    r"|~|≈)\s?[$€£]?\Z",
    re.I,
)
_UNIT = "|".join(sorted(UNITS, key=len, reverse=True))
_WRITTEN = lazy_regex(rf"(\d[\d.,'{NARROW} ]{{0,40}}?)[ -]?(?:{_UNIT})", re.I)


def rounded(given: Given, text: str, claim: Claim) -> bool:
    """Tell whether a number is a given one, rounded to the digits that are stated; after "about" to two digits.

    A whole number counts as rounded only where the given one has a fraction: 1,234 is not 1,235. Where a source gives
    no unit, only the digits are compared: 45 is 45 minutes.
    """
    if claim.value is None:
        return False
    value, unit = abs(claim.value), claim.unit
    half = 0.5 * claim.grain
    if _ABOUT.search(text, max(0, claim.start - 24), claim.start):
        half = max(half, 0.05 * value)
    half *= 1.0 + 1e-9
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


class Reach:
    """What one simple step makes of given numbers that stand near each other; reckoned once an answer, when needed.

    Parameters
    ----------
    given : Given
        What came in.
    """

    def __init__(self, given: Given) -> None:
        self._numbers = given.numbers
        self._between: dict[tuple[tuple[tuple[float, str], ...], str], list[float]] = {}

    def between(self, stated: tuple[tuple[float, str], ...], unit: str) -> list[float]:
        """Return what one step makes of stated numbers, for one of a unit; ``""`` where it changes nothing."""
        key = stated, unit
        if key not in self._between:
            pairs = combinations(stated, 2)
            self._between[key] = sorted(each for one, two in pairs for each in _results(one, two, unit, near=False))
        return self._between[key]

    @cached_property
    def near(self) -> list[float]:
        """Sums and differences of neighbours, and their percentages."""
        return sorted(
            result
            for one, two in _neighbours(self._numbers)
            for result in _results((abs(one.value), one.unit), (abs(two.value), two.unit), "", near=True)
        )

    @cached_property
    def spans(self) -> list[float]:
        """Seconds between times of the day."""
        return sorted(abs(one - two) for one, two in _clocks(self._numbers))

    @cached_property
    def shares(self) -> list[float]:
        """Percentages of the numbers of one source that has few: of each other, of two together, of all."""
        return sorted(_shares(self._numbers))

    @cached_property
    def cents(self) -> list[float]:
        """Sums and differences of any two given numbers of which one has cents."""
        values = list(dict.fromkeys(abs(number.value) for number in self._numbers if number.unit not in ("clock", "%")))
        pairs = combinations(values[-MULTIPLIED:], 2)
        return sorted(each for one, two in pairs if one % 1.0 or two % 1.0 for each in (one + two, abs(one - two)))

    @cached_property
    def multiples(self) -> list[float]:
        """Given amounts, and numbers with a fraction, some times over."""
        return sorted(
            times * abs(number.value)
            for number in self._numbers[-MULTIPLIED:]
            if not number.unit or number.unit in CURRENCY_NAMES
            for times in (range(2, 13) if number.value % 1.0 else (2, 12) if abs(number.value) >= LARGE else ())
        )

    @cached_property
    def columns(self) -> list[float]:
        """Sums and means of columns."""
        return sorted(_columns(self._numbers))


def _holds(values: Sequence[float], value: float, half: float) -> bool:
    """Tell whether sorted values hold one that is at most so far from another."""
    at = bisect_left(values, value - half)
    return at < len(values) and values[at] <= value + half


def derived(reach: Reach, claim: Claim, plain: Sequence[Claim]) -> bool:
    """Tell whether a number is a sum, difference, product, quotient, percentage, mean or count of given ones.

    Parameters
    ----------
    reach : Reach
        What is near the given numbers.
    claim : Claim
        The number.
    plain : sequence of Claim
        The grounded claims of the same answer.
    """
    if not claim.value:  # nothing is the difference of anything and itself
        return False
    value, unit = abs(claim.value), claim.unit
    half = (0.5 * claim.grain if claim.grain < 1.0 else 0.0) + 1e-9 * max(value, 1.0)
    stated = tuple([(abs(each.value), each.unit) for each in plain if each.value is not None][:STATED])
    if _holds(reach.between(stated, unit if unit in ("%", "clock", "s") else ""), value, half):
        return True
    if _holds(reach.near, value, half) or (unit in ("clock", "s") and _holds(reach.spans, value, half)):
        return True
    if unit == "clock":
        return False
    amounts = [
        number
        for number, of in stated
        if of == unit or (not of and unit != "%") or (not unit and of not in ("clock", "%"))
    ]
    if len(amounts) > 2 and any(abs(total - value) <= half for total in _running(amounts)):
        return True
    if unit == "%" and _holds(reach.shares, value, max(half, 0.5 * claim.grain)):
        return True
    plain_unit = not unit or unit in CURRENCY_NAMES
    if (plain_unit and _holds(reach.multiples, value, half)) or (
        claim.grain == CENT and _holds(reach.cents, value, half)
    ):
        return True
    return _holds(reach.columns, value, half)


def _results(first: tuple[float, str], second: tuple[float, str], unit: str, *, near: bool) -> Iterator[float]:
    """Yield what one step makes of two numbers; only sum and difference where they merely stand ``near`` each other."""
    (one, of_one), (two, of_two) = first, second
    if "clock" in (of_one, of_two):
        if unit in ("clock", "s"):
            yield abs(one - two)
        if unit == "clock" and of_one != of_two:
            yield one + two
        return
    small = min(one, two) <= 12.0
    if near and small and not (of_one or of_two) and 1900.0 <= max(one, two) <= 2100.0:
        return  # a year, and a number that stands there by chance
    if of_one == of_two or (not (of_one and of_two) and not small):
        yield one + two
        yield abs(one - two)
    if "%" in (of_one, of_two):
        percent, of = (one, two) if of_one == "%" else (two, one)
        yield from (percent * of / 100.0, of + percent * of / 100.0, of - percent * of / 100.0)
    if near:
        return
    if "%" not in (of_one, of_two) and not (of_one and of_two):
        yield one * two
    for top, bottom in ((one, two), (two, one)):
        if bottom:
            share = top / bottom
            yield from (100.0 * share, abs(100.0 * share - 100.0)) if unit == "%" else (share,)


def _clocks(numbers: Sequence[SeenNumber]) -> list[tuple[float, float]]:
    """Return pairs of times of the day that follow each other in one source, by the clock or in the text."""
    times: dict[int, list[float]] = {}
    for number in numbers:
        if number.unit == "clock":
            times.setdefault(number.seq, []).append(number.value)
    return [pair for found in times.values() for pair in (*pairwise(found), *pairwise(sorted({*found})))]


def _neighbours(numbers: Sequence[SeenNumber]) -> Iterator[tuple[SeenNumber, SeenNumber]]:
    for away in range(1, NEIGHBOURS + 1):
        for one, two in zip(numbers, islice(numbers, away, None), strict=False):
            if two.seq == one.seq and two.place > one.place and one.unit != "clock" != two.unit:
                yield one, two


def _running(values: Sequence[float]) -> Iterator[float]:
    """Yield the sums of three and more neighbours, of all but one, and the mean of all."""
    for begin in range(len(values) - 2):
        total = values[begin] + values[begin + 1]
        for value in values[begin + 2 :]:
            total += value
            yield total
    everything = sum(values)
    yield from (everything - value for value in values)
    yield everything / len(values)


def _columns(numbers: Sequence[SeenNumber]) -> Iterator[float]:
    """Yield sum, mean and running sums of the numbers of one label in one source."""
    columns: dict[tuple[int, int], list[float]] = {}
    for number in numbers:
        if number.column and number.unit != "clock":
            columns.setdefault((number.seq, number.column), []).append(number.value)
    for values in columns.values():
        if 2 < len(values) <= COLUMN:
            yield sum(values)
            yield sum(values) / len(values)
    alike: dict[tuple[int, int, str], list[float]] = {}
    for number in numbers:
        if number.unit != "clock":
            alike.setdefault((number.seq, number.column, number.unit), []).append(abs(number.value))
    yield from (sum(values) for values in alike.values() if 2 < len(values) <= COLUMN)


def _few(numbers: Sequence[SeenNumber]) -> Iterator[list[SeenNumber]]:
    """Yield the numbers of each source that has few."""
    sources: dict[int, list[SeenNumber]] = {}
    for number in numbers:
        if number.unit != "clock":
            sources.setdefault(number.seq, []).append(number)
    yield from (found for found in sources.values() if 1 < len(found) <= FEW)


def _shares(numbers: Sequence[SeenNumber]) -> Iterator[float]:
    """Yield percentages of the numbers of one source."""
    for found in _few(numbers):
        values = [abs(number.value) for number in found if number.value]
        total = sum(values)
        for one, two in permutations(values, 2):
            yield from (100.0 * one / two, abs(100.0 * one / two - 100.0), 100.0 * one / (one + two))
        yield from (100.0 * value / total for value in values)
