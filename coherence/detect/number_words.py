"""Numbers that are spelt out, in English, German, French, Spanish and Italian."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from coherence.core.lazy import lazy_regex, one_of
from coherence.core.readings import Claim
from coherence.detect.values import UNITS, number_form, words_once

_UNITS = """zero null zéro cero|one ein eine eins un une uno una|two zwei deux dos due|three drei trois tres tre
|four vier quatre cuatro quattro|five fünf cinq cinco cinque|six sechs seis sei|seven sieben sept siete sette
|eight acht huit ocho otto|nine neun neuf nueve nove|ten zehn dix diez dieci|eleven elf onze once undici
|twelve dozen zwölf dutzend douze douzaine doce docena dodici dozzina|thirteen dreizehn treize trece tredici
|fourteen vierzehn quatorze catorce quattordici|fifteen fünfzehn quinze quince quindici
|sixteen sechzehn seize dieciséis sedici|seventeen siebzehn diecisiete diciassette
|eighteen achtzehn dieciocho diciotto|nineteen neunzehn diecinueve diciannove
|twenty zwanzig vingt veinte venti"""
_TENS = """thirty dreißig trente treinta trenta|forty vierzig quarante cuarenta quaranta
|fifty fünfzig cinquante cincuenta cinquanta|sixty sechzig soixante sesenta sessanta|seventy siebzig setenta settanta
|eighty achtzig ochenta ottanta|ninety neunzig noventa novanta"""
WORDS = {
    **{word: at for at, words in enumerate(_UNITS.split("|")) for word in words.split()},
    **{word: 10 * at for at, words in enumerate(_TENS.split("|"), 3) for word in words.split()},
    "hundred": 100,
    "hundert": 100,
    "cent": 100,
    "cien": 100,
    "cento": 100,
}
"""Word -> number. Higher ones are put together: twenty-five, dix-huit."""

MEASURES = {
    **{name: unit for name, unit in UNITS.items() if len(name) > 3},
    **dict.fromkeys(["stunde", "stunden", "heure", "heures", "hora", "horas", "ora", "ore"], UNITS["hour"]),
    **dict.fromkeys(["minuten", "minutos", "minuti"], UNITS["minute"]),
    **dict.fromkeys(["tag", "tage", "tagen", "jours", "días", "giorni"], UNITS["day"]),
    **dict.fromkeys(["wochen", "semaines", "semanas", "settimane"], UNITS["week"]),
}
"""Unit behind a spelt number -> its base unit, and how many of those it is."""

_OF_CLOCK = lazy_regex(r"(?:heures?|horas?|ore|uhr|[a-zäöüéèíóú]{4,9}(?:zehn|zig|een|teen|ty))[ -]\Z", re.IGNORECASE)
"""Words before the minutes of a time, or the second half of a year."""

_BREAKS = str.maketrans(dict.fromkeys("-.,:;!?()[]*_\"'“”„«»/", " "))

MAX_SPELT = 40
"""Spelt numbers of one text that are looked at."""

_WORD = one_of(WORDS)
_SPELT = lazy_regex(
    rf"\b(?P<first>{_WORD})(?:[- ](?:and |et |y |e )?(?P<second>{_WORD}))?(?P<half> and a half|einhalb"
    rf"| et demie?| y media"
    r"| e mezz[ao])?\b(?:[- ](?P<unit>[^\W\d_]{2,12}))?",
    re.IGNORECASE,
)


def spelt(text: str) -> Iterator[tuple[float, int, int, str]]:
    """Yield the numbers that are spelt out in a folded text, where they begin and end, and the word behind.

    Examples
    --------
    >>> [(value, unit) for value, _, _, unit in spelt("Two and a half hours, twenty-five boxes, dix-huit heures")]
    [(2.5, 'hours'), (25.0, 'boxes'), (18.0, 'heures')]
    """
    for found in _places(text):
        value = float(WORDS[found["first"].lower()])
        second = WORDS[found["second"].lower()] if found["second"] else 0
        end = found.end("unit") if found["unit"] else found.end()
        if second:
            value = value * second if second == 100 or second == 12 else value + second
        yield value + (0.5 if found["half"] else 0.0), found.start(), end, (found["unit"] or "").lower()


def _places(text: str) -> Iterator[re.Match[str]]:
    """Yield the matches of spelt numbers; only where one of their words stands, which most texts have few of."""
    low = text.lower()
    said = WORDS.keys() & set(low.translate(_BREAKS).split())
    if not said:
        return
    starts = sorted(
        at.start() for word in said for at in islice(re.finditer(rf"{word}(?<!\w{word})\b", low), MAX_SPELT)
    )
    end, count = 0, 0
    for at in starts:
        found = _SPELT.match(text, at) if at >= end and count < MAX_SPELT else None
        if found is not None:
            end, count = found.end(), count + 1
            yield found


LEAST_COUNT = 12.0
"""Spelt numbers without a unit up to which they count, or say nothing exact."""

LEAST_SPELT = 1.5
"""Spelt measures from which one is judged: one hour, one day are said of anything."""


def measures(text: str) -> Iterator[Claim]:
    """Yield measures whose number is spelt out: two and a half hours.

    Examples
    --------
    >>> [(claim.text, claim.value, claim.unit) for claim in measures("It took two and a half hours.")]
    [('two and a half hours', 9000.0, 's')]
    """
    if WORDS.keys().isdisjoint(words_once(text)):
        return
    for value, start, end, name in spelt(text):
        unit = MEASURES.get(name)
        alone = name not in WORDS and _OF_CLOCK.search(text, max(0, start - 10), start) is None
        if unit is None and value > LEAST_COUNT and value % 100.0 and alone:
            yield Claim(
                "number",
                text[start:end].rpartition(" ")[0] if name else text[start:end],
                start,
                (number_form(value),),
                (),
                value,
                1.0,
            )
        if unit is not None and unit[0] and value >= LEAST_SPELT:
            base, factor = unit
            grain = factor * (0.25 if value % 1.0 else 0.5)  # three hours are not two and a half
            form = number_form(value * factor, base)
            yield Claim("amount", text[start:end], start, (form, number_form(value)), (), value * factor, grain, base)
