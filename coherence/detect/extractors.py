"""Extractors of checkable values: urls, ids, dates, numbers, quotations; and all claims of a text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from operator import attrgetter
from string import ascii_letters
from types import MappingProxyType
from typing import NamedTuple

from coherence.core.config import GroundingConfig
from coherence.core.lazy import lazy_regex, one_of, twin_regex
from coherence.core.protocols import Extractor
from coherence.core.readings import MAX_CLAIMS, Claim
from coherence.detect.dates import dates
from coherence.detect.digits import behind_digits, digit_matches, near_digits
from coherence.detect.notations import notations
from coherence.detect.values import (
    CURRENCIES,
    FIELD_UNITS,
    NARROW,
    SCALES,
    UNITS,
    UNSURE,
    number_form,
    path_forms,
    quantity,
    url_form,
    words,
)

_NAMED = [name for name in CURRENCIES if name.isascii() and len(name) > 1]
_UNIT, _MONEY = one_of({*UNITS, *_NAMED}), one_of(_NAMED)
_SCALE = one_of(name for name in SCALES if name.isascii() and name != "b")
_LETTER = r"[^\W\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]"
"""Letters that part a number from the next word; Chinese, Japanese and Korean are written without spaces."""
_HEX = lazy_regex("[0-9a-f]+")
# A pattern that first names what it begins with, and looks back only then, is found several times faster: so several
# here look back *behind* their first character.
_URL = lazy_regex(r"[hHwW](?i:(?<=h)ttps?://|(?<=w)(?<![\w.@/-]w)ww\.)[^\s\"'<>()\[\]{}|\\^`]{1,400}")
_EMAIL = lazy_regex(r"(?<![\w.+%-])[\w.+%-]{1,64}+@[\w-]{1,60}(?:\.[\w-]{1,60}){1,5}")
_PAPER = lazy_regex(  # a DOI; an id of arXiv
    r"\d(?<![\w.]\d)(?:(?<=1)0\.\d{4,9}/[^\s\"'<>,;()\[\]{}]{2,100}|\d{3}\.\d{5}(?:v\d{1,3})?(?!\w|\.\d))"
)
_ID_FORMS = (
    rf"(?=[A-Za-z0-9#+])(?:(?<!{_LETTER})(?<![.-])(?=[A-Za-z0-9])(?=[A-Za-z_-]{{0,41}}+\d|(?i:id))(?:"
    r"(?P<version>v?\d{1,5}(?:\.\d{1,5}){2,4}(?:[a-z]{1,3}\d{1,3})?)(?![\w-]|\.\d)"
    r"|(?P<iban>[A-Z]{2}\d{2}(?: [A-Z0-9]{4}){3,7}(?: [A-Z0-9]{1,3})?)(?![\w-])"
    r"|(?i:id)_?['\"`*]{0,4}(?: is)?[ :=(]{1,3}['\"`#*]{0,4}(?P<labelled>\d{1,18})(?!\w|[.,:]\d)"  # not "id: 3.5"
    r"|(?P<code>(?=\d*+[A-Za-z_-])(?:[A-Za-z][A-Za-z_-]{0,40}+)?\d[A-Za-z\d_-]{2,63}|[A-Za-z][A-Za-z_-]{1,40}+\d[A-Za-z\d_-]?)"
    rf"(?!{_LETTER}|-)"
    r")|#(?P<number>\d{1,18})(?!\w|[.,:]\d)"
    r"|(?<![\w+])(?P<phone>\+\(?\d{1,4}\)?(?:[ -]?\(?\d{1,9}\)?){1,7})(?![\w]|-\d))"
)
_ID = twin_regex(
    r"(?:(?![iI][dD](?![A-Za-z-]))[A-Za-z_-]++(?!\d)"  # "id" may label the number behind it
    r"|[0-9]++(?![\w.-])|[^A-Za-z0-9_#+-]++)*+"
    rf"(?:(?P<found>{_ID_FORMS})|[A-Za-z0-9_-]++|[#+]|\Z)"
)
"""A match skips words that have no digit and lone numbers, and finds an id behind them, or what is none."""
_VERSIONED = lazy_regex(r"(.*\d)v(\d{1,3})\Z", re.S)
_ORDINAL = lazy_regex(  # "21st", "1990s", "4k", "2h30", "10-day"
    rf"\d{{1,4}}(?:st|nd|rd|th|s)|\d+(?:[xdkb]|am|pm|h\d{{1,2}}(?:m|min)?|{_UNIT})"
    r"|\d{1,2}-(?:\w{1,12}-)?[a-z]{2,12}",
    re.I,
)

_POWERS = frozenset(f"{scale}{power}" for scale in ("m", "mm", "cm", "dm", "km", "hm", "ft", "in") for power in "23")
"""Units of area and volume."""

_TIME = twin_regex(
    r"(?P<h>\d(?<![\d:.]\d)\d?)(?:(?::(?P<m>\d\d)(?::(?P<s>\d\d)(?:\.\d{1,9})?)?"
    r"|\.(?P<m2>\d\d)(?= ?(?:[ap]\.?m|uhr)\b))"  # "5.30" alone is a number
    r"(?: ?(?P<half>[ap])\.?m\b\.?)?| ?(?P<half2>[ap])\.?m\b\.?)(?!:?\d|,\d{3})",
    re.I,
)
_IN_TIMES = frozenset(":.apAP")
"""Signs behind the hour of every time of the day."""
_PATH_FORMS = (
    r"(?<![\w/.@:-])(?:[A-Za-z]:\\|~?/|\.{1,2}/)?[\w.+@-]{1,100}+(?:[/\\][\w.+@-]{1,100}+){1,20}"
    r"|(?<![\w./\\@-])[\w-]{1,80}+(?:\.[\w-]{1,80}+){0,4}\.[A-Za-z]{1,5}\d?(?![\w@/\\]|\.\w)"
)
_PATH = twin_regex(
    r"(?:[^\s\x1c-\x1f/\\.]{0,60}+(?:\.(?![A-Za-z])[^\s\x1c-\x1f/\\.]{0,60}+){0,5}+[\s\x1c-\x1f]++)*+"
    rf"(?:(?P<found>{_PATH_FORMS})|[\w/.@-]++|[^\w.+@~/-]++|[+~]|\Z)"
)
"""A match skips words without the sign of a path, a slash or a letter behind a full stop; it finds one in the next."""
# "e.g", "i.e", "p.m", hosts
_NO_FILE = lazy_regex(r"\.(?:g|e|com|org|net|edu|gov|io|ai|co|uk|de|ch|eu|inc|m|s)\Z", re.I)
_CALL = twin_regex(r"(?<![\w.])([A-Za-z_]\w{1,60}(?:(?:\.|::)[A-Za-z_]\w{0,60}){0,5})\(\)")
_ARGUED = twin_regex(
    r"(?<![\w.])(?:(?:def|fn|func|function) {1,4})?"
    r"([A-Za-z_]\w{1,60}+(?:(?:\.|::)[A-Za-z_]\w{0,60}+){0,5}+)\((?!\))"
)
_EMPTY_CALL, _NAMED_CALL = lazy_regex(r"\(\)(?<=\w\(\))"), lazy_regex(r"\((?<=\w\()(?!\))")
"""Brackets directly behind a name; most stand behind a space."""
MAX_KEYWORD, MAX_CALL = 12, 400
"""Characters of ``function`` and the spaces behind it, and of all that stands before a bracket."""
_CODE = twin_regex(r"`([A-Za-z_]\w{1,60}(?:(?:\.|::)[A-Za-z_]\w{0,60}){0,5})(?:\([^`\n]{0,80}\))?`")
_MONEY_SIGNS = frozenset("$€£¥₹")
_NUMBER = twin_regex(
    # Most numbers have no separators.
    rf"\d(?<!{_LETTER}\d)(?<![./]\d)(?:\d{{0,14}}+(?!\d|[.,']\d|e[+-]?\d|[ {NARROW}]\d{{3}})"
    rf"|(?<![\d {NARROW}][ {NARROW}]\d)\d{{0,2}}(?:[ {NARROW}]\d{{3}}){{1,8}}+(?:[.,]\d{{1,2}}+)?(?! ?\d)"  # 12 500
    r"|\d{0,2}(?:'\d{3}){1,8}+(?:\.\d{1,20}+)?|\d{0,2}(?:,\d{3}){1,8}+(?!,?\d)(?:\.\d{1,20}+)?"  # 1'234'567; 1,234.5
    r"|\d?(?:,\d\d(?=,)){1,5}+,\d{3}(?!,?\d)(?:\.\d{1,20}+)?"  # 12,34,567 as in India
    # 1.234,50; 1.234.567; 3,14
    r"|\d{0,2}(?:\.\d{3}){1,8}+,\d{1,2}+(?!,)|\d{0,2}(?:\.\d{3}){2,8}+|(?<!\d,\d)\d{0,14}+,\d{1,2}+(?!,?\d)"
    r"|\d{0,29}+(?:\.\d{1,20}+)?)(?:e[+-]?\d{1,3})?(?P<after>(?=[ -]?(?:[^\W\d]|[%€$£¥₹]))"
    rf"(?:(?:[ -]?(?:{_SCALE})|b)\b|[万億亿])?"
    rf"(?:[ -]?(?:[%€円元원]|[$£¥₹](?![\s\x1c-\x1f]?\d)|(?:percent|{_UNIT})\b))?|)(?!{_LETTER}|[./]\d)",
    re.I,
)
_MAY_BE_SIGNED = frozenset("$€£¥₹-−")
"""Signs before a number, or before a space, with which there may be a currency."""
_BEHIND_ITEMS = frozenset(".):")
"""Characters behind the number of an item of a list."""
_CJK_SCALE = lazy_regex("([万億亿])")
_DIGITS = lazy_regex(r"\d+")
_SEPARATED = lazy_regex(rf"(?<=\d)[ ,{NARROW}](?=\d)")
_THOUSANDS = lazy_regex(r"[1-9]\d{0,2}\.\d{3}")
_CAMEL = lazy_regex(r"(?<=[a-z])[A-Z]+[a-z]*\Z")
_MINUS, _QUOTE_SIGNS, _FIELD_SIGNS = frozenset("-−"), frozenset("\"'"), frozenset(":=")
_GROUPED = lazy_regex(r"\d{1,3}(?:\.\d{3}){2,}")
_PRICED = lazy_regex(rf" ?(?:€|(?:{_MONEY})\b)", re.I)
_NUMBERING = lazy_regex(r"^[ \t>*_#-]{0,20}(?:step |item )?\d{1,4}[.):](?!\d)", re.I | re.M)
_QUOTE = lazy_regex(
    r"\"([^\"\n]{8,400})\"|“([^“”\n]{8,400})”|„([^“”„\n]{8,400})[“”]|«([^«»\n]{8,400})»|>(?<![^\n]>) ?([^\n]{8,400})"
)
_QUOTING = '"“„«>'
"""Signs before a quotation."""
MAX_FIELD = 30
"""Letters of the name of a field."""
_FIELD_NAMES = frozenset({*UNITS, *CURRENCIES, "percent"})
_NAME = lazy_regex(r"(?<![\w.])[A-Z][\w'-]{1,30}(?:, [A-Z][\w'-]{1,30}| (?:[A-Z]\. )?[A-Z][\w'-]{1,30}){1}(?!\w)")


def _matches(pattern: re.Pattern[str], text: str, found: Sequence[Claim]) -> Iterator[re.Match[str]]:
    """Yield the matches of a pattern until as many claims were found as are looked at."""
    for match in pattern.finditer(text):
        if len(found) >= MAX_CLAIMS:
            return
        yield match


def urls(text: str) -> list[Claim]:
    """Web addresses; the same with or without scheme, ``www.``, trailing slash, fragment and tracking."""
    if "://" not in text and ("." not in text or "www." not in text.lower()):
        return []
    found: list[Claim] = []
    for match in _matches(_URL, text, found):
        url = match[0].rstrip(".,;:!?*_")
        form = url_form(url)
        host = form.partition("/")[0]
        tail = form.rpartition("/")[2]
        paper = _PAPER.search(form)
        forms = (f"url:{form}", f"id:{paper[0]}") if paper is not None else (f"url:{form}",)
        # A text often shows an id only within its address: …/abs/2310.06825v2.
        also = (f"url:{host}", f"path:{tail}", f"id:{tail}", f"id:{tail.partition('v')[0]}")
        found.append(Claim("url", url, match.start(), forms, also))
    return found


def emails(text: str) -> list[Claim]:
    """E-mail addresses, in any case."""
    if "@" not in text:
        return []
    return [
        Claim("email", match[0].rstrip("."), match.start(), (f"email:{match[0].rstrip('.').lower()}",))
        for match in islice(_EMAIL.finditer(text), MAX_CLAIMS)
    ]


def papers(text: str) -> list[Claim]:
    """DOIs, and arXiv ids with or without a version: ``2310.06825v2`` is none other, and also ``2310.06825``."""
    found: list[Claim] = []
    for match in digit_matches(_PAPER, text) if "." in text and "." in behind_digits(text) else ():
        if len(found) >= MAX_CLAIMS:
            break
        plain = match[0].rstrip(".").lower()
        versioned = _VERSIONED.fullmatch(plain)
        also = (f"id:{versioned[1]}",) if versioned else ()
        found.append(Claim("id", match[0].rstrip("."), match.start(), (f"id:{plain}",), also))
    return found


def ids(text: str) -> list[Claim]:
    """Versions, IBANs, ``#123``, and words of letters and digits: CVE-2021-44228, PROJ-123, a UUID, a git sha."""
    found: list[Claim] = []
    for match in digit_matches(_ID, text):
        said = match["found"]
        if said is None:
            continue
        if len(found) >= MAX_CLAIMS:
            break
        code, version, number, phone = match.group("code", "version", "number", "phone")
        start = match.start("found")
        plain = said.lower()
        if code:
            if _ORDINAL.fullmatch(plain) or plain in _POWERS or plain.replace("-", "").isdigit():
                continue
            also: tuple[str, ...] = ()
            if 12 <= len(plain) <= 64 and _HEX.fullmatch(plain) is not None:
                also = tuple([f"id:{plain[:size]}" for size in (6, 7, 8, 10, 12)])  # a short sha of a long one
            found.append(Claim("id", said, start, (f"id:{plain}",), also))
        elif phone:
            parts = _DIGITS.findall(said)
            if 8 <= sum(map(len, parts)) <= 15:  # E.164 allows no more than 15 digits
                also = tuple(number_form(float(part)) for part in parts)
                found.append(Claim("id", said, start, (f"id:+{''.join(parts)}",), also))
        elif version:
            plain = plain.removeprefix("v")
            forms: tuple[str, ...] = (f"id:{plain}",)
            if _GROUPED.fullmatch(said):
                if _PRICED.match(text, match.end()) or _currency_before(text, start)[0]:
                    continue  # a price in groups of three
                forms += (digits_form(plain),)
            found.append(Claim("id", said, start, forms))
        elif plain_number := number or match["labelled"]:
            also = (f"n:{int(plain_number)}",) if int(plain_number) > 12 else ()  # smaller numbers are in any text
            found.append(Claim("id", plain_number, match.end() - len(plain_number), (f"id:{plain_number}",), also))
        else:
            found.append(Claim("id", said, start, (f"id:{plain.replace(' ', '')}",)))
    return found


