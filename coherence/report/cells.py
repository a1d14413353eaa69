"""A strip of bands in characters: the higher a cell the better, so that it reads without colour."""

from __future__ import annotations

from collections.abc import Sequence

from coherence.core.readings import Band
from coherence.core.strip import worst_of_parts

CELLS = {Band.GREEN: "█", Band.YELLOW: "▆", Band.ORANGE: "▄", Band.RED: "▂", Band.UNKNOWN: "·"}
"""The cell of each band."""

WIDTH = 30
"""Most cells of a strip."""


def strip_text(bands: Sequence[Band], width: int = WIDTH) -> str:
    """Draw the bands step by step.

    Examples
    --------
    >>> strip_text([Band.UNKNOWN, Band.GREEN, Band.ORANGE, Band.RED]), strip_text([Band.GREEN, Band.RED], 1)
    ('·█▄▂', '▂')
    """
    return "".join(CELLS[bands[at]] for at in worst_of_parts(bands, width))
