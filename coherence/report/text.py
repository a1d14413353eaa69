"""Other people's text, made safe to stand in a page."""

from __future__ import annotations

import re

_CONTROLS = "\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff"
_COLOUR = "\\[[0-?]*+[ -/]*+[@-~]"
# A run at once, and a set of characters first: each is several times faster.
_UNPRINTABLE = re.compile(f"[\x1b{_CONTROLS}](?:(?<=\x1b){_COLOUR})?(?:[{_CONTROLS}]++|\x1b(?:{_COLOUR})?)*+")
_BIDI = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def clean(text: str) -> str:
    r"""Drop control characters (not tab and newline), a terminal's colours, surrogates and noncharacters.

    Examples
    --------
    >>> clean("a\x00b\ud800c\r\n\x1b[31md\x1b[0m")
    'abc\nd'
    """
    return _UNPRINTABLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def undirected(text: str) -> str:
    """Return text without marks of direction, for where no element can isolate it: attributes and the page's title."""
    return _BIDI.sub("", text)


READ = 50
"""Characters that are read for one that is shown: there may be control characters among them."""


def clip(text: str, length: int) -> str:
    r"""Return the beginning of a text, whitespace kept; of a very long one only its first part is read.

    Examples
    --------
    >>> clip("one\n  two", 7)
    'one\n  t…'
    """
    most = READ * length
    begun = clean(text[:most]).strip("\n")
    return begun if len(begun) <= length and len(text) <= most else begun[:length].rstrip() + "…"


def number(value: float | None) -> str:
    """Return a value with two decimals, or a dash where nothing is known."""
    return "–" if value is None else f"{value:.2f}"  # a dash, not a minus
