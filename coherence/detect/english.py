"""English words: those that say nothing of a topic, and whether a text is English."""

from __future__ import annotations

from itertools import repeat

from coherence.core.lazy import lazy_regex
from coherence.core.words import letter_runs, word_set
from coherence.detect.read_once import read_once

FUNCTION_WORDS = word_set(
    "a an and any are as at be been but by can could did do does for from get had has have he her his how i if in "
    "into is it its just let may me more most my no not of off on or our out over own she should so some such than "
    "that the their them then there these they this those to too up us very was we were what when where which who "
    "will with would you your"
)
"""English words that say nothing of what a text is about."""

ENOUGH_WORDS = 16
"""Words before a language is told; fewer pass for English."""

LEAST = 0.2
"""Least mean weight of English words: one in fifty tells English, or one in five may be.

Of recorded English steps of 16 words and more, 99 % reach it."""

MAX_WORD = 40
"""Letters of a word; what is longer counts as several."""

_WORD_OF_ANY = lazy_regex(rf"[^\W\d_]{{1,{MAX_WORD}}}")
_ONLY_ENGLISH_WORDS = (
    "the and that with this you it are not from which they would should been their there be your our these"
)
ONLY_ENGLISH = 10
WEIGHTS = {word: 1 for word in FUNCTION_WORDS if len(word) > 1} | dict.fromkeys(
    _ONLY_ENGLISH_WORDS.split(), ONLY_ENGLISH
)
"""Frequent English words: 10 for those that are none in languages written with the same letters, 1 for others (German
has *will* and *was*, Dutch *of*, Danish *have* and *by*)."""


def english_list(text: str) -> list[str]:
    """Return the words of a text in lower case.

    Examples
    --------
    >>> english_list("I don't know: it is 17°.")
    ['i', 'don', 't', 'know', 'it', 'is']
    """
    if text.isascii():
        words = letter_runs(text)
        if not words or max(map(len, words)) <= MAX_WORD:
            return words
    return _WORD_OF_ANY.findall(text.lower())


@read_once
def weighed_words(text: str) -> tuple[list[str], bytes]:
    """Return the words of a text in lower case and the weight of each as an English one; not to be changed.

    Examples
    --------
    >>> words, weights = weighed_words("The price was 17 euros.")
    >>> words, list(weights)
    (['the', 'price', 'was', 'euros'], [10, 0, 1, 0])
    """
    words = english_list(text)
    return words, bytes(map(WEIGHTS.get, words, repeat(0)))


def english_words(text: str) -> tuple[int, int]:
    """Return how many words a text has, and their weight.

    Examples
    --------
    >>> english_words("The price was 17 euros.")
    (4, 11)
    """
    words, weights = weighed_words(text)
    return len(words), sum(weights)


def are_english(count: int, weight: int) -> bool:
    """Tell whether so many words of this weight (see :func:`english_words`) are English, or too few to tell.

    Examples
    --------
    >>> are_english(50, 10), are_english(50, 9), are_english(15, 0)
    (True, False, True)
    """
    return count < ENOUGH_WORDS or weight >= LEAST * count
