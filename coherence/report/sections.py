"""One run on the page: its goal, its timeline, the evidence behind its worst steps, and every step in numbers."""

from __future__ import annotations

from collections.abc import Sequence

from coherence.baseline.vitals import VITALS
from coherence.core.readings import Band, Reading, excerpt, metric_of, scale_in_words
from coherence.providers.transcript import Step
from coherence.report import svg
from coherence.report.score import QUIET, ScoredRun, index_of
from coherence.report.text import clip, escape, isolated, number, undirected
from coherence.sensor.light import said

WORST = 3
"""Readings whose evidence is shown."""
GOAL_LENGTH = 500
EXCERPT_LENGTH = 400
SAYS_LENGTH = 160
QUOTE_LENGTH = 60
PRESSURE_LINES = (0.25, 0.5, 0.75)
"""Where the shipped modes guide, warn and block begin."""
INDEX_LINES = (0.2, 0.4, 0.6, 0.8)


def badge(band: Band) -> str:
    """Return a band's name on its colour."""
    return f'<span class="band {svg.band_class(band)}">{band}</span>'


def lowest_readings(run: ScoredRun) -> list[Reading]:
    """Return the comparable readings with the lowest index, lowest first."""
    return sorted(run.comparable, key=index_of)[:WORST]


def why(run: ScoredRun, reading: Reading) -> str:
    """Return :meth:`ScoredRun.why` as HTML, with each quotation isolated and short."""
    asked = run.asked(reading)
    if asked is not None:
        return isolated(excerpt(asked.why, EXCERPT_LENGTH))
    name = reading.worst()
    if name is None or (reading.scale and (reading.risk or 0.0) < QUIET):
        return "nothing stands out"
    pointed = _evidence(run, reading, metric_of(name))
    return f"{_sign(reading, name)}{f': {pointed}' if pointed else ''}"


def anchor(position: int, reading: Reading | None = None) -> str:
    """Return the id of a run's section, or of the evidence of one of its readings."""
    return f"run-{position}" if reading is None else f"run-{position}-step-{reading.tick_seq}"


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
        f'<h2 id="{place}-name">{isolated(run.transcript.id or "(no id)")}</h2>',
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
        parts.append(_steps(run))
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
        facts.append(f"highest pressure {number(run.highest_pressure)}, worst decision <b>{decision.kind}</b>{worst}")
    return " · ".join(facts)


def _names(run: ScoredRun) -> list[str]:
    """Return the metrics to show: all but vitals that were never known."""
    names = dict.fromkeys(name for reading in run.readings for name in reading.metrics)
    known = {name for reading in run.readings for name, value in reading.metrics.items() if value is not None}
    return [name for name in names if name in known or name not in VITALS]


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
    for name in _names(run):
        values = [reading.metrics.get(name) for reading in run.readings]
        reasons = dict.fromkeys(reading.unknown.get(name, "no reason given") for reading in run.readings)
        way = "high is bad" if name in run.inverted else "high is good"
        rows.append(_row(name, way, values, svg.chart(values), "; ".join(reasons)))
    axis = f'<div class="row"><div class="name">step</div>{svg.axis(len(index))}</div>'
    return f'<h3>Timeline</h3><div class="timeline">{"".join(rows)}{axis}</div>'


def _row(name: str, way: str, values: Sequence[float | None], drawing: str, unknown: str, kind: str = "") -> str:
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
        f'<div class="row {kind}"><div class="name">{label}<span class="now">{known[-1]:.2f}</span></div>'
        f'<div class="chart" role="img" aria-label="{undirected(said)}">{drawing}</div></div>'
    )


