"""Scored runs as cards for notebooks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape

from coherence.core.cards import card, folded, index_in_words, listed, moment, paragraph, strip_part, table
from coherence.core.readings import Band, excerpt, number_of
from coherence.core.strip import FROM_BEST, badge_html, strip_svg
from coherence.report.score import ScoredRun, index_of

MAX_ROWS = 20
"""Runs of a table."""
MAX_RULES = 5
WHY_LENGTH = 120
NAME_LENGTH = 60


def run_card(run: ScoredRun) -> str:
    """Return a run as a card: its worst light, why, a strip of its lights, and what fired."""
    lowest, last, worst = run.lowest, run.last, run.worst_decision
    first = next((step.ts for step in run.transcript.steps if step.ts is not None), 0.0)
    facts = [
        number_of(len(run.readings), "step"),
        "" if last is None else f"{index_in_words(last)} now",
        "" if lowest is None else f"lowest {index_of(lowest):.2f} after step {lowest.tick_seq}",
        "" if run.highest_pressure is None else f"highest pressure {run.highest_pressure:.2f}",
        "" if worst is None else f"worst decision {worst.kind}",
        f"outcome {excerpt(run.transcript.outcome, NAME_LENGTH)}" if run.transcript.outcome else "",
        moment(first or 0.0),
    ]
    goal = run.transcript.goal.strip()
    rules = Counter(each.rule for decision in run.decisions for each in decision.findings if each.active)
    found = [
        f"{_text(rule, NAME_LENGTH)}: at {number_of(count, 'step')}" for rule, count in rules.most_common(MAX_RULES)
    ]
    parts = [
        paragraph(f"Goal: {goal}" if goal else ""),
        paragraph(_why(run)),
        strip_part(_strip(run)),
        folded("active rules", listed(found)),
        *(paragraph(f"Note: {note}") for note in run.transcript.warnings[:MAX_RULES]),
    ]
    return card(worst_light(run), run.transcript.id or "(no id)", facts, parts)


def runs_html(runs: Sequence[ScoredRun], *, left_out: int = 0) -> str:
    """Return runs as a table, one a row, in the order given; of many, the first.

    Parameters
    ----------
    runs : sequence of ScoredRun
        The runs.
    left_out : int
        Number of sessions that were not read.
    """
    if not runs:
        return card(
            Band.UNKNOWN, "no run", parts=[paragraph("The store has no session with a step that is asked for.")]
        )
    rows = [
        (
            badge_html(worst_light(run)),
            f'<b style="overflow-wrap:anywhere">{_text(run.transcript.id or "(no id)", NAME_LENGTH)}</b>',
            strip_svg(_lights(run), cells=24, fixed=True),
            _text(_why(run), WHY_LENGTH),
            str(len(run.readings)),
        )
        for run in runs[:MAX_ROWS]
    ]
    more = len(runs) - len(rows)
    told = [f"and {number_of(more, 'run')} more"] if more else []
    told += [f"{number_of(left_out, 'session')} of the store were not read"] if left_out else []
    worst = max((worst_light(run) for run in runs), key=FROM_BEST.index)
    drawn = table(("worst light", "run", "light after each step", "worst step and why", "steps"), rows)
    return card(worst, number_of(len(runs), "run"), parts=[drawn, paragraph("; ".join(told))])


def worst_light(run: ScoredRun) -> Band:
    """Return the worst light after any step: the band, or the colour of a decision where that is worse."""
    return max(_lights(run), key=FROM_BEST.index, default=Band.UNKNOWN)


def _lights(run: ScoredRun) -> list[Band]:
    return run.lights if run.decisions else run.bands


def _strip(run: ScoredRun) -> str:
    lights = _lights(run)
    titles = [f"step {one.tick_seq}: {one.short()}" for one in run.readings]
    for at, light in enumerate(lights):
        if light not in (Band.GREEN, Band.UNKNOWN):
            titles[at] += f", {run.why(run.readings[at])}"
    return strip_svg(lights, titles)


def _why(run: ScoredRun) -> str:
    """Say at which step the light was worst, and why."""
    lights = _lights(run)
    if not lights:
        return "no step"
    at = max(range(len(lights)), key=lambda step: FROM_BEST.index(lights[step]))
    if lights[at] is Band.UNKNOWN:
        return "nothing was known after any step"
    if lights[at] is Band.GREEN:
        return "green after every step that was measured"
    message = run.decisions[at].message if run.decisions and lights[at] is not run.readings[at].band else ""
    return f"step {at}: {message or run.why(run.readings[at])}"


def _text(text: str, length: int) -> str:
    return escape(excerpt(text, length))
