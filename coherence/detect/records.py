"""Records of the newest results, and values of an answer that stand in another record than the name beside them.

Results are kept as text, few and short ones, and are taken apart only where an answer is judged. Where a longer result
was not kept nothing is said: it may have had name and value together.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

import msgspec

from coherence.core.lazy import lazy_regex
from coherence.core.words import word_set
from coherence.detect.extractors import dates, times
from coherence.detect.number_words import WORDS
from coherence.detect.text_analysis import tokens, weight
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

DISTINCT = 2.0
"""Weight of a token from which it names one thing."""

MAX_LEAVES = 120
"""Values of one record that are read."""

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
    "both all each every before after would could should may might can either total sum with nicht statt kein zwischen außer als que sin entre sauf "
    "pas sans"
)
"""Words of a sentence that may speak of several records."""
_CHANGES = lazy_regex(r"->|→|=>|\b(?:exchang|replac|swap|upgrad|compar|differ)\w{0,4}\b|\?", re.IGNORECASE)
_HEADING = lazy_regex(r"^#{1,6} ", re.M)
_ITEM = lazy_regex(r"^[-*•] ", re.M)
_FIELD = lazy_regex(r"\s{0,12}[\w .()/-]{1,30}:\s")
_PARTS = (
    lazy_regex(r"\s[—–]\s"),
    lazy_regex(r"\s[|•]\s"),
    lazy_regex(r";\s"),
    lazy_regex(r"\s/\s"),
    lazy_regex(r"(?<=[\w)\]])\.\s(?=[\w#])"),
)
"""What parts the records of a line, the surest first."""
_CHAIN = lazy_regex(r"(?<![\w.-])\+?(?!(?:19|20)\d\d-\d)\(?\d{1,5}\)?(?:[ /-]\(?\d{1,5}\)?){2,6}(?![\w-])")
"""Groups of digits that are one number: that of a telephone."""
_NO_DIGIT = lazy_regex(r"\D+")
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
    """What the result has."""
    seq: int


def keep_result(kept: Kept, seq: int, text: str) -> None:
    """Keep a result if it is short."""
    if len(text) > MAX_RESULT:
        kept.whole = False
        return
    if text.strip():
        kept.results.append(KeptResult(seq, text))
        size = sum(len(each.text) for each in kept.results)
        while size > MAX_KEPT:
            size -= len(kept.results.pop(0).text)
            kept.whole = False


class _Record(NamedTuple):
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
    groups = list(islice(_groups(kept), MAX_GROUPS))
    if not groups:
        return
    others = [(result.seq, _marks(result.text)) for result in kept.results]
    for piece in islice(_pieces(answer), MAX_PIECES):
        words = [word.casefold() for word in _WORD.findall(piece)]
        said = _marks(piece)
        names = _names(piece)
        fresh = {mark for mark in said if digest(mark) not in asked}
        mixable = _COMPARES.isdisjoint(words) and _CHANGES.search(piece) is None
        for group in groups:
            found = _wrong_count(group, words)
            if found is None and mixable:
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
    hits = [
        (record, found)
        for record in group.records
        if (found := {mark for mark in record.fields if mark in said and group.number[mark] == 1 and _tells(mark)})
    ]
    if len(hits) != 2 or any(hits[0][1] | hits[1][1] <= marks for marks in others):
        return None
    for (record, own), (rival, other) in (hits, hits[::-1]):
        strong = {mark for mark in other & fresh if _is_value(mark) or mark in names & rival.names}
        leads = {mark for mark in own if _is_value(mark) or mark in names & record.names}
        kinds = {_kind(mark, record) for mark in own}
        if listed or any(record.fields.values()) or kinds & {"number", "d:", "t:"}:
            strong = {mark for mark in strong if _kind(mark, rival) not in kinds}
        if strong and (leads or len(own) > 1) and (len(own) >= len(other) or len(other) == len(strong)):
            return "row", record.text
    return None


def _kind(mark: str, record: _Record) -> str:
    """Return what a mark is one of: its field, or how it is written."""
    if record.fields[mark]:
        return record.fields[mark]
    if mark[:2] in ("d:", "t:"):
        return mark[:2]
    if _is_value(mark):
        return "number" if _NUMBER.fullmatch(mark) else "code"
    return "name" if mark in record.names else "word"


def _wrong_count(group: _Group, words: Sequence[str]) -> tuple[str, str] | None:
    """Return how many records are so where a part of an answer says that all, or another number, are."""
    be = next((at for at, word in enumerate(words[:12]) if word in _BE), 0)
    if not be or not _DENIES.isdisjoint(words):
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


def _tells(mark: str) -> bool:
    """Tell whether a mark may tell one record from another: no short word or number."""
    if _YEAR.fullmatch(mark) is not None:
        return False
    return weight(mark) >= DISTINCT or (len(mark) >= LEAST_WORD - 1 and not mark.isdigit())


def _is_value(mark: str) -> bool:
    return weight(mark) >= DISTINCT or mark[:2] in ("d:", "t:")


def _marks(text: str) -> frozenset[str]:
    """Return the tokens of a text, and the forms of its days and times."""
    found = tokens(_CHAIN.sub(lambda chain: _NO_DIGIT.sub("", chain[0]), text))
    days = [*dates(text), *times(text)] if any(map(str.isdigit, text)) else ()
    return found.union(form for claim in days for form in claim.forms) if days else found


def _names(text: str) -> frozenset[str]:
    return frozenset(token for name in _CAPITAL.findall(text) for token in tokens(name))


def _groups(kept: Kept) -> Iterator[_Group]:
    for result in reversed(kept.results):
        for found in _records(result.text):
            if 1 < len(found) <= MAX_RECORDS:
                records = [_record(fields) for fields in found]
                yield _Group(result.seq, records, Counter(mark for record in records for mark in record.fields))


def _record(fields: Sequence[tuple[str, str]]) -> _Record:
    told = " ".join(f"{key} {text}".strip() for key, text in fields)
    return _Record(told[:80], {mark: key for key, text in fields for mark in _marks(text)}, _names(told))


Fields: TypeAlias = list[tuple[str, str]]
"""Values of a record, each behind the name of its field."""


def _records(text: str) -> Iterator[list[Fields]]:
    """Yield the groups of records of a result.

    Examples
    --------
    >>> list(_records('{"from": "Linz", "legs": [{"no": 1, "gate": "F7"}, {"no": 2, "gate": "G3"}]}'))
    [[[('no', '1'), ('gate', 'F7')], [('no', '2'), ('gate', 'G3')]]]
    >>> list(_records("S1 online\\nS2 offline"))
    [[[('', 'S1 online')], [('', 'S2 offline')]]]
    """
    body = text.strip()
    if body[:1] in "{[":
        try:
            value = msgspec.json.decode(body)
        except (ValueError, RecursionError):
            return
        yield from _of_json(value)
        return
    for mark in (_HEADING, _ITEM):
        starts = [found.start() for found in islice(mark.finditer(body), MAX_RECORDS + 1)]
        if len(starts) > 1:
            ends = [*starts[1:], len(body)]
            yield [[("", body[begin:end].strip())] for begin, end in zip(starts, ends, strict=True)]
            return
    lines = [line for line in body.split("\n") if any(map(str.isalnum, line))]
    if len(lines) > 1:
        fields = sum(_FIELD.match(line) is not None for line in lines)
        if 2 * fields <= len(lines) and not any(line[:1].isspace() for line in lines[1:]):
            yield [[("", line)] for line in lines]
        return
    split = (_parts(sign, body) for sign in _PARTS)
    parts = next((parts for parts in split if len(parts) > 1), None)
    if parts is not None:
        yield [[("", part)] for part in parts]


def _parts(sign: re.Pattern[str], body: str) -> list[str]:
    return [part for part in sign.split(body) if any(map(str.isalnum, part))]


def _of_json(value: Any) -> Iterator[list[Fields]]:
    """Yield the objects that stand beside each other and have mostly the same keys."""
    waiting, seen = [value], 0
    while waiting and seen < 200:
        item = waiting.pop(0)
        seen += 1
        named = isinstance(item, dict)
        children = [(key, each) for key, each in item.items()] if named else [("", each) for each in item]
        objects = [(key, each) for key, each in children[:MAX_RECORDS] if isinstance(each, dict)]
        waiting += [each for _, each in children[:MAX_RECORDS] if isinstance(each, dict | list)]
        if len(objects) > 1:
            first = objects[0][1].keys()
            if all(len(first & each.keys()) >= ALIKE * max(len(first), len(each)) for _, each in objects):
                yield [[*([("", key)] if key else []), *_leaves(each)] for key, each in objects]


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