def _notes(run: ScoredRun) -> str:
    """List what was unknown at some steps only, what failed, and what the reader passed over; each once."""
    partly = {name for name in _names(run) if any(reading.metrics.get(name) is not None for reading in run.readings)}
    found: dict[str, list[int]] = {}
    for step, reading in enumerate(run.readings):
        unknown = [f"{name} unknown: {reason}" for name, reason in reading.unknown.items() if name in partly]
        for note in dict.fromkeys([*unknown, *(f"error in {failure}" for failure in reading.errors)]):
            found.setdefault(note, []).append(step)
    notes = [f"<li>{isolated(note)} ({_places(steps)})</li>" for note, steps in found.items()]
    notes += [f"<li>{isolated(f'reader: {warning}')}</li>" for warning in dict.fromkeys(run.transcript.warnings)]
    return f'<h3>Unknown and failed</h3><ul class="notes">{"".join(notes)}</ul>' if notes else ""


def _sign(reading: Reading, name: str) -> str:
    """Return what a sign means; of a classic index the metric's name and value."""
    if reading.scale:
        return f"<b>{escape(said(name))}</b>"
    return f"<b>{escape(name)}</b> {number(reading.metrics[name])}"


def _places(steps: Sequence[int]) -> str:
    if len(steps) == 1:
        return f"after step {steps[0]}"
    if len(steps) == steps[-1] - steps[0] + 1:
        return f"after steps {steps[0]} to {steps[-1]}"
    return f"after {len(steps)} steps between {steps[0]} and {steps[-1]}"


def _evidence(run: ScoredRun, reading: Reading, name: str) -> str:
    evidence = reading.evidence.get(name)
    if evidence is None:
        return ""
    quotes = " / ".join(f"“{isolated(excerpt(text, QUOTE_LENGTH))}”" for text in evidence.texts)
    return f"{run.place(reading, evidence)}{quotes} {isolated(evidence.why)}".strip()


def _box(run: ScoredRun, reading: Reading, place: str, shown: dict[int, str]) -> str:
    """Show one reading; ``shown`` remembers in which box a step's text stands, so that it stands there once."""
    largest = max(reading.losses.values(), default=0.0) or 1.0
    items = []
    for name in sorted(reading.losses, key=lambda key: -reading.losses[key]):
        loss = reading.losses[name]
        pointed = _evidence(run, reading, metric_of(name)) if loss > 0 else ""
        items.append(
            f"<li>{_sign(reading, name)}"
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
        head = f"<b>step {step}</b> {_who(run.transcript.steps[step])}"
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
    return f"<td>{number(run.appraisals[step].pressure)}</td><td>{run.decisions[step].kind}</td>"


def _who(step: Step) -> str:
    parts = [step.role, *(part for part in (step.agent, step.tool_name) if part)]
    failed = ' <span class="failed">failed</span>' if step.is_error else ""
    return " · ".join(isolated(excerpt(part, QUOTE_LENGTH)) for part in parts) + failed


def _said(text: str, length: int) -> str:
    return escape(clip(text, length)) or "<i>(empty)</i>"


def _steps(run: ScoredRun) -> str:
    names = _names(run)
    judged = ["pressure", "decision"] if run.appraisals else []
    head = ["step", "who", "says", "index", "band", "coverage", *judged, *names, "evidence"]
    rows = []
    for step, reading in enumerate(run.readings):
        said = run.transcript.steps[step]
        known = reading.coherence_index is not None
        evidence = "".join(
            f'<p data-metric="{at}"><b>{escape(name)}</b>: {pointed}</p>'
            for at, name in enumerate(names)
            if (pointed := _evidence(run, reading, name))
        )
        rows.append(
            f'<tr><th scope="row">{step}</th><td>{_who(said)}</td>'
            f'<td class="says">{isolated(excerpt(clip(said.text(), 2 * SAYS_LENGTH), SAYS_LENGTH))}</td>'
            f"<td>{number(reading.coherence_index)}</td>"
            f"<td>{badge(reading.band) if known else 'unknown'}</td><td>{reading.coverage:.0%}</td>{_judged(run, step)}"
            f"{''.join(f'<td>{number(reading.metrics.get(name))}</td>' for name in names)}<td>{evidence}</td></tr>"
        )
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    return (
        f'<details><summary>Every step in numbers</summary><div class="wide"><table class="steps">'
        f"<thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></div></details>"
    )
