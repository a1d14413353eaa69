"""Phrases of a step that say how its author knows: assumed instead of looked up, unable, in code. English words."""

from __future__ import annotations

import re

from coherence.core.validation import ends
from coherence.detect.english import are_english, english_words

MAX_CHARS = 10_000
"""Characters of a step that are looked at, half from each end."""

ENOUGH_LETTERS = 20
"""Letters of which the script of a text is told."""

FALLBACK = re.compile(
    r"(?=[adefghmpswADEFGHMPSW])\b(?i:(?:assum|simulat|mock|manual|alternative|estimat|hypothetical|fabricat)[a-z]{0,12}\b"
    r"|(?:dummy|placeholders?|workarounds?|made[ -]up|general knowledge)\b"
    r"|(?:sample|synthetic|fake) data(?:sets?)?\b)"
)
"""Something is put in the place of evidence. The letters in front are those that a phrase may begin with, for speed."""

_NEGATED = re.compile(
    r"(?:(?<!\bwhy )(?<!\bif )\bnot|\b(?:no|nor|never|neither|cannot|without|avoid(?:s|ed|ing)?)|n['’]t)\s{1,3}"
    r"(?:(?:a|an|any|the|be|been|being|to|do|have|need|make|making|made|use|using|used)\s{1,3}){0,3}\Z",
    re.IGNORECASE,
)
_JOINED = re.compile(r"(?:,\s?|\s)(?:(?:or|nor)\s)?(?:(?:a|an|any|to|use|make)\s)?", re.IGNORECASE)
_BEFORE = 60
"""Characters before a phrase in which a word that denies it stands."""

INABILITY = re.compile(
    r"(?=[cdinuCDINU])\b(?i:(?:unable|inaccessible|unavailable|unfortunately|can(?:no|')t|could(?: not|n't)"
    r"|not (?:able|possible|available|accessible)|do(?: not|n't) have access)\b)"
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
    return ends(text, MAX_CHARS)


def is_english(text: str) -> bool:
    """Tell whether the cues can be found in a text: whether what stands outside its code blocks is English.

    It is not if 16 or more words hold too few of the most frequent English ones (see
    :mod:`coherence.detect.english`), or if most of 20 or more letters are of other scripts. A text too short to
    tell passes.

    Examples
    --------
    >>> is_english("The file was not found, so I assume that the price is 100 euros."), is_english("ok")
    (True, True)
    >>> is_english("Der Preis steht nicht in der Datei. Ich nehme an, dass er hundert Euro war, weil der Katalog "
    ...            "aus dem letzten Jahr diesen Preis nennt.")
    False
    """
    text = _BLOCK.sub(" ", shortened(text))
    if not text.isascii():
        words = _WORD.findall(text)
        letters = sum(map(len, words))
        if letters >= ENOUGH_LETTERS and sum(len(word) for word in words if not word.isascii()) > letters / 2:
            return False
    return are_english(*english_words(text))


def fallbacks(text: str) -> list[re.Match[str]]:
    """Return the phrases that put something in the place of evidence, without those that are denied.

    Examples
    --------
    >>> [found[0] for found in fallbacks("I will not assume or estimate it, so I use placeholder data.")]
    ['placeholder']
    """
    found: list[re.Match[str]] = []
    denied, end = False, 0
    for phrase in FALLBACK.finditer(text):
        before = text[max(phrase.start() - _BEFORE, end) : phrase.start()]
        denied = bool(_NEGATED.search(before) or (denied and _JOINED.fullmatch(before)))
        end = phrase.end()
        if not denied:
            found.append(phrase)
    return found


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
