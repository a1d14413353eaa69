r"""A text as a reader sees it, without what stands between its characters, and the way back to the places in the text.

A secret that a terminal colours, a URL encodes or a page wraps is found in such a view and replaced in the text itself.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from coherence.core.lazy import lazy_regex

_CSI = r"\[[0-?]{0,64}+(?:[@-~]| q)"
_SEQUENCE = rf"\x1b(?:{_CSI}|\][^\x07\x1b]{{0,4096}}(?:\x07|\x1b\\)|\([B0]|[78=>])|\x9b{_CSI[2:]}"
_ESCAPES = lazy_regex(_SEQUENCE)
"""Control sequences of a terminal."""
_WRITTEN_ESCAPES = lazy_regex(rf"{_SEQUENCE}|\\{{1,4}}(?:u001[bB]|x1[bB]|033|e){_CSI}")
"""The same, and colours as they are written in JSON and in source code."""
_SEAM = lazy_regex(r"\0(?<=[\w-]\0)\0*+(?=[\w-])", re.ASCII)
"""Sequences between two characters of words, where these are ``\\0``."""
_TAKES_A_LETTER = lazy_regex(r"(?:\x9b|(?:\x1b|1[bB]|033|\\e)\[)[0-?]{0,64}+[A-Za-ln-z\\](?=[\w-])")
"""A sequence other than a colour directly before a word: its last letter may be the first one of a secret, or the
backslash of an escape before one."""

_WRITTEN = ("u001b[", "u001B[", "x1b[", "x1B[", "033[", "\\e[")
_PERCENT = lazy_regex(r"%(?:25){0,3}([2-7][0-9A-Fa-f])")
_SPACE = lazy_regex(r"[\s\"'<>`]")
MAX_BEFORE, MAX_AFTER = 300, 4_000
"""Characters before the first encoded character of a word, and from it on, that are decoded."""


Found: TypeAlias = tuple[int, int, str]
"""Start, end and kind of what is found in a text."""
Finder: TypeAlias = Callable[[str], Iterable[Found]]


class PlainView:
    r"""A text without some of its parts, or with others in their place.

    Parameters
    ----------
    pieces : iterable of (str, int, int)
        What is seen, and from where to where it stands in the text, in order.

    Examples
    --------
    >>> view = PlainView([("gh", 0, 2), ("p", 7, 8)])
    >>> view.text, view.span(1, 3)
    ('ghp', (1, 8))
    """

    def __init__(self, pieces: Iterable[tuple[str, int, int]]) -> None:
        self._starts: list[int] = []
        self._places: list[tuple[int, int]] = []
        parts: list[str] = []
        length = 0
        for part, start, end in pieces:
            if part:
                self._starts.append(length)
                self._places.append((start, end))
                parts.append(part)
                length += len(part)
        self.text = "".join(parts)

    @property
    def joints(self) -> list[int]:
        """Positions in the view where a piece begins behind another."""
        return self._starts[1:]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return from where to where in the text something stands that was found in the view."""
        first = bisect_right(self._starts, start) - 1
        last = bisect_left(self._starts, end) - 1
        size = (self._starts[last + 1] if last + 1 < len(self._starts) else len(self.text)) - self._starts[last]
        begin, over = self._places[last]
        # A piece that stands for something longer, such as "=" for "%3D", ends where that does.
        stop = over if end - self._starts[last] == size else begin + end - self._starts[last]
        return self._places[first][0] + start - self._starts[first], stop


def without(text: str, removed: re.Pattern[str]) -> PlainView:
    """Return a text without what an expression matches."""
    return PlainView(_between(text, removed))


def _between(text: str, removed: re.Pattern[str]) -> Iterator[tuple[str, int, int]]:
    at = 0
    for found in removed.finditer(text):
        yield text[at : found.start()], at, found.start()
        at = found.end()
    yield text[at:], at, len(text)


def without_escapes(text: str) -> str:
    r"""Return a text without the control sequences of a terminal.

    Examples
    --------
    >>> without_escapes("see \x1b[1;32mghost\x1b[0m")
    'see ghost'
    """
    return _ESCAPES.sub("", text) if "\x1b" in text else text


def found_without_escapes(text: str, find: Finder) -> Iterator[Found]:
    r"""Yield what is found in a text without the control sequences of a terminal, by its places in the text.

    Examples
    --------
    >>> list(found_without_escapes("see \x1b[1;32mghost\x1b[0m", lambda seen: [(seen.find("ghost"), len(seen), "it")]))
    [(11, 16, 'it')]
    """
    escapes = _escapes_of(text)
    if escapes is None:
        yield from find(text)
        return
    pieces = escapes.split(text)
    found = list(find("".join(pieces)))
    if found:  # the way back is only now worth its cost
        yield from _placed(without(text, escapes), found)
    if _SEAM.search("\0".join(pieces)):  # a colour may be all that stands between a word and a secret
        yield from find(escapes.sub(_blank, text))
    # the title of a window or an address is within a sequence
    if "\x1b]" in text or _TAKES_A_LETTER.search(text):
        yield from find(text)


def _blank(found: re.Match[str]) -> str:
    return " " * len(found[0])


def _escapes_of(text: str) -> re.Pattern[str] | None:
    if "\\" in text and any(map(text.__contains__, _WRITTEN)):
        return _WRITTEN_ESCAPES
    return _ESCAPES if "\x1b" in text or "\x9b" in text else None


def found_decoded(text: str, find: Finder) -> Iterator[Found]:
    r"""Yield what is found in the words of a text that hold characters encoded as in a URL, by its places in the text.

    Examples
    --------
    >>> list(found_decoded("see key%3Da%2Fb now", lambda seen: [(seen.find("a/b"), seen.find("\n"), "it")]))
    [(10, 15, 'it')]
    """
    if "%" not in text:
        return
    for start, end in _encoded_words(text):
        word = text[start:end]
        found = list(find(_PERCENT.sub(_character, word) + "\n"))
        if found:
            view = PlainView(_pieces(word))
            yield from ((start + first, start + last, kind) for first, last, kind in _placed(view, found))


def _character(found: re.Match[str]) -> str:
    return chr(int(found[1], 16))


def _encoded_words(text: str) -> Iterator[tuple[int, int]]:
    done = 0
    for found in _PERCENT.finditer(text):
        if found.start() < done:
            continue
        first = max(done, found.start() - MAX_BEFORE)
        before = text[first : found.start()]
        start = first + max(before.rfind(mark) for mark in " \t\r\n\"'<>`") + 1
        behind = _SPACE.search(text, found.end(), found.end() + MAX_AFTER)
        done = behind.start() if behind else min(len(text), found.end() + MAX_AFTER)
        yield start, done


def _pieces(word: str) -> Iterator[tuple[str, int, int]]:
    at = 0
    for found in _PERCENT.finditer(word):
        yield word[at : found.start()], at, found.start()
        yield _character(found), found.start(), found.end()
        at = found.end()
    yield word[at:], at, len(word)


def _placed(view: PlainView, found: list[Found]) -> Iterator[Found]:
    return ((*view.span(start, min(end, len(view.text))), kind) for start, end, kind in found)
