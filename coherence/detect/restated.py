"""Values that follow from given ones by another notation, or by one step with what the answer says itself.

Asked only of a value that nothing has as it stands, so that it may compare it with many.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from itertools import combinations, islice, pairwise

from coherence.core.lazy import lazy_regex, one_of
from coherence.core.readings import Claim
from coherence.detect.arithmetic import CURRENCY_NAMES
from coherence.detect.number_words import spelt
from coherence.detect.read_once import read_once
from coherence.detect.sources import Given, SeenNumber, known_words, lookup
from coherence.detect.values import number_form, words

MOST_GIVEN = 24
"""Given numbers up to which one that follows from them is none by chance."""

NEWEST = 60
"""Given numbers, the newest, that are combined with what the answer says."""

COLUMN = 40
"""Numbers of a column up to which it is added up."""

FEW = 8
"""Numbers of a source up to which it says few things."""

SIGNED = 5
"""Numbers of a source that are added up with any signs."""

FEW_IN_ALL = 14
"""Numbers of the sources that say few things, of which any two may be compared."""

MAX_DAYS = 24
"""Given days, the newest, between which is counted."""

AROUND = 90
"""Characters on each side of a number in which the number may stand that it was multiplied by."""

DAY = 86_400.0

_CHAIN = lazy_regex(r"\+?\d[\d ()/-]{4,22}[\dXx]")
_SIZES = lazy_regex(r"\d{1,6}(?: ?[x×] ?\d{1,6}){1,2}")
_BARE = lazy_regex(r"(?<![\w.,/:-])\d{1,3}(?![\w/:-]|[.,]\d)")
_TIMES_WORDS = (
    r"each|per|times|every|apiece|both|total|altogether|je|jede\w*|pro|mal|insgesamt|chaque|par|fois|chacun\w*|cada|por"
    r"|veces|nights?|days?|weeks?|months?|years?"
)
_TIMES = lazy_regex(
    rf"\b(?:{one_of(_TIMES_WORDS.split('|'))})\b|[x×*]",
    re.IGNORECASE,
)
_MAY_TIMES = lazy_regex(rf"{one_of(_TIMES_WORDS.split('|'))}|[x×*]", re.IGNORECASE)
"""Parts of what :data:`_TIMES` finds."""
_ZONE = lazy_regex(
    r"\b(?:UTC|GMT|[CEMPW]E?S?T|CES?T|[EA]DT|IST|JST|time ?zone|[Zz]eit|Ortszeit|heure (?:de|locale)|hora)\b"
    r"|\b[A-Z][a-z]+ time\b"
)
_HOUR = lazy_regex(r"(\d{1,2}) ?(?:h|uhr|heures?|horas?|ore)", re.IGNORECASE)
_OCLOCK = lazy_regex(r"\b(?:heures?|horas?|ore|uhr)\b", re.IGNORECASE)
_DOTTED = lazy_regex(r"(\d{1,2}\.\d{1,2})\.")
_BINARY = lazy_regex(r"(\d{1,6}) ?([KMGT])i?B", re.IGNORECASE)


def is_restated(given: Given, text: str, claim: Claim, plain: Sequence[Claim] = ()) -> bool:
    """Tell whether a value is a given one in another notation, or one step from given ones or ``plain`` ones.

    Examples
    --------
    >>> from coherence.detect.extractors import numbers
    >>> from coherence.detect.sources import take_source
    >>> given = Given()
    >>> claims = take_source(given, 1, '{"boxes": 35, "per_box": 12}', [numbers])
    >>> [is_restated(given, said, numbers(said)[0]) for said in ("420 eggs", "430 eggs")]
    [True, False]
    """
    match claim.kind:
        case "time":
            return _is_full_hour(given, claim) or _is_shifted(given, text, claim)
        case "date":
            return _is_day(given, claim)
        case "number" | "amount":
            return (
                _is_chain(given, text, claim)
                or _is_notation(given, claim)
                or _is_span(given, claim)
                or (bool(claim.value) and _follows(given, text, claim, plain))
            )
    return False


def _is_full_hour(given: Given, claim: Claim) -> bool:
    """Tell whether a source gives the hour alone: 1 pm of 9-13."""
    if ":" in claim.text or len(given.numbers) > MOST_GIVEN:
        return False
    hours = {float(form[2:4]) for form in claim.forms if form.endswith(":00") and form[2:4].isdigit()}
    return any(number.value in hours and not number.unit for number in given.numbers)


def _is_shifted(given: Given, text: str, claim: Claim) -> bool:
    """Tell whether a time is a given one in another time zone: whole hours away, and a zone is named."""
    near = text[max(0, claim.start - AROUND) : claim.start + len(claim.text) + AROUND]
    zone = _ZONE.search(near)
    if claim.value is None or (zone is not None and known_words(given, words(zone[0])) == 1.0):
        return False
    if zone is None and not any(known_words(given, [each]) for each in ZONES):
        return False
    hours = [(claim.value - number.value) / 3600.0 for number in given.numbers if number.unit == "clock"]
    return any(hour % 1.0 == 0.0 and 0.0 < min(abs(hour), 24.0 - abs(hour)) <= MOST_SHIFT for hour in hours)


ZONES = ("utc", "gmt", "00z", "30z")
"""Words of a source that gives times in a zone."""

MOST_SHIFT = 14.0
"""Hours between two time zones."""


def _is_day(given: Given, claim: Claim) -> bool:
    """Tell whether a source writes month and day alone, or whether a number ends a sentence."""
    dotted = _DOTTED.fullmatch(claim.text)
    if dotted is not None and lookup(given, [number_form(float(dotted[1]))]) is not None:
        return True
    parts = [form.removeprefix("d:").split("-") for form in claim.forms]
    few = len(given.numbers) <= MOST_GIVEN
    return few and any(len(part) == 2 and len(part[0]) == 2 and known_words(given, part) == 1.0 for part in parts)


def _is_notation(given: Given, claim: Claim) -> bool:
    """Tell whether a source writes an hour as one of the clock, or a size in its own way."""
    hour = _HOUR.fullmatch(claim.text)
    if hour is not None and lookup(given, [f"t:{int(hour[1]):02d}:00"]) is not None:
        return True
    if claim.unit == "s" and claim.value is not None and claim.value <= DAY and _OCLOCK.search(claim.text) is not None:
        return any(each.unit == "clock" and 0.0 <= each.value - claim.value < 3600.0 for each in given.numbers)
    size = _BINARY.fullmatch(claim.text)
    return size is not None and any(known_words(given, [f"{size[1]}{size[2].lower()}{end}"]) for end in ("", "i"))


def _is_chain(given: Given, text: str, claim: Claim) -> bool:
    """Tell whether a number is part of a longer one that a source groups in another way: an ISBN, ``240x230``."""
    begin, around = max(0, claim.start - 24), text[max(0, claim.start - 24) : claim.start + 24]
    for sizes in _SIZES.finditer(text, begin, claim.start + 24) if "x" in around or "×" in around else ():
        if sizes.start() <= claim.start < sizes.end():
            return known_words(given, [sizes[0].lower().replace(" ", "").replace("×", "x")]) == 1.0
    for found in _CHAIN.finditer(text, begin, claim.start + len(claim.text) + 24) if not claim.unit else ():
        if found.start() <= claim.start < found.end():
            digits = "".join(char for char in found[0].lower() if char.isalnum())
            return LEAST_CHAIN <= len(digits) <= MOST_CHAIN and _is_grouped(given, digits)
    return False


def _is_grouped(given: Given, digits: str) -> bool:
    """Tell whether a source has groups of digits in a row that are these, put together, or all of them in one."""
    reached = {(0, "")}
    for at in range(len(digits)):
        for _, before in [each for each in reached if each[0] == at]:
            for end in range(at + 1, len(digits) + 1):
                group = digits[at:end]
                if known_words(given, [before, group] if before else [group]) == 1.0:
                    if end == len(digits):
                        return True
                    reached.add((end, group))
    return False


LEAST_CHAIN, MOST_CHAIN = 6, 18
"""Digits of a number that is written in groups."""


def _is_span(given: Given, claim: Claim) -> bool:
    """Tell whether a number of days lies between two given days."""
    if claim.value is None or claim.unit not in ("s", "") or claim.grain < 1.0:
        return False
    if claim.unit == "s" and claim.value < DAY:
        return _is_duration(given, claim)
    days = claim.value / DAY if claim.unit == "s" else claim.value
    if not days or days % 1.0:
        return False
    found = list(islice(_days(given), MAX_DAYS))
    return any(abs(abs((one - two).days) - days) <= 1e-9 for one, two in combinations(found, 2))


def _is_duration(given: Given, claim: Claim) -> bool:
    """Tell whether a duration lies between two times of one source that gives few."""
    times = _by_source(number for number in given.numbers[-NEWEST:] if number.unit == "clock")
    half = 60.0 if claim.grain == 60.0 else 0.5 * claim.grain if claim.grain < 3600.0 else 0.0
    return any(
        abs(abs(one.value - two.value) - (claim.value or 0.0)) <= half
        for found in times
        if len(found) <= FEW
        for one, two in combinations(found, 2)
    )


def _days(given: Given) -> Iterator[date]:
    known = [form for form in reversed(given.values) if form.startswith("d:")]
    year = next((form[2:6] for form in known if len(form) == 12), "2001")
    for form in known:
        try:
            yield date.fromisoformat(form[2:] if len(form) == 12 else f"{year}-{form[2:]}")
        except ValueError:
            continue  # a month, or no day


def _follows(given: Given, text: str, claim: Claim, stated: Sequence[Claim]) -> bool:
    value = abs(claim.value or 0.0)
    if len(given.numbers) > MOST_GIVEN:
        return False
    if claim.unit in CURRENCY_NAMES and any(
        number.value == value and number.unit in CURRENCY_NAMES - {claim.unit} for number in given.numbers[-NEWEST:]
    ):
        return False
    half = (0.5 * claim.grain if claim.grain < 1.0 else 0.0) + 1e-9 * max(value, 1.0)
    numbers = [number for number in given.numbers[-NEWEST:] if number.unit != "clock" and number.value]
    if not numbers and not stated:
        return False
    near = text[max(0, claim.start - AROUND) : claim.start + len(claim.text) + AROUND]
    columns = list(_columns(numbers, claim))
    if any(abs(sum(each) / len(each) - value) <= max(half, 0.5 * claim.grain) for each in columns):
        return True
    if any(abs(sum(each) - value) <= half for each in columns):
        return True
    results = [*_of_few(numbers, claim), *_rests(numbers, claim)]
    if _may_multiply(text) and _TIMES.search(near) is not None:
        factors = {each for each, *_ in spelt(near) if each > 1.0}
        factors.update(float(each[0]) for each in _BARE.finditer(near) if float(each[0]) > 1.0)
        factors.discard(value)
        alike = [number for number in numbers if _is_of(number, claim)]
        bases = [abs(number.value) for number in alike]
        bases += [abs(each.value) for each in stated[:FEW_IN_ALL] if each.value and each.unit == claim.unit]
        factors.update(number.value for number in numbers if 1.0 < number.value <= MOST_TIMES and not number.unit)
        neighbours = (pair for found in _by_source(alike) if len(found) <= FEW for pair in pairwise(found))
        bases += [abs(one.value + two.value) for one, two in neighbours if two.place - one.place == 1]
        results += [each for number in bases for by in factors for each in (number * by, number / by)]
    return any(abs(each - value) <= half for each in results)


@read_once
def _may_multiply(text: str) -> bool:
    return _MAY_TIMES.search(text) is not None


def _is_of(number: SeenNumber, claim: Claim) -> bool:
    """Tell whether a number may be part of what a claim counts."""
    if claim.unit == "%":
        return number.unit == "%"
    return number.unit in (claim.unit, "") or (not claim.unit and number.unit not in ("s", "byte"))


def _by_source(numbers: Iterable[SeenNumber]) -> Iterator[list[SeenNumber]]:
    """Yield the numbers of each source."""
    sources: dict[int, list[SeenNumber]] = {}
    for number in numbers:
        sources.setdefault(number.seq, []).append(number)
    yield from sources.values()


def _columns(numbers: Sequence[SeenNumber], claim: Claim) -> Iterator[list[float]]:
    """Yield the numbers of each source, of one field of it, and of every second to fourth place of its text."""
    # A bare number between 1900 and 2100 is rather a year than one of those that are added up.
    counted = (each for each in numbers if _is_of(each, claim) and (each.unit or not 1900.0 <= each.value <= 2100.0))
    for found in _by_source(counted):
        if len(found) > COLUMN:
            continue
        fields: dict[int, list[float]] = {}
        for number in found:
            fields.setdefault(number.column, []).append(abs(number.value))
        values = [abs(number.value) for number in found]
        parted = [values[at::width] for width in (2, 3, 4) if not len(values) % width for at in range(width)]
        parted = [column for column in parted if len(column) > 2 and len(fields) == 1]
        yield from (column for column in (values, *fields.values(), *parted) if len(column) > 1)


def _rests(numbers: Sequence[SeenNumber], claim: Claim) -> Iterator[float]:
    """Yield what is left of a number without a column, or of the largest of a column without two of its numbers."""
    few = [abs(number.value) for number in numbers if _is_of(number, claim)][-FEW_IN_ALL:]
    for values in _columns(numbers, claim):
        total = sum(values)
        if len(values) <= FEW:
            yield from (abs(number - total) for number in few)
            if len(values) <= SIGNED:
                totals = [0.0]
                for each in values:
                    totals = [total + sign * each for total in totals for sign in (1.0, -1.0)]
                yield from map(abs, totals)
            most, rest = max(values), sorted(values)[:-1]
            yield abs(2 * most - total)
            yield from (most - one - two for one, two in combinations(rest, 2))


def _of_few(numbers: Sequence[SeenNumber], claim: Claim) -> Iterator[float]:
    """Yield sums and differences across sources that say few things."""
    counted = (number for number in numbers if _is_of(number, claim))
    few = [number for found in _by_source(counted) if len(found) <= FEW for number in found]
    if len(few) <= FEW_IN_ALL:
        for one, two in combinations(few, 2):
            yield from (abs(one.value) + abs(two.value), abs(abs(one.value) - abs(two.value)))
    few = list({number.value: number for number in numbers}.values())
    if len(few) <= FEW_IN_ALL:
        for one, two in combinations(few, 2):
            yield abs(one.value * two.value)


MOST_TIMES = 12.0
