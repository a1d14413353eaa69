"""A strip of bands in characters: the higher a cell the better, so that it reads without colour."""

from __future__ import annotations

from collections.abc import Sequence

from coherence.core.readings import Band
from coherence.report.score import FROM_BEST

CELLS = {Band.GREEN: "█", Band.YELLOW: "▆", Band.ORANGE: "▄", Band.RED: "▂", Band.UNKNOWN: "·"}
"""The cell of each band."""

WIDTH = 30
"""Most cells of a strip."""


def worst_of_parts(bands: Sequence[Band], width: int = WIDTH) -> list[Band]:
    """Return the band of each cell; with more steps than cells, a cell shows the worst of its steps."""
    count = min(len(bands), width)
    return [
        max(bands[cell * len(bands) // count : (cell + 1) * len(bands) // count], key=FROM_BEST.index)
        for cell in range(count)
    ]


def strip_text(bands: Sequence[Band], width: int = WIDTH) -> str:
    """Draw the bands step by step.

    Examples
    --------
    >>> strip_text([Band.UNKNOWN, Band.GREEN, Band.ORANGE, Band.RED]), strip_text([Band.GREEN, Band.RED], 1)
    ('·█▄▂', '▂')
    """
    return "".join(CELLS[band] for band in worst_of_parts(bands, width))
