"""Every step of a run, one view each: what was said and done, what it took, and the light after it."""

from __future__ import annotations

import json
from typing import Any

from coherence.core.readings import Band, Counters, Reading, excerpt, span
from coherence.providers.transcript import TranscriptCall
from coherence.report.parts import QUOTE_LENGTH, badge, decided, evidence, names_of, sign, step_anchor, who, why
from coherence.report.score import QUIET, ScoredRun
from coherence.report.text import clean, clip, escape, isolated, number

LOG_LENGTH = 40_000
"""Characters that the steps of a run share, so that the page of a long run stays small."""
MIN_TEXT, MAX_TEXT = 300, 4_000
"""Characters of one text that are shown at least and at most."""
MAX_CALLS = 8
MAX_SIGNS = 5
LONG_S = 120.0
"""Seconds from which on a latency is told in minutes."""


def log(position: int, run: ScoredRun) -> str:
    """Return a view of every step; where scripts run, one is shown at a time."""
    views = "".join(_step(position, run, step) for step in range(len(run.readings)))
    return f'<details class="log"><summary>Every step: what was said, done and spent</summary>{views}</details>'


def _step(position: int, run: ScoredRun, at: int) -> str:
    """Show one step: what was said and done, what it took, and the light after it."""
    step, reading = run.transcript.steps[at], run.readings[at]
    known = reading.coherence_index is not None
    light = [f"{badge(reading.band)} index {number(reading.coherence_index)}" if known else badge(Band.UNKNOWN)]
    if run.decisions:
        light.append(f"decision {decided(run.decisions[at], reading.band)}")
    if run.appraisals:
        light.append(f"pressure {number(run.appraisals[at].pressure)}")
    light.append(f"coverage {reading.coverage:.0%}")
    cause = why(run, reading) if known else "nothing was measured yet"
    parts = [f'<p class="lit">{" · ".join(light)}</p><p class="cause">{cause}</p>', _spent(run, at)]
    speaks = bool(step.content.strip()) or not step.tool_calls
    texts = speaks + min(len(step.tool_calls), MAX_CALLS)
    room = min(max(LOG_LENGTH // len(run.readings) // texts, MIN_TEXT), MAX_TEXT)
    if speaks:
        what = "Message" if step.role != "tool" else "Result, an error" if step.is_error else "Result"
        parts.append(_text(what, step.content, room))
    parts += [
        _text(f"Call of {isolated(excerpt(call.name, QUOTE_LENGTH))}", _arguments(call), room)
        for call in step.tool_calls[:MAX_CALLS]
    ]
    if len(step.tool_calls) > MAX_CALLS:
        parts.append(f'<p class="cut">{len(step.tool_calls) - MAX_CALLS} more calls are not shown</p>')
    parts.append(_pulls(reading))
    pointed = _pointed(run, reading)
    if pointed:
        parts.append(f'<h5>What the metrics point at</h5><ul class="points">{pointed}</ul>')
    head = f'<h4>Step {at} <span class="who">{who(step)}</span></h4>'
    return f'<article class="at" id="{step_anchor(position, at)}">{head}{"".join(parts)}</article>'


def _spent(run: ScoredRun, at: int) -> str:
    """Say how long a step took, its tokens and its cost, and what of them nobody recorded."""
    step = run.transcript.steps[at]
    used = step.usage or Counters()
    told = {
        "latency": _took(run.latency_s(at)),
        "tokens in": used.tokens_in is not None and f"{used.tokens_in:,}",
        "tokens out": used.tokens_out is not None and f"{used.tokens_out:,}",
        "cost": used.cost_usd is not None and f"${used.cost_usd:,.4f}",
    }
    said = [f"<span>{name} <b>{value}</b></span>" for name, value in told.items() if value]
    missing = [name for name, value in told.items() if not value]
    if missing:
        said.append(f"<span>{', '.join(missing)}: not recorded</span>")
    return f'<p class="spent">{"".join(said)}</p>'


def _took(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    return f"{seconds:.1f} s" if seconds < LONG_S else span(seconds)


def _text(what: str, text: str, room: int) -> str:
    """Show a text under a heading, and say how much of it was cut; ``what`` is HTML."""
    body = escape(clip(text, room))
    if not body:
        return f"<h5>{what}</h5><p><i>(empty)</i></p>"
    left = len(clean(text).strip("\n")) - room
    cut = f'<p class="cut">{left:,} more characters are not shown</p>' if left > 0 else ""
    return f'<h5>{what}</h5><div class="said" dir="auto">{body}</div>{cut}'


def _arguments(call: TranscriptCall) -> str:
    """Return a call's arguments, one a line, texts as they are."""
    given = call.arguments
    if isinstance(given, dict) and given:
        return "\n".join(f"{key}: {value if isinstance(value, str) else _json(value)}" for key, value in given.items())
    return given if isinstance(given, str) else _json(given) if given else ""


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _pulls(reading: Reading) -> str:
    """List the signs that take from the index, hardest first, each with its share of what is taken."""
    total = sum(reading.losses.values())
    taken = sorted(((loss, name) for name, loss in reading.losses.items() if loss >= total / 100), reverse=True)
    if total <= 0 or (reading.risk is not None and reading.risk < QUIET):
        return ""
    items = "".join(
        f'<li>{sign(reading, name)}<span>{loss / total:.0%}</span><progress value="{loss / total:.2f}"></progress></li>'
        for loss, name in taken[:MAX_SIGNS]
    )
    lowers = f"risk of {reading.risk:.2f}" if reading.risk is not None else f"{total:.2f} that the index lacks"
    return f'<h5>Signs, by their share of the {lowers}</h5><ul class="losses">{items}</ul>'


def _pointed(run: ScoredRun, reading: Reading) -> str:
    """List what each metric points at; the hover text of its chart shows it too."""
    return "".join(
        f'<li data-metric="{at}"><b>{escape(name)}</b>: {pointed}</li>'
        for at, name in enumerate(names_of(run))
        if (pointed := evidence(run, reading, name, brief=True))
    )
