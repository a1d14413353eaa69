"""First picture: the agents, drawn by hand while the program that draws all others is still being loaded."""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from pathlib import Path
from typing import NamedTuple, TextIO

from rich.color import ColorSystem

from coherence.core.errors import CoherenceError
from coherence.tui.agent_rows import Columns, heading, rows_of
from coherence.tui.agent_tree import tree_of
from coherence.tui.filters import Filter
from coherence.tui.lines import Line, clean, cropped, spread
from coherence.tui.palette import STYLES, ascii_text
from coherence.tui.reader import is_store
from coherence.views.shapes import Overview
from coherence.views.views import Views

ENTER, LEAVE, HOME, RESET = "\x1b[?1049h\x1b[?25l", "\x1b[?1049l\x1b[?25h", "\x1b[H", "\x1b[0m"
"""Go to the terminal's other screen without a cursor, and back; its corner; no style."""


class Opened(NamedTuple):
    """A store that was opened for the first picture, and what it showed."""

    views: Views
    overview: Overview


def draw_first(path: Path, out: TextIO, *, ascii: bool = False) -> Opened | None:
    """Draw the agents of a store on a terminal; return what was read, ``None`` if there was nothing to draw.

    Parameters
    ----------
    path : Path
        The store.
    out : TextIO
        The terminal.
    ascii : bool
        Draw with ASCII only.
    """
    if not is_store(path):
        return None
    try:
        views = Views(path)
    except (CoherenceError, sqlite3.Error, OSError):
        return None  # the program tells of it
    try:
        overview = Filter().ask(views)
        size = os.get_terminal_size(out.fileno())
        out.write(ENTER + HOME + picture(path.name, overview, size.columns, size.lines, time.time(), ascii=ascii))
        out.flush()
    except (CoherenceError, sqlite3.Error, OSError, ValueError):
        views.close()
        return None
    return Opened(views, overview)


def picture(name: str, overview: Overview, width: int, height: int, now: float, *, ascii: bool) -> str:
    """Return the text that draws agents on a terminal of so many columns and lines."""
    left, right = heading(name, overview, (), (), width)
    lines: list[Line] = [spread(((" ", ""), *left), (*right, (" ", "")), width)]
    width -= 1  # for the bar, as in the program's own picture
    if overview.lines:
        lines.append(Columns(width).head()[:1])
        for _, row in rows_of(tree_of(overview.lines), width, now, ()):
            lines += row
    plain = bool(os.environ.get("NO_COLOR"))
    if ascii:  # before they are cropped: a sign may take more cells
        lines = [tuple((ascii_text(text), style) for text, style in line) for line in lines]
    return "\r\n".join(_ansi(cropped(line, width), plain=plain, ascii=ascii) for line in lines[: height - 1])


def _ansi(line: Line, *, plain: bool, ascii: bool) -> str:
    parts = []
    for text, name in line:
        said = clean(ascii_text(text) if ascii else text)  # again: what was cropped ends in an ellipsis
        colours = None if plain else ColorSystem.TRUECOLOR
        parts.append(STYLES[name].render(said, color_system=colours))
    return "".join(parts) + RESET


def leave(out: TextIO = sys.stdout) -> None:
    """Go back from the terminal's other screen, where the program that would do so never came."""
    out.write(LEAVE)
    out.flush()
