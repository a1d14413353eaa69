"""The stems of the words of a message, which stay in other forms of a word and within names written together."""

from __future__ import annotations

import math
from functools import lru_cache

from coherence.core.lazy import lazy_regex
from coherence.core.words import word_set

MAX_STEM = 7
"""Letters of a stem."""


def stems_of(template: str) -> set[str]:
    """Return the stems of a masked message, without placeholders and words that stand in any sentence.

    Examples
    --------
    >>> sorted(stems_of("UnknownTopicException: <name> expired")), sorted(stems_of("UNKNOWN_TOPIC, expires"))
    (['excepti', 'expir', 'topic', 'unknown'], ['expir', 'topic', 'unknown'])
    """
    return {_stem(word) for word in _PART.findall(_PLACEHOLDER.sub(" ", template)) if len(word) > 1} - {""}


def alike(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the cosine of two sets of stems, in [0, 1].

    Examples
    --------
    >>> alike(frozenset({"no", "modul"}), frozenset({"no", "modul"})), alike(frozenset({"no"}), frozenset({"denied"}))
    (1.0, 0.0)
    """
    both = len(one & other)
    return both / math.sqrt(len(one) * len(other)) if both else 0.0


@lru_cache(4_096)
def _stem(word: str) -> str:
    low = word.lower()
    if low in _EMPTY:
        return ""
    for ending in ("ing", "ed", "es", "s", "ly", "e"):
        if low.endswith(ending) and len(low) - len(ending) > 2:
            return low[: -len(ending)][:MAX_STEM]
    return low[:MAX_STEM]


_PLACEHOLDER = lazy_regex(r"<\w+>")
_PART = lazy_regex(r"[A-Z]+(?![^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z]+")
_EMPTY = word_set(
    "the a an of to in is was be for and or by with that this you your it on at from as are has have had will which its"
)
