"""One run on the page: its goal, its timeline, the evidence behind its worst steps, and every step in numbers."""

from __future__ import annotations

from collections.abc import Sequence

from coherence.core.readings import Reading, excerpt, metric_of, scale_in_words
from coherence.report import svg
from coherence.report.parts import (
    anchor,
    badge,
    breakable,
    decided,
    evidence,
    names_of,
    sign,
    step_anchor,
    who,
)
from coherence.report.score import ScoredRun, index_of
from coherence.report.steps import log
from coherence.report.text import clip, escape, isolated, number, undirected

WORST = 3
"""Readings whose evidence is shown."""
GOAL_LENGTH = 500
EXCERPT_LENGTH = 400
SAYS_LENGTH = 120
PRESSURE_LINES = (0.25, 0.5, 0.75)
"""Where the shipped modes guide, warn and block begin."""
INDEX_LINES = (0.2, 0.4, 0.6, 0.8)


def lowest_readings(run: ScoredRun) -> list[Reading]:
    """Return the comparable readings with the lowest index, lowest first."""
    return sorted(run.comparable, key=index_of)[:WORST]


def section(position: int, run: ScoredRun) -> str:
    """Return the part of the page about one run.

    Parameters
    ----------
    position : int
        Where the run stands among the runs; makes its links.
    run : ScoredRun
        The run.
    """
    goal = run.transcript.goal or next((step.content for step in run.transcript.steps if step.role == "user"), "")
    place = anchor(position)
    parts = [
        f'<section class="run" id="{place}" aria-labelledby="{place}-name">',
        f'<h2 id="{place}-name">{breakable(run.transcript.id or "(no id)")}</h2>',
        f'<p class="facts">{_facts(run)} · <a href="#overview">all runs</a></p>',
    ]
    if goal.strip():
        parts.append(
            f'<div class="goal"><h3>Goal</h3><div class="said" dir="auto">{_said(goal, GOAL_LENGTH)}</div></div>'
        )
    if run.readings:
        parts.append(_timeline(run))
    parts.append(_notes(run))
    if run.measured:
        shown: dict[int, str] = {}
        boxes = [_box(run, reading, anchor(position, reading), shown) for reading in lowest_readings(run)]
        parts.append(f"<h3>Evidence behind the worst steps</h3>{''.join(boxes)}")
    if run.readings:
        parts.append(_steps(position, run))
        parts.append(log(position, run))
    parts.append("</section>")
    return "\n".join(part for part in parts if part)


def _facts(run: ScoredRun) -> str:
    steps, measured = len(run.readings), len(run.measured)
    facts = [f"{steps} step{'s' * (steps != 1)}"]
    if measured != steps:
        facts.append(f"something was known after {measured} of them")
    if run.last is not None and run.lowest is not None:
        facts.append(f"index now {number(run.last.coherence_index)} {badge(run.last.band)}")
        lowest = run.lowest
        facts.append(f"lowest {number(lowest.coherence_index)} {badge(lowest.band)} after step {lowest.tick_seq}")
        facts.append(escape(scale_in_words(run.last.scale)))
    decision = run.worst_decision
    if decision is not None:
        worst = f": {isolated(excerpt(decision.message, GOAL_LENGTH))}" if decision.message else ""
        facts.append(f"highest pressure {number(run.highest_pressure)}")
        facts.append(f"worst decision {decided(decision, run.worst_band)}{worst}")
    return " · ".join(facts)


def _timeline(run: ScoredRun) -> str:
    bands = run.bands
    index = [reading.coherence_index for reading in run.readings]
    rings = {reading.tick_seq for reading in lowest_readings(run)} if len(index) > WORST else set()
    drawing = svg.chart(index, bands=bands, rings=rings, lines=INDEX_LINES)
    rows = [_row("index", "high is good", index, drawing, "nothing was known after any step", "index")]
    if run.appraisals:
        pressures = [appraisal.pressure for appraisal in run.appraisals]
        drawing = svg.chart(pressures, lines=PRESSURE_LINES)
        rows.append(_row("pressure", "high is unusual for this run", pressures, drawing, ""))
    for at, name in enumerate(names_of(run)):
        values = [reading.metrics.get(name) for reading in run.readings]
        reasons = dict.fromkeys(reading.unknown.get(name, "no reason given") for reading in run.readings)
        way = "high is bad" if name in run.inverted else "high is good"
        rows.append(_row(name, way, values, svg.chart(values), "; ".join(reasons), metric=at))
    axis = f'<div class="row"><div class="name">step</div>{svg.axis(len(index))}</div>'
    return f'<h3>Timeline</h3><div class="timeline">{"".join(rows)}{axis}</div>'


def _row(
    name: str, way: str, values: Sequence[float | None], drawing: str, unknown: str, kind: str = "", *, metric: int = -1
) -> str:
    known = [value for value in values if value is not None]
    broken = escape(name).replace("_", "_<wbr>")
    label = f'<b>{broken}</b><span class="way">{way}</span>'
    if not known:
        return (
            f'<div class="row"><div class="name">{label}</div>'
            f'<p class="none">unknown throughout: {isolated(unknown)}</p></div>'
        )
    said = f"{name}, {way}: lowest {min(known):.2f}, highest {max(known):.2f}, newest {known[-1]:.2f}"
    return (
        f'<div class="row {kind}" data-name="{escape(name)}" data-metric="{metric}">'
        f'<div class="name">{label}<span class="now">{known[-1]:.2f}</span></div>'
        f'<div class="chart" role="img" aria-label="{undirected(said)}">{drawing}</div></div>'
    )