def times(text: str) -> list[Claim]:
    """Find times of the day, ``17:00`` like ``5 PM``; seconds do not count."""
    if not near_digits(text):
        return []
    found = list(notations(text))
    for match in digit_matches(_TIME, text) if not _IN_TIMES.isdisjoint(behind_digits(text)) else ():
        if len(found) >= MAX_CLAIMS:
            break
        hour, minute, half = (
            int(match["h"]),
            int(match["m"] or match["m2"] or 0),
            (match["half"] or match["half2"] or "").lower(),
        )
        if hour > 24 and not half and minute <= 59 and match["s"] is None:  # minutes and seconds
            value = 60.0 * hour + minute
            known = f"t:{match[0].strip()}", number_form(value, "s")
            found.append(Claim("time", match[0].strip(), match.start(), known, (), value, 1.0, "s"))
            continue
        if hour > (12 if half else 24) or minute > 59:
            found.append(Claim("time", match[0].strip(), match.start(), (f"t:{match[0].strip().lower()}",)))
            continue
        if half:
            hours = [hour % 12 + (12 if half == "p" else 0)]
        else:
            # 5:00 may be 17:00, 05:00 may not.
            hours = [hour % 24] if hour > 12 or match["h"].startswith("0") else [hour, (hour + 12) % 24]
        forms = tuple(f"t:{each:02d}:{minute:02d}" for each in hours)
        value = 3600.0 * hours[0] + 60.0 * minute + float(match["s"] or 0)
        found.append(Claim("time", match[0].strip(), match.start(), forms, (), value, 60.0, "clock"))
    return found


