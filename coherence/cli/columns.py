"""Plain tables: columns as wide as their widest cell, one line a row."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from coherence.records import one_line


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
