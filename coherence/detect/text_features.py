"""Outward features of a message: how much it hedges, its shape, and whether it says the same over and over."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Literal, TypeAlias

from coherence.core.lazy import lazy_regex
from coherence.core.words import word_set
from coherence.detect.english import weighed_words

LOOKED_AT = 2_000
"""Characters of a text that are looked at, from its beginning: the cost of an event must not grow with its text."""

MONOTONY_CHARS, MONOTONY = 400, 0.45
"""Characters of a text in which monotony shows, and the entropy of their pairs below which it does."""

HEDGES = word_set(
    "apparently arguably assume assuming believe confused could doubt guess guessing hmm hopefully likely maybe might "
    "perhaps possibly presumably probably puzzled roughly seemingly seems somehow suppose supposedly uncertain unclear "
    "unsure wondering"
)
"""Words that weaken a statement (after K. Hyland, "Metadiscourse", 2005, reduced to those that agents use)."""

_PHRASES = (
    "not sure|not certain|can't tell|cannot tell|don't know|let me reconsider|hard to say|hard to tell|no idea"
    "|try again|on second thought"
)
PHRASES = frozenset(tuple(phrase.split()) for phrase in _PHRASES.split("|"))
"""Phrases that weaken a statement."""

_FIRST_WORDS = frozenset(phrase[0] for phrase in PHRASES)
_HEDGING = HEDGES.union(phrase[-1] for phrase in PHRASES)
"""Words of which a text that hedges has one at least."""
_WORD = lazy_regex(r"[a-z']+")

Shape: TypeAlias = Literal["empty", "json", "code", "list", "prose"]
"""The outward form of a message."""


def hedge_density(text: str) -> float:
    """Return how much a text hedges, in [0, 1]: hedges per 100 words / 8, at most 1.

    Examples
    --------
    >>> hedge_density("The index is off by one in parser.py.")
    0.0
    >>> hedge_density("Hmm, perhaps the parser; I'm not sure, it might be the lexer.")
    1.0
    """
    text = text[:LOOKED_AT]
    if text.isascii() and _HEDGING.isdisjoint(weighed_words(text)[0]):
        return 0.0
    words = _WORD.findall(text.lower())
    hedges = sum(map(HEDGES.__contains__, words))
    if not _FIRST_WORDS.isdisjoint(words):
        hedges += sum(
            1
            for at, word in enumerate(words)
            if word in _FIRST_WORDS and any(tuple(words[at : at + n]) in PHRASES for n in (2, 3))
        )
    # A floor of 25 words: one "maybe" in three words is a short answer, not a hedging one.
    return min(hedges / max(len(words), 25) / 0.08, 1.0)


def looks_like_json(body: str) -> bool:
    """Tell whether a text without spaces around it begins and ends as an object or a list of JSON does.

    Examples
    --------
    >>> looks_like_json('{"a": 1}'), looks_like_json("[x] done"), looks_like_json("")
    (True, False, False)
    """
    return body[:1] in ("{", "[") and body[-1] in "}]"


def shape_of(text: str) -> Shape:
    r"""Return the outward form of a text.

    Examples
    --------
    >>> [shape_of(text) for text in (" ", '{"a": 1}', "Done.", "- a\n- b", "```py\nx```")]
    ['empty', 'json', 'prose', 'list', 'code']
    """
    body = text.strip()
    if not body:
        return "empty"
    if looks_like_json(body):
        return "json"
    head = body[:LOOKED_AT]
    if "```" in head:
        return "code"
    lines = head.split("\n")
    if len(lines) == 1:
        return "prose"
    items = sum(1 for line in lines if line.lstrip()[:2] in ("- ", "* ", "1.", "2.", "3.", "4.", "5."))
    return "list" if items >= 2 and 2 * items >= len(lines) else "prose"


def bigram_entropy(text: str) -> float:
    """Return the entropy of a text's character pairs over that of as many different ones, in [0, 1].

    0 for fewer than two pairs or a single repeated one, 1 if no pair comes twice.

    References
    ----------
    The formula and its test values are those of ``soma-ai`` 2026.4.30 (Python).

    Examples
    --------
    >>> bigram_entropy("aaaa"), bigram_entropy("hello world")
    (0.0, 1.0)
    """
    pairs = len(text) - 1
    if pairs < 2:
        return 0.0
    entropy = _entropy(Counter(map(str.__add__, text, text[1:])).values(), pairs)
    return min(max(0.0, entropy / math.log2(pairs)), 1.0)


def _entropy(counts: Iterable[int], total: int) -> float:
    """Return the entropy of what occurs so many times each, in bits."""
    return -sum(count / total * math.log2(count / total) for count in counts)


def is_monotonous(text: str) -> bool:
    """Tell whether a longer text says the same few characters over and over, as a degenerate model does."""
    if len(text) < MONOTONY_CHARS:
        return False
    firsts = text[: MONOTONY_CHARS - 1]  # of the pairs, whose entropy is no less than theirs alone
    if _entropy(map(firsts.count, set(firsts)), len(firsts)) > MONOTONY * 1.001 * math.log2(len(firsts)):
        return False
    return bigram_entropy(text[:MONOTONY_CHARS]) < MONOTONY
