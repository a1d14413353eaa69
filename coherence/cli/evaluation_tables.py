"""Tables of an evaluation, for a terminal of 80 columns."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from coherence.cli.table import fold
from coherence.core.readings import one_line
from coherence.evaluation.comparison import Evaluation, Row, Section
from coherence.evaluation.words import QUESTION, asked, counted, in_sample_note, notes, spread, valued

NAME = 20
"""Columns of a system's name, which goes on in the next line."""

SOURCE, HEAD = 18, 15
"""Columns of a source's name, and of a system's name above figures."""

LINES = 3
"""Lines that a name takes at most."""

VERDICTS = {"better": "green", "worse": "red", "inside the noise": "dim"}

SHOWN = 3
"""Systems whose figures are shown source by source; the others' are in the page and in the JSON."""


def print_evaluation(found: Evaluation) -> None:
    """Print two tables a question: the figures, and where they hold."""
    console = Console()
    console.print(Text(counted(found)))
    for section in found.sections:
        console.print()
        console.print(Text(section.title, style="bold"))
        console.print(Text(asked(section), style="dim"))
        if section.note:
            console.print(Text(section.note, style="yellow"))
        for table in (_figures(section), _where(section), _parts(section)):
            if table.row_count:
                console.print()
                console.print(table)
    console.print()
    for line in (*notes(found), *in_sample_note(found)):
        console.print(Text(line, style="dim"))


def _table() -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("system", width=NAME)
    return table


def _figures(section: Section) -> Table:
    table = _table()
    for measure in QUESTION[section.question].measures:
        table.add_column(measure.title, justify="right", max_width=9)
    for row in section.rows:
        cells = []
        for measure in QUESTION[section.question].measures:
            figure = row.figures[measure.key]
            cell, ends = Text(valued(figure.value, measure)), spread(figure, measure)
            if ends:
                cell.append(f"\n{ends}", style="dim")
            cells.append(cell)
        table.add_row(_name(row), *cells)
    return table


def _where(section: Section) -> Table:
    """Show for the headline measure how much it differs between tasks, sources and systems."""
    measure = QUESTION[section.question].first()
    table = _table()
    table.add_column(f"{measure.title}: 5 folds", max_width=12)
    table.add_column("worst source", max_width=SOURCE)
    table.add_column(Text(f"{_broken(section.compared, HEAD)}\nminus it"), max_width=HEAD)
    table.add_column("verdict", max_width=9)
    for row in section.rows:
        folds = f"{row.folds[0]:.2f}-{row.folds[1]:.2f}" if row.folds is not None else "n/a"
        worst = f"{valued(row.worst.figure.value, measure)}\n{_broken(row.worst.name, SOURCE)}" if row.worst else "n/a"
        cells = ["", ""]
        if measure.key in row.differences:
            difference = row.differences[measure.key]
            value, ends = (
                valued(difference.figure.value, measure, signed=True),
                spread(difference.figure, measure, signed=True),
            )
            cells = [f"{value}\n{ends}".rstrip(), difference.verdict]
        table.add_row(_name(row), *(Text(cell, style=VERDICTS.get(cell, "")) for cell in (folds, worst, *cells)))
    return table


def _parts(section: Section) -> Table:
    """Show the headline measure of the first systems that are no references, source by source."""
    measure = QUESTION[section.question].first()
    rows = [row for row in section.rows if not row.reference][:SHOWN]
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("source", width=NAME)
    for row in rows:
        table.add_column(Text(f"{measure.title} of\n{_broken(row.system, 17)}"), justify="right", max_width=17)
    for at, part in enumerate(section.rows[0].parts):
        figures = (row.parts[at].figure for row in rows)
        cells = (f"{valued(figure.value, measure)}  {spread(figure, measure)}".rstrip() for figure in figures)
        table.add_row(Text(_broken(part.name, NAME)), *map(Text, cells))
    return table


def _name(row: Row) -> Text:
    star = "*" if row.in_sample else ""
    return Text(_broken(row.system + star, NAME), style="dim" if row.reference else "")


def _broken(name: str, width: int) -> str:
    r"""Return a name in lines of at most ``width`` characters, broken where its parts end; a very long one is cut.

    Examples
    --------
    >>> _broken("unsupported_assumption", 20).split("\n"), _broken("x" * 11, 4).split("\n")
    (['unsupported_', 'assumption'], ['xxxx', 'xxxx', 'xxx'])
    """
    lines = fold(one_line(name[: 10 * width]), width)
    if len(lines) > LINES or len(name) > 10 * width:
        lines = [*lines[: LINES - 1], lines[min(LINES, len(lines)) - 1][: width - 1] + "…"]
    return "\n".join(lines)
