"""Cards for notebooks: one object as a small piece of HTML, its light first, without a style sheet or a script.

Words and lines take their colour from the notebook, so that a card is readable in a light and in a dark one. Whatever
an agent has written is cut and escaped, and a card stays below 40 kB.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape

from coherence.core.decisions import KINDS, Appraisal, Decision, Finding
from coherence.core.events import Spent
from coherence.core.lazy import lazy_regex
from coherence.core.readings import Band, Reading, excerpt, metric_of, number_of, scale_in_words
from coherence.core.signs import said
from coherence.core.strip import COLOURS, FROM_BEST, SIGNS, badge_html, readings_svg

MAX_SIGNS = 5
MAX_FINDINGS = 5
MAX_METRICS = 30
TEXT_LENGTH = 300
PART_LENGTH = 160
FACT_LENGTH = 120
NAME_LENGTH = 60

NEXT = "\n"
"""Between parts, so that their words stay apart where a notebook takes the tags away."""
_JOINT = lazy_regex(r"[/_.:-](?=\w)")
_LINE = "1px solid rgba(128,128,128,.45)"


def band_of(decision: Decision | None) -> Band:
    """Return the colour that a decision asks for at least; unknown for one that asks for none."""
    return (
        FROM_BEST[KINDS.index(decision.kind) + 1]
        if decision is not None and decision.kind != "continue"
        else Band.UNKNOWN
    )


def light_of(reading: Reading | None, decision: Decision | None) -> Band:
    """Return the worse of a reading's band and the colour that a decision asks for."""
    band = Band.UNKNOWN if reading is None else reading.band
    return max(band, band_of(decision), key=FROM_BEST.index)


def card(band: Band, title: str, facts: Iterable[str] = (), parts: Iterable[str] = (), *, word: str = "") -> str:
    """Return a card: the light, a title and facts in a line, and parts below.

    Parameters
    ----------
    band : Band
        The light.
    title : str
        Text; escaped here.
    facts : iterable of str
        Short texts; empty ones are left out, and all are escaped here.
    parts : iterable of str
        Pieces of HTML; empty ones are left out.
    word : str
        Text of the light. Default: shape, letter and word of the band.

    Examples
    --------
    >>> "&lt;b&gt;" in card(Band.GREEN, "<b>"), "<b>&" in card(Band.GREEN, "<b>")
    (True, False)
    """
    told = " · ".join(_text(fact, FACT_LENGTH) for fact in facts if fact)
    head = f'<div>{badge_html(band, word)} <b style="overflow-wrap:break-word">{breakable(title, 2 * NAME_LENGTH)}</b>'
    head += f' <span style="opacity:.8">{told}</span></div>' if told else "</div>"
    style = (
        f"border:{_LINE};border-left:6px solid {COLOURS[band]};border-radius:6px;padding:8px 12px;margin:2px 0;"
        "max-width:60em;font:13px/1.55 system-ui,sans-serif;color:inherit;text-align:left"
    )
    return f'<div style="{style}">{head}{"".join(f"{NEXT}{part}" for part in parts if part)}</div>'


def breakable(name: str, length: int = NAME_LENGTH) -> str:
    """Return a name as HTML, cut and escaped; a line breaks it at its joints, not within a word.

    Examples
    --------
    >>> breakable("builder/2026-11-28"), breakable("<b>")
    ('builder/<wbr>2026-<wbr>11-<wbr>28', '&lt;b&gt;')
    """
    return escape(_JOINT.sub("\\g<0>\0", excerpt(name, length))).replace("\0", "<wbr>")


def paragraph(text: str, *, length: int = TEXT_LENGTH) -> str:
    """Return a line of text as HTML, cut and escaped; nothing of an empty one."""
    shown = _text(text, length)
    return f'<div style="margin-top:4px;overflow-wrap:anywhere">{shown}</div>' if shown else ""


