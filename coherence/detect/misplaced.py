"""Values of an answer that stand in another record of a result than what they are stated with."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from coherence.core.lazy import lazy_regex
from coherence.core.words import word_set
from coherence.detect.records import Group, Kept, Unit, marks_of, marks_of_result, parse
from coherence.detect.text_analysis import is_name, tokens
from coherence.detect.values import digest

MAX_GROUPS = 12
MAX_PIECES = 30
"""Parts of an answer that are looked at."""

MAX_VALUES = 40
"""Values of one part that are looked at."""

LEAST_WORD = 4
"""Letters of a word that may tell one record from another."""

_SENTENCE = lazy_regex(
    r"(?<=[^\W\d])(?<!\bDr)(?<!\bMr)(?<!\bMs)(?<!\bMrs)(?<!\bSt)(?<!\bNo)(?<!\bNr)(?<!\bProf)(?<!\bD[Rr]a)(?<!\bSra)(?<!\b[A-Z])[.!?](?=\s|\Z)"
    r"|(?<=[\d)\]\"'])[.!?](?=\s|\Z)(?!\s(?:Jan|Feb|M[äa]r|Apr|Ma[iy]|Jun|Jul|Aug|Sep|O[ck]t|Nov|De[cz]))|\n"
)
_JOINT = lazy_regex(
    r"(?<!\d),?\s(?:and|but|while|whereas|then|or|und|aber|während|oder|et|ou|y|pero|o|e|en|maar)\s|;"
    r"|,?\s(?:and|but|while|und|aber|et|y|pero|e|en)\s(?!\d)|,\s(?:after|before|nachdem|bevor|then|dann|with|mit|avec|con|com|met)\s",
    re.IGNORECASE,
)
_COMPARES = word_set(
    "than instead not no neither nor other another versus vs from between until unlike except besides without rather "
    "same ahead earlier later both all each with nicht statt kein "
    "zwischen außer als que sin entre sauf pas sans"
)
"""Words of a sentence that may speak of several records."""
_CHANGES = lazy_regex(
    r"->|→|=>|\+|=|\b(?:exchang|replac|swap|upgrad|compar|differ|option|alternativ)\w{0,4}\b|\?"
    r"|(?-i:\b[A-Z]{3} (?:to|-) [A-Z]{3}\b)",  # a flight: "MUC to LHR"
    re.IGNORECASE,
)
_CAPITAL = lazy_regex(r"(?<![\w.])[A-Z][\w'-]{1,30}")
_WORD = lazy_regex(r"[\w'-]{1,60}")
_YEAR = lazy_regex(r"(?:19|20)\d\d")

SHORT_ANSWER = 200
"""Characters of an answer up to which it speaks of what was asked for."""


FEW_MARKS = 4
"""Marks of an answer that is little more than a value."""


class Misplaced(NamedTuple):
    """A value that stands in another record than what it is stated with."""

    text: str
    """The part of the answer."""
    near: str
    """Words of the result."""
    seq: int


class _Said(NamedTuple):
    """Marks of a part of an answer."""

    text: str
    marks: frozenset[str]
    names: frozenset[str]
    before: frozenset[str]
    """Marks of the parts before it that it goes on with."""


def misplaced(kept: Kept, answer: str, asked: Container[int]) -> Iterator[Misplaced]:
    """Yield the parts of an answer that mix two records of one result.

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
    groups = [group for result in reversed(kept.results) for group in parse(result.seq, result.text)][:MAX_GROUPS]
    if not groups:
        return
    others = [(result.seq, marks_of_result(result.text)) for result in reversed(kept.results)]
    short = len(answer) <= SHORT_ANSWER
    for said in islice(_parts(answer), MAX_PIECES):
        words = [word.casefold() for word in _WORD.findall(said.text)]
        if not _COMPARES.isdisjoint(words) or _CHANGES.search(said.text) is not None:
            continue
        for group in groups:
            rest = [marks for seq, marks in others if seq != group.seq]
            near = _mixed(group, said, asked, rest, short=short)
            if near is not None:
                yield Misplaced(said.text.strip(), near, group.seq)
                break


def _parts(answer: str) -> Iterator[_Said]:
    """Yield sentences, and their parts where one speaks of several things."""
    for sentence in _SENTENCE.split(answer):
        if not sentence or not any(map(str.isalnum, sentence)):
            continue
        before: frozenset[str] = frozenset()
        for part in _JOINT.split(sentence):
            marks = marks_of(part)
            yield _Said(part, marks, tokens(" ".join(_CAPITAL.findall(part))), before)
            before = before | marks


