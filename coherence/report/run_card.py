"""Scored runs as cards for notebooks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from html import escape

from coherence.core.cards import breakable, card, folded, index_in_words, listed, moment, paragraph, strip_part, table
from coherence.core.readings import Band, excerpt, number_of
from coherence.core.strip import FROM_BEST, badge_html, strip_svg
from coherence.report.left_out import LeftOut
from coherence.report.score import ScoredRun, index_of

MAX_ROWS = 20
"""Runs of a table."""
MAX_RULES = 5
WHY_LENGTH = 120
NAME_LENGTH = 60


def run_card(run: ScoredRun) -> str:
    """Return a run as a card: its worst light, why, a strip of its lights, and what fired."""
    lowest, last, worst, at = run.lowest, run.last, run.worst_decision, run.worst_decision_at
    decided = "" if worst is None else f"worst decision {worst.kind}"
    if worst is not None and at is not None and run.recorded:
        decided += f" at {run.name(at, worst.seq)}"
    first = next((step.ts for step in run.transcript.steps if step.ts is not None), 0.0)
    facts = [
        run.steps_in_words,
        "" if last is None else f"{index_in_words(last)} now",
        "" if lowest is None else f"lowest {index_of(lowest):.2f} after {run.name(lowest.tick_seq)}",
        "" if run.highest_pressure is None else f"highest pressure {run.highest_pressure:.2f}",
        decided,
        f"{number_of(len(run.refused), 'call')} refused" if run.refused else "",
        f"outcome {excerpt(run.transcript.outcome, NAME_LENGTH)}" if run.transcript.outcome else "",
        moment(first or 0.0),
    ]
    goal = run.transcript.goal.strip()
    rules: defaultdict[str, set[int]] = defaultdict(set)
    for place, decision in enumerate(run.decisions):
        for each in decision.findings:
            if each.active:
                rules[each.rule].add(run.number(place))
    oftenest = sorted(rules, key=lambda rule: -len(rules[rule]))[:MAX_RULES]
    found = [f"{_text(rule, NAME_LENGTH)}: at {number_of(len(rules[rule]), 'step')}" for rule in oftenest]
    parts = [
        paragraph(f"Goal: {goal}" if goal else ""),
        paragraph(_why(run)),
        strip_part(_strip(run)),
        folded("active rules", listed(found)),
        *(paragraph(f"Note: {note}") for note in run.transcript.warnings[:MAX_RULES]),
    ]
    return card(worst_light(run), run.transcript.id or "(no id)", facts, parts)


def runs_html(runs: Sequence[ScoredRun], *, rest: LeftOut | None = None) -> str:
    """Return runs as a table, one a row, in the order given; of many, the first.

    Parameters
    ----------
    runs : sequence of ScoredRun
        The runs.
    rest : LeftOut, optional
        Sessions of the store that were not read, and why.
    """
    rest = rest or LeftOut()
    if not runs:
        return card(Band.UNKNOWN, "no run", parts=[paragraph(rest.nothing())])
    rows = [
        (
            badge_html(worst_light(run)),
            f"<b>{breakable(run.transcript.id or '(no id)', NAME_LENGTH)}</b>",
            strip_svg(_lights(run), cells=24, fixed=True),
            _text(_why(run), WHY_LENGTH),
            str(run.count()) + (f" of {run.earlier + run.count()}" if run.earlier else ""),
        )
        for run in runs[:MAX_ROWS]
    ]
    more = len(runs) - len(rows)
    told = [f"and {number_of(more, 'run')} more"] if more else []
    if rest.milder:
        told.append(f"{number_of(rest.milder, 'milder session')} left out: read_runs(sessions=, steps=) reads more")
    told += rest.reasons()
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
    titles = [f"{run.name(one.tick_seq)}: {one.short()}" for one in run.readings]
    for at, light in enumerate(lights):
        if light not in (Band.GREEN, Band.UNKNOWN):
            titles[at] += f", {run.why_asked(at) or run.why(run.readings[at])}"
    return strip_svg(lights, titles)


def _why(run: ScoredRun) -> str:
    """Say at which step the light was worst, and why."""
    lights = _lights(run)
    if not lights:
        return "no step"
    worst = run.worst_at
    at = worst if worst is not None else max(range(len(lights)), key=lambda step: FROM_BEST.index(lights[step]))
    if lights[at] is Band.UNKNOWN:
        return "nothing was known after any step"
    if lights[at] is Band.GREEN:
        return "green after every step that was measured"
    return f"{run.name(at)}: {run.why_asked(at) or run.why(run.readings[at])}"


def _text(text: str, length: int) -> str:
    return escape(excerpt(text, length))
