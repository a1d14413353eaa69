"""Whether words are English, by their most frequent words: the phrases that the detectors look for are."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import repeat

from coherence.detect.tokens import FUNCTION_WORDS

ENOUGH_WORDS = 16
"""Words before a language is told; fewer pass for English."""

LEAST = 0.2
"""Least mean weight of English words: one in fifty tells English, or one in five may be.

Of recorded English steps of 16 words and more, 99 % reach it."""

_WORD = re.compile(r"[^\W\d_]{1,40}")
_ONLY_ENGLISH = "the and that with this you it are not from which they would should been their there be your our these"
WEIGHTS = {word: 1 for word in FUNCTION_WORDS if len(word) > 1} | dict.fromkeys(_ONLY_ENGLISH.split(), 10)
"""Frequent English words: 10 for those that are none in languages written with the same letters, 1 for others (German
has *will* and *was*, Dutch *of*, Danish *have* and *by*)."""


def english_weight(words: Iterable[str]) -> int:
    """Return the sum of the weights of words in lower case.

    Examples
    --------
    >>> english_weight(["the", "price", "was", "known"]), english_weight(["der", "preis", "was"])
    (11, 1)
    """
    return sum(map(WEIGHTS.get, words, repeat(0)))


@lru_cache(maxsize=4)  # one message is looked at by several detectors
def english_words(text: str) -> tuple[int, int]:
    """Return how many words a text has, and their weight.

    Examples
    --------
    >>> english_words("The price was 17 euros.")
    (4, 11)
    """
    words = _WORD.findall(text.lower())
    return len(words), english_weight(words)


def are_english(count: int, weight: int) -> bool:
    """Tell whether so many words of this :func:`english_weight` are English, or too few to tell.

    Examples
    --------
    >>> are_english(50, 10), are_english(50, 9), are_english(15, 0)
    (True, False, True)
    """
    return count < ENOUGH_WORDS or weight >= LEAST * count
