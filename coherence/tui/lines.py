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


def first_lines(text: str, width: int, most: int) -> list[str]:
    """Return the first lines of a text; of a longer one the last of them ends with an ellipsis.

    Examples
    --------
    >>> first_lines("one two three four five", 10, 2), first_lines("one two", 10, 2)
    (['one two', 'three fou…'], ['one two'])
    """
    lines = wrapped(text, width, most=(most + 1) * max(width, 8))
    return lines if len(lines) <= most else [*lines[: most - 1], cut(f"{lines[most - 1]} {lines[most]}…", width)]


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
    """Return a line in at most so many cells; one that was longer ends with an ellipsis."""
    parts = tuple(line)
    while parts and width_of(parts) > width and parts[-1][0][-1:] in (" ", ""):
        said, style = parts[-1]
        parts = (*parts[:-1], (said.rstrip(" "), style)) if said.strip() else parts[:-1]
    if width_of(parts) <= width:
        return parts
    found: list[Part] = []
    left = width
    for text, style in parts:
        size = cell_len(text)
        if size >= left:  # as much as there is room for, and there is more of this part or another one
            end = cut(f"{text}…" if size == left else text, left)
            return (*found, (end, style)) if left > 0 else tuple(found)
        found.append((text, style))
        left -= size
    return tuple(found)


def named(agent: str, session: str, width: int) -> tuple[str, str]:
    """Return the names of an agent and of its session, together in at most so many cells.

    Where there is no room for both, the agent's is cut in its middle, and the session's is never left out.

    Examples
    --------
    >>> named("planner", "s1", 20), named("scout-in-production", "run-2026-11-28", 20)
    (('planner', ' · s1'), ('scou…ion', ' · run-2026…'))
    """
    agent, session = clean(agent), clean(session)
    room = width - 3
    if cell_len(agent) + cell_len(session) > room:
        least = min(cell_len(session), max(room - room // 2, 1))
        agent = middle_cut(agent, max(room - least, 1))
        session = cut(session, max(room - cell_len(agent), 1))
    return agent, f" · {session}"


def middle_cut(text: str, width: int) -> str:
    """Return a text in at most so many cells, without its middle where it is longer.

    Examples
    --------
    >>> middle_cut("production-eu-west-1", 9), middle_cut("planner", 9)
    ('prod…st-1', 'planner')
    """
    text = clean(text)
    if cell_len(text) <= width or width < 5:
        return cut(text, width)
    end = len(text)
    for start in reversed(range(len(text))):
        if cell_len(text[start:]) > (width - 1) // 2:
            break
        end = start
    return cut(text, width - cell_len(text[end:])).rstrip("…") + "…" + text[end:]
