"""Bands as pictures that need no style sheet, for notebooks: a badge, and a strip of cells, higher is better."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape
from itertools import pairwise

from coherence.core.readings import Band, Reading, excerpt
from coherence.core.signs import said

COLOURS = {
    Band.GREEN: "#2f9e5b",
    Band.YELLOW: "#d9b310",
    Band.ORANGE: "#e07b24",
    Band.RED: "#c73a3a",
    Band.UNKNOWN: "#9aa0a6",
}
INKS = {
    Band.GREEN: "#06210f",
    Band.YELLOW: "#2b2300",
    Band.ORANGE: "#2b1200",
    Band.RED: "#ffffff",
    Band.UNKNOWN: "#14171a",
}
"""Colour of words on a band's colour; each pair has a contrast of 4.5 or more."""
SIGNS = {Band.GREEN: "● G", Band.YELLOW: "▲ Y", Band.ORANGE: "◆ O", Band.RED: "■ R", Band.UNKNOWN: "○ ?"}
"""Shape and letter, so that bands differ by more than colour."""
HEIGHTS = {Band.GREEN: 24, Band.YELLOW: 18, Band.ORANGE: 12, Band.RED: 6, Band.UNKNOWN: 3}
"""Pixels of a cell, for the same reason."""

FROM_BEST = (Band.UNKNOWN, Band.GREEN, Band.YELLOW, Band.ORANGE, Band.RED)
"""Bands from the best to the worst; unknown is none of them, and stands first."""

MAX_CELLS = 60
CELL = 8
"""Pixels of a cell, the gap included."""
TITLE_LENGTH = 60


def badge_html(band: Band, text: str = "") -> str:
    """Return a band as HTML: shape, letter and word on its colour; ``text`` stands in place of all three.

    Examples
    --------
    >>> "■ R red" in badge_html(Band.RED)
    True
    """
    style = (
        f"background:{COLOURS[band]};color:{INKS[band]};padding:1px 7px;border-radius:4px;font-weight:600;"
        "white-space:nowrap"
    )
    return f'<span style="{style}">{escape(text) or f"{SIGNS[band]} {band.value}"}</span>'


def worst_of_parts(bands: Sequence[Band], width: int) -> list[int]:
    """Return the place of the worst band in each part of a strip, of equals the first; short strips have one a part.

    Examples
    --------
    >>> worst_of_parts([Band.GREEN, Band.RED, Band.UNKNOWN, Band.GREEN], 2)
    [1, 3]
    """
    count = min(len(bands), width)
    edges = [part * len(bands) // count for part in range(count + 1)] if count else []
    return [max(range(start, end), key=lambda at: FROM_BEST.index(bands[at])) for start, end in pairwise(edges)]


def strip_svg(bands: Sequence[Band], titles: Sequence[str] = (), *, cells: int = MAX_CELLS, fixed: bool = False) -> str:
    """Draw a strip; where there are more bands than cells, each cell shows the worst of its part.

    Parameters
    ----------
    bands : sequence of Band
        Oldest first; none: an empty text.
    titles : sequence of str
        Hover text of each; none: a strip a quarter as large.
    cells : int
        Cells at most.
    fixed : bool
        Make the strip as wide as if it had all its cells, so that strips below each other are comparable.

    Examples
    --------
    >>> strip_svg([Band.GREEN], ["<b>"]).count("&lt;b&gt;"), strip_svg([], [])
    (1, '')
    """
    if not bands:
        return ""
    shown = worst_of_parts(bands, cells)
    drawn = _titled(bands, titles, shown) if titles else _merged(bands, shown)
    width, height = len(shown) * CELL, HEIGHTS[Band.GREEN]
    size = f'width="{cells * CELL}" preserveAspectRatio="none"' if fixed else f'width="{width}"'
    counts = Counter(bands)
    told = ", ".join(f"{counts[band]} {band.value}" for band in reversed(FROM_BEST) if counts[band])
    return (
        f'<svg viewBox="0 0 {width} {height}" {size} height="{height}" role="img" '
        f'aria-label="bands, oldest first: {told}" style="display:block;max-width:100%">{"".join(drawn)}</svg>'
    )


def _titled(bands: Sequence[Band], titles: Sequence[str], shown: Sequence[int]) -> list[str]:
    """Return a cell with hover text for each place that is shown."""
    drawn = []
    for x, at in enumerate(shown):
        height = HEIGHTS[bands[at]]
        drawn.append(
            f'<rect x="{x * CELL}" y="{HEIGHTS[Band.GREEN] - height}" width="{CELL - 1}" height="{height}" '
            f'fill="{COLOURS[bands[at]]}"><title>{escape(excerpt(titles[at], TITLE_LENGTH))}</title></rect>'
        )
    return drawn


def _merged(bands: Sequence[Band], shown: Sequence[int]) -> list[str]:
    """Return one path for the cells of each band."""
    paths: dict[Band, str] = {}
    for x, at in enumerate(shown):
        height = HEIGHTS[bands[at]]
        cell = f"M{x * CELL} {HEIGHTS[Band.GREEN] - height}h{CELL - 1}v{height}h-{CELL - 1}z"
        paths[bands[at]] = paths.get(bands[at], "") + cell
    return [f'<path fill="{COLOURS[band]}" d="{path}"/>' for band, path in paths.items()]


def readings_svg(readings: Sequence[Reading]) -> str:
    """Draw readings as a strip, oldest first; each cell's hover text is its line and cause."""
    return strip_svg([reading.band for reading in readings], [_told(reading) for reading in readings])


def strip_html(title: str, readings: Sequence[Reading]) -> str:
    """Return a strip under a title, as HTML that needs no style sheet.

    Parameters
    ----------
    title : str
        Stands above it.
    readings : sequence of Reading
        Oldest first; each cell's hover text is its line and cause.

    Examples
    --------
    >>> strip_html("no reading <yet>", [])
    '<div><div>no reading &lt;yet&gt;</div></div>'
    """
    return f"<div><div>{escape(title)}</div>{readings_svg(readings)}</div>"


def _told(reading: Reading) -> str:
    return f"tick {reading.tick_seq}: {reading.short()}{f', {said(reading.cause)}' if reading.cause else ''}"
