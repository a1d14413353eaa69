"""Drawings: band strips, line charts, their axis, and bars.

Every drawing stretches to the width it is given. Shapes live in a ``viewBox`` that is stretched unevenly, so points are
lines of no length with round caps, which stay round; text stands outside it and is placed in percent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby

from markupsafe import escape

from coherence.core.readings import Band, Reading, excerpt
from coherence.report.text import clean, number, undirected

MAX_CELLS = 240
"""Cells of a strip; a longer run shows the lowest of several steps in each."""
CAUSE_LENGTH = 60
MAX_POINTS = 150
"""Steps up to which a chart marks every value with a point."""
MIN_LETTER = 0.03
"""Share of a chart's width that a stretch needs to carry its band's letter."""
TICK_STEPS = (1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500)
MAX_TICKS = 8

WIDTH, HEIGHT = 1000, 100

LEVELS = {Band.GREEN: 4, Band.YELLOW: 3, Band.ORANGE: 2, Band.RED: 1}
"""Height of a band's bar, so that bands differ by more than colour."""


def band_class(band: Band | None) -> str:
    """Return the CSS class of a band, ``u`` where nothing was known."""
    return band.value[0] if band is not None else "u"


def strip(
    readings: Sequence[Reading],
    *,
    run: str = "",
    causes: Sequence[str] = (),
    names: Sequence[int] = (),
    refused: Collection[int] = (),
) -> str:
    """Draw one small cell a step, coloured and as high as its band.

    Parameters
    ----------
    readings : sequence of Reading
        One a step; empty: a dash.
    run : str
        The id of the part of the page whose steps the cells show when they are chosen.
    causes : sequence of str
        Why, in words, one a reading; stands in the hover text of a band worse than green.
    names : sequence of int
        Numbers by which people know the steps. Default: they count from 0.
    refused : collection of int
        Places of the steps at which a call was refused; their cells carry a mark.
    """
    if not readings:
        return number(None)
    size = -(-len(readings) // MAX_CELLS)
    cells = [readings[at : at + size] for at in range(0, len(readings), size)]
    names = names or range(len(readings))
    shapes = []
    bars: dict[str, list[str]] = {}
    marks = ""
    for x, cell in enumerate(cells):
        lowest = min(
            (reading for reading in cell if reading.coherence_index is not None),
            key=lambda it: it.coherence_index or 0.0,
            default=None,
        )
        band = lowest.band if lowest is not None else None
        said = f"{lowest.coherence_index:.2f} {lowest.band}" if lowest is not None else "nothing known"
        if causes and lowest is not None and band is not Band.GREEN:
            said += escape(undirected(clean(f", {excerpt(causes[lowest.tick_seq], CAUSE_LENGTH)}")))
        start = x * size
        where = f"step {names[start]}"
        if len(cell) > 1:
            where = f"steps {names[start]} to {names[start + len(cell) - 1]}, lowest"
        kind = band_class(band)
        step = lowest.tick_seq if lowest is not None else start
        stopped = next((at for at in range(start, start + len(cell)) if at in refused), None)
        if stopped is not None:
            marks += f"M{x}.3 0h.4v4h-.4z"
            said += f", a call was refused at step {names[stopped]}"
            step = step if band is Band.RED else stopped
        shapes.append(
            f'<rect class="t {kind}" data-from="{start}" data-step="{step}" x="{x}" width="1" height="4">'
            f"<title>{where}: {said}</title></rect>"
        )
        if band is not None:
            level = LEVELS[band]
            bars.setdefault(kind, []).append(f"M{x}.1 {4 - level}h.8v{level}h-.8z")
    shapes += [f'<path class="b {kind}" d="{"".join(parts)}"/>' for kind, parts in bars.items()]
    if marks:
        shapes.append(f'<path class="b stop" d="{marks}"/>')
    return (
        f'<svg class="strip" data-run="{run}" data-size="{size}" viewBox="0 0 {len(cells)} 4"'
        f' width="{min(len(cells) * 8, MAX_CELLS)}" height="22"'
        f' preserveAspectRatio="none" role="img" aria-label="band after each step">{"".join(shapes)}</svg>'
    )


def chart(
    values: Sequence[float | None],
    *,
    bands: Sequence[Band | None] = (),
    rings: Collection[int] = (),
    lines: Sequence[float] = (0.5,),
    refused: Sequence[int] = (),
) -> str:
    """Draw values from 0 to 1 over the steps, with a gap where a value is ``None``.

    Parameters
    ----------
    values : sequence of float or None
        One a step.
    bands : sequence of Band or None
        One a step: colours the background and the points.
    rings : collection of int
        Steps to mark.
    lines : sequence of float
        Values of the grid lines between 0 and 1.
    refused : sequence of int
        Steps at which a call was refused; each is a line from top to bottom.
    """
    count = len(values)
    tints, letters = [], []
    for band, at, length in _stretches(bands):
        kind = band_class(band)
        left, wide = at / count, length / count
        tints.append(
            f'<rect class="t {kind}" x="{_short(left * WIDTH)}" width="{_short(wide * WIDTH)}" height="{HEIGHT}"/>'
        )
        if band is not None and wide >= MIN_LETTER:
            x = _short((left + wide / 2) * 100)
            letters.append(f'<text class="letter" x="{x}%" y="100%" dy="-5">{kind.upper()}</text>')
    stops = "".join(f"M{_short((step + 0.5) / count * WIDTH)} 0v{HEIGHT}" for step in refused)
    grid = "".join(f"M0 {_short((1 - line) * HEIGHT)}h{WIDTH}" for line in lines)
    drawing = [
        *tints,
        f'<path class="grid" d="{grid}"/><path class="frame" d="M0 0h{WIDTH}M0 {HEIGHT}h{WIDTH}"/>',
        *([f'<path class="stop" d="{stops}"/>'] if stops else []),
        f'<path class="line" d="{_line(values)}"/>',
        *_points(values, bands),
        *(f'<path class="ring" d="{_point(step, values)}"/>' for step in sorted(rings)),
        '<path class="cross"/><path class="dot"/>',
    ]
    return (
        f'<svg aria-hidden="true"><svg viewBox="0 0 {WIDTH} {HEIGHT}" width="100%" height="100%"'
        f' preserveAspectRatio="none">{"".join(drawing)}</svg>{"".join(letters)}'
        '<text class="y" x="-7" y="0" dy="4">1</text><text class="y" x="-7" y="100%" dy="4">0</text></svg>'
    )


def axis(names: Sequence[int]) -> str:
    """Draw the step numbers that belong under the charts of a run.

    Parameters
    ----------
    names : sequence of int
        Number of each step, ascending; at least one.
    """
    count, span = len(names), names[-1] - names[0] + 1
    every = next((step for step in TICK_STEPS if span <= step * MAX_TICKS), -(-span // MAX_TICKS))
    first = {name: at for at, name in reversed([*enumerate(names)])}
    texts = "".join(
        f'<text x="{_short((at + 0.5) / count * 100)}%" y="13">{name}</text>'
        for name, at in reversed(first.items())
        if name % every == 0
    )
    return f'<svg class="axis" aria-hidden="true">{texts}</svg>'


def bar(share: float) -> str:
    """Draw a bar that fills a share of its track."""
    return (
        '<svg class="bar" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="track" width="100" height="1"/><rect width="{_short(share * 100)}" height="1"/></svg>'
    )


def _stretches(bands: Sequence[Band | None]) -> Iterator[tuple[Band | None, int, int]]:
    at = 0
    for band, group in groupby(bands):
        length = len(list(group))
        yield band, at, length
        at += length


def _line(values: Sequence[float | None]) -> str:
    parts = []
    for known, group in groupby(range(len(values)), key=lambda step: values[step] is not None):
        if known:
            places = [_place(step, values) for step in group]
            # A value between two gaps has no line to be on; a stroke of no length shows it as a point.
            parts.append(f"M{'L'.join(places)}" if len(places) > 1 else f"M{places[0]}h0")
    return "".join(parts)


def _points(values: Sequence[float | None], bands: Sequence[Band | None]) -> list[str]:
    if len(values) > MAX_POINTS:
        return []
    kinds: dict[str, list[str]] = {}
    for step, value in enumerate(values):
        if value is not None:
            kinds.setdefault(band_class(bands[step]) if bands else "n", []).append(_point(step, values))
    return [f'<path class="p {kind}" d="{"".join(parts)}"/>' for kind, parts in kinds.items()]


def _point(step: int, values: Sequence[float | None]) -> str:
    return f"M{_place(step, values)}h0"


def _place(step: int, values: Sequence[float | None]) -> str:
    value = values[step] or 0.0
    return f"{_short((step + 0.5) / len(values) * WIDTH)} {_short((1 - value) * HEIGHT)}"


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