def _mixed(
    group: Group, said: _Said, asked: Container[int], others: Sequence[frozenset[str]], *, short: bool
) -> str | None:
    """Return the record that a part of an answer speaks of though it takes a value from another one."""
    values = [mark for mark in said.marks & group.units.keys() if len(group.where[mark]) < len(group.records)]
    if not values:
        return None
    may_ask = short and (group.built != "pairs" or len(said.marks) <= FEW_MARKS)
    wanted = frozenset(word for word in group.where if digest(word) in asked) if may_ask else frozenset()
    near = said.marks | said.before
    scopes = [_Scope(group, scope) for scope in dict.fromkeys((said.marks, near, near | wanted))]
    found: dict[str, dict[str, set[str]]] = {}
    for mark in islice(sorted(values), MAX_VALUES):
        if digest(mark) not in asked and _YEAR.fullmatch(mark) is None:
            for _, unit in group.units[mark]:
                if _is_value(mark, unit, said):
                    found.setdefault(unit.kind, {}).setdefault(mark, set()).update(unit.marks)
    if found and group.built == "fields" and _lists(group, said.marks):
        return None  # their order tells which belongs to which
    for kind, marks in found.items():
        for mark, beside in marks.items():
            # a bare number of a text may count anything that was spoken of before
            at, words = _pointed(group, mark, kind, beside, scopes[:1] if kind == "number" else scopes)
            # Another result may have just what is said.
            if at >= 0 and not any(mark in other and words <= other for other in others):
                return group.records[at].text
    return None


def _lists(group: Group, marks: frozenset[str]) -> bool:
    """Tell whether two values of one field are said as a whole."""
    said: dict[str, frozenset[str]] = {}
    for record in group.records:
        for unit in record.units:
            if unit.marks and unit.marks <= marks and said.setdefault(unit.kind, unit.marks) != unit.marks:
                return True
    return False


class _Scope:
    """Words around a value, and the records that they name."""

    def __init__(self, group: Group, marks: frozenset[str]) -> None:
        self.marks = marks
        self.words = {word: group.where[word] for word in marks & group.where.keys() if _tells(word)}
        self._group = group
        self._open: dict[str, frozenset[int]] = {}

    def having(self, kind: str) -> frozenset[int]:
        """Return the records that have a value of a kind of which nothing is said."""
        if kind not in self._open:
            self._open[kind] = frozenset(
                at
                for at, record in enumerate(self._group.records)
                if any(unit.kind == kind and unit.marks and unit.marks.isdisjoint(self.marks) for unit in record.units)
            )
        return self._open[kind]


def _is_value(mark: str, unit: Unit, said: _Said) -> bool:
    """Tell whether a mark is a value of its own, or one of a value that is said as a whole."""
    whole = unit.marks <= said.marks
    if unit.kind == "name" and not whole:
        return False
    if unit.kind[:1] == "\0" and not whole:
        return False
    if mark[:2] not in ("d:", "t:") and any(each[:2] in ("d:", "t:") for each in unit.marks):
        return False
    if (
        is_name(mark)
        or " " in mark
        or mark[:2] in ("d:", "t:")
        or (mark in said.names and 2 * len(unit.marks & said.marks) >= len(unit.marks))
    ):
        return True
    if len(mark) > 1 and mark[0].isdigit():
        return unit.kind not in ("number", "name")
    return "name" not in unit.kind and whole and max(map(len, unit.marks)) >= LEAST_WORD


def _pointed(
    group: Group, mark: str, kind: str, beside: set[str], scopes: Sequence[_Scope]
) -> tuple[int, frozenset[str]]:
    """Return the one record that the words around a value point to, and those words; -1 where it is one with the value.

    Only records count that have the value, or another one of its kind.
    """
    owners = group.where[mark]
    for scope in scopes:
        able = owners | scope.having(kind)
        found: dict[int, set[str]] = {}
        for word, having in scope.words.items():
            if word not in beside and len(holders := having & able) == 1:
                found.setdefault(next(iter(holders)), set()).add(word)
        if found:
            at = next(iter(found))
            if len(found) == 1 and at not in owners and _suffices(found[at], group, at, scope):
                return at, frozenset(found[at])
            break
    return -1, frozenset()


SHORT_RECORD = 12
"""Marks of a line of which two words are enough to tell which it is."""


def _suffices(words: set[str], group: Group, at: int, scope: _Scope) -> bool:
    """Tell whether words are enough to say that a record is spoken of."""
    record = group.records[at]
    if group.built == "pairs":
        return words <= record.head <= scope.marks
    named = frozenset(mark for unit in record.units if "name" in unit.kind for mark in unit.marks)
    strong = (is_name(word) or " " in word or word[:2] in ("d:", "t:") or word in named for word in words)
    least = 1 if group.built == "fields" or len(record.marks) <= SHORT_RECORD else 2
    return bool(words & record.head) or any(strong) or sum(len(word) >= LEAST_WORD for word in words) > least


def _tells(mark: str) -> bool:
    """Tell whether a mark may tell one record from another: no short word, digit or year."""
    if _YEAR.fullmatch(mark) is not None:
        return False
    return is_name(mark) or len(mark) >= LEAST_WORD - 1 or (len(mark) > 1 and mark.isdigit())
