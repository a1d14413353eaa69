"""Times, durations and days in notations of their own: ``16 h 10``, ``3h12m``, ``8点20分``, cron."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from coherence.core.lazy import lazy_regex
from coherence.core.readings import MAX_CLAIMS, Claim
from coherence.detect.digits import behind_digits, digit_matches
from coherence.detect.values import date_form, number_form

_PARTED = lazy_regex(r"[dhmDH](?<=\d.)(?:(?=\d)|(?<=d)(?!\w))|[hH](?<=\d h|\d\dh) ?(?=[0-5]\d(?!\d))")
"""Beginning of the second part of a duration or of a time; or the place behind days that stand alone."""
_FIRST = lazy_regex(r"(?<![\w.,:/-])\d{1,4} ?\Z")
_REST = lazy_regex(
    r" ?(\d{1,2}) ?([hms]|min|mn|sec)?(?: ?(\d{1,2}) ?([ms]|min|mn|sec))?(?: ?(\d{1,2}) ?s)?(?![\w]|[.,:]\d)"
)
HOUR, MINUTE = 3_600.0, 60.0
_SECONDS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "min": 60.0, "mn": 60.0, "s": 1.0, "sec": 1.0}
_MINUTES = r"minutes?|mins?|minuten|minutos?|minut[io]|minuut|minutter"
_WORDED = lazy_regex(
    r"(?P<one>\d(?<![\w.,:/-]\d)\d{0,3})[ -]?(?=[hsuotm])"
    r"(?:(?P<h>hours?|hrs?|h|stunden?|std\.?|heures?|horas?|or[ae]|uur|timer?)"
    rf"|(?P<m>{_MINUTES}))(?:,? ?(?:and|und|et|y|e|en|og)?) ?(?P<two>\d{{1,2}})[ -]?(?(h)(?:m|{_MINUTES})"
    r"|(?:seconds?|secs?|s|sekunden|secondes?|segundos?|second[io]|seconden))\b",
    re.I,
)
"""Hours and minutes, or minutes and seconds, with words between them."""
_WORDS_BEGIN, _PARTS_BEGIN = frozenset("hsuotmHSUOTMſ"), frozenset("dhmDHM")
"""Letters behind the first number of what :data:`_WORDED` and :data:`_PARTED` find."""
_EASTERN = lazy_regex(
    r"(?P<number>\d(?<!\d\d)(?<!\d[.,:]\d)\d{0,3}) ?(?:"
    r"(?P<month>[月월]) ?(?P<day>\d{1,2})[日号號일]"
    # 時間 are hours, 时间 is time as such
    r"|(?P<clock>[点點시]|時(?!間)|时(?!间))(?: ?(?P<minute>\d{1,2})[分분]|(?P<half>[半반]))?"
    r"|(?P<hours>小时|小時|時間|시간)(?: ?(?P<more>\d{1,2}) ?(?:分钟|分鐘|分|분))?"
    r"|(?P<minutes>分钟|分鐘|分間|分|분)"
    r"|(?P<days>天|日間|일간))"
)
_AFTERNOON = lazy_regex(r"(?:下午|晚上|午後|오후) ?\Z")
_CRON = lazy_regex(
    r"^[ \t]{0,9}(?P<minute>[\d*][\d*/,-]{0,20})[ \t]{1,4}(?P<hour>[\d*][\d*/,-]{0,20})[ \t]{1,4}(?=[\d*/,-]{1,20}[ \t]"
    r"{1,4}[\w*/,-]{1,20}[ \t]{1,4}[\w*/,#-]{1,20})",
    re.M,
)
_EACH = lazy_regex(r"\*/(\d{1,2})")
_EAST = lazy_regex("[月월点點시時时小分분天日일]")


def notations(text: str) -> Iterator[Claim]:
    """Yield times and durations whose parts have letters between them, and what cron says.

    Examples
    --------
    >>> [(claim.kind, claim.text, claim.forms[0]) for claim in notations("at 16 h 10, for 2d4h, 8点20分")]
    [('time', '16 h 10', 't:16:10'), ('amount', '2d4h', 'n:187200s'), ('time', '8点20分', 't:08:20')]
    >>> [claim.forms[0] for claim in notations("15 3 * * 1-5  /opt/pull.sh")]
    ['t:03:15']
    """
    behind = behind_digits(text)
    for found in islice(digit_matches(_WORDED, text), MAX_CLAIMS) if not _WORDS_BEGIN.isdisjoint(behind) else ():
        unit = HOUR if found["h"] else MINUTE
        seconds = unit * int(found["one"]) + unit / 60.0 * int(found["two"])
        yield _duration(found[0], found.start(), seconds, unit / 60.0)
    if not _PARTS_BEGIN.isdisjoint(behind):
        yield from islice(_parted(text), MAX_CLAIMS)
    if not text.isascii() and _EAST.search(text) is not None:
        yield from islice(_eastern(text), MAX_CLAIMS)
    if "*" in text:
        yield from islice(_scheduled(text), MAX_CLAIMS)


def _parted(text: str) -> Iterator[Claim]:
    end = 0
    for sign in digit_matches(_PARTED, text):
        first = _FIRST.search(text, max(end, sign.start() - 6), sign.start()) if sign.start() >= end else None
        if first is None:
            continue
        unit, start = sign[0].strip().lower(), first.start()
        value, grain = float(first[0]) * _SECONDS[unit], _SECONDS[unit]
        rest = _REST.match(text, sign.start() + 1)
        if rest is None:
            if unit == "d" and not text[sign.end() : sign.end() + 1].isalnum():
                yield _duration(text[start : sign.end()], start, value, grain)
            continue
        end, said = rest.end(), text[start : rest.end()]
        if rest[2] is None:
            if unit == "h" and len(rest[1]) == 2:
                yield _time(said, start, int(first[0]), int(rest[1]))
            continue
        for number, its in ((rest[1], rest[2]), (rest[3], rest[4]), (rest[5], "s")):
            if number:
                value, grain = value + float(number) * _SECONDS[its], _SECONDS[its]
        yield _duration(said, start, value, grain)


def _time(text: str, start: int, hour: int, minute: int, *, half: bool = False) -> Claim:
    """Return what may be a time of the day, or a duration in hours and minutes."""
    seconds = 3_600.0 * hour + 60.0 * minute
    hours = [hour % 24, (hour + 12) % 24] if half else [hour % 24]
    forms = [f"t:{each:02d}:{minute:02d}" for each in hours] if hour <= 24 and minute < 60 else []
    return Claim(
        "time",
        text,
        start,
        (*forms, number_form(seconds, "s"), number_form(seconds / 60.0)),
        (),
        seconds,
        60.0,
        "clock",
    )


def _duration(text: str, start: int, seconds: float, grain: float) -> Claim:
    bare = seconds / grain
    return Claim("amount", text, start, (number_form(seconds, "s"),), (number_form(bare),), seconds, grain, "s")


def _eastern(text: str) -> Iterator[Claim]:
    for found in _EASTERN.finditer(text):
        start, said, number = found.start(), found[0], int(found["number"])
        if found["month"]:
            form = date_form(None, number, int(found["day"]))
            if form is not None and number <= 12:
                yield Claim("date", said, start, (form,), (form.replace("d:", "anyyear:"),))
        elif found["clock"]:
            minute = int(found["minute"] or (30 if found["half"] else 0))
            late = _AFTERNOON.search(text, max(0, start - 4), start) is not None and number < 12
            yield _time(said, start, number + 12 * late, minute, half=number < 12 and not late)
        elif found["hours"]:
            more = int(found["more"] or 0)
            yield _duration(said, start, 3_600.0 * number + 60.0 * more, 60.0 if found["more"] else 3_600.0)
        elif found["minutes"]:
            yield _duration(said, start, 60.0 * number, 60.0)
        else:
            yield _duration(said, start, 86_400.0 * number, 86_400.0)


def _scheduled(text: str) -> Iterator[Claim]:
    """Yield when a line of cron runs: at a time, and how often."""
    for line in _CRON.finditer(text):
        minute, hour = line["minute"], line["hour"]
        if minute.isdigit() and hour.isdigit() and int(minute) < 60 and int(hour) < 24:
            yield Claim(
                "time",
                f"{minute} {hour}",
                line.start("minute"),
                (f"t:{int(hour):02d}:{int(minute):02d}",),
                (),
                3_600.0 * int(hour) + 60.0 * int(minute),
                60.0,
                "clock",
            )
        for field, unit in ((minute, 60.0), (hour, 3_600.0)):
            each = _EACH.fullmatch(field)
            if each is not None:
                yield _duration(field, line.start("minute" if unit == 60.0 else "hour"), unit * int(each[1]), unit)
