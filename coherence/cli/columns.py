"""Tables and pairs of text, drawn by rich: no wider than a terminal, unfolded where the output goes elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from shutil import get_terminal_size

from rich.console import Console
from rich.table import Table
from rich.text import Text

from coherence.core.readings import excerpt, one_line

UNLIMITED = 10_000
"""Characters of a line that does not go to a terminal."""


def print_columns(table: Sequence[Sequence[str]], *, texts: int = 0) -> None:
    """Write the rows of :func:`aligned`."""
    sys.stdout.writelines(f"{line}\n" for line in aligned(table, texts=texts))


def aligned(table: Sequence[Sequence[str]], *, texts: int = 0) -> list[str]:
    """Return rows as lines with their columns below each other.

    Parameters
    ----------
    table : sequence of sequence of str
        Rows of one length, the first one being the heads.
    texts : int
        How many of the last columns are cut where the terminal ends; the others are always whole.

    Examples
    --------
    >>> aligned([("id", "tool"), ("1000", "Bash")])
    ['id    tool', '1000  Bash']
    """
    drawn = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for at in range(len(table[0])):
        drawn.add_column(no_wrap=at < len(table[0]) - texts)
    for row in table:
        drawn.add_row(*(Text(one_line(cell), no_wrap=True, overflow="ellipsis") for cell in row))
    return _lines(drawn, width() if texts else UNLIMITED)


def print_pairs(rows: Sequence[tuple[str, str]]) -> None:
    """Write names and their texts; what does not fit on a line of the terminal goes on below itself."""
    drawn = Table.grid(padding=(0, 2, 0, 0))
    drawn.add_column(no_wrap=True)
    drawn.add_column()
    for name, text in rows:
        drawn.add_row(Text(name), Text(one_line(text)))
    sys.stdout.writelines(f"{line}\n" for line in _lines(drawn, width()))


def _lines(drawn: Table, room: int) -> list[str]:
    console = Console(width=room, highlight=False, color_system=None)
    with console.capture() as captured:
        console.print(drawn)
    return [line.rstrip() for line in captured.get().splitlines()]


def width() -> int:
    """Return how many characters a line of the terminal has; what goes elsewhere may be of any length."""
    return max(get_terminal_size().columns, 20) if sys.stdout.isatty() else UNLIMITED


def cut(text: str, most: int) -> str:
    """Return the beginning of a text on one line of no more than so many characters."""
    found = excerpt(text, most)
    return found if len(found) <= most else f"{found[: most - 1]}…"
