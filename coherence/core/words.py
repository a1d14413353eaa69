"""Tables of words, and the words of plain text."""

from __future__ import annotations


def word_set(words: str) -> frozenset[str]:
    """Return the words of a text between whose words stand spaces, as tables of words are written.

    Examples
    --------
    >>> sorted(word_set("send post"))
    ['post', 'send']
    """
    return frozenset(words.split())


_LETTERS = bytes(ord(chr(code).lower()) if chr(code).isalpha() else ord(" ") for code in range(128)) + b" " * 128
"""ASCII in lower case, with a space for all that is no letter."""


def letter_runs(text: str) -> list[str]:
    """Return the runs of letters of a text that is ASCII, in lower case; faster than a regular expression.

    Examples
    --------
    >>> letter_runs("I don't know: it is v17.")
    ['i', 'don', 't', 'know', 'it', 'is', 'v']
    """
    return text.encode().translate(_LETTERS).decode().split()
