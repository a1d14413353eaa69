"""Records of the newest results, and values of an answer that stand in another record than the name beside them.

Results are kept as text, few and short ones, and are taken apart only where an answer is judged. Where a longer result
was not kept nothing is said: it may have had name and value together.
"""

from __future__ import annotations

import re
from ast import literal_eval
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import Any, NamedTuple, TypeAlias

import msgspec

from coherence.core.lazy import lazy_regex, one_of
from coherence.detect.dates import dates
from coherence.detect.extractors import times
from coherence.detect.number_words import WORDS
from coherence.detect.read_once import read_once
from coherence.detect.text_analysis import tokens
from coherence.detect.text_tables import table_of
from coherence.detect.told_states import is_id_key
from coherence.detect.values import fold

MAX_KEPT = 12_000
"""Characters of results that are kept, the newest."""

MAX_RESULT = 4_000
"""Characters of one result that is kept."""

MAX_RECORDS = 60
"""Records of one group that are compared."""

MAX_ITEMS = 200
"""Objects and lists of one result that are looked at."""

MAX_LEAVES = 120
"""Values of one record that are read."""

KEY, VALUE = "\0key", "\0value"
"""Fields of a line that is a field itself."""

MAX_VALUE = 60
"""Characters of a field that is one value."""

ALIKE = 0.6
"""Share of their keys that two objects have in common from which they are records of one kind."""

_FIELD = lazy_regex(r"([\w .()/-]{1,40}):\s{1,9}(\S.{0,200})")
_PARTS = (
    lazy_regex(r"\s[—–]\s"),
    lazy_regex(r"\s[|•]\s"),
    lazy_regex(r";\s"),
    lazy_regex(r"\s/\s"),
    lazy_regex(r"(?<=[\w)\]])(?<!\b[MD][rs])(?<!\bMrs)(?<!\bProf)(?<!\bSt)(?<!\bNo)(?<!\b[A-Z])\.\s(?=[\w#])"),
)
"""Signs that part the records of a line, the surest first."""
_GROUPS = lazy_regex(r"(?<=\d),(?=\d{3}(?!\d))")
_KINDED = lazy_regex(r"(?<![\w-])([A-Za-z]{3,20})[ .#]{1,2}(\d{1,3})(?![\w%]|[.,:/-]\d)")
"""A word and a small number that together may name one thing: flat 2."""
_DAY_NAMES = """mon monday montag lundi lunes|tue tuesday dienstag mardi martes|wed wednesday mittwoch mercredi
miércoles|thu thursday donnerstag jeudi jueves|fri friday freitag vendredi viernes|sat saturday samstag samedi sábado
sam|sun sunday sonntag dimanche domingo dim"""
_WEEKDAYS = {
    token: names.split()[0]
    for names in _DAY_NAMES.split("|")
    for name in names.split()
    for token in tokens(f"{name} {name}s")
}
_SPELT = one_of(WORDS)
_COUNTED = lazy_regex(
    rf"(?<![\w.,/:-])(\d{{1,6}}(?:[.,]\d{{1,3}})?|{_SPELT})[ -]?([^\W\d_]{{1,20}})(?![\w:])", re.IGNORECASE
)
"""A number and what it counts."""
_RUN = lazy_regex(
    r"(?<![\w.])(?:[A-Z]\. )?[A-Z][\w'-]{0,30}(?: (?:\d{1,4}(?![\w.:/-])|(?:[A-Z]\. )?[A-Z][\w'-]{0,30}\b)){0,4}"
)
"""Words with a capital letter in a row."""
_CODE = lazy_regex(r"(?<![\w.,:/-])[\w-]{0,20}\d[\w.:/-]{0,40}")
_SIGN = lazy_regex(r"\d[\d., ]{0,60}|[^\W\d](?:[^\W\d]|[ '-]){0,60}")
_LABELLED = lazy_regex(r"\W{0,3}(?:[^\n:.]{1,40}:|[^\W\d]{0,3}[-#.]?\d)")
_GOES_ON = lazy_regex(
    r"\W{0,3}(?:it|its|he|his|she|her|they|their|this|that|these|those|there|then|but|and|also|however|er|sie|es|il|elle"
    r"|ella|él)\b",
    re.IGNORECASE,
)
_ORDINAL = lazy_regex(r"\b(\d{1,3})(?:st|nd|rd|th)\b")
_NUMBER = lazy_regex(r"\d{1,15}(?:[.,]\d{1,9})?")


