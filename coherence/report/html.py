"""The self-contained HTML page about scored runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from coherence.core.decisions import KINDS
from coherence.core.lazy import lazy_regex
from coherence.core.readings import Band, number_of
from coherence.report.document import asset, begin_page
from coherence.report.files import write_atomically
from coherence.report.score import ScoredRun, count_verdicts
from coherence.report.sections import anchor, badge, section, why
from coherence.report.svg import band_class, strip
from coherence.report.text import isolated, number
from coherence.sensor.light import BANDS

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
            f'<div class="meaning">{MEANING}</div>',
            f'<p class="legend">Bands, best to worst: {legend} Steps are counted from 0.</p></header>',
            _overview(runs),
            *(section(position, run) for position, run in enumerate(runs, 1)),
            f'</main>\n<div id="tip" hidden></div>\n<script>{script}</script>\n</body>\n</html>\n',
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
        "decision",
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
            f'<a href="#{anchor(position)}">{_breakable(run.transcript.id or "(no id)")}</a>',
            _outcome(run),
            _decision(run),
            strip(run.readings),
            f'<a href="#{anchor(position, lowest)}">step {lowest.tick_seq}</a> {why(run, lowest)}'
            if lowest is not None
            else "nothing was known after any step",
            f"{number(last.coherence_index)} {badge(last.band)}" if last is not None else number(None),
            f"{number(lowest.coherence_index)} {badge(lowest.band)}" if lowest is not None else number(None),
            number(run.highest_pressure),
            str(len(run.readings)),
        )
        filled = "".join(
            f'<td role="cell" data-name="{name}">{cell}</td>' for name, cell in zip(names, cells, strict=True)
        )
        rows.append(f'<tr role="row">{filled}</tr>')
    counted = count_verdicts(runs)
    return (
        (f'<p class="verdicts">{isolated(counted)}.</p>' if counted else "")
        + '<p class="find"><label>Find runs <input type="search" id="find" placeholder="name, outcome, decision">'
        "</label> A click on a head sorts.</p>"
        '<table class="overview" id="overview" role="table"><thead role="rowgroup">'
        f'<tr role="row">{heads}</tr></thead>\n<tbody role="rowgroup">{chr(10).join(rows)}</tbody></table>'
    )


def _breakable(name: str) -> str:
    """Return a run's name as HTML that breaks at its slashes and joints, not within a word."""
    return _JOINT.sub(r"\1<wbr>", isolated(name))


_JOINT = lazy_regex(r"(?<!<)([/_-])(?=\w)")


def _outcome(run: ScoredRun) -> str:
    if not run.transcript.outcome:
        return "unknown"
    verdict = run.verdict
    return f'{isolated(run.transcript.outcome)} <span class="verdict {verdict.partition(" ")[0]}">{verdict}</span>'


DECIDED = dict(zip(KINDS, BANDS, strict=True))
"""The band in whose colour a decision is shown."""


def _decision(run: ScoredRun) -> str:
    decision = run.worst_decision
    if decision is None:
        return number(None)
    return f'<span class="band {band_class(DECIDED[decision.kind])}">{decision.kind}</span>'
