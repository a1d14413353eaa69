"""Tables of words, the words of plain text, and whether a text may hold some."""

from __future__ import annotations


def word_set(words: str) -> frozenset[str]:
    """Return the words of a text between whose words stand spaces, as tables of words are written.

    Examples
    --------
    >>> sorted(word_set("send post"))
    ['post', 'send']
    """
    return frozenset(words.split())


def phrases(text: str) -> tuple[str, ...]:
    """Return the phrases of a text between which semicolons and a space stand; other spaces are part of them.

    Examples
    --------
    >>> phrases("no such; not a ; denied")
    ('no such', 'not a ', 'denied')
    """
    return tuple(text.split("; "))


_LETTERS = bytes(ord(chr(code).lower()) if chr(code).isalpha() else ord(" ") for code in range(128)) + b" " * 128
"""ASCII in lower case, with a space for all that is no letter."""


_WORDS = bytes(code if chr(code).isdigit() or chr(code) == "_" else letter for code, letter in enumerate(_LETTERS))
"""The same with digits and underscores."""


def letter_runs(text: str) -> list[str]:
    """Return the runs of ASCII letters of a text, in lower case; faster than a regular expression.

    Examples
    --------
    >>> letter_runs("I don't know: it is v17.")
    ['i', 'don', 't', 'know', 'it', 'is', 'v']
    """
    return text.encode("ascii", "replace").translate(_LETTERS).decode().split()


def word_runs(text: str) -> list[str]:
    r"""Return the runs of letters, digits and underscores of an ASCII text, in lower case, as ``\w+`` finds them.

    Examples
    --------
    >>> word_runs("See utils.py: it is v17_b.")
    ['see', 'utils', 'py', 'it', 'is', 'v17_b']
    """
    return in_words(text).decode().split()


def in_words(text: str) -> bytes:
    """Return an ASCII text in lower case, with a space for each character that is in no word.

    Examples
    --------
    >>> in_words("See utils.py!")
    b'see utils py '
    """
    return text.encode("ascii", "replace").translate(_WORDS)


_ODD_CASES = "ıİſ\u212a"
"""Letters that are i, s and k where case does not matter, and do not become these in lower case."""


def may_hold(text: str, *groups: tuple[str, ...]) -> bool:
    """Tell whether a text may have one word of each group, in any case; much faster than a regular expression.

    Examples
    --------
    >>> may_hold("Status: FAILED", ("status", "state"), ("failed", "denied")), may_hold("state of the art", ("status",))
    (True, False)
    """
    if not text.isascii() and any(letter in text for letter in _ODD_CASES):
        return True
    lower = text.lower()
    return all(holds(lower, words) for words in groups)


def holds(text: str, words: tuple[str, ...]) -> bool:
    """Tell whether one of some words is in a text, as it is written.

    Examples
    --------
    >>> holds("exit code 1", ("exit", "return")), holds("Exit", ("exit",))
    (True, False)
    """
    return any(map(text.__contains__, words))
