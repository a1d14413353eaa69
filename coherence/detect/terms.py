"""Names in code, options and states of things that an answer states although no result has them.

Judged where all results of a task were short and are still known: a longer one may have had them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from coherence.core.lazy import lazy_regex
from coherence.core.words import word_set
from coherence.detect.records import Kept
from coherence.detect.sources import Given, known_words
from coherence.detect.values import words

MAX_TERMS = 60
"""Names of one answer that are looked at."""

_OPTION = lazy_regex(r"(?<![\w-])--[a-zA-Z][\w-]{1,40}")
_CODE = lazy_regex(r"\b[A-Za-z_]\w{0,40}(?:::\w{1,40}){1,4}|\b[A-Z][A-Z0-9]{0,30}(?:_[A-Z0-9]{1,30}){1,6}\b(?!\()")
_TICKED = lazy_regex(r"`@?([A-Za-z_][\w.-]{2,60})(?:=[^`\n]{0,40})?`")
_FORMAT = lazy_regex(r"\b[YMDH]{2,4}(?:[-/.:][YMDHms]{2,4}){1,3}\b")
_NONE = lazy_regex(
    r"\b(?:no|nothing|none|zero|0|keine?|aucune?|ninguna?)\s(?!other|more|further|new|additional)([a-zA-Z]{3,20})\b", 2
)
_SOME = lazy_regex(r"\b([a-zA-Z]{3,20})[\"']?\s?[:=]\s?[\"']?([1-9]\d{0,5})\b(?![.:/-]\d)")
_IS_SO = lazy_regex(r"\b(?:is|are|was|were|and)\s(?:\w{1,20}\s){0,2}?([a-z]{5,20})\b")
_BE = lazy_regex(r"\b(?:is|are|was|were)\b")
BE_BEFORE = 40
"""Characters before "and" in which there is a verb that what follows goes on with."""

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
        ("/", _FORMAT, "/"),
        ("-", _FORMAT, "-"),
    ):
        if sign not in answer or needed not in told:
            continue
        for found in islice(pattern.finditer(answer), MAX_TERMS):
            name = found[found.lastindex or 0]
            parts = [word for word in words(name) if word not in _PLACEHOLDERS]
            if parts and known_words(given, parts) < 1.0:
                yield name, ""
    yield from _denied(told, answer)


def _denied(told: str, answer: str) -> Iterator[tuple[str, str]]:
    """Yield what an answer denies though a result counts some of it, and what a result says the opposite of."""
    none = {found[1].lower(): found[0] for found in islice(_NONE.finditer(answer), MAX_TERMS)}
    for found in islice(_SOME.finditer(told), 4 * MAX_TERMS) if none else ():
        if found[1].lower() in none:
            yield none[found[1].lower()], found[0]
    low, said = told.lower(), answer.lower()
    for found in islice(_IS_SO.finditer(answer), MAX_TERMS):
        word, before = found[1], answer[max(0, found.start() - BE_BEFORE) : found.start()]
        if found[0].lower().startswith("and") and _BE.search(before) is None:
            continue
        opposite = next((f"{sign}{word}" for sign in ("un", "non-", "dis") if f"{sign}{word}" in low), "")
        if opposite and opposite not in said and f" {word}" not in low and not low.startswith(word):
            yield word, opposite