def listed(items: Iterable[str]) -> str:
    """Return pieces of HTML as a list; nothing of none."""
    rows = "".join(f"<li>{item}</li>" for item in items)
    style = "margin:4px 0 0;padding-left:1.4em;overflow-wrap:anywhere"
    return f'<ul style="{style}">{rows}</ul>' if rows else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; its cells are HTML, its head is text."""
    cell = f"padding:2px 10px 2px 0;text-align:left;vertical-align:top;border-bottom:{_LINE}"
    names = "".join(f'<th scope="col" style="{cell};font-weight:600">{escape(name)}</th>' for name in head)
    body = "".join("<tr>" + " ".join(f'<td style="{cell}">{each}</td>' for each in row) + "</tr>" for row in rows)
    style = "border-collapse:collapse;margin-top:6px;color:inherit;font-variant-numeric:tabular-nums"
    drawn = f'<table style="{style}"><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div style="overflow-x:auto">{drawn}</div>'


def folded(summary: str, inside: str) -> str:
    """Return HTML that is shown when its summary is chosen; nothing of nothing."""
    if not inside:
        return ""
    return (
        f'<details style="margin-top:6px"><summary style="cursor:pointer">{escape(summary)}</summary>{inside}</details>'
    )


def strip_part(drawing: str) -> str:
    """Return a strip as a part of a card."""
    return f'<div style="margin-top:6px">{drawing}</div>' if drawing else ""


def reading_card(reading: Reading) -> str:
    """Return a reading as a card: light, cause, the signs that take most, and its metrics."""
    facts = [
        f"tick {reading.tick_seq}",
        moment(reading.ts),
        f"{reading.coverage:.0%} of the weight is known",
        scale_in_words(reading.scale),
        number_of(len(reading.errors), "error") if reading.errors else "",
    ]
    worst = sorted((loss, name) for name, loss in reading.losses.items() if loss > 0)[::-1][:MAX_SIGNS]
    signs = []
    for loss, name in worst:
        found = reading.evidence.get(metric_of(name))
        why = f": {_text(str(found), PART_LENGTH)}" if found is not None else ""
        signs.append(f"<b>{_text(said(name), NAME_LENGTH)}</b> takes {loss:.2f}{why}")
    errors = [f"error in {_text(str(error), PART_LENGTH)}" for error in reading.errors[:MAX_FINDINGS]]
    parts = [paragraph(cause_line(reading)), listed([*signs, *errors]), folded("metrics", _metrics(reading))]
    return card(reading.band, index_in_words(reading), facts, parts)


def decision_card(decision: Decision) -> str:
    """Return a decision as a card: its colour, its message, the findings that are active, and guidance."""
    title = f"decision at event {decision.seq}" if decision.seq else "decision before the first event"
    guidance = decision.guidance
    told = ""
    if guidance is not None:
        words = guidance.text or guidance.withheld
        state = "the agent is told" if guidance.text else "withheld, to compare"
        told = paragraph(f"{state} ({guidance.pattern}): {words}")
    active = [finding for finding in decision.findings if finding.active]
    parts = [paragraph(decision.message or NOTHING_TO_SAY), listed(map(_finding, active[:MAX_FINDINGS])), told]
    if len(active) > MAX_FINDINGS:
        parts.append(paragraph(f"and {number_of(len(active) - MAX_FINDINGS, 'finding')} more"))
    band = band_of(decision)
    sign = "▷" if band is Band.UNKNOWN else SIGNS[band]
    return card(band, title, (), parts, word=f"{sign} {decision.kind}")


NOTHING_TO_SAY = "no rule has anything to say"


def monitor_card(
    name: str,
    readings: Sequence[Reading],
    *,
    appraisal: Appraisal | None = None,
    decision: Decision | None = None,
    spent: Spent | None = None,
    goal: str = "",
    closed: bool = False,
    private: bool = False,
) -> str:
    """Return a monitor as a card: the light now, why, and a strip of its newest readings.

    Parameters
    ----------
    name : str
        Agent and session.
    readings : sequence of Reading
        The newest, oldest first.
    appraisal : Appraisal, optional
        Of the newest tick.
    decision : Decision, optional
        The newest one.
    spent : Spent, optional
        What the agent has used.
    goal : str
        Its task.
    closed : bool
        True once nothing more is recorded.
    private : bool
        True where no text of the agent may be kept: neither goal nor message is shown.
    """
    newest = readings[-1] if readings else None
    facts = [
        "" if newest is None else index_in_words(newest),
        "" if decision is None else f"decision {decision.kind}",
        "" if appraisal is None else f"pressure {appraisal.pressure:.2f}",
        _used(spent),
        "" if newest is None else moment(newest.ts),
        "closed" if closed else "",
    ]
    if newest is None:
        why = "Nothing was measured yet: it is, after the agent's first message or tool result."
    else:
        said_why = "" if private or decision is None else decision.message
        why = said_why or cause_line(newest)
    task = "" if private or not goal.strip() else f"Goal: {goal}"
    rules = ""
    if private and decision is not None:
        rules = ", ".join(finding.rule for finding in decision.findings if finding.active)
    parts = [
        paragraph(task),
        paragraph(why),
        paragraph(f"active rules: {rules}" if rules else ""),
        strip_part(readings_svg(readings)),
    ]
    return card(light_of(newest, decision), name, facts, parts)


def index_in_words(reading: Reading) -> str:
    """Return the index of a reading for people."""
    return "index unknown" if reading.coherence_index is None else f"index {reading.coherence_index:.2f}"


def cause_line(reading: Reading) -> str:
    """Say what lowers a reading most; only words of this package and names of rules are in it."""
    if reading.cause and reading.cause not in reading.losses:
        return f"the rule {reading.cause} asks for {reading.band.value}" if reading.band is not Band.UNKNOWN else ""
    if reading.cause and reading.band is not Band.GREEN:
        return said(reading.cause)
    if reading.coherence_index is None:
        return "nothing was known at this tick"
    return "nothing stands out" if reading.band is Band.GREEN else said(reading.worst() or reading.cause)


def moment(ts: float) -> str:
    """Return a Unix time as date and time in UTC; empty where it is none.

    Examples
    --------
    >>> moment(1795828766.25), moment(0.0)
    ('2026-11-28 01:19:26 UTC', '')
    """
    try:
        return f"{datetime.fromtimestamp(ts, UTC):%Y-%m-%d %H:%M:%S} UTC" if ts > 0 else ""
    except (OverflowError, ValueError, OSError):
        return ""


def _used(spent: Spent | None) -> str:
    if spent is None:
        return ""
    told = [number_of(spent.calls, "call")] if spent.calls else []
    told += [number_of(spent.tokens, "token")] if spent.tokens else []
    told += [f"${spent.cost_usd:,.4f}"] if spent.cost_usd else []
    return ", ".join(told)


def _finding(finding: Finding) -> str:
    events = f" (events {', '.join(map(str, finding.evidence))})" if finding.evidence else ""
    action = f" <i>{_text(finding.action)}</i>" if finding.action else ""
    strength = f"{finding.score:.2f}, needs {finding.threshold:.2f}"
    name = f"<b>{_text(finding.rule, NAME_LENGTH)}</b> {finding.severity} {strength}"
    return f"{name}: {_text(finding.why)}{events}{action}"


def _metrics(reading: Reading) -> str:
    if not reading.metrics:
        return ""
    rows = []
    for name, value in [*reading.metrics.items()][:MAX_METRICS]:
        shown = "unknown" if value is None else f"{value:.2f}"
        rows.append((_text(name, NAME_LENGTH), shown, _text(reading.unknown.get(name, ""), NAME_LENGTH)))
    left = len(reading.metrics) - MAX_METRICS
    more = paragraph(f"and {number_of(left, 'metric')} more") if left > 0 else ""
    return table(("metric", "value", "why unknown"), rows) + more


def _text(text: str, length: int = TEXT_LENGTH) -> str:
    return escape(excerpt(text, length))