class KeptResult(msgspec.Struct):
    """A short result as it came."""

    seq: int
    text: str


class Kept(msgspec.Struct):
    """The newest short results of a task."""

    results: list[KeptResult] = []
    whole: bool = True
    """False once a result was too long or left."""


class Unit(NamedTuple):
    """A value of a record: a cell, or a number, a date or a name within a text."""

    kind: str
    """The field's name, or how it is written; values of one kind can be taken for each other."""
    marks: frozenset[str]


class Record(NamedTuple):
    """One of several things of a kind, with what is said of it."""

    text: str
    head: frozenset[str]
    """Marks of what it begins with: the first field, the key of a pair."""
    units: tuple[Unit, ...]
    marks: frozenset[str]
    """All of them, words that belong to no unit included."""


class Group(NamedTuple):
    """Records of one kind in one result."""

    seq: int
    records: list[Record]
    where: dict[str, frozenset[int]]
    """Mark -> the records that have it."""
    units: dict[str, list[tuple[int, Unit]]]
    """Mark -> the values that it is part of, each with its record."""
    built: str
    """``fields``, ``pairs`` (a key and a value each) or ``lines``."""


def keep_result(kept: Kept, seq: int, text: str) -> None:
    """Keep a result if it is short."""
    if len(text) > MAX_RESULT:
        kept.whole = False
        return
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode("utf-8")  # a lone surrogate could not be stored
    if text.strip():
        kept.results.append(KeptResult(seq, text))
        size = sum(len(each.text) for each in kept.results)
        while size > MAX_KEPT:
            size -= len(kept.results.pop(0).text)
            kept.whole = False


LONG_DAY = 12
"""Characters of the form of a day with its year."""


def marks_of(text: str) -> frozenset[str]:
    """Return the tokens of a text, and the forms of its days and times."""
    digits = any(map(str.isdigit, text))
    if digits and "," in text:
        text = _GROUPS.sub("", text)
    found = tokens(text)
    more: set[str] = {_WEEKDAYS[token] for token in found if token in _WEEKDAYS}
    if digits:
        more.update(form for claim in (*dates(text), *times(text)) for form in claim.forms)
        more.update(f"d:{form[7:]}" for form in [*more] if form[:2] == "d:" and len(form) == LONG_DAY)
        more.update(f"{float(token):g}" for token in found if "." in token and _NUMBER.fullmatch(token) is not None)
        more.update(f"{kind.lower()} {number}" for kind, number in _KINDED.findall(text))
        more.update(_ORDINAL.findall(text))
    more.update(
        f"{_digits(found[1])} {noun}"
        for found in islice(_COUNTED.finditer(text), MAX_LEAVES)
        for noun in tokens(found[2])
    )
    return found | more if more else found


marks_of_result = read_once(marks_of)
"""Results stay while answers come and go."""


@lru_cache(maxsize=32)
def parse(seq: int, text: str) -> list[Group]:
    """Return the groups of records of a result; not to be changed."""
    groups = []
    for found in _records(fold(text)):
        if 1 < len(found) <= MAX_RECORDS:
            records = [_record(fields) for fields in found]
            where: dict[str, set[int]] = {}
            units: dict[str, list[tuple[int, Unit]]] = {}
            for at, record in enumerate(records):
                for mark in record.marks:
                    where.setdefault(mark, set()).add(at)
                for unit in record.units:
                    for mark in unit.marks:
                        units.setdefault(mark, []).append((at, unit))
            names = {name for fields in found for name, _ in fields}
            built = "pairs" if KEY in names else "fields" if any(names) else "lines"
            groups.append(Group(seq, records, {mark: frozenset(each) for mark, each in where.items()}, units, built))
    return groups


