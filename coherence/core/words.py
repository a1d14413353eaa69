"""Tables of words."""

from __future__ import annotations


def word_set(words: str) -> frozenset[str]:
    """Return the words of a text between whose words stand spaces, as tables of words are written.

    Examples
    --------
    >>> sorted(word_set("send post"))
    ['post', 'send']
    """
    return frozenset(words.split())
