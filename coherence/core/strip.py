"""A strip of bands for notebooks: one cell a reading, coloured by its band, higher is better."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from coherence.core.readings import Band, Reading
from coherence.core.signs import said

COLOURS = {
    Band.GREEN: "#2f9e5b",
    Band.YELLOW: "#d9b310",
    Band.ORANGE: "#e07b24",
    Band.RED: "#c73a3a",
    Band.UNKNOWN: "#9aa0a6",
}
HEIGHTS = {Band.GREEN: 24, Band.YELLOW: 18, Band.ORANGE: 12, Band.RED: 6, Band.UNKNOWN: 3}
"""Pixels, so that bands differ by more than colour."""


def strip_html(title: str, readings: Sequence[Reading]) -> str:
    """Return a strip as HTML that needs no style sheet.

    Parameters
    ----------
    title : str
        Stands above it.
    readings : sequence of Reading
        Oldest first; each cell's tooltip is its line and cause.

    Examples
    --------
    >>> strip_html("no reading <yet>", [])
    '<div><div>no reading &lt;yet&gt;</div></div>'
    """
    cells = "".join(
        f'<span title="{escape(_told(reading))}" style="display:inline-block;width:8px;margin-right:1px;'
        f'height:{HEIGHTS[reading.band]}px;background:{COLOURS[reading.band]}"></span>'
        for reading in readings
    )
    drawn = f'<div style="line-height:24px;vertical-align:bottom">{cells}</div>' if cells else ""
    return f"<div><div>{escape(title)}</div>{drawn}</div>"


def _told(reading: Reading) -> str:
    return f"tick {reading.tick_seq}: {reading.short()}{f', {said(reading.cause)}' if reading.cause else ''}"