def paths(text: str) -> list[Claim]:
    """Paths and names of files; the end of a path stands for the whole of it."""
    found: list[Claim] = []
    if "/" not in text and "." not in text and "\\" not in text:
        return found
    for match in _matches(_PATH, text, found):
        said = match["found"]
        if said is not None:
            path, whole, ends = _read_path(said)
            if whole:
                found.append(Claim("path", path, match.start("found"), whole, ends))
    return found


@lru_cache(maxsize=5_000)
def _read_path(said: str) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return what may be a path, and the forms of the whole and of its ends; no forms if it is none."""
    path = said.rstrip(".")
    name = path.replace("\\", "/").rpartition("/")[2]
    if "/" in path or "\\" in path:
        # "and/or", "yes/no"
        if not (path[0] in "/~." or path[1:3] == ":\\" or "." in name.strip(".") or path.count("/") > 2):
            return path, (), ()
        if "." not in path and all(part[:1].isupper() for part in path.split("/")):
            return path, (), ()  # names in a row: Nice/Tarbes/Toulouse/Paris
    elif _NO_FILE.search(path) or name[0] == "-" or len(name) < 4:
        return path, (), ()
    whole, *ends = [f"path:{form}" for form in path_forms(path)]
    return path, (whole,), tuple(ends)


def functions(text: str) -> list[Claim]:
    """Names in code: ``foo()``, ``def foo(x)``, ``foo_bar(x)`` and ``foo.bar(x)``; ```foo_bar``` between backticks."""
    found: list[Claim] = []
    if "(" not in text and "`" not in text:
        return found
    for pattern, matches in ((_CALL, _calls(_CALL, _EMPTY_CALL, text)), (_CODE, _CODE.finditer(text))):
        for match in matches:
            if len(found) >= MAX_CLAIMS:
                break
            name = match[1]
            if (
                # A plain word between backticks may be a value, a branch or a flag: `main`.
                pattern is _CALL
                or "." in name
                or "_" in name
                or not (name.islower() or name.isupper() or name.istitle())
            ):
                found.append(_function(match))
    for used in _calls(_ARGUED, _NAMED_CALL, text):
        if len(found) >= MAX_CLAIMS:
            break
        if " " in used[0] or "." in used[1] or "_" in used[1]:  # not "person(s)"
            found.append(_function(used))
    return found


def _calls(pattern: re.Pattern[str], bracket: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield what an expression finds that ends in a bracket; it is looked for from the word before each."""
    end = 0
    for sign in bracket.finditer(text):
        at = sign.start()
        first = max(end, at - MAX_CALL)
        first = max(first, text.rfind(" ", first, at) - MAX_KEYWORD, text.rfind("\n", first, at) + 1)
        end = sign.end()
        match = pattern.search(text, first, end + 1)
        if match is not None:
            yield match


