"""Rows of guidance and refusals, and of their effect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from coherence.tui.figures import ago, when
from coherence.tui.lines import Line, Part, clean, cut, wrapped

if TYPE_CHECKING:
    from coherence.views.shapes import FiringView, RefusalView

ToldRow: TypeAlias = tuple[tuple[str, str], tuple[Line, ...]]
"""Kind and id of what was said, and its lines."""

HELPED = {True: ("helped", "good"), False: ("did not help", "error"), None: ("", "dim")}


def firing_lines(firing: FiringView, width: int, now: float, *, most: int = 600) -> list[Line]:
    """Return what was said and its effect, indented."""
    lines: list[Line] = [
        (("  ", ""), (part, "accent")) for part in wrapped(f"“{firing.text or firing.pattern}”", width - 2, most=most)
    ]
    word, style = HELPED[firing.helped]
    effect = f"{word}: {firing.effect}" if word else firing.effect
    state = (
        "withheld, to compare"
        if firing.arm == "control"
        else "delivered"
        if firing.delivered
        else "offered, not known to have arrived"
    )
    label = f", labelled {firing.label}" if firing.label else ""
    lines += [(("  ", ""), (part, style)) for part in wrapped(effect, width - 2)]
    lines.append(((f"  {state} {when(firing.ts, now)}, by {clean(firing.pattern)}{label}", "dim"),))
    return lines


def told_rows(
    firings: Sequence[FiringView], refusals: Sequence[RefusalView], width: int, now: float, *, agents: bool = False
) -> list[ToldRow]:
    """Return a row for each firing and each refusal, the newest first.

    Parameters
    ----------
    firings, refusals : sequence of FiringView, of RefusalView
        In any order.
    width, now : int, float
        Cells and Unix time.
    agents : bool
        Name agent and session.
    """
    rows = [(each.ts, each.seq, _firing_row(each, width, now, agents=agents)) for each in firings]
    rows += [(each.ts, each.seq, _refusal_row(each, width, now)) for each in refusals]
    return [row for _, _, row in sorted(rows, key=lambda each: each[:2], reverse=True)]


def _firing_row(firing: FiringView, width: int, now: float, *, agents: bool) -> ToldRow:
    word, style = HELPED[firing.helped]
    sign = {True: "+", False: "-", None: "·"}[firing.helped]
    who = f"{firing.agent} · {firing.session}  " if agents else f"event {firing.seq}  "
    state = "withheld" if firing.arm == "control" else "told" if firing.delivered else "offered"
    said: Line = (("  ", ""), (cut(f"“{firing.text or firing.pattern}”", width - 3), "accent"))
    effect: Line = (("  ", ""), (cut(f"{word}: {firing.effect}" if word else firing.effect, width - 3), style))
    head = _head((f"{sign} ", style), f"{state} {ago(now - firing.ts)} ago", who + firing.pattern, firing.label, width)
    return ("firing", firing.id), (head, said, effect)


def _refusal_row(refusal: RefusalView, width: int, now: float) -> ToldRow:
    state = "let through" if refusal.unblocked else "refused"
    what = f"event {refusal.seq}  {refusal.tool or 'all calls'}"
    head = _head(("x ", "red"), f"{state} {ago(now - refusal.ts)} ago", what, refusal.label, width)
    return ("refusal", refusal.id), (head, (("  ", ""), (cut(refusal.why, width - 3), "")))


def _head(sign: Part, state: str, what: str, label: str | None, width: int) -> Line:
    mark = f"  [{label}]" if label else ""
    return (
        sign,
        (f"{state}  ", "bold"),
        (cut(what, width - len(state) - len(mark) - 5), "dim"),
        (mark, {"good": "good", "bad": "error"}.get(label or "", "dim")),
    )
