"""One step in words: what was said and done, what was measured, what was found and on which evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len

from coherence.core.signs import said
from coherence.tui.figures import UNKNOWN, cost, number, when
from coherence.tui.guidance_rows import firing_lines, refused_words
from coherence.tui.lines import MAX_TEXT, Line, Part, clean, cut, fitted, width_of, wrapped
from coherence.tui.palette import DECISION_STYLES, light

if TYPE_CHECKING:
    from coherence.views.shapes import EventView, EvidenceView, FindingView, StepView

INDENT = "  "
METRIC = 37
"""Cells of a metric in the table."""

BEFORE = 300
"""Characters that are shown before a highlighted part."""


def lines_of(step: StepView, width: int, now: float, *, whole: bool = False, sought: str = "") -> list[Line]:
    """Return all of a step, from what matters most to what matters least.

    Parameters
    ----------
    step : StepView
        The step.
    width : int
        Cells.
    now : float
        Unix time in seconds.
    whole : bool
        Show up to 100,000 characters of each text rather than its beginning.
    sought : str
        Text that is marked where it stands in what happened.
    """
    most = 100_000 if whole else MAX_TEXT
    lines: list[Line] = [_head(step, width, now)]
    if step.cause and all(finding.rule != step.cause for finding in step.findings):
        lines += _texts(said(step.cause), width, DECISION_STYLES[step.decision], most)
    if step.index is None and step.message and not (step.findings or step.refusals or step.firings):
        lines += _texts(step.message, width, DECISION_STYLES[step.decision], most)
    for firing in step.firings:
        lines += [((" guidance", "bold"),), *firing_lines(firing, width, now)]
    for finding in step.findings:
        lines += _finding(finding, width)
    for refusal in step.refusals:
        state = f"let through: {refusal.reason}" if refusal.unblocked else "not let through"
        lines += [((" refused ", "red"), (clean(refused_words(refusal)), "tool"), (f"  {state}", "dim"))]
        lines += _texts(refusal.why, width, "", most)
    lines.append(((" what happened", "bold"),))
    for event in step.events:
        lines += _event(event, width, most, sought)
    lines += _losses(step, width)
    if step.metrics:
        lines += [((" measured", "bold"), ("  ↑ high is good  ↓ low is good", "dim")), *_metrics(step, width)]
    for error in step.errors:
        lines += _texts(f"failed: {error}", width, "error", most)
    return lines


def line_of(lines: Sequence[Line], seq: int) -> int:
    """Return which line to look at for an event: its first one, or a later one with the sought text; 0 without it."""
    first = next((at for at, line in enumerate(lines) if line[:1] == (_number(seq),)), None)
    if first is None:
        return 0
    for at, line in enumerate(lines[first + 1 :], first + 1):
        if len(line[0][0]) and line[0][0].strip():  # the next event
            break
        if any(style == "mark" for _, style in line):
            return first if at - first < NEAR else at - 1
    return first


NEAR = 6
"""Lines after its first one at which a text in an event is in view with it."""


def _number(seq: int) -> Part:
    return f"{seq:>5} ", "dim"


def _head(step: StepView, width: int, now: float) -> Line:
    measured = [
        ("  pressure ", "dim"),
        (number(step.pressure), "pressure"),
        (f"  {step.decision}", DECISION_STYLES[step.decision]),
    ]
    events = f"  events {step.first}–{step.last}" if step.last > step.first else f"  event {step.first}"
    lived = [event.ts for event in step.events if event.kind != "feedback"]  # a label may come days later
    at = f"  {when(lived[-1], now)}" if lived else ""
    head: Line = ((f" step {step.step}  ", "title"), *light(step.band, step.index), *measured, (events, "dim"))
    room = width - width_of(head)
    return (*head, (at if len(at) <= room else at.partition(" (")[0], "dim"))


def _texts(text: str, width: int, style: str, most: int) -> list[Line]:
    return [((INDENT, ""), (part, style)) for part in wrapped(text, width - len(INDENT), most=most)]


def _finding(finding: FindingView, width: int) -> list[Line]:
    score = "" if finding.score is None else f"  score {finding.score:.2f}"
    needed = "" if finding.threshold is None else f", needs {finding.threshold:.2f}"
    lines: list[Line] = [
        ((" found ", "bold"), (clean(finding.rule), "orange"), (f"  {finding.severity}{score}{needed}", "dim"))
    ]
    lines += _texts(finding.why, width, "", MAX_TEXT)
    if finding.action:
        lines += _texts(f"for you: {finding.action}", width, "accent", MAX_TEXT)
    same: dict[tuple[str, int, int], list[EvidenceView]] = {}
    for evidence in finding.evidence:
        same.setdefault((evidence.text, evidence.start, evidence.end), []).append(evidence)
    for group in same.values():
        lines += _evidence(group, width)
    return lines


def _evidence(same: Sequence[EvidenceView], width: int) -> list[Line]:
    """Return the text of events that say the same, with the part that the finding rests on in reverse."""
    numbers = ", ".join(str(evidence.seq) for evidence in same)
    name = f"  seen at event{'' if len(same) == 1 else 's'} {numbers}: "
    text, start, end = same[0].text, same[0].start, same[0].end
    if end <= start:
        return [((name, "dim"), (cut(text, width - cell_len(name)), ""))]
    begin = max(start - BEFORE, 0)
    marked = (
        _words(text[begin:start], "")
        + _words(text[start:end][:MAX_TEXT], "mark")
        + _words(text[end : end + BEFORE], "")
    )
    words = [("… ", "dim"), *marked] if begin else marked
    return [((name.rstrip(), "dim"),), *_flow(words, width)]


def _words(text: str, style: str) -> list[Part]:
    return [(part, style) for part in clean(text).split(" ") if part]


def _flow(words: Sequence[Part], width: int) -> list[Line]:
    """Return words as lines; what is marked has no gaps."""
    lines: list[Line] = []
    parts: list[Part] = [("    ", "")]
    size = 4
    for word, style in words:
        text = cut(word, width - 5)
        length = cell_len(text) + 1
        if size + length > width and len(parts) > 1:
            lines.append(tuple(parts))
            parts, size = [("    ", "")], 4
        if len(parts) > 1:
            parts.append((" ", style if parts[-1][1] == style else ""))
        parts.append((text, style))
        size += length
    return [*lines, tuple(parts)]


def _event(event: EventView, width: int, most: int, sought: str) -> list[Line]:
    figures = []
    if event.tokens_in is not None:
        figures.append(f"{event.tokens_in:,} tokens in")
    if event.tokens_out is not None:
        figures.append(f"{event.tokens_out:,} tokens out")
    if event.cost_usd is not None:
        figures.append(cost(event.cost_usd))
    if event.duration_s is not None:
        figures.append(f"{event.duration_s:.2f} s")
    name = " ".join(
        part for part in (event.role or event.kind.replace("_", " "), "failed" if event.error else "") if part
    )
    head: list[tuple[str, str]] = [
        _number(event.seq),
        (clean(name), "error" if event.error else "accent"),
        (f" {clean(event.tool)}" if event.tool else "", "tool"),
        (f"  {clean(event.model)}" if event.model else "", "dim"),
        (f"  {', '.join(figures)}" if figures else "", "dim"),
    ]
    lines: list[Line] = [tuple(part for part in head if part[0])]
    for text in (event.call, event.text):
        if text:
            style = "error" if event.error else ""
            lines += [(("      ", ""), *_marked(part, sought, style)) for part in wrapped(text, width - 6, most=most)]
    return lines


def _marked(text: str, sought: str, style: str) -> list[Part]:
    """Return a text with what was searched for in reverse, in whatever case."""
    lowered, wanted = text.lower(), sought.lower()
    if not wanted or wanted not in lowered or len(lowered) != len(text):
        return [(text, style)]
    parts: list[Part] = []
    end = 0
    while (at := lowered.find(wanted, end)) >= 0:
        parts += [(text[end:at], style), (text[at : at + len(wanted)], "mark")]
        end = at + len(wanted)
    return [*parts, (text[end:], style)]


def _losses(step: StepView, width: int) -> list[Line]:
    """Return what each sign takes from the index, and why, the largest first."""
    lines: list[Line] = []
    for sign, loss in sorted(step.losses.items(), key=lambda each: -each[1]):
        if loss >= LEAST_LOSS:
            name = f"  −{loss:.2f}  {clean(sign)}  "
            lines.append(((name, "orange"), (cut(step.told.get(sign, said(sign)), width - cell_len(name)), "")))
    return [((" what lowers the index", "bold"),), *lines] if lines else []


LEAST_LOSS = 0.005
"""Loss of the index that is worth a line."""


def _metrics(step: StepView, width: int) -> list[Line]:
    """Return a table of metrics, those that cost the index most first, in as many columns as there is room for."""
    cells = []
    for name in sorted(step.metrics, key=lambda each: (-step.losses.get(each, 0.0), step.metrics[each] is None)):
        value = step.metrics[name]
        better = "↓" if name in step.inverted else "↑"
        cells.append((name, UNKNOWN.rjust(4) if value is None else f"{value:.2f}", better))
    across = max(width // METRIC, 1)
    lines: list[Line] = []
    for at in range(0, len(cells), across):
        parts: list[tuple[str, str]] = []
        for name, number_text, better in cells[at : at + across]:
            parts += [(f"  {fitted(name, METRIC - 9)} ", "dim"), (number_text, ""), (f" {better}", "dim")]
        lines.append(tuple(parts))
    return lines