def _function(match: re.Match[str]) -> Claim:
    name = match[1].removeprefix("self.").removeprefix("this.").removeprefix("cls.")
    form = name.lower()
    return Claim("function", name, match.end(1) - len(name), (f"f:{form}",), (f"path:{form}",))


def numbers(text: str) -> list[Claim]:
    """Numbers, amounts and durations, also with the unit of their field (``price_usd: 5``); no numbers of list items.

    Behind one that may be a row of numbers (``12 500 kg``) stand those, for where its first belongs to something else.
    """
    return numbers_left(text, None)


def numbers_left(text: str, taken: bytearray | None) -> list[Claim]:
    """Return the :func:`numbers` of a text but for those of which another extractor has taken every character."""
    found: list[Claim] = []
    may_have_fields = ":" in text or "=" in text
    for match in digit_matches(_NUMBER, text):
        start, end = match.span()
        if taken is not None and taken.find(0, start, end) < 0:
            continue
        if len(found) >= MAX_CLAIMS:
            break
        stop = match.start("after")
        digits = text[start:stop]
        if text[stop : stop + 1] in _BEHIND_ITEMS:
            line = text.rfind("\n", max(0, start - 30), start) + 1
            numbering = _NUMBERING.match(text, line) if line or start <= 30 else None
            if numbering is not None and numbering.end() == stop + 1:
                continue
        near = text[start - 4 if start > 4 else 0 : start]
        last = near[-1:]
        currency, begin = "", start
        if last in _MONEY_SIGNS:
            currency, begin = last, start - 1
        else:
            name = near[-4:-1] if last == " " else near[-3:]
            if name[-1:] in _MAY_BE_SIGNED or name.lower() in CURRENCIES:
                currency, begin = _currency_before(text, start)
        after = ""
        if stop < end:
            after = text[stop:end].replace("-", " ")
            after = after if after.isascii() else _CJK_SCALE.sub(r"\1 ", after)
        named, sure = "", False
        if may_have_fields and not after and (":" in near or "=" in near) and currency not in CURRENCIES:
            named, sure = _unit_of_field(text, start)
        # The sign in "3-5" is a dash.
        negative = last in _MINUS and not near[-2:-1].isalnum()
        stated = _stated(digits, currency, after, named, sure, negative)
        if stated is None:
            continue
        forms, also, value, grain, unit = stated
        if not (currency and unit == CURRENCIES[currency.lower()]):
            begin = start
        found.append(
            Claim("amount" if unit else "number", text[begin:end].strip(), begin, forms, also, value, grain, unit)
        )
        if not digits.isdigit() and (" " in digits or NARROW in digits):
            found += [_part(part, start) for part in _DIGITS.finditer(digits)]
    return found


