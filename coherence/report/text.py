"""Other people's text, made safe to stand in a page."""

from __future__ import annotations

import re

_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff](?:(?<=\x1b)\\[[0-?]*[ -/]*[@-~])?")
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


def clip(text: str, length: int) -> str:
    r"""Return the beginning of a text, whitespace kept.

    Examples
    --------
    >>> clip("one\n  two", 7)
    'one\n  t…'
    """
    text = clean(text).strip("\n")
    return text if len(text) <= length else text[:length].rstrip() + "…"


def number(value: float | None) -> str:
    """Return a value with two decimals, or a dash where nothing is known."""
    return "–" if value is None else f"{value:.2f}"  # a dash, not a minus
