"""How much a word of an error message tells: "not" and "error" stand in all of them, "broadcast" in few.

The counts are of the families of errors in ``tests/lessons/errors`` (the development half), made by
``python tests/bench/lesson_recall.py --words``. A word that is not listed stands in one or two of them.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache

from coherence.lessons.normal import ErrorShape

FAMILIES = 167
"""Families that were counted."""

_BY_COUNT = {
    66: "not",
    52: "the",
    50: "error",
    30: "failed for",
    25: "cannot",
    24: "found",
    22: "with",
    19: "has this",
    17: "from",
    16: "and file you",
    15: "can",
    13: "are could find module use was",
    12: "code exceeded type",
    10: "invalid line object unexpected when",
    9: "allowed does have package requested your",
    8: "missing typeerror while",
    7: "already been function import key model only resolve run runtimeerror unable valid valueerror",
    6: (
        "access attribute but class expected index install load must name operation please read request start "
        "such try used value"
    ),
    5: (
        "application argument column context curl data directory exist input installed json limit match "
        "maximum occurred one out port process status that timeout token unsupported url version warning "
        "which"
    ),
    4: (
        "address after array attributeerror bad because check conflict connection couldn create currently "
        "detected element errno host max memory permitted reached received response retries running supported "
        "syntaxerror system than time too undefined"
    ),
    3: (
        "again another arguments attempted before build call called calling caused command configured current "
        "doesn engine environment field following get global got happen here http imported incompatible "
        "incorrect inside keyword length lock many matching method mismatch more named new non outside "
        "overflow parameter problem properties rate reading reference registry require requirements requires "
        "resource returned runtime script see set statement stream task test tried trying unknown "
        "unrecognized updated validationerror would yaml yet"
    ),
}
"""Families -> the words that stand in so many."""

COUNTS = {word: count for count, words in _BY_COUNT.items() for word in words.split()}

RARE = 1.0
"""Families that are assumed to use a word that is not listed."""

_WORD = re.compile(r"[^\W\d_][\w]{2,}|<[a-z]+>")


def wording_of(shape: ErrorShape) -> frozenset[str]:
    """Return the words of an error's headline without what it names."""
    return _wording(shape.template, shape.exception)


@lru_cache(2_048)
def _wording(template: str, exception: str) -> frozenset[str]:
    words = _WORD.findall(f"{template} {exception}".lower())
    return frozenset(word for word in words if not word.startswith("<"))


def alike(one: frozenset[str], other: frozenset[str]) -> float:
    """Return how much of what two wordings say is the same, in [0, 1]: a cosine of words weighted by rarity.

    The weight is the inverse document frequency, ``log((families + 1) / (families with the word + 0.5))``
    (Spärck Jones, 1972).

    Examples
    --------
    >>> said = frozenset({"no", "module", "named"})
    >>> alike(said, said), alike(said, frozenset({"denied"}))
    (1.0, 0.0)
    """
    both = one & other
    if not both:
        return 0.0
    return _weight(both) / math.sqrt(_weight(one) * _weight(other))


@lru_cache(4_096)
def _weight(words: frozenset[str]) -> float:
    return math.fsum(_WEIGHTS.get(word, _RARE) for word in words)


_WEIGHTS = {word: math.log((FAMILIES + 1) / (count + 0.5)) for word, count in COUNTS.items()}
_RARE = math.log((FAMILIES + 1) / (RARE + 0.5))
