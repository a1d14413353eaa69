"""Records of the newest results, and values of an answer that stand in another record than the name beside them.

Results are kept as text, few and short ones, and are taken apart only where an answer is judged. Where a longer result
was not kept nothing is said: it may have had name and value together.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import Any, NamedTuple, TypeAlias

import msgspec

from coherence.core.lazy import lazy_regex
from coherence.core.words import word_set
from coherence.detect.extractors import dates, times
from coherence.detect.number_words import WORDS
from coherence.detect.text_analysis import is_name, tokens
from coherence.detect.told_states import is_id_key
from coherence.detect.values import digest

MAX_KEPT = 12_000
"""Characters of results that are kept, the newest."""

MAX_RESULT = 4_000
"""Characters of one result that is kept."""

MAX_GROUPS = 12
MAX_RECORDS = 60
"""Records of one group that are compared."""

MAX_PIECES = 30
"""Parts of an answer that are looked at."""

LEAST_WORD = 4
"""Letters of a word that may tell one record from another."""

MAX_ITEMS = 200
"""Objects and lists of one result that are looked at."""

MAX_LEAVES = 120
"""Values of one record that are read."""

SHORT_ANSWER = 200
"""Characters of an answer up to which it answers one question."""

SMALL_RECORD = 6
"""Tokens of a line up to which each of them tells what the line is about."""

KEY, VALUE, HEAD = "\0key", "\0value", "\0head"
"""Fields of a line that is a field itself; the head of a section."""

MAX_VALUE = 60
"""Characters of a field that is one value."""

ALIKE = 0.6
"""Share of their keys that two objects have in common from which they are records of one kind."""

_CAPITAL = lazy_regex(r"(?<![\w.])[A-Z][\w'-]{1,30}")
_PIECE = lazy_regex(
    r"(?<=[^\W\d])(?<!\bDr)(?<!\bMr)(?<!\bMs)(?<!\bMrs)(?<!\bSt)(?<!\bNo)(?<!\bNr)(?<!\bProf)[.!?](?=\s|\Z)"
    r"|(?<=[\d)\]\"'])[.!?](?=\s|\Z)|[;\n]"
)
_JOINT = lazy_regex(
    r",?\s(?:and|but|while|whereas|then|or|und|aber|während|oder|et|mais|ou|y|pero|o|e)\s",
    re.IGNORECASE,
)
_COMPARES = word_set(
    "than instead not no neither nor other another versus vs from between until unlike except besides without rather "
    "both all each every before after would could should might can either with nicht statt kein zwischen außer "
    "als que sin entre sauf "
    "pas sans"
)
"""Words of a sentence that may speak of several records."""
_CHANGES = lazy_regex(r"->|→|=>|\+|=|\b(?:exchang|replac|swap|upgrad|compar|differ)\w{0,4}\b|\?", re.IGNORECASE)
_HEADING = lazy_regex(r"^#{1,6} ", re.M)
_SECTION = lazy_regex(r"^(?:\[[^\]\n]{1,60}\]|[\w.-]{1,60}:)[ \t]{0,9}$", re.M)
_ITEM = lazy_regex(r"^[-*•] ", re.M)
_FIELD = lazy_regex(r"([\w .()/-]{1,40}):\s{1,9}(\S.{0,200})")
_PARTS = (
    lazy_regex(r"\s[—–]\s"),
    lazy_regex(r"\s[|•]\s"),
    lazy_regex(r";\s"),
    lazy_regex(r"\s/\s"),
    lazy_regex(r"(?<=[\w)\]])\.\s(?=[\w#])"),
)
"""What parts the records of a line, the surest first."""
_CHAIN = lazy_regex(r"(?<![\w.-])\+?(?!(?:19|20)\d\d-\d)\(?\d{1,5}\)?(?:[ /-]\(?\d{1,8}\)?){1,6}(?![\w-])")
"""Groups of digits that are one number: that of a telephone."""
_GROUPS = lazy_regex(r"(?<=\d),(?=\d{3}(?!\d))")
_NO_DIGIT = lazy_regex(r"\D+")
_RULE = lazy_regex(r"[\s|:+=-]{3,300}")
_BAR, _TAB, _WIDE, _COMMA = lazy_regex(r"\|"), lazy_regex(r"\t"), lazy_regex(r"\s{2,40}"), lazy_regex(",")
_KINDED = lazy_regex(r"(?<![\w-])([A-Za-z]{3,20})[ .#]{1,2}(\d{1,3})(?![\w%]|[.,:/-]\d)")
"""A word and a small number that together may name one thing: flat 2."""
_NUMBERED = lazy_regex(r"(?<![\w#])#\d{1,9}\b")
_DAY_NAMES = """mon monday montag lundi lunes|tue tuesday dienstag mardi martes|wed wednesday mittwoch mercredi
miércoles|thu thursday donnerstag jeudi jueves|fri friday freitag vendredi viernes|sat saturday samstag samedi sábado
sam|sun sunday sonntag dimanche domingo dim"""
_WEEKDAYS = {
    token: names.split()[0]
    for names in _DAY_NAMES.split("|")
    for name in names.split()
    for token in tokens(f"{name} {name}s")
}
_YEAR = lazy_regex(r"(?:19|20)\d\d")
_NUMBER = lazy_regex(r"\d{1,15}(?:[.,]\d{1,9})?")
_BE = word_set("is are was were have has had sind ist haben hat sont est ont son es están estan está sono")
_DENIES = word_set("not no nicht pas never kein keine none neither nor")
_PAIR = word_set("both beide beiden")
_FILLERS = word_set("now currently still also already both been just jetzt noch auch")
_WHOLE = word_set("all both every each everything alle beide jede jeder tous toutes todos todas tutti tutte")
_BAD = word_set(
    "fail failed failure error errors missing denied rejected refused expired down offline unreachable skipped broken "
    "timeout fehler fehlgeschlagen échec erreur fallo"
)
_WORD = lazy_regex(r"[\w'-]{1,60}")


class KeptResult(msgspec.Struct):
    """A short result as it came."""

    seq: int
    text: str


class Kept(msgspec.Struct):
    """The newest short results of a task."""

    results: list[KeptResult] = []
    whole: bool = True
    """False once a result was too long or left."""


class Misplaced(NamedTuple):
    """A value that stands in another record than what it is stated with."""

    text: str
    """The part of the answer."""
    kind: str
    """``row`` or ``count``."""
    near: str
    """Words of the result."""
    seq: int


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


class _Record(NamedTuple):
    """One of several things of a kind, with what is said of it."""

    text: str
    fields: dict[str, str]
    """Mark -> the name of its field; empty in a text."""
    names: frozenset[str]
    """Tokens that begin with a capital letter."""


class _Group(NamedTuple):
    """Records of one kind in one result."""

    seq: int
    records: list[_Record]
    number: Counter[str]
    """Mark -> how many records have it."""
    lone: dict[str, int]
    """Mark that tells one record from all others -> which."""


def misplaced(kept: Kept, answer: str, asked: Container[int]) -> Iterator[Misplaced]:
    """Yield the parts of an answer that mix two records of one result, or count its records wrongly.

    Parameters
    ----------
    kept : Kept
        Results.
    answer : str
        Folded.
    asked : container of int
        Digests of tokens that the user or a call has named: they may stand beside anything.
    """
    if not kept.whole or not kept.results:
        return
    parsed = [_parse(result.seq, result.text) for result in reversed(kept.results)]
    groups = [group for found, _ in parsed for group in found][:MAX_GROUPS]
    tables = [cells for _, found in parsed for cells in found]
    if not groups and not tables:
        return
    all_said, all_words = _marks(answer), {word.casefold() for word in _WORD.findall(answer)}
    if len(answer) <= SHORT_ANSWER and _JOINT.search(answer) is None and _CHANGES.search(answer) is None:
        names = _names(answer)
        for group in groups if _COMPARES.isdisjoint(all_words) else ():
            found = _answers_other(group, all_said, names, asked)
            if found is not None:
                yield Misplaced(answer.strip(), *found, group.seq)
                return
    # most answers take nothing from two records, give no field's value, and count nothing
    mixing = any(len({group.lone[mark] for mark in all_said & group.lone.keys()}) > 1 for group in groups)
    counting = not all_words.isdisjoint(_WHOLE) or "of" in all_words
    if not (mixing or counting or any(cell.values and cell.values <= all_said for cells in tables for cell in cells)):
        return
    others = [(result.seq, _marks_of_result(result.text)) for result in reversed(kept.results)] if mixing else []
    for piece in islice(_pieces(answer), MAX_PIECES):
        words = [word.casefold() for word in _WORD.findall(piece)]
        said = _marks(piece)
        names = _names(piece)
        fresh = {mark for mark in said if digest(mark) not in asked}
        cell = next((cell for cells in tables if (cell := _wrong_column(cells, said, asked)) is not None), None)
        if cell is not None and _COMPARES.isdisjoint(words):
            yield Misplaced(piece.strip(), "row", *cell)
            continue
        mixable = _COMPARES.isdisjoint(words) and _CHANGES.search(piece) is None
        for group in groups:
            found = _wrong_count(group, words)
            if found is None and mixable and mixing:
                rest = [marks for seq, marks in others if seq != group.seq]
                found = _mixes(group, said, names, fresh, rest, listed="," in piece)
            if found is not None:
                kind, near = found
                yield Misplaced(piece.strip(), kind, near, group.seq)
                break


def _pieces(answer: str) -> Iterator[str]:
    """Yield sentences, and their parts where one speaks of several things."""
    for sentence in _PIECE.split(answer):
        if sentence and any(map(str.isalnum, sentence)):
            yield from _JOINT.split(sentence)


def _mixes(
    group: _Group,
    said: frozenset[str],
    names: frozenset[str],
    fresh: set[str],
    others: Sequence[frozenset[str]],
    *,
    listed: bool,
) -> tuple[str, str] | None:
    """Return the record that a part of an answer speaks of though it takes a value from another one."""
    found: dict[int, set[str]] = {}
    for mark in said & group.lone.keys():
        found.setdefault(group.lone[mark], set()).add(mark)
    if len(found) != 2:
        return None
    hits = [(group.records[at], marks) for at, marks in sorted(found.items())]
    if any(hits[0][1] | hits[1][1] <= marks for marks in others):
        return None
    for (record, own), (rival, other) in (hits, hits[::-1]):
        strong = {mark for mark in other & fresh if _is_value(mark, rival) or mark in names & rival.names}
        strong |= {mark for mark in other & fresh if _stands_for(mark, rival, record, said)}
        leads = {mark for mark in own if record.fields[mark] or _is_value(mark, record) or mark in names & record.names}
        if KEY in record.fields.values():
            if not _is_swap(own, other, record, rival):
                continue
            strong |= other & fresh
        kinds = {_kind(mark, record) for mark in own}
        if listed or any(record.fields.values()) or kinds & {"number", "d:", "t:"}:
            strong = {mark for mark in strong if _kind(mark, rival) not in kinds}
        if strong and (leads or len(own) > 1) and (len(own) >= len(other) or len(other) == len(strong)):
            return "row", record.text
    return None


def _is_swap(own: set[str], other: set[str], record: _Record, rival: _Record) -> bool:
    """Tell whether one field gives its name alone and the other its value alone, and the values are of one kind."""
    if {record.fields[mark] for mark in own} != {KEY} or {rival.fields[mark] for mark in other} != {VALUE}:
        return False
    kinds = {_kind(mark, rival) for mark in other}
    return any(_kind(mark, record) in kinds for mark, field in record.fields.items() if field == VALUE)


def _stands_for(mark: str, rival: _Record, record: _Record, said: frozenset[str]) -> bool:
    """Tell whether a word is all that a field of one record says, and another record says something else there."""
    key = rival.fields[mark]
    if not key:
        own = [each for each in record.fields if _tells(each, record)]
        return len(own) <= SMALL_RECORD >= len(rival.fields) and not said.issuperset(own)
    beside = [each for each, field in rival.fields.items() if field == key]
    own = [each for each, field in record.fields.items() if field == key]
    return len(beside) <= 3 and said.issuperset(beside) and bool(own) and said.isdisjoint(own)


def _answers_other(
    group: _Group, said: frozenset[str], names: frozenset[str], asked: Container[int]
) -> tuple[str, str] | None:
    """Return the record that was asked for where an answer takes its values from another one alone."""
    if KEY in group.records[0].fields.values():
        return None
    lone = group.lone
    wanted = {at for mark, at in lone.items() if digest(mark) in asked}
    if len(wanted) != 1:
        return None
    wanted_at = wanted.pop()
    record = group.records[wanted_at]
    fresh: dict[int, set[str]] = {}
    for mark in said & lone.keys():
        other = group.records[lone[mark]]
        if (_is_value(mark, other) or mark in names & other.names) and digest(mark) not in asked:
            fresh.setdefault(lone[mark], set()).add(mark)
    if len(fresh) != 1 or wanted_at in fresh:
        return None
    at, marks = fresh.popitem()
    kinds = {_kind(mark, group.records[at]) for mark in marks}
    left = [mark for mark in record.fields if digest(mark) not in asked and _kind(mark, record) in kinds]
    return ("row", record.text) if left and said.isdisjoint(left) else None


def _kind(mark: str, record: _Record) -> str:
    """Return what a mark is one of: its field, or how it is written."""
    field = record.fields[mark]
    if field and field != VALUE:
        return field
    if mark[:2] in ("d:", "t:"):
        return field + mark[:2]
    if _is_value(mark, record):
        return field + ("number" if _NUMBER.fullmatch(mark) is not None else "code")
    return field + ("name" if mark in record.names else "word")


def _wrong_count(group: _Group, words: Sequence[str]) -> tuple[str, str] | None:
    """Return how many records are so where a part of an answer says that all, or another number, are."""
    be = next((at for at, word in enumerate(words[:12]) if word in _BE), 0)
    if not be or not _DENIES.isdisjoint(words[max(0, be - 3) : be + 4]):
        return None
    head, told, size = words[max(0, be - 8) : be], words[be + 1 : be + 4], len(group.records)
    numbers = [int(word) if word.isdigit() else WORDS[word] for word in head if word.isdigit() or word in WORDS]
    whole = not _WHOLE.isdisjoint(head)
    if whole:
        claimed = 2 if not _PAIR.isdisjoint(head) else next(iter(numbers), 0)
        if claimed != size:
            return None
    elif len(numbers) == 2 and numbers[1] == size and "of" in head:
        claimed = numbers[0]
    else:
        return None
    word = next((word for word in told if len(word) >= LEAST_WORD and word.isalpha() and word not in _FILLERS), "")
    having = min((group.number[token] for token in tokens(word)), default=0)
    if 0 < having != claimed:
        return "count", f"{having} of {size}: {word}"
    if whole:
        bad = [record.text for record in group.records if not _BAD.isdisjoint(_WORD.findall(record.text.casefold()))]
        if 0 < len(bad) < size and not having:
            return "count", bad[0]
    return None


def _tells(mark: str, record: _Record) -> bool:
    """Tell whether a mark may tell one record from another: no short word or number, unless it has a field."""
    if _YEAR.fullmatch(mark) is not None:
        return False
    return (
        is_name(mark)
        or (len(mark) >= LEAST_WORD - 1 and not mark.isdigit())
        or (bool(record.fields.get(mark)) and (len(mark) > 1 or (mark.isdigit() and record.fields[mark] == KEY)))
    )


def _is_value(mark: str, record: _Record) -> bool:
    if record.fields.get(mark) and mark[0].isdigit():
        return True
    return is_name(mark) or mark[:2] in ("d:", "t:")


def _joined(found: re.Match[str]) -> str:
    digits = _NO_DIGIT.sub("", found[0])
    return digits if len(digits) >= LEAST_CHAIN else found[0]


LEAST_CHAIN = 7
"""Digits of the number of a telephone."""


def _marks(text: str) -> frozenset[str]:
    """Return the tokens of a text, and the forms of its days and times."""
    digits = any(map(str.isdigit, text))
    if digits:
        text = _CHAIN.sub(_joined, _GROUPS.sub("", text) if "," in text else text)
    found = tokens(text)
    more: set[str] = {_WEEKDAYS[token] for token in found if token in _WEEKDAYS}
    if digits:
        more.update(form for claim in (*dates(text), *times(text)) for form in claim.forms)
        more.update(f"{float(token):g}" for token in found if "." in token and _NUMBER.fullmatch(token) is not None)
        more.update(f"{kind.lower()} {number}" for kind, number in _KINDED.findall(text))
        more.update(value for value in _NUMBERED.findall(text))
    return found | more if more else found


def _names(text: str) -> frozenset[str]:
    return tokens(" ".join(_CAPITAL.findall(text)))


_marks_of_result = lru_cache(maxsize=32)(_marks)
"""Results stay while answers come and go."""


@lru_cache(maxsize=32)
def _parse(seq: int, text: str) -> tuple[list[_Group], list[list[_Cell]]]:
    """Return the groups of records of a result, and its tables; not to be changed."""
    groups = []
    for found in _records(text):
        if 1 < len(found) <= MAX_RECORDS:
            records = [_record(fields) for fields in found]
            number = Counter(mark for record in records for mark in record.fields)
            lone = {
                mark: at
                for at, record in enumerate(records)
                for mark in record.fields
                if number[mark] == 1 and _tells(mark, record)
            }
            groups.append(_Group(seq, records, number, lone))
    return groups, list(_tables(seq, text))


class _Cell(NamedTuple):
    seq: int
    head: frozenset[str]
    """Tokens of the name of its field, or of the head of its column."""
    row: frozenset[str]
    """Tokens of the row that no other has; empty where there is one row."""
    values: frozenset[str]
    text: str


def _wrong_column(cells: Sequence[_Cell], said: frozenset[str], asked: Container[int]) -> tuple[str, int] | None:
    """Return the field that a part of an answer names, where it gives the value of another field instead."""
    of_rows = [cell for cell in cells if not cell.row or cell.row & said]
    named = [cell for cell in of_rows if cell.head & said]
    taken = [cell for cell in of_rows if cell.values and cell.values <= said]
    wanted = [cell for cell in named if not cell.values <= said]
    strange = [
        cell for cell in taken if not cell.head & said and not any(map(asked.__contains__, map(digest, cell.values)))
    ]
    if (
        len(wanted) != 1
        or len(strange) != 1
        or len([cell for cell in taken if not cell.head & said]) != 1
        or wanted[0].row != strange[0].row
    ):
        return None
    if any(cell.head & wanted[0].head and cell.values <= said for cell in cells if not cell.row):
        return None
    if _shape(wanted[0].values) != _shape(strange[0].values) or any(each.values & strange[0].values for each in named):
        return None
    return wanted[0].text, wanted[0].seq


def _shape(values: frozenset[str]) -> str:
    return "".join(
        sorted(
            "9" if value[:1].isdigit() else "d" if value[:2] == "d:" else "t" if value[:2] == "t:" else "x"
            for value in values
        )
    )[:1]


def _tables(seq: int, text: str) -> Iterator[list[_Cell]]:
    """Yield the fields of a flat object, and the cells of a table with a head."""
    body = text.strip()
    rows: list[tuple[str, list[tuple[str, str]]]] = []
    if body[:1] == "{":
        try:
            value = msgspec.json.decode(body)
        except (ValueError, RecursionError):
            return
        keys, waiting = _keys(value), [value]
        while waiting and len(rows) < MAX_RECORDS:
            item = waiting.pop(0)
            if isinstance(item, dict):
                rows.append(("", _lone_fields(item, keys)))
                waiting += [each for each in item.values() if isinstance(each, dict)]
        yield from (_cells(seq, [("", fields)]) for _, fields in rows)
        return
    table = _table(body.split("\n"))
    if table is not None:
        head, split = table
        yield _cells(seq, [(f"{head[0]} {each[0]}", list(zip(head[1:], each[1:], strict=True))) for each in split])


def _table(lines: Sequence[str]) -> tuple[list[str], list[list[str]]] | None:
    """Return the head and the rows of a table, ``None`` if lines are none."""
    plain = [line.strip().strip("|").strip() for line in lines[:MAX_RECORDS] if _RULE.fullmatch(line) is None]
    for sign in (_BAR, _TAB, _WIDE, _COMMA):
        split = [[cell.strip() for cell in sign.split(line)] for line in plain if line]
        if len(split) > 1 and len(split[0]) > 1 and all(len(each) == len(split[0]) for each in split):
            head, rows = split[0], split[1:]
            digits = any(map(str.isdigit, "".join(head))) or not any(map(str.isdigit, "".join(chain(*rows))))
            return None if digits or len({*head}) < len(head) or not all(head) else (head, rows)
    return None


def _cells(seq: int, rows: Sequence[tuple[str, Sequence[tuple[str, str]]]]) -> list[_Cell]:
    parts = {key: tokens(key[:60]) for _, fields in rows for key, _ in fields}
    heads = Counter(chain.from_iterable(parts.values()))
    named = [_marks(name) for name, _ in rows]
    firsts = Counter(chain.from_iterable(named))
    found = []
    for (name, fields), marks in zip(rows, named, strict=True):
        row = frozenset(token for token in marks if firsts[token] == 1 and (len(token) > 1 or not token.isdigit()))
        for key, text in fields[:MAX_LEAVES]:
            if len(text) <= 40 and not is_id_key(key) and any(map(str.isdigit, text)) and (row or not name):
                head = frozenset(token for token in parts[key] if heads[token] == 1)
                found.append(_Cell(seq, head, row, _marks(text), f"{name} {key}: {text}".strip()))
    return found


def _record(fields: Sequence[tuple[str, str]]) -> _Record:
    told = " ".join(f"{key} {text}".strip() for key, text in fields)
    return _Record(told[:80], {mark: key for key, text in fields for mark in _marks(text)}, _names(told))


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
        try:
            value = msgspec.json.decode(body)
        except (ValueError, RecursionError):
            value = None
        if value is not None:
            yield from _of_json(value)
            return
    for mark in (_HEADING, _ITEM, _SECTION):
        starts = [found.start() for found in islice(mark.finditer(body), MAX_RECORDS + 1)]
        if len(starts) > 1:
            ends = [*starts[1:], len(body)]
            parts = [body[begin:end].strip() for begin, end in zip(starts, ends, strict=True)]
            if mark is _ITEM:
                yield [[("", part)] for part in parts]
            else:
                yield [[(HEAD, head), ("", rest)] for head, _, rest in (part.partition("\n") for part in parts)]
            return
    lines = [line for line in body.split("\n") if any(map(str.isalnum, line))]
    if len(lines) > 1:
        if any(line[:1].isspace() for line in lines[1:]):
            return
        table = _table(lines)
        fields = [found for line in lines if (found := _FIELD.match(line)) is not None]
        if table is not None:
            head, rows = table
            yield [[(head[0], f"{head[0]} {row[0]}"), *zip(head[1:], row[1:], strict=True)] for row in rows]
        elif len(fields) == len(lines):
            yield [[(KEY, found[1]), (VALUE, found[2])] for found in fields]
        elif 2 * len(fields) <= len(lines):
            yield [[("", line)] for line in lines]
        return
    split = (_parts(sign, body) for sign in _PARTS)
    alike = next((parts for parts in split if len(parts) > 1), None) or _alike_parts(body)
    if alike is not None:
        yield [[("", part)] for part in alike]


def _parts(sign: re.Pattern[str], body: str) -> list[str]:
    return [part for part in sign.split(body) if any(map(str.isalnum, part))]


def _alike_parts(body: str) -> list[str] | None:
    """Return what commas part, where all of it is built alike: a name, a number and a word each."""
    parts = body.split(", ")
    built = {tuple(word[:1].isdigit() or "Aa"[word[:1].islower()] for word in part.split()) for part in parts}
    return parts if 1 < len(parts) <= MAX_RECORDS and len(built) == 1 and len(next(iter(built))) > 1 else None


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