def _record(fields: Sequence[tuple[str, str]]) -> Record:
    told = " ".join(text if key[:1] in ("", "\0") else f"{key} {text}" for key, text in fields)
    units: list[Unit] = []
    for key, text in fields:
        if key and len(text) <= MAX_VALUE:
            units.append(Unit(key + (_shape(text) if key == VALUE else ""), marks_of(text)))
        if len(text) <= MAX_TEXT and (not key or len(text) > MAX_CELL):
            found = units_of(text, key)
            prose = key not in ("", VALUE) and len(text.split()) > FEW_WORDS
            units += [unit for unit in found if not (prose and unit.kind.endswith("name"))]
    short = [(key, text) for key, text in fields if len(text) <= (MAX_VALUE if key else MAX_TEXT)]
    head = short[0][1] if short and short[0][0] else told.split(None, 1)[0]
    marks = chain(*(marks_of(text) for _, text in short), *(unit.marks for unit in units))
    return Record(told[:80], marks_of(head), tuple(units), frozenset(marks))


FEW_WORDS = 4
"""Words of a field beyond which it is a text."""


def _shape(text: str) -> str:
    """Return how a value is written: as a day, a time, or with which signs around numbers and words."""
    if dates(text):
        return "date"
    if times(text):
        return "time"
    return _SIGN.sub(lambda run: "9" if run[0][0].isdigit() else "a", text)


MAX_TEXT = 400
"""Characters of a text that is about one thing."""

MAX_CELL = 24
"""Characters of a field that is one value; a longer one may hold several."""


def units_of(text: str, field: str = "") -> Iterator[Unit]:
    """Yield the values within a text.

    Examples
    --------
    >>> [(unit.kind, sorted(unit.marks)) for unit in units_of("paid 40 euros to Jan Kowalski")]
    [('n euro', ['40', '40 euro']), ('name', ['jan', 'kowalski']), ('number', ['40'])]
    """
    for claim in (*dates(text), *times(text)):
        yield Unit(f"{field}{claim.kind}", frozenset(claim.forms) | tokens(claim.text))
    for found in islice(_COUNTED.finditer(text), MAX_LEAVES):
        noun = next(iter(tokens(found[2])), "")
        yield Unit(f"{field}n {noun}", frozenset((f"{_digits(found[1])} {noun}", *tokens(found[1]))))
    for found in islice(_RUN.finditer(text), MAX_LEAVES):
        if (marks := tokens(found[0])) and not marks & _WEEKDAYS.keys():
            yield Unit(f"{field}name", marks)
    for word in islice(_CODE.findall(text), MAX_LEAVES):
        yield Unit(field + ("number" if _NUMBER.fullmatch(word) is not None else "code"), marks_of(word))


def _digits(number: str) -> str:
    low = number.lower()
    return f"{WORDS[low]:g}" if low in WORDS else low


Fields: TypeAlias = list[tuple[str, str]]
"""Values of a record, each behind the name of its field."""


def _records(text: str) -> Iterator[list[Fields]]:
    r"""Yield the groups of records of a result.

    Examples
    --------
    >>> list(_records('{"from": "Linz", "legs": [{"no": 1, "gate": "F7"}, {"no": 2, "gate": "G3"}]}'))
    [[[('no', '1'), ('gate', 'F7')], [('no', '2'), ('gate', 'G3')]]]
    >>> list(_records("S1 online\nS2 offline"))
    [[[('', 'S1 online')], [('', 'S2 offline')]]]
    """
    body = text.strip()
    if body[:1] in "{[":
        value = _decoded(body)
        if value is not None:
            yield from _of_json(value)
        if value is not None or body[1:2] in "{[\"'":
            return
    lines = [line for line in body.split("\n") if any(map(str.isalnum, line))]
    if len(lines) > 1:
        table = table_of(lines)
        indents = Counter(len(line) - len(line.lstrip()) for line in lines)
        if table is None and len(indents) > 1:
            most = indents.most_common(1)[0][0]
            lines = [line.strip() for line in lines if len(line) - len(line.lstrip()) == most]
            if len(lines) < LEAST_INDENTED or any(line[-1] in "{}[](),;:" for line in lines):
                return
        fields = [found for line in lines if (found := _FIELD.match(line)) is not None]
        if table is not None:
            head, rows = table
            yield [[(head[0], _named(head[0], row[0])), *zip(head[1:], row[1:], strict=True)] for row in rows]
        elif len(fields) == len(lines):
            yield [[(KEY, found[1]), (VALUE, found[2])] for found in fields]
        elif 2 * len(fields) <= len(lines):
            yield from ([[("", line)] for line in run] for run in _alike_lines(lines) if _are_told_apart(run))
        return
    split = (_parts(sign, body) for sign in _PARTS)
    alike = next((parts for parts in split if len(parts) > 1), None)
    if alike is not None and _are_told_apart(alike):
        yield [[("", part)] for part in alike]


