"""Values that can be reckoned from given ones, and how little chance there is that they only seem so.

Any short number is some sum or quotient of a few dozen others. So what is nearest at hand is tried first - what the
answer itself states, then its lines and columns in the source, then anything that was given - and a match counts only
where the results that were tried are so thinly spread that one would hardly be met by chance.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import combinations, islice, pairwise
from statistics import median
from typing import TypeAlias

from coherence.core.lazy import lazy_regex, one_of
from coherence.core.readings import Claim
from coherence.detect.arithmetic import CURRENCY_NAMES, SCALES_OF, Asked, asked_of
from coherence.detect.sources import SMALL, Given, SeenNumber
from coherence.detect.spans import follows_in_time

NEWEST = 80
"""Given numbers, the newest, from which is reckoned."""

STATED = 12
"""Grounded numbers of the answer from which is reckoned."""

LARGE = 100.0
"""A whole number to which none of those that count is added."""

YEARS = frozenset(map(float, range(1980, 2040)))
"""Bare numbers from which nothing is reckoned."""

COLUMN = 40
"""Numbers of a column of which each run is added up."""

BY_CHANCE = {
    "said": 0.5,
    "beside": 0.6,
    "measure": 0.3,
    "line": 0.3,
    "short": 0.3,
    "runs": 0.15,
    "given": 0.3,
    "few": 0.3,
}
"""Source of a result, the nearest first -> how many may be expected to match by chance where one counts."""

LOOSE = ("measure", "given", "few")
"""Sources that make round numbers of anything."""

OF_STATED = ("said", "beside", "measure")
"""Sources that begin with a number that the answer states; the others have given numbers alone."""

NEAREST, BESIDE = 3, 0.9
"""Stated numbers that stand nearest to one, and what may be expected of them."""

UNTOLD = 0.3
"""Share of that chance where no word says that something is reckoned."""

AROUND = 80
"""Characters on each side of a number in which a word may say that it is reckoned."""


_BEGINNINGS = (
    r"total|altogether|together|combined|differen|averag|median|remain|increas|decreas|insgesamt|zusammen|gesamt"
    r"|durchschnitt|länger|kürzer|moyenn|ensemble|promedio|quedan|restano|gemiddeld|totaal|dupli|kost|cost|cuesta"
)
_WHOLE = (
    r"sum|in all|both|more|less|fewer|than|per|each|mean|times|fits?|spare|free|short|missing|still|against"
    r"|compared|instead|for|twice|half|double|left|after|over|under|rest|rises?|rose|fell|grew|grown|drops?|dropped|up"
    r"|down|saves?|cheaper|longer|shorter|faster|slower|about|around|roughly|approx|almost|nearly|so|thus|therefore"
    r"|makes?|comes?|leaves?|minus|plus|equals?|that's|which is|summe|mehr|weniger|pro|je|übrig|bleib\w*|nach|für"
    r"|unterschied|also|macht|rund|etwa|somme|moins|par|chac\w+|reste|soit|donc|environ|après|pour|suma|más|menos|por"
    r"|cada|media|entre|son|unos|decir|para|somma|più|meno|testa|ciascun\w|quindi|circa|samen|meer|minder|dus|voor"
)
_RECKONS = lazy_regex(
    rf"[=×+~≈÷差共合总約约]|\b(?:{one_of(_BEGINNINGS.split('|'))}|(?:{one_of(_WHOLE.split('|'))})\b)",
    re.I,
)
"""Words, and beginnings of words, that tell of a number that is reckoned."""
_MEASURES = (3.6, 7.0, 12.0, 24.0, 52.0, 60.0, 365.0, 3600.0)
_PARTS = (2.0, 3.0, 4.0, *_MEASURES, 2.54, 0.3048, 1.609344, 0.45359237, 28.349523125, 4.184)
"""Numbers of one thing that another one has: of an amount, and of what has no unit or is money."""

Amount: TypeAlias = tuple[float, str]
"""A value and its base unit."""

Stated: TypeAlias = tuple[Amount, ...]


def says_reckoned(text: str, claim: Claim) -> bool:
    """Tell whether a word near a number, or its percent sign, says that it is reckoned.

    Examples
    --------
    >>> [says_reckoned(said, Claim("number", "25", at, ())) for said, at in (("25 in total", 0), ("room 25", 5))]
    [True, False]
    """
    near = text[max(0, claim.start - AROUND) : claim.start + len(claim.text) + AROUND]
    return claim.unit == "%" or _RECKONS.search(near) is not None


class Reckoning:
    """Results that follow from the given numbers, worked out once an answer and only where they are asked for.

    Parameters
    ----------
    given : Given
        What came in.
    """

    def __init__(self, given: Given) -> None:
        self._given = given
        self._built: dict[tuple[object, ...], list[float]] = {}
        self._room = MOST_RESULTS
        self._missed = 0

    @cached_property
    def _numbers(self) -> list[SeenNumber]:
        newest = [number for number in self._given.numbers[-NEWEST:] if number.unit != "clock" and number.value]
        return [number for number in newest if number.unit or number.value not in YEARS]

    @cached_property
    def _lone(self) -> list[Amount]:
        """The numbers of all sources, where they are few."""
        return list(dict.fromkeys(map(_of, self._numbers))) if len(self._numbers) <= FEW else []

    @cached_property
    def _lines(self) -> list[list[SeenNumber]]:
        lines: dict[tuple[int, int], list[SeenNumber]] = {}
        for number in self._numbers:
            lines.setdefault((number.seq, number.line), []).append(number)
        return list(lines.values())

    @cached_property
    def _columns(self) -> list[list[SeenNumber]]:
        """The numbers of one label, and those at one place of their lines, from the left and from the right."""
        found: dict[tuple[object, ...], list[SeenNumber]] = {}
        for line in self._lines:
            for at, number in enumerate(line):
                found.setdefault((number.seq, "left", at), []).append(number)
                found.setdefault((number.seq, "right", len(line) - at), []).append(number)
        for number in self._numbers:
            if number.column:
                found.setdefault((number.seq, "label", number.column), []).append(number)
        distinct = {(column[0].seq, *(number.place for number in column)): column for column in found.values()}
        columns = (column for column in distinct.values() if len(column) <= COLUMN)
        return [column for column in columns if len({number.value for number in column}) > 1]

    def follows(self, text: str, claim: Claim, plain: Sequence[Claim]) -> bool:
        """Tell whether a value follows from given ones, or from ``plain`` ones; of too many that do not, none does."""
        if self._missed >= MOST_MISSED:
            return False
        found = follows_in_time(self._given, text, claim, plain)
        if not found and claim.value is not None and claim.unit != "clock":
            found = self.reaches(text, claim, plain)
        self._missed += not found
        return found

    def reaches(self, text: str, claim: Claim, plain: Sequence[Claim]) -> bool:
        """Tell whether a number follows from given ones, or from ``plain`` ones of the same answer."""
        asked = asked_of(text, claim)
        if not asked.value or self._is_other_currency(claim):
            return False
        stated = tuple([(abs(each.value), each.unit) for each in plain if each.value and each.unit != "clock"][:STATED])
        told = 1.0 if says_reckoned(text, claim) else UNTOLD
        if (
            told == UNTOLD
            and claim.kind == "number"
            and asked.half < 0.51
            and claim.grain == 1.0
            and asked.value < LARGE
        ):
            return False
        nearest = sorted(
            (each for each in plain if each.value and each.unit != "clock"),
            key=lambda each: abs(each.start - claim.start),
        )
        pairs = combinations([(abs(each.value or 0.0), each.unit) for each in nearest[:NEAREST]], 2)
        results = sorted(each for one, two in pairs for each in _made(one, two, asked))
        if _counts([results], asked, asked.half, told * BESIDE):
            return True
        for tier, most in BY_CHANCE.items():
            parts = [stated[: at + 1] for at in range(len(stated))] if tier in OF_STATED else [()]
            lists = [self._results(tier, asked, part) for part in parts]
            rough = asked.round if tier in LOOSE else asked.half
            if _counts(lists, asked, rough, told * most):
                return True
        return False

    def _results(self, tier: str, asked: Asked, stated: Stated) -> list[float]:
        """Return what the last stated number makes in a tier, sorted; without one, what given numbers make alone."""
        key = tier, asked.unit, asked.factor, stated if tier == "said" else stated[-1:]
        if key not in self._built:
            if self._room <= 0:
                return []
            match tier:
                case "said":
                    made = _said(asked, stated)
                case "beside":
                    made = self._beside(asked, stated[-1])
                case "measure":
                    made = _converted(stated[-1], asked)
                case "line":
                    made = self._line(asked)
                case "short":
                    columns = (column for column in self._columns if len(column) <= FEW)
                    pairs = (pair for column in columns for pair in combinations(column, 2))
                    made = (each for one, two in pairs for each in _made(_of(one), _of(two), asked))
                case "runs":
                    made = self._runs(asked)
                case "given":
                    made = (each for number in self._lone for each in _converted(number, asked))
                case _:
                    made = (each for one, two in combinations(self._lone, 2) for each in _made(one, two, asked))
            # what is reached in two ways counts once
            results = [float(f"{each:.9g}") for each in islice(made, self._room) if each > 0.0]
            self._room -= len(results)
            self._built[key] = sorted({*results})
        return self._built[key]

    def _is_other_currency(self, claim: Claim) -> bool:
        """Tell whether the amount was given in another currency."""
        others = CURRENCY_NAMES - {claim.unit} if claim.unit in CURRENCY_NAMES else ()
        return any(abs(number.value) == abs(claim.value or 0.0) and number.unit in others for number in self._numbers)

    def _line(self, asked: Asked) -> Iterator[float]:
        """Yield what two numbers of one line make, two neighbours of a column, and the whole of one."""
        for line in self._lines:
            yield from (each for one, two in combinations(line[:FEW], 2) for each in _made(_of(one), _of(two), asked))
            if 2 < len(line) <= COLUMN:
                numbers = [each for number in line for each in _as(_of(number), asked)]
                yield from (sum(numbers), sum(numbers) / max(len(numbers), 1))
            if asked.unit == "%" and len(line) <= FEW:
                yield from _shares([abs(number.value) for number in line])
        for column in self._columns:
            numbers = [each for number in column for each in _as(_of(number), asked)]
            first, last = abs(column[0].value), abs(column[-1].value)
            if asked.unit == "%" and first:
                yield abs(100.0 * last / first - 100.0)
            elif numbers:
                yield abs(numbers[-1] - numbers[0])
            yield from (each for one, two in pairwise(numbers) for each in (one + two, abs(one - two)))
            if len(numbers) > 1:
                yield from (sum(numbers), sum(numbers) / len(numbers), median(numbers), max(numbers) - min(numbers))
            if asked.unit == "%" and len(column) <= FEW:
                yield from _shares([abs(number.value) for number in column])

    def _beside(self, asked: Asked, one: Amount) -> Iterator[float]:
        """Yield sum and difference of a stated number and of what stands in its line or column."""
        for two in self._mates(asked, one):
            firsts, seconds = tuple(_as(one, asked)), tuple(_as(two, asked))
            yield from (
                each for first in firsts for second in seconds for each in (first + second, abs(first - second))
            )

    def _mates(self, asked: Asked, one: Amount) -> list[Amount]:
        """Return what stands in the line or the column of a given number that the answer states."""
        values = one[0], one[0] / asked.factor
        groups = [group for group in (*self._lines, *self._columns) if any(abs(each.value) in values for each in group)]
        return list({_of(each): None for group in groups for each in group if abs(each.value) not in values})

    def _runs(self, asked: Asked) -> Iterator[float]:
        """Yield what runs of columns add up to, and of lines that are multiplied: how many of what price."""
        for column in self._columns:
            yield from _runs([each for number in column for each in _as(_of(number), asked)])
        products: dict[int, list[float]] = {}
        for line in self._lines:
            if len(line) > 1:
                products.setdefault(line[0].seq, []).append(abs(line[-1].value * line[-2].value))
        for seq, found in products.items():
            yield from _runs(found[:COLUMN])
            alone = [line[0].value for line in self._lines if len(line) == 1 and line[0].seq == seq]
            yield from (abs(sum(found) + each) for each in (*alone, sum(alone)))


def _said(asked: Asked, stated: Stated) -> Iterator[float]:
    """Yield what the last stated number and another make, it in another unit, and half and double of a price."""
    *others, last = stated
    if last[1]:
        yield from _as(last, asked)
    if asked.unit in CURRENCY_NAMES:
        yield from (each for value in _as(last, asked) for each in (value * 2.0, value / 2.0))
    for other in others:
        yield from _made(other, last, asked)
    total = 0.0
    for value in (each for one in reversed(stated) for each in _as(one, asked)):
        total += value
        yield total


def _converted(one: Amount, asked: Asked) -> Iterator[float]:
    factors = _MEASURES if asked.unit in SCALES_OF else _PARTS
    yield from (each for value in _as(one, asked) for by in factors for each in (value * by, value / by))


MOST_TIMES = 12.0
"""A small number that is hardly ever added to a large one."""

FEW = 10
"""Numbers of a line or column, or of all sources, of which any two are combined."""

MOST_RESULTS, MOST_MISSED = 20_000, 40
"""Results that are worked out in one answer, and values for which that was in vain: rules about the cost."""


def _of(number: SeenNumber) -> Amount:
    return abs(number.value), number.unit


def _as(one: Amount, asked: Asked) -> Iterator[float]:
    """Yield a number in the unit that is asked, if it may be one of those."""
    value, unit = one
    if unit == asked.unit:
        yield value / asked.factor
    elif not unit:
        if asked.unit != "%":
            yield value
    elif not asked.unit and unit != "%":
        yield from _written(one)


def _written(one: Amount) -> Iterator[float]:
    """Yield how an amount may be written: in the largest unit of which it has one, and in the next one."""
    value, unit = one
    scales = SCALES_OF.get(unit, (1.0,))
    at = next((at for at, scale in enumerate(scales) if value >= scale), len(scales) - 1)
    yield from (value / scale for scale in scales[at : at + 2])


def _made(one: Amount, two: Amount, asked: Asked) -> Iterator[float]:
    """Yield sum, difference, product and quotients of two numbers, or for a percentage their shares."""
    if one == two:
        return
    firsts, seconds = tuple(_as(one, asked)), tuple(_as(two, asked))
    for first in firsts if (one[1] == two[1]) or asked.unit != "%" else ():
        for second in seconds:
            small, large = min(first, second), max(first, second)
            if not (small in SMALL and large >= LARGE) and not (small <= MOST_TIMES and large >= 10.0 * LARGE):
                yield from (first + second, abs(first - second))
    firsts, seconds = firsts or tuple(_written(one)), seconds or tuple(_written(two))
    percent = asked.unit == "%"
    for first in firsts:
        for second in seconds:
            if one[1] == "%" or two[1] == "%":
                part, whole = (first, second) if one[1] == "%" else (second, first)
                yield from (part * whole / 100.0, whole * (1.0 + part / 100.0), whole * (1.0 - part / 100.0))
            if percent and second and first:
                yield from (100.0 * first / second, 100.0 * second / first)
                yield from (abs(100.0 * first / second - 100.0), abs(100.0 * second / first - 100.0))
            elif first and second:
                if one[1] != two[1] or not one[1]:
                    yield first * second
                if _divides(one[1], two[1], asked.unit):
                    yield first / second
                if _divides(two[1], one[1], asked.unit):
                    yield second / first


def _divides(top: str, bottom: str, unit: str) -> bool:
    """Tell whether an amount of a unit may be one over another: of a price in another currency by its rate."""
    if not unit:
        return True
    if unit in CURRENCY_NAMES and top in CURRENCY_NAMES and top != unit:
        return bottom in ("", top)
    return bottom != unit and top in ("", unit)


def _shares(numbers: Sequence[float]) -> Iterator[float]:
    """Yield what part of all each number is."""
    yield from (100.0 * each / sum(numbers) for each in numbers)


def _runs(numbers: Sequence[float]) -> Iterator[float]:
    """Yield the sums of neighbours in a column, and their means."""
    for begin in range(len(numbers) - 1):
        total = numbers[begin]
        for count, value in enumerate(numbers[begin + 1 :], 2):
            total += value
            yield from (total, total / count)


def _counts(lists: Iterable[Sequence[float]], asked: Asked, rough: float, most: float) -> bool:
    """Tell whether one of the results, sorted in each list, is the number that is asked, and hardly by chance."""
    around, found, half = 0, False, asked.half * (1.0 + 1e-9)
    for results in lists:
        at = bisect_left(results, asked.value - half)
        found = found or (at < len(results) and results[at] <= asked.value + half)
        around += bisect_right(results, 2.0 * asked.value) - bisect_left(results, 0.5 * asked.value)
    # Results spread over 1.5 times the value, of which a match takes 2 halves: so many would match by chance.
    return found and around * 2.0 * max(asked.half, rough) <= most * 1.5 * asked.value
