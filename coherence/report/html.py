"""The self-contained HTML page about scored runs: what its templates show of a run."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from jinja2 import Environment
from markupsafe import Markup

from coherence.baseline.vitals import VITALS
from coherence.core.decisions import KINDS
from coherence.core.readings import Band, Counters, Reading, excerpt, metric_of, scale_in_words, span
from coherence.core.signs import said
from coherence.providers.transcript import Step, TranscriptCall
from coherence.report import svg
from coherence.report.files import write_atomically
from coherence.report.score import (
    FROM_BEST,
    QUIET,
    RefusedCall,
    ScoredRun,
    ToldStep,
    count_verdicts,
    index_of,
    light_of,
)
from coherence.report.template import asset, environment, render_page
from coherence.report.text import clean, clip

WORST = 3
"""Readings whose evidence is shown."""
CAUSE_LENGTH = 240
QUOTE_LENGTH = 60
LOG_LENGTH = 40_000
"""Characters that the steps of a run share, so that the page of a long run stays small."""
MIN_TEXT, MAX_TEXT = 300, 4_000
"""Characters of one text that are shown at least and at most."""
ROOMS = (1.0, 0.7, 0.5, 0.3, 0.15, 0.0)
"""Shares of the usual lengths of texts that are tried, until a run fits."""
MAX_STEP = 3_180
"""Bytes of a run for each of its steps, and of a short run those of :data:`FEW`: with 27 kB of the page itself and
13 kB of its row and strip, a run of 50 steps takes at most 200 kB."""
FEW = 50
MAX_CALLS = 8
MAX_POINTERS = 8
"""Metrics whose evidence is shown at a step, where texts are cut."""
MAX_SIGNS = 5
MAX_TOLD = 20
"""Firings of guidance that a run lists."""
MAX_REFUSED = 20
"""Refused calls that a run lists."""
CALL_LENGTH = 120
LONG_S = 120.0
"""Seconds from which on a latency is shown in minutes."""
PRESSURE_LINES = (0.25, 0.5, 0.75)
"""Pressures at which the shipped modes guide, warn and block begin."""
INDEX_LINES = (0.2, 0.4, 0.6, 0.8)
VERDICTS = ("hit", "miss", "false alarm", "recovered", "calm")
NO_REASON = "no reason given"
UNKNOWN = "unknown"


def render_html(runs: Sequence[ScoredRun], *, title: str = "coherence report", note: str = "") -> str:
    """Return one HTML page about scored runs, which needs no other file and no network.

    Parameters
    ----------
    runs : sequence of ScoredRun
        The runs, in the order in which they are shown.
    title : str
        The page's title.
    note : str
        A sentence above the table, such as what was left out.

    Returns
    -------
    str
        The page; the same for the same runs.
    """
    return render_page(
        _pages(),
        "page.html",
        styles=[__package__],
        script=asset(__package__, "page.js"),
        title=title,
        note=note,
        runs=runs,
        room=1.0,
        steps=sum(run.count() for run in runs),
        verdicts=count_verdicts(runs),
        filters=_filters(runs),
    )


def write_html(path: str | Path, runs: Sequence[ScoredRun], *, title: str = "coherence report", note: str = "") -> None:
    """Write :func:`render_html` to a file; the file is the old one or the whole new one, never a part.

    Parameters
    ----------
    path : str or Path
        The file.
    runs : sequence of ScoredRun
        The runs, in the order in which they are shown.
    title : str
        The page's title.
    note : str
        A sentence above the table.
    """
    write_atomically(path, render_html(runs, title=title, note=note))


@cache
def _pages() -> Environment:
    pages = environment(__package__)
    pages.filters |= {
        "clip": clip,
        "css": svg.band_class,
        "excerpt": excerpt,
        "meaning": said,
        "metric": metric_of,
        "scale_in_words": scale_in_words,
    }
    pages.globals |= {
        "axis": svg.axis,
        "bands": list(Band),
        "section_of": _section,
        "bar": svg.bar,
        "boxes_of": _boxes,
        "cause_of": _cause,
        "chart": svg.chart,
        "evidence_of": _evidence,
        "goal_of": _goal,
        "index_chart": _index_chart,
        "kinds_of": _kinds,
        "light_of": light_of,
        "names_of": _names,
        "numbers_of": lambda run: [run.number(at) for at in range(len(run.readings))],
        "pointing_of": _pointing,
        "notes_of": _notes,
        "refused_of": _refused,
        "why_asked": _why_asked,
        "pressure_lines": PRESSURE_LINES,
        "pulls_of": _pulls,
        "ranks_of": _ranks,
        "speakers": _speakers,
        "spent_of": _spent,
        "strip": _strip,
        "texts_of": _texts,
        "told_of": _told,
        "unknown_of": _unknown,
        "values_of": _values,
        "when_of": _when,
    }
    return pages


def _section(run: ScoredRun, at: int) -> Markup:
    """Return the part of the page about a run; the longer its texts, the less is shown of each."""
    most = MAX_STEP * max(len(run.readings), FEW)
    shown, fits = "", 1.0
    for room in ROOMS:
        if room and room > fits:
            continue
        shown = _pages().get_template("run.html").render(run=run, at=at, room=room)
        size = len(shown.encode())
        if size <= most:
            break
        # what is left when all texts are gone does not shrink, so a larger share than this cannot be enough
        fits = room * most / size
    return Markup(shown)  # noqa: S704 - the template has escaped it


def lowest_readings(run: ScoredRun) -> list[Reading]:
    """Return the comparable readings with the lowest index, lowest first."""
    return sorted(run.comparable, key=index_of)[:WORST]


def _kinds(run: ScoredRun) -> dict[str, str]:
    """Return the values that a run is filtered by."""
    decision = run.worst_decision
    return {
        "outcome": run.verdict or UNKNOWN,
        "decision": decision.kind if decision is not None else UNKNOWN,
        "band": run.worst_band,
    }


def _ranks(run: ScoredRun) -> dict[str, float | None]:
    """Return where a run stands when a column is sorted whose words do not say it."""
    decision, lowest = run.worst_decision, run.lowest
    return {
        "outcome": VERDICTS.index(run.verdict) if run.verdict else len(VERDICTS),
        "decision": KINDS.index(decision.kind) if decision is not None else len(KINDS),
        "band": FROM_BEST.index(run.worst_band),
        "index": lowest.coherence_index if lowest is not None else None,
    }


def _filters(runs: Sequence[ScoredRun]) -> list[tuple[str, str, list[tuple[str, int]]]]:
    """Return the label, name and counted options of each field by which these runs differ."""
    kinds = [_kinds(run) for run in runs]
    fields: list[tuple[str, str, Sequence[str]]] = [
        ("Outcome", "outcome", VERDICTS),
        ("Worst decision", "decision", KINDS),
        ("Worst band", "band", FROM_BEST[1:]),
    ]
    filters = []
    for label, name, order in fields:
        counts = Counter(kind[name] for kind in kinds)
        if len(counts) > 1:
            filters.append((label, name, [(value, counts[value]) for value in (*order, UNKNOWN) if counts[value]]))
    return filters


def _cut(length: int, room: float) -> int:
    """Return a share of a length, enough to recognise a text by."""
    return max(int(length * room), 8)


def _cause(run: ScoredRun, reading: Reading, room: float) -> tuple[str, str | None]:
    """Return the words of the rule that asked for the band, or the sign that lowers the index most."""
    asked = run.asked(reading)
    if asked is not None:
        return excerpt(asked.why, _cut(CAUSE_LENGTH, room)), None
    quiet = reading.scale and (reading.risk or 0.0) < QUIET
    return "", None if quiet else reading.worst()


def _evidence(run: ScoredRun, reading: Reading, name: str, brief: bool, room: float) -> tuple[str, list[str], str]:
    """Return the steps, quotations and reason of what a metric points at; ``brief``: a named step is not quoted."""
    found = reading.evidence.get(name)
    if found is None:
        return "", [], ""
    place = run.place(reading, found).strip()
    quoted = () if brief and place else found.texts
    length = _cut(QUOTE_LENGTH, room)
    return place, [excerpt(text, length) for text in quoted], excerpt(found.why, _cut(CAUSE_LENGTH, room))


def _pointing(names: Sequence[str], reading: Reading, room: float) -> list[tuple[int, str]]:
    """Return place and name of the metrics whose evidence is shown at a step, those that take most if not all are."""
    found = [(at, name) for at, name in enumerate(names) if name in reading.evidence]
    if room < 1:
        taken: defaultdict[str, float] = defaultdict(float)
        for sign, loss in reading.losses.items():
            taken[metric_of(sign)] += loss
        found = sorted(found, key=lambda it: -taken[it[1]])[: int(MAX_POINTERS * room)]
    return sorted(found)


def _speakers(step: Step, room: float) -> list[str]:
    """Return the role, agent and tool of a step, as far as they are known."""
    return [excerpt(part, _cut(QUOTE_LENGTH, room)) for part in (step.role, step.agent, step.tool_name) if part]


def _goal(run: ScoredRun) -> str:
    """Return the goal of a run, or the first words of its user."""
    goal = run.transcript.goal or next((step.content for step in run.transcript.steps if step.role == "user"), "")
    return goal if goal.strip() else ""


def _when(run: ScoredRun) -> str:
    """Return when a run began and how long it took; empty where nobody recorded it."""
    times = [step.ts for step in run.transcript.steps if step.ts is not None]
    if not times:
        return ""
    try:
        began = datetime.fromtimestamp(min(times), UTC)
    except (OverflowError, ValueError, OSError):
        return ""
    return f"began {began:%Y-%m-%d %H:%M:%S} UTC, took {_took(max(times) - min(times))}"


def _names(run: ScoredRun) -> list[str]:
    """Return the metrics to show: all but vitals that were never known."""
    names = dict.fromkeys(name for reading in run.readings for name in reading.metrics)
    known = {name for reading in run.readings for name, value in reading.metrics.items() if value is not None}
    return [name for name in names if name in known or name not in VITALS]


def _values(run: ScoredRun, name: str) -> list[float | None]:
    return [reading.metrics.get(name) for reading in run.readings]


def _unknown(run: ScoredRun, name: str) -> str:
    """Return each reason why a metric was unknown, once."""
    reasons = dict.fromkeys(reading.unknown.get(name, NO_REASON) for reading in run.readings)
    return "; ".join(reason for reason in reasons if reason != NO_REASON) or NO_REASON


def _index_chart(run: ScoredRun) -> str:
    index = [reading.coherence_index for reading in run.readings]
    rings = {reading.tick_seq for reading in lowest_readings(run)} if len(index) > WORST else set()
    refused = sorted({each.step for each in run.refused})
    return svg.chart(index, bands=run.bands, rings=rings, lines=INDEX_LINES, refused=refused)


def _strip(run: ScoredRun, place: str) -> str:
    """Draw the bands of a run, one cell a step, with a mark where a call was refused."""
    return svg.strip(
        run.readings,
        run=place,
        causes=[run.why(reading) for reading in run.readings],
        names=[run.number(at) for at in range(len(run.readings))],
        refused={each.step for each in run.refused},
    )


def _refused(run: ScoredRun, room: float, step: int | None = None) -> list[RefusedCall]:
    """Return the refused calls that are shown, of a step or of the run, their words cut, the newest of many."""
    length, call = _cut(CAUSE_LENGTH, room), _cut(CALL_LENGTH, room)
    return [
        msgspec.structs.replace(
            each,
            tool=excerpt(each.tool, _cut(QUOTE_LENGTH, room)),
            call=excerpt(each.call, call),
            why=excerpt(each.why, length),
        )
        for each in run.refused[-MAX_REFUSED:]
        if step in (None, each.step)
    ]


def _why_asked(run: ScoredRun, at: int, room: float) -> str:
    """Return why the decision on a step is worse than its band, empty if it is not."""
    return excerpt(run.why_asked(at), _cut(CAUSE_LENGTH, room))


def _told(run: ScoredRun, room: float) -> list[ToldStep]:
    """Return the guidance that is shown, its words cut, the newest of much."""
    length = _cut(CAUSE_LENGTH, room)
    return [msgspec.structs.replace(each, text=excerpt(each.text, length)) for each in run.told[-MAX_TOLD:]]


class _Note(NamedTuple):
    text: str
    where: str


def _notes(run: ScoredRun) -> list[_Note]:
    """List what was unknown at some steps only, what failed, and what the reader passed over; each once."""
    partly = {name for name in _names(run) if any(value is not None for value in _values(run, name))}
    found: dict[str, list[int]] = {}
    for step, reading in enumerate(run.readings):
        unknown = [f"{name} unknown: {reason}" for name, reason in reading.unknown.items() if name in partly]
        for note in dict.fromkeys([*unknown, *(f"error in {failure}" for failure in reading.errors)]):
            numbers = found.setdefault(note, [])
            if run.number(step) not in numbers[-1:]:
                numbers.append(run.number(step))
    notes = [_Note(note, f" ({_places(steps)})") for note, steps in found.items()]
    return notes + [_Note(f"reader: {warning}", "") for warning in dict.fromkeys(run.transcript.warnings)]


def _places(steps: Sequence[int]) -> str:
    if len(steps) == 1:
        return f"after step {steps[0]}"
    if len(steps) == steps[-1] - steps[0] + 1:
        return f"after steps {steps[0]} to {steps[-1]}"
    return f"after {len(steps)} steps between {steps[0]} and {steps[-1]}"


class _Box(NamedTuple):
    place: str
    reading: Reading
    losses: list[tuple[str, float, float]]
    """Sign, what it takes, and that as a share of the largest."""
    excerpts: list[tuple[int, list[str], str]]
    """Step, the metrics that point at it, and the box that shows its text already (else empty)."""


def _boxes(run: ScoredRun, place: str) -> list[_Box]:
    """Return the evidence behind the worst readings; a step's text is shown once."""
    shown: dict[int, str] = {}
    boxes = []
    for reading in lowest_readings(run):
        here = f"{place}-step-{reading.tick_seq}"
        largest = max(reading.losses.values(), default=0.0) or 1.0
        losses = sorted(((name, loss, loss / largest) for name, loss in reading.losses.items()), key=lambda it: -it[1])
        taken: defaultdict[str, float] = defaultdict(float)
        for name, loss in reading.losses.items():
            taken[metric_of(name)] += loss
        pointers: dict[int, list[str]] = {}
        for name in sorted(reading.evidence, key=lambda key: -taken[key]):
            for step in run.evidence_steps(reading, reading.evidence[name]):
                if taken[name] > 0:
                    pointers.setdefault(step, []).append(name)
        excerpts = [(step, names, shown.get(step, "")) for step, names in pointers.items()]
        for step in pointers:
            shown.setdefault(step, here)
        boxes.append(_Box(here, reading, losses, excerpts))
    return boxes


