"""The self-contained HTML page about an evaluation."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup

from coherence.evaluation.comparison import Evaluation, Section
from coherence.evaluation.judge import Measure
from coherence.evaluation.words import QUESTION, asked, counted, in_sample_note, notes, spread, valued
from coherence.report.files import write_atomically
from coherence.report.template import breakable, environment, render_page


def write_page(path: str | Path, found: Evaluation, *, title: str = "coherence eval") -> None:
    """Write :func:`render_evaluation` to a file; the file is the old one or the whole new one, never a part.

    Parameters
    ----------
    path : str or Path
        The file.
    found : Evaluation
        What is shown.
    title : str
        The page's title.
    """
    write_atomically(path, render_evaluation(found, title=title))


def render_evaluation(found: Evaluation, *, title: str = "coherence eval") -> str:
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
    pages = environment(__package__)
    pages.filters["head"] = _head
    pages.globals |= {
        "asked": asked,
        "counted": counted,
        "known": _known,
        "questions": QUESTION,
        "spread": spread,
        "valued": valued,
    }
    explained = [*in_sample_note(found), *notes(found)]
    styles = ["coherence.report", "coherence.evaluation"]
    return render_page(pages, "evaluation.html", styles=styles, title=title, found=found, explained=explained)


def _known(section: Section) -> list[Measure]:
    """Return the measures that any system has a figure of."""
    measures = QUESTION[section.question].measures
    return [one for one in measures if any(row.figures[one.key].value is not None for row in section.rows)]


def _head(measure: Measure, before: str) -> Markup:
    return breakable(before) + f"{measure.title}{' (lower is better)' if measure.better == 'lower' else ''}"
