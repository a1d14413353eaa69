"""Names in code, options and people that an answer states although no result has them.

Judged where all results of a task were short and are still known: a longer one may have had them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from coherence.core.lazy import lazy_regex
from coherence.core.words import word_set
from coherence.detect.extractors import dates
from coherence.detect.number_words import MEASURES, WORDS
from coherence.detect.records import Kept
from coherence.detect.retold import misattributed, reversed_clauses
from coherence.detect.sources import Given, known_words
from coherence.detect.text_analysis import tokens
from coherence.detect.values import words

MAX_TERMS = 60
"""Names of one answer that are looked at."""

LIKE_NAME = 0.6
"""Share of the letters of two people's names from which one may be meant for the other."""


_OPTION = lazy_regex(r"(?<![\w-])--[a-zA-Z][\w-]{1,40}")
_CODE = lazy_regex(r"\b[A-Za-z_]\w{0,40}(?:::\w{1,40}){1,4}|\b[A-Z][A-Z0-9]{0,30}(?:_[A-Z0-9]{1,30}){1,6}\b(?!\()")
_TICKED = lazy_regex(r"`@?([A-Za-z_][\w.-]{2,60})(?:=[^`\n]{0,40})?`")
_MARKED = lazy_regex(r"(?<![\w`@])@[a-z_]\w{2,40}(?![\w@-]|\.\w)")
_TITLE = lazy_regex(r"[\"“'](?=[^\"“”'\n]{0,60} [A-Z])([A-Z]\w{1,20}(?: \w{1,20}){1,7})[\"”']")
_FORMAT = lazy_regex(r"\b[YMDH]{2,4}(?:[-/.:][YMDHms]{2,4}){1,3}\b")
_NAME = lazy_regex(r"(?<=[a-z,] )[A-Z][a-z]{3,20}\b")
_KNOWN_NAME = lazy_regex(r"\b[A-Z][a-z]{3,20}\b")
_SPELT = "|".join(sorted(WORDS, key=len, reverse=True))
_COUNT = lazy_regex(
    rf"(?<![\w.,/:$€£-])(?<!of )(?<!more )(?<!first )(?<!least )(\d{{1,3}}|{_SPELT}) ([a-zA-Z]{{3,20}}s)\b", 2
)
_FIELD = lazy_regex(r"\b([a-zA-Z]{3,20}s)[\"']?\s?[:=]\s?(\d{1,3})\b(?![.,:/-]\d)")
_SCALES = lazy_regex(r"\b(?:for|per|each|every|ratio|average|times|total|altogether)\b", re.IGNORECASE)
_NONE = lazy_regex(
    r"\b(?:no|nothing|none|zero|0|keine?|aucune?|ninguna?)\s(?!other|more|further|new|additional)([a-zA-Z]{3,20})\b", 2
)
_SOME = lazy_regex(r"\b([a-zA-Z]{3,20})[\"']?\s?[:=]\s?[\"']?([1-9]\d{0,5})\b(?![.:/-]\d)")
_IS_SO = lazy_regex(r"\b(?:is|are|was|were|and)\s(?:\w{1,20}\s){0,2}?([a-z]{5,20})\b")
_BE = lazy_regex(r"\b(?:is|are|was|were)\b")
_CALL = lazy_regex(r"\b([A-Za-z_]\w{1,40})\(([^()`\n]{1,200})\)")
_ARGUMENT = lazy_regex(r"(?<![\w.=])([a-z_]\w{1,30})=(?!=)")
_UP = lazy_regex(
    r"\b(?:rose|risen|increased|grew|grown|higher|slower|went up|climbed|larger|longer|gestiegen|langsamer"
    r"|augmenté|subió)\b",
    re.IGNORECASE,
)
_DOWN = lazy_regex(
    r"\b(?:fell|fallen|decreased|dropped|lower|faster|quicker|went down|shrank|smaller|shorter|gesunken"
    r"|schneller|baissé|bajó)\b",
    re.IGNORECASE,
)
_ONE_NUMBER = lazy_regex(r"\d{1,12}(?:\.\d{1,9})?")
_ALONE = lazy_regex(r"\s{0,9}(\d{1,12}(?:\.\d{1,6})?)\s{0,9}")
_EMPTY = lazy_regex(
    r"\b(?:is|are|ist|sind|est|está) (?:now |completely |wieder )?(?:empty|leer|vide|vides|vacío|vacía)\b", 2
)
BE_BEFORE = 40
"""Characters before "and" in which there is a verb that what follows goes on with."""

SHORT_RESULT = 120
"""Characters of a result that is one measurement."""

_PLACEHOLDERS = word_set("name file path dir true false none null example json yaml utf main master")


def unknown_terms(given: Given, kept: Kept, answer: str) -> Iterator[tuple[str, str]]:
    """Yield names that no source has, and what a result has instead, if anything.

    Examples
    --------
    >>> from coherence.detect.records import keep_result
    >>> from coherence.detect.sources import take_source
    >>> given, kept, text = Given(), Kept(), "usage: fetch [--no-verify] NAME"
    >>> claims = take_source(given, 1, text, [])
    >>> keep_result(kept, 1, text)
    >>> list(unknown_terms(given, kept, "Use `--no-verify`, not `--skip-sums`."))
    [('--skip-sums', '')]
    """
    if not kept.whole or not kept.results:
        return
    told = " ".join(result.text for result in kept.results)
    for sign, pattern, needed in (
        ("--", _OPTION, "--"),
        ("::", _CODE, "::"),
        ("_", _CODE, "_"),
        ("`", _TICKED, ""),
        ("@", _MARKED, "@"),
        ("/", _FORMAT, "/"),
        ("-", _FORMAT, "-"),
        ('"', _TITLE, ""),
        ("“", _TITLE, ""),
    ):
        if sign not in answer or needed not in told:
            continue
        for found in islice(pattern.finditer(answer), MAX_TERMS):
            name = found[found.lastindex or 0]
            parts = [word for word in words(name) if word not in _PLACEHOLDERS]
            if parts and known_words(given, parts) < 1.0:
                yield name, ""
    yield from _unknown_arguments(told, answer)
    yield from misattributed(kept, answer)
    yield from reversed_clauses(kept, answer)
    yield from _misspelt(given, told, answer)
    yield from _miscounted(given, told, answer)
    yield from _denied(told, answer)
    yield from _turned(kept, answer)


