"""Families of acts: what a word of a request, of a tool's name or of a command does. ``acts.toml`` holds the words."""

from __future__ import annotations

from functools import lru_cache

from coherence.core.words import word_set
from coherence.detect.tables import names_by_word, table

FAMILIES: dict[str, set[str]] = {}
"""Beginning of a word -> families of acts."""
for _family, _stems in table("acts")["stems"].items():
    for _stem in _stems.split():
        FAMILIES.setdefault(_stem, set()).add(_family)

_ENDINGS = word_set(table("acts")["endings"]) | {""}

SQL = {
    "delete": "remove",
    "drop": "remove",
    "truncate": "remove",
    "update": "change",
    "alter": "change",
    "insert": "add",
    "create": "add",
    "grant": "change",
}
HTTP = {"delete": "remove", "put": "change", "patch": "change", "post": "send"}

READING = word_set(table("acts")["reading"])
"""First words of tools and programs that change nothing."""

NOUNS = names_by_word(table("acts")["nouns"])
"""Noun -> the act that it names: "no refunds", "issue no refunds", "no dependency"."""


@lru_cache(maxsize=8_000)
def acts_of(word: str) -> frozenset[str]:
    """Return the families of acts that a word may be of, whatever its form.

    Examples
    --------
    >>> sorted(acts_of("deleting")), sorted(acts_of("löscht")), sorted(acts_of("envíes")), sorted(acts_of("table"))
    (['remove'], ['remove'], ['send'], [])
    """
    word = word.casefold()
    found: set[str] = set()
    for length in range(min(len(word), 16), max(1, len(word) - 6), -1):
        if word[length:] in _ENDINGS:
            found |= FAMILIES.get(word[:length], set())
    return frozenset(found)
