"""Plain tables: columns as wide as their widest cell, one line a row."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from shutil import get_terminal_size

from coherence.core.readings import excerpt, one_line

UNLIMITED = 10_000
"""Characters of a line that does not go to a terminal."""


def print_columns(table: Sequence[Sequence[str]]) -> None:
    """Write the rows, the first one being the heads; what a cell holds stays on its line."""
    for line in aligned(table):
        sys.stdout.write(line + "\n")


def aligned(table: Sequence[Sequence[str]]) -> list[str]:
    """Return the rows as lines with their columns below each other.

    Examples
    --------
    >>> aligned([("id", "tool"), ("1000", "Bash")])
    ['id    tool', '1000  Bash']
    """
    widths = [max(len(one_line(row[column])) for row in table) for column in range(len(table[0]))]
    return [
        "  ".join(one_line(cell).ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]


def width() -> int:
    """Return how many characters a line of the terminal has; what goes elsewhere may be of any length."""
    return max(get_terminal_size().columns, 20) if sys.stdout.isatty() else UNLIMITED


def cut(text: str, most: int) -> str:
    """Return the beginning of a text on one line of no more than so many characters."""
    found = excerpt(text, most)
    return found if len(found) <= most else f"{found[: most - 1]}…"