def _unknown_arguments(told: str, answer: str) -> Iterator[tuple[str, str]]:
    """Yield names of arguments with which an answer calls a function that a result declares without them."""
    for call in islice(_CALL.finditer(answer), MAX_TERMS):
        at = told.find(f"{call[1]}(")
        if at < 0:
            continue
        declared = told[at : at + MAX_DECLARATION]
        for name in islice(_ARGUMENT.findall(call[2]), MAX_TERMS):
            if "**" not in declared.partition(")")[0] and not re.search(rf"\b{name}\b", told):
                yield name, declared.partition(")")[0]


MAX_DECLARATION = 300
"""Characters of what declares a function."""


def _misspelt(given: Given, told: str, answer: str) -> Iterator[tuple[str, str]]:
    """Yield names of people that no source has, each with a like one that a result has and the answer has not."""
    unknown = [
        found[0]
        for found in islice(_NAME.finditer(answer), MAX_TERMS)
        if not known_words(given, [found[0].lower()]) and not dates(f"1 {found[0]} 2020")
    ]
    if not unknown:
        return
    from difflib import SequenceMatcher  # needed only where a name is unknown

    known = {found[0] for found in islice(_KNOWN_NAME.finditer(told), MAX_TERMS)} - set(_KNOWN_NAME.findall(answer))
    for name in unknown:
        for other in known:
            if (
                name[0] == other[0]
                and abs(len(name) - len(other)) <= 1
                and not name.startswith(other[: len(other) - 2])
                and SequenceMatcher(None, name, other).ratio() >= LIKE_NAME
            ):
                yield name, other
                break


def _miscounted(given: Given, told: str, answer: str) -> Iterator[tuple[str, str]]:
    """Yield small numbers of things of which the results have another number, and that number."""
    if _SCALES.search(answer) is not None:
        return
    claims = [
        (found[0], found[1].lower(), noun)
        for found in islice(_COUNT.finditer(answer), MAX_TERMS)
        if (noun := next(iter(tokens(found[2])), "")) and found[2].lower() not in MEASURES
    ]
    if not claims:
        return
    numbers = {number.value for number in given.numbers}
    known: dict[str, set[str]] = {}
    for found in islice(_COUNT.finditer(told), MAX_TERMS):
        known.setdefault(next(iter(tokens(found[2])), ""), set()).add(found[1].lower())
    for found in islice(_FIELD.finditer(told), MAX_TERMS):
        known.setdefault(next(iter(tokens(found[1])), ""), set()).add(found[2])
    for text, said, noun in claims:
        told_numbers = {_value(each) for each in known.get(noun, ())}
        value = _value(said)
        if len(told_numbers) == 1 and value not in told_numbers and value not in numbers and value > 1.0:
            yield text, f"{next(iter(known[noun]))} {noun}"


def _value(said: str) -> float:
    return float(said) if said.isdigit() else float(WORDS[said])


def _denied(told: str, answer: str) -> Iterator[tuple[str, str]]:
    """Yield what an answer denies though a result counts some of it, and what a result says the opposite of."""
    none = {found[1].lower(): found[0] for found in islice(_NONE.finditer(answer), MAX_TERMS)}
    for found in islice(_SOME.finditer(told), 4 * MAX_TERMS) if none else ():
        if found[1].lower() in none:
            yield none[found[1].lower()], found[0]
    number = _ALONE.fullmatch(told) if len(told) < SHORT_RESULT else None
    empty = _EMPTY.search(answer) if number is not None and float(number[1]) > 0.0 else None
    if empty is not None and number is not None:
        yield empty[0], number[1]
    low, said = told.lower(), answer.lower()
    for found in islice(_IS_SO.finditer(answer), MAX_TERMS):
        word, before = found[1], answer[max(0, found.start() - BE_BEFORE) : found.start()]
        if found[0].lower().startswith("and") and _BE.search(before) is None:
            continue
        opposite = next((f"{sign}{word}" for sign in ("un", "non-", "dis") if f"{sign}{word}" in low), "")
        if opposite and opposite not in said and f" {word}" not in low and not low.startswith(word):
            yield word, opposite


def _turned(kept: Kept, answer: str) -> Iterator[tuple[str, str]]:
    """Yield a word of rise or fall where two measurements, the only results, go the other way."""
    if len(kept.results) != 2 or any(len(result.text) > SHORT_RESULT for result in kept.results):
        return
    first, second = (_ONE_NUMBER.findall(result.text) for result in kept.results)
    built = {_ONE_NUMBER.sub("", result.text).strip() for result in kept.results}
    if len(first) != 1 or len(second) != 1 or len(built) != 1 or first == second:
        return
    up, down = _UP.search(answer), _DOWN.search(answer)
    rises = float(second[0]) > float(first[0])
    wrong = down if rises else up
    if wrong is not None and (up is None or down is None) and " not " not in answer and "n't " not in answer:
        yield wrong[0], f"{first[0]}, then {second[0]}"