def _currency_before(text: str, start: int) -> tuple[str, int]:
    """Return the sign or the three letters of a currency directly before a number, or before its sign, and its place.

    Examples
    --------
    >>> _currency_before("for USD -5", 9), _currency_before("for 5", 4)
    (('USD', 4), ('', 4))
    """
    at = start - text.startswith(("-", "−"), start - 1, start)
    at -= text.startswith(" ", at - 1, at)
    if text[at - 1 : at] in _MONEY_SIGNS:
        return text[at - 1], at - 1
    name = text[at - 3 : at] if at > 2 else ""
    if name.lower() not in CURRENCIES or not name.isascii():
        return "", start
    before = text[at - 4 : at - 3]
    return ("", start) if before.isalnum() or before == "_" else (name, at - 3)


class _Stated(NamedTuple):
    """The meaning of a number, as a :class:`~coherence.core.readings.Claim` has it."""

    forms: tuple[str, ...]
    also: tuple[str, ...]
    value: float
    grain: float
    unit: str


@lru_cache(maxsize=20_000)
def _stated(digits: str, currency: str, after: str, named: str, sure: bool, negative: bool) -> _Stated | None:
    """Return what a number says with what stands around it, ``None`` if it is none.

    Parameters
    ----------
    digits, currency, after : str
        As :func:`~coherence.detect.values.quantity` takes them.
    named, sure : str, bool
        The unit in the name of its field, and whether it can be nothing else.
    negative : bool
        Whether a minus stands before it.
    """
    got = quantity(digits, currency, named if sure else after)
    if got is None:
        return None
    value, unit = -got.value if negative else got.value, got.unit
    forms = [number_form(value, unit)]
    if "." in digits and _THOUSANDS.fullmatch(digits):  # 1.234 may be a thousand
        forms.append(number_form(1000.0 * value, unit))
    also = [number_form(abs(value), unit)] if value < 0 else []
    if unit or named:
        also += [number_form(abs(value)), digits_form(digits)]
    if named and not sure and (meant := quantity(digits, "", named)) is not None:
        also.append(number_form(meant.value, meant.unit))
    if unit == "%":
        forms.append(number_form(value / 100.0))
    if not digits.isdigit():
        also += [number_form(float(part)) for part in row(digits)]
    return _Stated(tuple(forms), tuple(also), value, got.grain, unit)


