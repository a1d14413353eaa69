"""Phrases of a step that say how its author knows: assumed instead of looked up, unable, in code. English words."""

from __future__ import annotations

import re

MAX_CHARS = 10_000
"""Characters of a step that are looked at, half from each end."""

ENOUGH_WORDS = 20
"""Words or letters of which the language of a text is told; shorter texts pass for English."""

ENGLISH_SHARE = 0.02
"""Share of :data:`ENGLISH` words below which a text is not English; 99 % of recorded English steps have more."""

_ENGLISH = (
    "the and of that with this you it are have not will from which they would should been their there be by your our "
    "these"
)
ENGLISH = frozenset(_ENGLISH.split())
"""Frequent English words that are none in the languages written with the same letters."""

FALLBACK = re.compile(
    r"\b(?:assum|simulat|mock|manual|alternative|estimat|hypothetical|fabricat)[a-z]{0,12}\b"
    r"|\b(?:dummy|placeholders?|workarounds?|made[ -]up|general knowledge)\b"
    r"|\b(?:sample|synthetic|fake) data(?:sets?)?\b",
    re.IGNORECASE,
)
"""Something is put in the place of evidence."""

INABILITY = re.compile(
    r"\b(?:unable|inaccessible|unavailable|unfortunately|can(?:no|')t|could(?: not|n't)"
    r"|not (?:able|possible|available|accessible)|do(?: not|n't) have access)\b",
    re.IGNORECASE,
)
"""Something could not be done."""

CODE = re.compile(r"^[ \t]{0,20}```", re.MULTILINE)
"""The beginning of a code block; a fence inside a line only speaks of one."""

_BLOCK = re.compile(r"^[ \t]{0,20}```.*?(?:^[ \t]{0,20}```|\Z)", re.MULTILINE | re.DOTALL)
_WORD = re.compile(r"[^\W\d_]{1,40}")
_QUOTE = 60
"""Characters on each side of a phrase that are quoted."""


def shortened(text: str) -> str:
    """Return what is looked at of a text.

    Examples
    --------
    >>> len(shortened("x" * 1_000_000))
    10001
    """
    half = MAX_CHARS // 2
    return text if len(text) <= MAX_CHARS else f"{text[:half]} {text[-half:]}"


def is_english(text: str) -> bool:
    """Tell whether the cues can be found in a text: whether what stands outside its code blocks is English.

    It is not if 20 or more words hold less than 2 % of the most frequent English ones, or if most of 20 or more
    letters are of other scripts. A text too short to tell passes.

    Examples
    --------
    >>> is_english("The file was not found, so I assume that the price is 100 euros."), is_english("ok")
    (True, True)
    >>> is_english("Der Preis steht nicht in der Datei. Ich nehme an, dass er hundert Euro war, weil der Katalog "
    ...            "aus dem letzten Jahr diesen Preis nennt.")
    False
    """
    words = _WORD.findall(_BLOCK.sub(" ", shortened(text)))
    letters = sum(map(len, words))
    if letters >= ENOUGH_WORDS and sum(len(word) for word in words if not word.isascii()) > letters / 2:
        return False
    known = sum(word.lower() in ENGLISH for word in words)
    return len(words) < ENOUGH_WORDS or known >= ENGLISH_SHARE * len(words)


def quoted(text: str, found: re.Match[str]) -> str:
    r"""Return a phrase with the words around it, on its line.

    Examples
    --------
    >>> quoted("No file.\nLet's assume a price.", FALLBACK.search("No file.\nLet's assume a price."))
    "Let's assume a price."
    """
    start, end = max(found.start() - _QUOTE, 0), found.end() + _QUOTE
    before = text[start : found.start()].rpartition("\n")[2]
    after = text[found.end() : end].partition("\n")[0]
    if start and len(before) == _QUOTE:
        before = before.partition(" ")[2] or before
    if end < len(text) and len(after) == _QUOTE:
        after = after.rpartition(" ")[0] or after
    return f"{before}{found[0]}{after}".strip()
