"""Small pieces of the page: badges, links, causes, who speaks."""

from __future__ import annotations

from coherence.baseline.vitals import VITALS
from coherence.core.decisions import KINDS, Decision
from coherence.core.lazy import lazy_regex
from coherence.core.readings import Band, Reading, excerpt, metric_of
from coherence.core.signs import said
from coherence.providers.transcript import Step
from coherence.report import svg
from coherence.report.score import QUIET, ScoredRun
from coherence.report.text import escape, isolated, number
from coherence.sensor.light import BANDS

CAUSE_LENGTH = 240
QUOTE_LENGTH = 60


def badge(band: Band) -> str:
    """Return a band's name on its colour."""
    return f'<span class="band {svg.band_class(band)}">{band}</span>'


def decided(decision: Decision, band: Band) -> str:
    """Return a decision on the colour of its light; ``continue`` has that of its band."""
    colour = band if decision.kind == "continue" else BANDS[KINDS.index(decision.kind)]
    return f'<span class="band {svg.band_class(colour)}">{decision.kind}</span>'


def anchor(position: int, reading: Reading | None = None) -> str:
    """Return the id of a run's section, or of the evidence of one of its readings."""
    return f"run-{position}" if reading is None else f"run-{position}-step-{reading.tick_seq}"


def step_anchor(position: int, step: int) -> str:
    """Return the id of the view of one step."""
    return f"run-{position}-at-{step}"


def breakable(name: str) -> str:
    """Return a run's name as HTML that breaks at its slashes and joints, not within a word."""
    return _JOINT.sub(r"\1<wbr>", isolated(name))


_JOINT = lazy_regex(r"(?<!<)([/_-])(?=\w)")


def why(run: ScoredRun, reading: Reading) -> str:
    """Return :meth:`ScoredRun.why` as HTML, with each quotation isolated and short."""
    asked = run.asked(reading)
    if asked is not None:
        return isolated(excerpt(asked.why, CAUSE_LENGTH))
    name = reading.worst()
    if name is None or (reading.scale and (reading.risk or 0.0) < QUIET):
        return "nothing stands out"
    pointed = evidence(run, reading, metric_of(name))
    return f"{sign(reading, name)}{f': {pointed}' if pointed else ''}"


def evidence(run: ScoredRun, reading: Reading, name: str, *, brief: bool = False) -> str:
    """Return what a metric points at, as HTML; empty if it points at nothing. ``brief``: a named step is not quoted."""
    found = reading.evidence.get(name)
    if found is None:
        return ""
    place = run.place(reading, found).strip()
    quoted = () if brief and place else found.texts
    quotes = " / ".join(f"“{isolated(excerpt(text, QUOTE_LENGTH))}”" for text in quoted)
    return " ".join(part for part in (place, quotes, isolated(found.why)) if part)


def sign(reading: Reading, name: str) -> str:
    """Return what a sign means; of a classic index the metric's name and value."""
    if reading.scale:
        return f"<b>{escape(said(name))}</b>"
    return f"<b>{escape(name)} {number(reading.metrics.get(name))}</b>"


def names_of(run: ScoredRun) -> list[str]:
    """Return the metrics to show: all but vitals that were never known."""
    names = dict.fromkeys(name for reading in run.readings for name in reading.metrics)
    known = {name for reading in run.readings for name, value in reading.metrics.items() if value is not None}
    return [name for name in names if name in known or name not in VITALS]


def who(step: Step) -> str:
    """Return who speaks at a step, and whether a call failed, as HTML."""
    parts = [step.role, *(part for part in (step.agent, step.tool_name) if part)]
    failed = ' <span class="failed">failed</span>' if step.is_error else ""
    return " · ".join(isolated(excerpt(part, QUOTE_LENGTH)) for part in parts) + failed