def _spent(run: ScoredRun, at: int) -> tuple[list[tuple[str, str]], list[str]]:
    """Return how long a step took, its tokens and its cost, and the names of those that nobody recorded."""
    used = run.transcript.steps[at].usage or Counters()
    shown = {
        "latency": _took(run.latency_s(at)),
        "tokens in": used.tokens_in is not None and f"{used.tokens_in:,}",
        "tokens out": used.tokens_out is not None and f"{used.tokens_out:,}",
        "cost": used.cost_usd is not None and f"${used.cost_usd:,.4f}",
    }
    return [(name, value) for name, value in shown.items() if value], [
        name for name, value in shown.items() if not value
    ]


def _took(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    return f"{seconds:.1f} s" if seconds < LONG_S else span(seconds)


class _Clipped(NamedTuple):
    shown: str
    left: int
    """Characters that are not shown."""


class _Texts(NamedTuple):
    heading: str
    message: _Clipped | None
    calls: list[tuple[str, _Clipped]]
    more: int
    """Calls that are not shown."""


def _texts(run: ScoredRun, at: int, share: float) -> _Texts:
    """Return what was said and done at a step, cut so that all steps of the run find room."""
    step = run.transcript.steps[at]
    speaks = bool(step.content.strip()) or not step.tool_calls
    calls = step.tool_calls[: max(int(MAX_CALLS * share), 1)]
    room = min(max(LOG_LENGTH // len(run.readings) // (speaks + len(calls)), MIN_TEXT), MAX_TEXT)
    room = _cut(room, share)

    def cut(text: str) -> _Clipped:
        whole = clean(text).strip("\n")
        return _Clipped(clip(whole, room), len(whole) - room)

    return _Texts(
        "Message" if step.role != "tool" else "Result, an error" if step.is_error else "Result",
        cut(step.content) if speaks else None,
        [(call.name, cut(_arguments(call))) for call in calls],
        len(step.tool_calls) - len(calls),
    )


def _arguments(call: TranscriptCall) -> str:
    """Return a call's arguments, one a line, texts as they are."""
    given = call.arguments
    if isinstance(given, dict) and given:
        return "\n".join(f"{key}: {value if isinstance(value, str) else _json(value)}" for key, value in given.items())
    return given if isinstance(given, str) else _json(given) if given else ""


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _pulls(reading: Reading) -> list[tuple[str, float]]:
    """Return the signs that take from the index, hardest first, each with its share of what is taken."""
    total = sum(reading.losses.values())
    if total <= 0 or (reading.risk is not None and reading.risk < QUIET):
        return []
    taken = sorted(((loss, name) for name, loss in reading.losses.items() if loss >= total / 100), reverse=True)
    return [(name, loss / total) for loss, name in taken[:MAX_SIGNS]]