def _part(part: re.Match[str], start: int) -> Claim:
    value = float(part[0])
    return Claim("number", part[0], start + part.start(), (number_form(value),), (), value, 1.0)


def _unit_of_field(text: str, start: int) -> tuple[str, bool]:
    """Return the unit in the name of the field whose value begins at a place, and whether it can be nothing else."""
    at = start - (text[start - 1 : start] in _MINUS)
    at -= text[at - 1 : at] in _QUOTE_SIGNS
    at -= text[at - 1 : at].isspace()
    if text[at - 1 : at] not in _FIELD_SIGNS or text[at - 2 : at - 1].isdigit():
        return "", False
    named = text[max(0, start - 40) : at - 1]
    if not named[-1:].isalpha():
        named = named[:-1] if named[-1:].isspace() else named
        named = named[:-1] if named.endswith(('"', "'")) else named
        named = named[:-1] if named.endswith((")", "]")) else named
    letters = len(named.rstrip(ascii_letters))
    name = named[letters:]
    if not name.islower():
        name = (camel[0] if (camel := _CAMEL.search(name)) is not None else name).lower()
    name = FIELD_UNITS.get(name, name)
    if name not in _FIELD_NAMES or len(named) - letters > MAX_FIELD:
        return "", False
    if named[max(0, letters - 2) : letters].strip().isdigit():
        return "", False  # 16 days: 3 as an egg
    return name, name not in UNSURE


