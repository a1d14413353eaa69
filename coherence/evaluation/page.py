"""The self-contained HTML page about an evaluation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from coherence.evaluation.bootstrap import Figure
from coherence.evaluation.comparison import Evaluation, Row, Section
from coherence.evaluation.judge import Measure
from coherence.evaluation.words import QUESTION, asked, counted, in_sample_note, notes, spread, valued
from coherence.report.document import asset, begin_page
from coherence.report.files import write_atomically
from coherence.report.text import escape, isolated

_PART_ENDS = re.compile(r"(?<=[_/.-])(?=[^_/.-])")


def write_page(path: str | Path, found: Evaluation, *, title: str = "coherence eval") -> None:
    """Write :func:`render_page` to a file; the file is the old one or the whole new one, never a part.

    Parameters
    ----------
    path : str or Path
        The file.
    found : Evaluation
        What is shown.
    title : str
        The page's title.
    """
    write_atomically(path, render_page(found, title=title))


def render_page(found: Evaluation, *, title: str = "coherence eval") -> str:
    """Return one HTML page about an evaluation, which needs no other file and no network.

    Parameters
    ----------
    found : Evaluation
        What is shown.
    title : str
        The page's title.

    Returns
    -------
    str
        The page; the same for the same evaluation.
    """
    style = "".join(asset(package, "page.css") for package in ("coherence.report", "coherence.evaluation"))
    return "\n".join(
        (
            begin_page(title, style),
            f'<header><h1>{isolated(title)}</h1>\n<p class="count">{escape(counted(found))}</p></header>',
            *(_section(section) for section in found.sections),
            '<section><h2>How to read this</h2><p></p><ul class="notes">',
            *(f"<li>{escape(line)}</li>" for line in (*in_sample_note(found), *notes(found))),
            "</ul></section>\n</main>\n</body>\n</html>\n",
        )
    )


def _section(section: Section) -> str:
    note = f"; <strong>{escape(section.note)}</strong>" if section.note else ""
    return "\n".join(
        (
            f"<section><h2>{escape(section.title)}</h2><p>{escape(asked(section))}{note}</p>",
            _figures(section),
            _where(section),
            _differences(section),
            "</section>",
        )
    )


def _figures(section: Section) -> str:
    measures = _known(section)
    first = QUESTION[section.question].first()
    heads = [*(_head(measure) for measure in measures), f"{escape(first.title)}, from 0 to 1"]
    rows = (
        (row, [*(_cell(row.figures[m.key], m) for m in measures), _plot(row.figures[first.key], first)])
        for row in section.rows
    )
    unknown = [measure.title for measure in QUESTION[section.question].measures if measure not in measures]
    note = f"<p>The labels or scores tell of no system: {escape(', '.join(unknown))}.</p>" if unknown else ""
    return _table(heads, rows, plotted=True) + note


def _known(section: Section) -> list[Measure]:
    """Return the measures that any system has a figure of."""
    measures = QUESTION[section.question].measures
    return [one for one in measures if any(row.figures[one.key].value is not None for row in section.rows)]


def _where(section: Section) -> str:
    """Show the headline measure by folds and sources, every system."""
    measure = QUESTION[section.question].first()
    names = [part.name for part in section.rows[0].parts]
    title = escape(measure.title)
    heads = [f"{title}, five folds", *(f"{title}, {_named(name)}" for name in names)]
    heads += ["worst source"] if names else []
    rows = []
    for row in section.rows:
        folds = f"{row.folds[0]:.2f}-{row.folds[1]:.2f}" if row.folds is not None else "n/a"
        cells = [folds, *(_cell(part.figure, measure) for part in row.parts)]
        if names:
            cells.append(isolated(row.worst.name) if row.worst is not None else "n/a")
        rows.append((row, cells))
    return _table(heads, iter(rows))


def _differences(section: Section) -> str:
    """Show the compared system minus each other, measure by measure."""
    measures = _known(section)
    rows = []
    for row in section.rows:
        if row.system == section.compared:
            continue
        cells = []
        for measure in measures:
            found = row.differences.get(measure.key)
            if found is None:
                cells.append("n/a")
                continue
            kind = found.verdict if found.verdict in ("better", "worse") else "noise"
            value, ends = (
                valued(found.figure.value, measure, signed=True),
                spread(found.figure, measure, signed=True),
            )
            cells.append(f'{value} <span class="{kind}">{found.verdict}</span><small>{ends}</small>')
        rows.append((row, cells))
    if not rows:
        return ""
    heads = [f"{_named(section.compared)} minus it: {_head(measure)}" for measure in measures]
    return _table(heads, iter(rows))


def _table(heads: list[str], rows: Iterator[tuple[Row, list[str]]], *, plotted: bool = False) -> str:
    head = "".join(f'<th scope="col">{name}</th>' for name in ("system", *heads))
    lines = []
    for row, cells in rows:
        star = "*" if row.in_sample else ""
        filled = "".join(
            f'<td class="plot">{cell}</td>' if plotted and at == len(cells) - 1 else f"<td>{cell}</td>"
            for at, cell in enumerate(cells)
        )
        kind = ' class="reference"' if row.reference else ""
        lines.append(f'<tr{kind}><th scope="row">{_named(row.system)}{star}</th>{filled}</tr>')
    body = "\n".join(lines)
    return (
        f'<div class="wide"><table class="figures"><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>'
    )


def _named(name: str) -> str:
    """Return a name that a narrow column breaks where its parts end."""
    return f"<bdi>{'<wbr>'.join(map(escape, _PART_ENDS.split(name)))}</bdi>"


def _head(measure: Measure) -> str:
    return f"{escape(measure.title)}{' (lower is better)' if measure.better == 'lower' else ''}"


def _cell(figure: Figure, measure: Measure) -> str:
    ends = spread(figure, measure)
    return f"{valued(figure.value, measure)}{f'<small>{ends}</small>' if ends else ''}"


def _plot(figure: Figure, measure: Measure) -> str:
    """Draw a figure in [0, 1] and its interval; the dashed line of an AUROC is chance."""
    if figure.value is None:
        return "n/a"
    low, high = (figure.value if end is None else end for end in (figure.low, figure.high))
    chance = '<path class="chance" d="M500 0V24"/>' if measure.key in ("auroc", "equal_length") else ""
    return (
        '<svg viewBox="0 0 1000 24" preserveAspectRatio="none" aria-hidden="true">'
        f'<path class="whole" d="M0 12H1000"/>{chance}'
        f'<path class="range" d="M{1000 * low:.0f} 12H{1000 * high:.0f}"/>'
        f'<rect class="value" x="{min(max(1000 * figure.value - 3, 0), 994):.0f}" y="3" width="6" height="18"/></svg>'
    )