def _decoded(body: str) -> Any:
    """Return what a text in JSON, or written as Python writes it, stands for; ``None`` for all others."""
    try:
        return msgspec.json.decode(body)
    except (ValueError, RecursionError):
        pass
    try:
        return literal_eval(body)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):  # all that literal_eval names
        return None


def _named(head: str, cell: str) -> str:
    """Return the name of a row: 2 under the head flat is flat 2."""
    return f"{head} {cell}" if cell.isdigit() else cell


def _are_told_apart(parts: Sequence[str]) -> bool:
    """Tell whether parts of a text are records: each is short or has a label; sentences go on with the one before."""
    if any(_GOES_ON.match(part) is not None for part in parts):
        return False
    return all(_LABELLED.match(part) is not None or len(part.split()) <= MAX_LINE_WORDS for part in parts)


MAX_LINE_WORDS = 10
"""Words of a line without a label that is a record."""


LEAST_INDENTED = 3
"""Lines with one indent, among others, that are a list."""


def _alike_lines(lines: Sequence[str]) -> Iterator[list[str]]:
    """Yield lines in a row that are built alike: they begin alike, and have about as many words and numbers."""
    run: list[str] = []
    built: tuple[str, int, int] = ("", 0, 0)
    for line in lines:
        words = line.split()
        sign = words[0][:1]
        begins = "9" if any(map(str.isdigit, words[0])) else "a" if sign.isalnum() else sign
        now = begins, sum(any(map(str.isdigit, word)) for word in words), len(words)
        alike = (
            now[0] == built[0] and abs(now[1] - built[1]) <= 1 and max(now[2], built[2]) <= 3 * min(now[2], built[2])
        )
        if not alike:
            if len(run) > 1:
                yield run
            run = []
        run.append(line)
        built = now
    if len(run) > 1:
        yield run


def _parts(sign: re.Pattern[str], body: str) -> list[str]:
    return [part for part in sign.split(body) if any(map(str.isalnum, part))]


def _of_json(value: Any) -> Iterator[list[Fields]]:
    """Yield the objects that stand beside each other and have mostly the same keys."""
    keys = _keys(value)
    waiting, seen = [value], 0
    while waiting and seen < MAX_ITEMS:
        item = waiting.pop(0)
        seen += 1
        named = isinstance(item, dict)
        if named:
            lone = _lone_fields(item, keys)
            if len(lone) > 1:
                yield [[(KEY, key), (VALUE, text)] for key, text in lone]
        children = [(key, each) for key, each in item.items()] if named else [("", each) for each in item]
        objects = [(key, each) for key, each in children[:MAX_RECORDS] if isinstance(each, dict)]
        waiting += [each for _, each in children[:MAX_RECORDS] if isinstance(each, dict | list)]
        if len(objects) > 1:
            first = objects[0][1].keys()
            if all(len(first & each.keys()) >= ALIKE * max(len(first), len(each)) for _, each in objects):
                yield [[*([("", key)] if key else []), *_leaves(each)] for key, each in objects]


def _keys(value: Any) -> Counter[str]:
    """Return how many objects have each key."""
    found: Counter[str] = Counter()
    waiting = [value]
    seen = 0
    while waiting and seen < MAX_ITEMS:
        item = waiting.pop()
        seen += 1
        if isinstance(item, dict):
            found.update(map(str, item))
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item[:MAX_RECORDS]
    return found


def _lone_fields(item: dict[str, Any], keys: Counter[str]) -> list[tuple[str, str]]:
    """Return the short values of an object whose keys no other object has, and that name no record."""
    plain = [(str(key), str(each)) for key, each in item.items() if isinstance(each, int | float | str)]
    return [(key, text) for key, text in plain if keys[key] == 1 and len(text) <= MAX_VALUE and not is_id_key(key)]


def _leaves(value: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the values of an object and of those within it, each behind the name of its field."""
    waiting: list[tuple[str, Any]] = [("", value)]
    seen = 0
    while waiting and seen < MAX_LEAVES:
        key, item = waiting.pop(0)
        seen += 1
        if isinstance(item, dict):
            waiting += item.items()
        elif isinstance(item, list):
            waiting += [(key, each) for each in item]
        elif item is not None:
            yield key, str(item)
