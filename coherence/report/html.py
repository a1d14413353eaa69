"""The self-contained HTML page about scored runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from coherence.core.decisions import KINDS
from coherence.core.readings import Band, number_of
from coherence.report.document import asset, begin_page
from coherence.report.files import write_atomically
from coherence.report.parts import anchor, badge, breakable, decided, step_anchor, why
from coherence.report.score import FROM_BEST, ScoredRun, count_verdicts
from coherence.report.sections import section
from coherence.report.svg import strip
from coherence.report.text import isolated, number

MEANING = """\
<p>The <b>index</b> is the calibrated chance that the run is on its course: 1 = certainly, 0 = certainly not. Its band
is the light, and the <b>decision</b> follows from it: green and yellow continue, yellow may guide, orange warns, red
blocks. <b>Coverage</b> tells how much of what the index looks at was known; <b>pressure</b> how unusual a step is for
this run itself, 0 = calm.</p>
<p>The metrics compare texts; they do not check facts. A green band is not a proof that the agent is right, and a red
one is not a proof that it is wrong: it is a place to look. Compare an agent with itself over time, or with other runs
of the same task; between different tasks, most of the difference is the topic.</p>
"""


def render_html(runs: Sequence[ScoredRun], *, title: str = "coherence report") -> str:
    """Return one HTML page about scored runs, which needs no other file and no network.

    Parameters
    ----------
    runs : sequence of ScoredRun
        The runs, in the order in which they are shown.
    title : str
        The page's title.

    Returns
    -------
    str
        The page; the same for the same runs.
    """
    script = asset(__package__, "page.js")
    steps = sum(len(run.readings) for run in runs)
    legend = " ".join(f"{badge(band)}" for band in Band)
    return "\n".join(
        (
            begin_page(title, asset(__package__, "page.css"), script),
            f"<header><h1>{isolated(title)}</h1>",
            f'<p class="count">{number_of(len(runs), "run")}, {number_of(steps, "step")}</p>',
            f'<details class="meaning"><summary>How to read this page</summary>{MEANING}</details></header>',
            _overview(runs),
            f'<p class="legend">Bands, best to worst: {legend} Steps are counted from 0.'
            " Choose a step in a strip, a chart or a table to see what was said and done.</p>",
            *(section(position, run) for position, run in enumerate(runs, 1)),
            f'</main>\n{STEP_VIEW}\n<div id="tip" hidden></div>\n<script>{script}</script>\n</body>\n</html>\n',
        )
    )


def write_html(path: str | Path, runs: Sequence[ScoredRun], *, title: str = "coherence report") -> None:
    """Write :func:`render_html` to a file; the file is the old one or the whole new one, never a part.

    Parameters
    ----------
    path : str or Path
        The file.
    runs : sequence of ScoredRun
        The runs, in the order in which they are shown.
    title : str
        The page's title.
    """
    write_atomically(path, render_html(runs, title=title))


def _overview(runs: Sequence[ScoredRun]) -> str:
    if not runs:
        return '<p id="overview">There is no run to show.</p>'
    names = (
        "run",
        "known outcome",
        "worst decision",
        "band after each step",
        "worst step and why",
        "index now",
        "lowest",
        "pressure",
        "steps",
    )
    # The roles keep it a table where the narrow layout takes the table's display away.
    heads = "".join(f'<th scope="col" role="columnheader">{name}</th>' for name in names)
    rows = []
    for position, run in enumerate(runs, 1):
        last, lowest = run.last, run.lowest
        cells = (
            f'<a href="#{anchor(position)}">{breakable(run.transcript.id or "(no id)")}</a>',
            _outcome(run),
            _decision(run),
            strip(run.readings, run=anchor(position), causes=[run.why(reading) for reading in run.readings]),
            f'<a href="#{step_anchor(position, lowest.tick_seq)}">step {lowest.tick_seq}</a>: {why(run, lowest)}'
            if lowest is not None
            else "nothing was known after any step",
            f"{number(last.coherence_index)} {badge(last.band)}" if last is not None else number(None),
            f"{number(lowest.coherence_index)} {badge(lowest.band)}" if lowest is not None else number(None),
            number(run.highest_pressure),
            str(len(run.readings)),
        )
        filled = "".join(
            f'<td role="cell" data-name="{name}"{_rank(name, run)}>{cell}</td>'
            for name, cell in zip(names, cells, strict=True)
        )
        kinds = "".join(f' data-{name}="{value}"' for name, value in _kinds(run).items())
        rows.append(f'<tr role="row" data-run="{anchor(position)}"{kinds}>{filled}</tr>')
    counted = count_verdicts(runs)
    return (
        (f'<p class="verdicts">{isolated(counted)}.</p>' if counted else "")
        + _finder(runs)
        + '<table class="overview" id="overview" role="table"><thead role="rowgroup">'
        f'<tr role="row">{heads}</tr></thead>\n<tbody role="rowgroup">{chr(10).join(rows)}</tbody></table>'
    )


def _rank(column: str, run: ScoredRun) -> str:
    """Return where a run stands when a column is sorted whose words do not say it."""
    decision, lowest = run.worst_decision, run.lowest
    ranks: dict[str, float | None] = {
        "known outcome": VERDICTS.index(run.verdict) if run.verdict else len(VERDICTS),
        "worst decision": KINDS.index(decision.kind) if decision is not None else len(KINDS),
        "band after each step": FROM_BEST.index(run.worst_band),
        "worst step and why": lowest.coherence_index if lowest is not None else None,
    }
    rank = ranks.get(column)
    return "" if rank is None else f' data-rank="{rank}"'


def _outcome(run: ScoredRun) -> str:
    if not run.transcript.outcome:
        return "unknown"
    verdict = run.verdict
    return f'{isolated(run.transcript.outcome)} <span class="verdict {verdict.partition(" ")[0]}">{verdict}</span>'


def _decision(run: ScoredRun) -> str:
    decision = run.worst_decision
    return number(None) if decision is None else decided(decision, run.worst_band)


VERDICTS = ("hit", "miss", "false alarm", "calm")
UNKNOWN = "unknown"


def _kinds(run: ScoredRun) -> dict[str, str]:
    """Return what a run is filtered by."""
    decision = run.worst_decision
    return {
        "outcome": run.verdict or UNKNOWN,
        "decision": decision.kind if decision is not None else UNKNOWN,
        "band": run.worst_band,
    }


def _finder(runs: Sequence[ScoredRun]) -> str:
    """Return the fields to search, filter and sort by; they come up where scripts run."""
    kinds = [_kinds(run) for run in runs]
    orders = {"outcome": VERDICTS, "decision": KINDS, "band": FROM_BEST[1:]}
    labels = {"outcome": "Outcome", "decision": "Worst decision", "band": "Worst band"}
    fields = []
    for name, order in orders.items():
        counts = Counter(kind[name] for kind in kinds)
        if len(counts) > 1:
            options = "".join(
                f'<option value="{value}">{value} ({counts[value]})</option>'
                for value in (*order, UNKNOWN)
                if counts[value]
            )
            fields.append(
                f'<label>{labels[name]} <select data-filter="{name}"><option value="">all</option>{options}'
                "</select></label>"
            )
    return (
        '<form class="find" id="finder" hidden><label>Find runs <input type="search" id="find"'
        f' placeholder="name, outcome, reason"></label>{"".join(fields)}'
        '<label class="sort">Sort by <select id="sort"></select></label>'
        '<output id="found" aria-live="polite"></output></form>'
    )


STEP_VIEW = """\
<dialog id="step" aria-labelledby="step-name"><header><h3 id="step-name"></h3><div class="go"><button type="button"
 id="step-before" title="arrow left">← before</button><button type="button" id="step-next" title="arrow right">next
 →</button><button type="button" id="step-close" title="Esc">close</button></div><div id="step-strip"></div></header>
<div id="step-body" tabindex="-1" aria-live="polite"></div></dialog>"""
"""Where scripts put one step of a run."""