def _notes(run: ScoredRun) -> str:
    """List what was unknown at some steps only, what failed, and what the reader passed over; each once."""
    partly = {name for name in names_of(run) if any(reading.metrics.get(name) is not None for reading in run.readings)}
    found: dict[str, list[int]] = {}
    for step, reading in enumerate(run.readings):
        unknown = [f"{name} unknown: {reason}" for name, reason in reading.unknown.items() if name in partly]
        for note in dict.fromkeys([*unknown, *(f"error in {failure}" for failure in reading.errors)]):
            found.setdefault(note, []).append(step)
    notes = [f"<li>{isolated(note)} ({_places(steps)})</li>" for note, steps in found.items()]
    notes += [f"<li>{isolated(f'reader: {warning}')}</li>" for warning in dict.fromkeys(run.transcript.warnings)]
    return f'<h3>Unknown and failed</h3><ul class="notes">{"".join(notes)}</ul>' if notes else ""


def _places(steps: Sequence[int]) -> str:
    if len(steps) == 1:
        return f"after step {steps[0]}"
    if len(steps) == steps[-1] - steps[0] + 1:
        return f"after steps {steps[0]} to {steps[-1]}"
    return f"after {len(steps)} steps between {steps[0]} and {steps[-1]}"


def _box(run: ScoredRun, reading: Reading, place: str, shown: dict[int, str]) -> str:
    """Show one reading; ``shown`` remembers in which box a step's text stands, so that it stands there once."""
    largest = max(reading.losses.values(), default=0.0) or 1.0
    items = []
    for name in sorted(reading.losses, key=lambda key: -reading.losses[key]):
        loss = reading.losses[name]
        pointed = evidence(run, reading, metric_of(name)) if loss > 0 else ""
        items.append(
            f"<li>{sign(reading, name)}"
            f'<span class="takes">takes {loss:.2f}</span>{svg.bar(loss / largest)}'
            f"{f'<p>{pointed}</p>' if pointed else ''}</li>"
        )
    pointers: dict[int, list[str]] = {}
    taken: dict[str, float] = {}
    for name, loss in reading.losses.items():
        taken[metric_of(name)] = taken.get(metric_of(name), 0.0) + loss
    for name in sorted(reading.evidence, key=lambda key: -taken.get(key, 0.0)):
        for step in run.evidence_steps(reading, reading.evidence[name]):
            if taken.get(name, 0.0) > 0:
                pointers.setdefault(step, []).append(name)
    excerpts = []
    for step, names in pointers.items():
        head = f"<b>step {step}</b> {who(run.transcript.steps[step])}"
        by = f'<span class="by">{escape(", ".join(names))}</span>'
        if step in shown:
            text = f'<p class="again">shown <a href="#{shown[step]}">above</a></p>'
        else:
            shown[step] = place
            text = f'<div class="said" dir="auto">{_said(run.transcript.steps[step].text(), EXCERPT_LENGTH)}</div>'
        excerpts.append(f"<figure><figcaption>{head}{by}</figcaption>{text}</figure>")
    return (
        f'<article class="box" id="{place}"><h4>After step {reading.tick_seq}: index'
        f" {number(reading.coherence_index)} {badge(reading.band)}"
        f' <span class="cover">coverage {reading.coverage:.0%}</span></h4>'
        f'<div class="halves"><ul class="losses">{"".join(items)}</ul>'
        f'<div class="excerpts">{"".join(excerpts)}</div></div></article>'
    )


def _judged(run: ScoredRun, step: int) -> str:
    if not run.appraisals:
        return ""
    decision = decided(run.decisions[step], run.readings[step].band)
    return f"<td>{number(run.appraisals[step].pressure)}</td><td>{decision}</td>"


def _said(text: str, length: int) -> str:
    return escape(clip(text, length)) or "<i>(empty)</i>"


def _steps(position: int, run: ScoredRun) -> str:
    names = names_of(run)
    judged = ["pressure", "decision"] if run.appraisals else []
    head = ["step", "who", "says", "index", "band", "coverage", *judged, *names]
    rows = []
    for step, reading in enumerate(run.readings):
        said = run.transcript.steps[step]
        known = reading.coherence_index is not None
        rows.append(
            f'<tr><th scope="row"><a href="#{step_anchor(position, step)}">{step}</a></th><td>{who(said)}</td>'
            f'<td class="says">{isolated(excerpt(clip(said.text(), 2 * SAYS_LENGTH), SAYS_LENGTH))}</td>'
            f"<td>{number(reading.coherence_index)}</td>"
            f"<td>{badge(reading.band) if known else 'unknown'}</td><td>{reading.coverage:.0%}</td>{_judged(run, step)}"
            f"{''.join(f'<td>{number(reading.metrics.get(name))}</td>' for name in names)}</tr>"
        )
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    return (
        f'<details><summary>Every step in numbers</summary><div class="wide"><table class="steps">'
        f"<thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></div></details>"
    )