def row(digits: str) -> list[str]:
    """Return the numbers that one with separators may be in a row; none where it has none, or a part begins with 0.

    Examples
    --------
    >>> row("12 500"), row("3,14"), row("1 200 000"), row("12.5")
    (['12', '500'], ['3', '14'], [], [])
    """
    parts = _SEPARATED.split(digits) if "." not in digits or "," not in digits else []
    return parts if len(parts) > 1 and not any(part[0] == "0" for part in parts) else []


def digits_form(digits: str) -> str:
    """Return the form of the bare number within an amount."""
    got = quantity(digits)
    return number_form(got.value) if got is not None else ""


def quotes(text: str) -> list[Claim]:
    """Quoted words, three or more, and quoted lines."""
    found: list[Claim] = []
    if not any(map(text.__contains__, _QUOTING)):
        return found
    for match in _matches(_QUOTE, text, found):
        said = match[match.lastindex or 0]
        if len(heard := words(said)) >= 3:
            found.append(Claim("quote", said, match.start(match.lastindex or 0), ("q:" + " ".join(heard),)))
    return found


def names(text: str) -> list[Claim]:
    """Names of two capitalised words, ``Jane Doe`` like ``Doe, Jane``; not used unless asked for."""
    return [
        Claim("name", match[0], match.start(), ("p:" + " ".join(sorted(words(match[0]))),))
        for match in islice(_NAME.finditer(text), MAX_CLAIMS)
    ]


BUILT_IN: Mapping[str, Extractor] = MappingProxyType(
    {
        "urls": urls,
        "emails": emails,
        "quotes": quotes,
        "functions": functions,
        "papers": papers,
        "paths": paths,
        "dates": dates,
        "times": times,
        "ids": ids,
        "numbers": numbers,
        "names": names,
    }
)
"""The extractors of this package. Earlier ones take their stretch of a text from later ones, but for quotes."""

DEFAULT = GroundingConfig().extractors
"""Those that are used where nothing else is said."""


_START = attrgetter("start")


def extract(text: str, extractors: Sequence[Extractor]) -> list[Claim]:
    """Return the claims of a folded text, in order; where two overlap, that of the earlier extractor.

    Examples
    --------
    >>> from coherence.detect.values import fold
    >>> chosen = [BUILT_IN[name] for name in DEFAULT]
    >>> [(claim.kind, *claim.forms) for claim in extract(fold("CVE-2021-44228 was found on May 1, 2024."), chosen)]
    [('id', 'id:cve-2021-44228'), ('date', 'd:2024-05-01')]
    """
    return extract_some(text, extractors)[0]


def extract_some(text: str, extractors: Sequence[Extractor]) -> tuple[list[Claim], bool]:
    """Return the claims of a folded text, and whether there are, or may be, more of them than are looked at."""
    size = len(text)
    taken = bytearray(size + 1)
    kept: list[Claim] = []
    cut = False
    for find in extractors:
        # Most numbers are parts of dates, times, paths and ids that were found before.
        found = numbers_left(text, taken) if getattr(find, "extractor", find) is numbers else find(text)
        if not found:
            continue
        if len(found) >= MAX_CLAIMS:
            cut, found = True, found[:MAX_CLAIMS]
        for claim in found:
            start = claim.start
            if taken[start]:
                continue
            end = start + len(claim.text)
            if end > size:
                end = size
            if end > start and taken[end - 1]:
                continue
            if claim.kind != "quote":  # what stands within a quotation is checked as well
                taken[start:end] = b"\1" * (end - start)
            kept.append(claim)
    kept.sort(key=_START)
    return kept[:MAX_CLAIMS], cut or len(kept) > MAX_CLAIMS
