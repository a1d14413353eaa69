"""Parsing shell text with the grammar of bash, in time that grows with its length and no faster."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Language, Node

# The grammar's scanner reads beyond its tables at some characters outside ASCII, and ends the process. To bash they are
# letters of words; so are these bytes, and all places in the text stay where they are.
_PLAIN = bytes(code if code < 128 else ord("_") for code in range(256))
_PART = 1_024
READ_TIMES = 16
"""Multiple of a script's length that its parser may read; usual scripts are read one to three times."""
READ_FIRST = 200_000
"""Bytes that it may read in any case."""


class _Reader:
    """Hands out a text in parts, until more than its share has been read."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._left = READ_TIMES * len(source) + READ_FIRST

    def read(self, offset: int, _point: object) -> bytes:
        self._left -= _PART
        return self._source[offset : offset + _PART] if self._left > 0 else b""

    def is_spent(self, _offset: int, _has_error: bool) -> bool:
        return self._left <= 0


@cache
def _bash() -> Language:
    import tree_sitter_bash
    from tree_sitter import Language

    return Language(tree_sitter_bash.language())


def parse(source: bytes) -> Node | None:
    """Return the root of a script's syntax tree, or None where the parser would take too long.

    Behind an error its scanner reads to the end of the text at every step, which takes quadratic time; no real script
    makes it do that often. What it reads is counted, not the time it takes, so that the same script always gets the
    same answer.

    Examples
    --------
    >>> parse(b"cd x && ls").type
    'program'
    >>> parse(b"|" * 10_000) is None
    True
    """
    from tree_sitter import Parser

    reader = _Reader(source.translate(_PLAIN))
    try:
        root = Parser(_bash()).parse(reader.read, progress_callback=reader.is_spent).root_node
    except ValueError:  # it was stopped
        return None
    return None if reader.is_spent(0, False) else root
