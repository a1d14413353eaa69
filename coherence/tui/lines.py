"""Lines of text in parts, each with the name of a style: all that is drawn, and the one way for texts to get there.

Texts of a store are hostile: a part is never read as markup, and :func:`clean` takes what a terminal would obey.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from rich.cells import cell_len, set_cell_size

from coherence.core.readings import one_line

Part: TypeAlias = tuple[str, str]
"""Text and the name of its style, one of :data:`coherence.tui.palette.STYLES`."""

Line: TypeAlias = tuple[Part, ...]

MAX_TEXT = 6_000
"""Characters of a text that are shown; of a longer one, how many there are besides."""


def clean(text: str) -> str:
    r"""Return a text as a terminal may have it: on one line, without controls and without characters of no width.

    Examples
    --------
    >>> clean("a\x1b[31mb\tc\u202ed\u200be")
    'a [31mb c d e'
    """
    line = one_line(text)
    return line if line.isascii() else "".join(char if cell_len(char) else _narrow(char) for char in line)


def _narrow(char: str) -> str:
    """Return what stands for a character without a width: a combining mark stays, others become a space."""
    import unicodedata

    return char if unicodedata.combining(char) else " "


def width_of(line: Line) -> int:
    """Return how many cells a line takes."""
    return sum(cell_len(text) for text, _ in line)


def plain(line: Line) -> str:
    """Return a line without its styles."""
    return "".join(text for text, _ in line)


def fitted(text: str, width: int, *, right: bool = False) -> str:
    """Return a text in exactly so many cells: filled up with spaces, or cut with an ellipsis.

    Examples
    --------
    >>> fitted("planner", 9), fitted("planner", 5), fitted("7", 3, right=True)
    ('planner  ', 'plan…', '  7')
    """
    # a cell is at least one character, combining marks apart: enough of a long text to fill the cells
    line = clean(text[: 4 * width + 8])
    size = cell_len(line)
    if size > width or len(text) > 4 * width + 8:
        return set_cell_size(line, width - 1) + "…" if width > 1 else "…"[:width]
    return " " * (width - size) + line if right else line + " " * (width - size)


def cut(text: str, width: int) -> str:
    """Return a text in at most so many cells."""
    return fitted(text, width).rstrip() if width > 0 else ""


def wrapped(text: str, width: int, *, most: int = MAX_TEXT) -> list[str]:
    r"""Return a text as lines of at most so many cells, broken between words where there are some.

    Line breaks and the spaces before a line stay. What is beyond ``most`` characters is counted in a last line.

    Examples
    --------
    >>> wrapped("def f():\n    return one", 10)
    ['def f():', '    return', '    one']
    """
    width = max(width, 8)
    lines: list[str] = []
    for paragraph in text[:most].splitlines() or [""]:
        # expanded before it is cleaned, which makes one space of a tab
        lines += _paragraph(clean(paragraph.expandtabs(4)), width)
    if len(text) > most:
        lines.append(f"… {len(text) - most:,} more characters")
    return lines


def _paragraph(text: str, width: int) -> list[str]:
    indent = " " * min(len(text) - len(text.lstrip(" ")), width // 2)
    lines: list[str] = []
    current, size = "", 0
    for word in text.strip(" ").split(" "):
        start = current if current else indent if not lines or indent else ""
        gap = " " if current else ""
        length = cell_len(word)
        if not current:
            size = len(indent)
        if size + len(gap) + length <= width:
            current, size = f"{start}{gap}{word}", size + len(gap) + length
            continue
        if current:
            lines.append(current)
        pieces = _pieces(word, width - len(indent))
        lines += [indent + piece for piece in pieces[:-1]]
        current = indent + pieces[-1]
        size = len(indent) + cell_len(pieces[-1])
    return [*lines, current]


def _pieces(word: str, width: int) -> list[str]:
    """Cut a word that is longer than a line; at least one character a piece, however wide it is."""
    pieces, piece, size = [], "", 0
    for char in word:
        length = cell_len(char)
        if piece and size + length > width:
            pieces.append(piece)
            piece, size = "", 0
        piece, size = piece + char, size + length
    return [*pieces, piece]


def spread(left: Line, right: Line, width: int) -> Line:
    """Return a line with one part at each end; the left one is cut where both do not fit."""
    room = width - width_of(right) - 1
    found = cropped(left, max(room, 0))
    return (*found, (" " * max(width - width_of(found) - width_of(right), 0), ""), *right)


def cropped(line: Iterable[Part], width: int) -> Line:
    """Return the beginning of a line, in at most so many cells."""
    found: list[Part] = []
    left = width
    for text, style in line:
        size = cell_len(text)
        if size > left:
            return (*found, (cut(text, left), style)) if left > 0 else tuple(found)
        found.append((text, style))
        left -= size
    return tuple(found)
