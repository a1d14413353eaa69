"""Times, durations and days that follow from given ones: from when to when, so long after, and how long each takes."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from itertools import chain, combinations, islice, product

from coherence.core.lazy import lazy_regex
from coherence.core.readings import Claim
from coherence.detect.arithmetic import asked_of
from coherence.detect.number_words import spelt
from coherence.detect.read_once import read_once
from coherence.detect.sources import Given, known_words

NEWEST = 24
"""Given times, durations or days, the newest, from which is reckoned."""

STATED = 8
"""Those that the answer itself states."""

BY_CHANCE = 0.2
"""Results that may be expected to match by chance where one counts."""

DAY, HOUR, MINUTE = 86_400.0, 3_600.0, 60.0

_RATE = lazy_regex(r"[^.!?\n]{0,12}?(?:/\s?[a-zA-Z]|\b(?:per|an?|pro|par|por|al|each|every|je|a|le|la|el)\b)", re.I)
_PERIOD = lazy_regex(
    r"(?<![\w.,])(\d{1,3})[ -]?(?:(?P<day>(?:calendar )?(?:days?|tage?n?|jours?|d[ií]as?|giorn[oi]|dag(?:en)?)\b"
    r"|[天日])|(?P<week>(?:weeks?|wochen?|semaines?|semanas?|settiman[ae]|weken)\b)"
    r"|(?P<month>(?:months?|monate?n?|mois|mes(?:es|i)?|m[eê]s(?:es)?|maand(?:en)?)\b)"
    r"|(?P<year>(?:years?|jahre?n?|ans?|années?|años?|anos?|ann[oi]|jaar|jaren)\b))",
    re.I,
)
_PERIODS = (
    ("day", ("day", "tag", "jour", "día", "dia", "giorn", "dag")),
    ("week", ("week", "woche", "semaine", "semana", "settiman", "weken")),
    ("month", ("month", "monat", "mois", "mes", "mês", "maand")),
    ("year", ("year", "jahr", "an", "año", "ano", "jaar")),
)
"""Unit of a period -> what words for it begin with."""


def follows_in_time(given: Given, text: str, claim: Claim, plain: Sequence[Claim]) -> bool:
    """Tell whether a time, a duration or a day follows from given ones, or from ``plain`` ones of the same answer.

    Examples
    --------
    >>> from coherence.detect.extractors import numbers, times
    >>> from coherence.detect.sources import take_source
    >>> given = Given()
    >>> claims = take_source(given, 1, "dep 08:20, arr 09:05, then the bus: 12 min", [times, numbers])
    >>> said = ["9:17", "9:37", "45 min", "55 min"]
    >>> [follows_in_time(given, each, (times(each) + numbers(each))[0], ()) for each in said]
    [True, False, True, False]
    """
    if claim.kind == "date":
        return _is_later(given, text, claim) or _has_its_month(given, claim)
    if claim.value is None or claim.unit not in ("clock", "s"):
        return False
    its = [each for each in plain if each.value is not None][-NEWEST:]
    stated = [each.value or 0.0 for each in its if each.unit == "clock"][:STATED]
    clocks = list(dict.fromkeys(each.value for each in given.numbers if each.unit == "clock"))[-NEWEST:]
    periods = [each.value or 0.0 for each in its if each.unit == "s"][:STATED]
    periods += dict.fromkeys(each.value for each in given.numbers[-NEWEST:] if each.unit == "s" and each.value < DAY)
    if claim.unit == "s":
        asked = asked_of(text, claim)
        half = max(asked.half * asked.factor, 0.0)
        pairs = [*combinations(stated, 2), *product(stated, clocks)]
        return any(
            _fits(_between(few), claim.value, half, 0.75 * claim.value)
            for few in (pairs, [*pairs, *combinations(clocks, 2)])
        )
    spans = _between([*product(stated, clocks), *combinations(clocks, 2)])
    if any(form.startswith("n:") for form in claim.forms) and _fits(
        spans, claim.value, 0.5 * MINUTE, 0.75 * claim.value
    ):
        return True
    within, minute = 3.0 * HOUR, 0.5 * MINUTE
    cycle = DAY if sum(form.startswith("t:") for form in claim.forms) < 2 else 0.5 * DAY  # 4 o'clock may be 16:00
    for few in (stated, [*stated, *clocks]):
        later = [(one + sign * each) % cycle for one, each in product(few, periods) for sign in (1.0, -1.0)]
        if _fits(later, claim.value % cycle, minute, within):
            return True
    seconds = claim.value / MINUTE  # 2:15 may be minutes and seconds
    if _fits(spans, seconds, 0.5, 0.75 * seconds):
        return True
    end = claim.start + len(claim.text)
    if _RATE.match(text, end) is None:
        return False
    counts = [
        abs(each.value) / (1000.0 if each.unit == "m" else 1.0)
        for each in given.numbers[-NEWEST:]
        if each.unit in ("", "m")
    ]
    rates = [long / count for long, count in product([*stated, *clocks, *periods], counts) if count > 1.0]
    return _fits(rates, seconds, 0.5, 0.75 * seconds)


def _between(pairs: Iterable[tuple[float, float]]) -> list[float]:
    return [each for one, two in pairs for each in (abs(one - two), DAY - abs(one - two)) if each]


def _fits(results: Iterable[float], value: float, half: float, within: float) -> bool:
    """Tell whether one of some results is a value, and hardly by chance: few others are so near it."""
    away = [abs(each - value) for each in {*results}]
    around = sum(each <= within for each in away)
    return bool(away) and min(away) <= half + 1e-6 and (around - 1) * half <= BY_CHANCE * within


def _has_its_month(given: Given, claim: Claim) -> bool:
    """Tell whether the day alone was given, and another day of the same month: the 7th, in a mail of May."""
    for form in claim.forms:
        *months, day = form.removeprefix("d:").split("-")
        if not months or len(day) != 2 or not known_words(given, [f"day {int(day)}"]):
            continue
        month = "-".join(months)
        if any(f"-{month}-" in f"-{key[2:]}" for key in given.values if key.startswith("d:")):
            return True
    return False


def _is_later(given: Given, text: str, claim: Claim) -> bool:
    """Tell whether a day, or a month, is so long before or after a given one as the answer or a source says."""
    periods = list(islice(_periods(given, text), STATED))
    known = [form for form in reversed(given.values) if form.startswith("d:") and len(form) == 12][:NEWEST]
    for form, (count, unit), sign in product(known, periods, (1, -1)):
        try:
            moved = _moved(date.fromisoformat(form[2:]), sign * count, unit)
        except (ValueError, OverflowError):
            continue
        if any(f"d:{moved}".endswith(each.removeprefix("d:")) or f"d:{moved:%Y-%m}" == each for each in claim.forms):
            return True
        eve = f"d:{moved - timedelta(days=1)}"  # the last day of a period that begins with its first one
        if any(eve.endswith(each.removeprefix("d:")) for each in claim.forms):
            return True
    return False


def _periods(given: Given, text: str) -> Iterator[tuple[int, str]]:
    """Yield the periods that a text states, and those that were given: how many, and of what."""
    yield from _stated_periods(text)
    for number in given.numbers[-NEWEST:]:
        if number.unit == "s" and number.value >= DAY and not number.value % DAY:
            yield int(number.value / DAY), "day"


@read_once
def _stated_periods(text: str) -> tuple[tuple[int, str], ...]:
    in_digits = ((int(found[1]), next(unit for unit, _ in _PERIODS if found[unit])) for found in _PERIOD.finditer(text))
    return tuple(islice(chain(in_digits, _spelt_periods(text)), STATED))


def _spelt_periods(text: str) -> Iterator[tuple[int, str]]:
    for value, _, _, name in spelt(text):
        unit = next((unit for unit, starts in _PERIODS if name.startswith(starts)), None)
        if unit is not None and not value % 1.0:
            yield int(value), unit


def _moved(day: date, count: int, unit: str) -> date:
    if unit in ("day", "week"):
        return day + timedelta(days=count * (7 if unit == "week" else 1))
    months = day.year * 12 + day.month - 1 + count * (12 if unit == "year" else 1)
    year, month = divmod(months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))
