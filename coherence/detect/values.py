"""One form for what is written in many ways: numbers, units, dates, times, addresses, words."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple
from unicodedata import normalize
from zlib import crc32

from coherence.core.lazy import lazy_regex
from coherence.core.plain_view import without_escapes
from coherence.core.words import in_words
from coherence.detect.read_once import read_once

MONTHS = {
    name: at
    for at, names in enumerate(
        [
            "jan january januar januari janvier enero janeiro gennaio",
            "feb february februar februari février febrero fevereiro febbraio",
            "mar march märz mars marzo março maart marts",
            "apr april avril abril aprile",
            "may mai mayo maio maggio mei maj",
            "jun june juni juin junio junho giugno",
            "jul july juli juillet julio julho luglio",
            "aug august augusti augustus août agosto",
            "sep sept september septembre septiembre setembro settembre",
            "oct okt october oktober octobre octubre outubro ottobre",
            "nov november novembre noviembre novembro",
            "dec dez december dezember décembre diciembre dezembro dicembre",
        ],
        1,
    )
    for name in names.split()
}
"""Names of months in nine European languages -> 1 to 12."""

SCALES = {"thousand": 1e3, "k": 1e3, "million": 1e6, "mn": 1e6, "m": 1e6, "billion": 1e9, "bn": 1e9, "trillion": 1e12}
SCALES.update({"b": 1e9, "lakh": 1e5, "crore": 1e7, "万": 1e4, "億": 1e8, "亿": 1e8})
"""Words behind a number that multiply it; ``m`` and ``b`` only in capitals or with a currency."""

CURRENCIES = {
    **dict(zip("$€£¥₹", ("usd", "eur", "gbp", "jpy", "inr"), strict=True)),
    **dict(zip("円元원", ("jpy", "cny", "krw"), strict=True)),
    **{name: name for name in ["usd", "eur", "gbp", "jpy", "inr", "chf", "cad", "aud", "cny", "krw"]},
    "dollars": "usd",
    "dollar": "usd",
    "euros": "eur",
    "euro": "eur",
    "pounds": "gbp",
    "yen": "jpy",
}
"""Sign or name -> currency. Amounts of different currencies are never converted into each other."""

_UNITS = {
    "m": {
        0.001: "mm",
        0.01: "cm",
        1.0: "m meter meters metre metres",
        1e3: "km kilometers kilometres",
        1609.344: "mi mile miles",
        0.3048: "ft feet foot",
        0.0254: "inch inches",
        0.9144: "yd",
    },
    "s": {
        0.001: "ms milliseconds",
        1.0: "s sec secs second seconds",
        60.0: "min mins minute minutes",
        3600.0: "h hr hrs hour hours",
        86400.0: "day days",
        604800.0: "week weeks",
    },
    "g": {
        0.001: "mg",
        1.0: "g gram grams",
        1e3: "kg kilograms",
        1e6: "tonnes",
        453.59237: "lb lbs",
        28.349523125: "oz",
    },
    "byte": {
        1.0: "byte bytes",
        1e3: "kb",
        1e6: "mb",
        1e9: "gb",
        1e12: "tb",
        1024.0: "kib ki",
        1024.0**2: "mib",
        1024.0**3: "gib gi",
        1024.0**4: "tib",
    },
    "": {0.01: "cent cents"},
}
UNITS = {
    name: (base, factor)
    for base, scales in _UNITS.items()
    for factor, names in scales.items()
    for name in names.split()
}
"""Unit -> its base unit, and how many of those it is."""

FIELD_UNITS = {"pct": "percent", "pounds": "", "hrs": "hours"}
"""Short forms of units in the names of fields; pounds are money or weight."""

UNSURE = frozenset(["m", "s", "h", "g", "mi", "min", "day", "week", "hour", "minute", "second", "sec", "foot"])
"""Units that mean something else in many names of fields: ``temp_min``, ``day``."""

NARROW = "\u202f"
"""Space that parts groups of digits in a folded text and stands nowhere else."""

_TRACKING = lazy_regex(r"(?:^|(?<=&))(?:utm_\w{1,30}|gclid|fbclid|ref_src)=[^&]{0,300}&?")
_WORD = lazy_regex(r"\w{1,80}")
_FOLDED = {"’": "'", "‘": "'", "\u00ad": "", "\u200b": "", "\u2011": "-", "−": "-", "٬": ",", "٫": "."}
_GROUPING = lazy_regex(r"(?<=\d)[\u00a0\u2007\u2009\u202f](?=\d{3}(?!\d))")
_FRACTIONS = {"¼": ".25", "½": ".5", "¾": ".75"}
_FRACTION = lazy_regex(r"(?<=\d)[¼½¾]")
_DECIMAL_COMMA = lazy_regex(r"[-−]?\d{1,15},\d{1,2}")
_ODD = lazy_regex(f"[{''.join(_FOLDED)}]")
_SPLIT_ID = lazy_regex(
    r"([-_/.])(?:(?<=[A-Z0-9][-_/])\r?\n[ \t]{0,40}(?=\d)|(?<=\d{4}\.)\r?\n[ \t]{0,40}(?=\d{5}(?!\d)))"
)
_WRAPPED = lazy_regex(r"\\\r?\n[ \t]{0,40}\\?")


class Quantity(NamedTuple):
    """A number as it was stated."""

    value: float
    grain: float
    """Value of one of its last written digit: 0.01 for 3.14, 10,000 for 1.23 million."""
    unit: str = ""
    """Base unit, currency or ``%``; empty for a bare number."""


@read_once
def fold(text: str) -> str:
    r"""Return a text in which only what is meant differs: no ligatures, soft hyphens or colours, ids in one line.

    Examples
    --------
    >>> fold("the “ﬁrst” of 2310.\n  06825")
    'the “first” of 2310.06825'
    """
    text = without_escapes(text)  # there are no 31 metres in "\x1b[31m"
    if not text.isascii():
        text = _FRACTION.sub(lambda part: _FRACTIONS[part[0]], text)
        text = text.replace("\ufdfa", " ")  # a blessing, of 18 letters if it were spelt out
        text = NARROW.join(normalize("NFKC", part) for part in _GROUPING.split(text))
        text = _ODD.sub(lambda odd: _FOLDED[odd[0]], text)
    if "\n" in text:
        text = _SPLIT_ID.sub(lambda sign: sign[1], _WRAPPED.sub("", text))
    return text


MAX_WORD = 80
"""Characters of a word; a longer one is several."""

_AS_RUNS = bytes(32 if code == 32 else 97 for code in range(256))
_TOO_LONG = b"a" * (MAX_WORD + 1)


def words(text: str) -> list[str]:
    """Return the words of a folded text in their order, in lower case."""
    if text.isascii():
        parted = in_words(text)
        if len(parted) <= MAX_WORD or _TOO_LONG not in parted.translate(_AS_RUNS):
            return parted.decode().split()
    return _WORD.findall(text.lower())


@read_once
def words_once(text: str) -> tuple[str, ...]:
    """Return the :func:`words` of a text of which several ask."""
    return tuple(words(text))


@lru_cache(maxsize=20_000)
def digest(*parts: str) -> int:
    """Return a short number for some words next to each other.

    Two different ones share it once in 4 billion, so that one in 400,000 is falsely known among 10,000.
    """
    return crc32("\0".join(parts).encode("utf-8", "surrogatepass"))


def number_form(value: float, unit: str = "") -> str:
    """Return the form in which equal quantities are equal.

    Examples
    --------
    >>> number_form(1200.0), number_form(0.1 + 0.2), number_form(1500.0, "m")
    ('n:1200', 'n:0.3', 'n:1500m')
    """
    return f"n:{value + 0.0:.12g}{unit}"


MOST_PLACES = 300
"""Largest power of ten of the last digit of a number."""


@lru_cache(maxsize=20_000)
def quantity(digits: str, before: str = "", after: str = "") -> Quantity | None:
    """Return what a number and the words around it say; ``None`` if it is none.

    Parameters
    ----------
    digits : str
        As written: ``1,234.50``, ``1.234,50``, ``1'234.50``, ``1 234,50``, ``1,23,456``, ``3,14``, ``-3``, ``2e-5``.
    before, after : str
        A currency, a scale (``million``), a unit or ``%``; in any case, but ``M`` is a million and ``m`` a metre.

    Examples
    --------
    >>> quantity("1,200.00", "$").value, quantity("1.23", "", "million").grain, quantity("1.5", "", "km")
    (1200.0, 10000.0, Quantity(value=1500.0, grain=100.0, unit='m'))
    """
    plain = digits.replace("−", "-").replace("'", "").replace(NARROW, " ")
    if " " in plain or _DECIMAL_COMMA.fullmatch(plain):  # no groups with commas: one begins the fraction
        plain = plain.replace(" ", "").replace(",", ".")
    if plain.count(".") > 1 and "," not in plain:
        plain = plain.replace(".", "")
    if "," in plain and ("." not in plain or plain.rindex(",") < plain.index(".")):
        plain = plain.replace(",", "")
    elif "," in plain:
        plain = plain.replace(".", "").replace(",", ".")
    try:
        value = float(plain)
    except ValueError:
        return None
    if not -1e280 < value < 1e280:  # so that no scale or unit makes it infinite
        return None
    mantissa, _, exponent = plain.lower().partition("e")
    places = int(exponent or 0) - len(mantissa.partition(".")[2])
    if places > MOST_PLACES:  # 0e999 is zero and has no precision that a float could hold
        return None
    grain = 10.0**places
    unit = CURRENCIES.get(before.strip().lower(), "")
    short, _, second = after.strip().partition(" ")
    first, second = short.lower(), second.lower()
    scaled = first not in ("m", "b") or short.isupper() or bool(unit) or second in CURRENCIES
    if first == "b" and not (unit or second in CURRENCIES or (scaled and "." in plain)):  # a house, the size of a model
        return None
    if first in SCALES and scaled:
        value, grain = value * SCALES[first], grain * SCALES[first]
        first = second
    if first in CURRENCIES:
        unit = unit or CURRENCIES[first]
    elif first in ("%", "percent"):
        unit = "%"
    elif not unit and first in UNITS:
        unit, factor = UNITS["mib" if short == "Mi" else first]  # mi is a mile
        value, grain = value * factor, grain * factor
    return Quantity(value, grain, unit)


def date_form(year: int | None, month: int, day: int | None) -> str | None:
    """Return the form of a date, of a month of a year, or of a day of any year; ``None`` if there is none such.

    Examples
    --------
    >>> date_form(2024, 5, 1), date_form(None, 5, 26), date_form(2023, 12, None), date_form(2024, 13, 1)
    ('d:2024-05-01', 'd:05-26', 'd:2023-12', None)
    """
    if not 1 <= month <= 12 or (day is not None and not 1 <= day <= 31):
        return None
    parts = ([f"{year:04d}"] if year is not None else []) + [f"{month:02d}"] + ([f"{day:02d}"] if day else [])
    return "d:" + "-".join(parts)


@lru_cache(maxsize=5_000)
def url_form(url: str) -> str:
    """Return what makes two addresses the same: no scheme, ``www.``, trailing slash, fragment or tracking, any case.

    Examples
    --------
    >>> url_form("HTTP://www.Example.org/a/?utm_source=x&id=1#top"), url_form("https://example.org/")
    ('example.org/a?id=1', 'example.org')
    """
    plain = url.lower().partition("#")[0].removeprefix("https://").removeprefix("http://").removeprefix("www.")
    path, mark, query = plain.partition("?")
    query = _TRACKING.sub("", query).rstrip("&")
    return path.rstrip("/") + (f"?{query}" if mark and query else "")


def path_forms(path: str) -> list[str]:
    r"""Return a path and its ends, the whole first; the last one is the name of the file.

    Examples
    --------
    >>> path_forms("./src/App.py"), path_forms(r"C:\data\x.csv")[-1]
    (['src/app.py', 'app.py'], 'x.csv')
    """
    parts = [part for part in path.lower().replace("\\", "/").split("/") if part not in ("", ".")]
    return ["/".join(parts[at:]) for at in range(max(0, len(parts) - 8), len(parts))] or ["/"]
