"""Rows of guidance and refusals, and of their effect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from coherence.policy.one_call import OF_ONE_CALL
from coherence.tui.figures import ago, when
from coherence.tui.lines import Line, Part, clean, cut, named, wrapped
from coherence.tui.palette import MARKS

if TYPE_CHECKING:
    from coherence.views.shapes import FiringView, RefusalView, SessionView

ToldRow: TypeAlias = tuple[tuple[str, str], tuple[Line, ...]]
"""Kind and id of what was said, and its lines."""

VERDICTS = {
    "better": ("+", "better after it", "good"),
    "worse": ("-", "no better after it", "error"),
    "mixed": ("~", "mixed after it", "dim"),
    "same": ("=", "the same after it", "dim"),
    "": ("·", "", "dim"),
}
"""Verdict on what came after guidance -> its sign, its words and their style."""

REFUSED = MARKS["refusal"]
"""Sign of a refusal."""


def standing(view: SessionView) -> list[RefusalView]:
    """Return what a session is refused now, the newest first.

    What was refused for what the agent had done is over when its newest decision refuses nothing; a call that was
    refused for what it is itself stays refused.
    """
    blocked = view.line.decision == "block"
    found = [each for each in view.refusals if not each.unblocked and (blocked or {*each.rules} & {*OF_ONE_CALL})]
    return sorted(found, key=lambda each: -each.seq)


def name_of(told: FiringView | RefusalView) -> str:
    """Return the rules that spoke in guidance or a refusal."""
    if hasattr(told, "pattern"):
        return str(told.pattern)
    return ", ".join(told.rules) or f"refusal of {told.tool or 'all calls'}"


def firing_lines(firing: FiringView, width: int, now: float, *, most: int = 600) -> list[Line]:
    """Return what was said and its effect, indented."""
    lines: list[Line] = [
        (("  ", ""), (part, "accent")) for part in wrapped(f"“{firing.text or firing.pattern}”", width - 2, most=most)
    ]
    _, word, style = VERDICTS[firing.verdict]
    effect = f"{word}: {firing.effect}" if word else firing.effect
    label = f", labelled {firing.label}" if firing.label else ""
    if _is_known(firing):
        lines += [(("  ", ""), (part, style)) for part in wrapped(effect, width - 2)]
    state = f"{_state_of(firing)}, to compare" if firing.arm == "control" else _state_of(firing)
    about = f"{state}, {when(firing.ts, now)}, by {clean(firing.pattern)}{label}"
    return [*lines, *((("  ", ""), (part, "dim")) for part in wrapped(about, width - 2))]


def _state_of(firing: FiringView) -> str:
    return "withheld" if firing.arm == "control" else "delivered" if firing.delivered else "not delivered"


def _is_known(firing: FiringView) -> bool:
    """Tell whether there is a word on what came after: what was not delivered has no effect."""
    return firing.delivered or firing.arm == "control"


def refused_words(refusal: RefusalView) -> str:
    """Return what was refused, and how often a tool was."""
    if not refusal.tool:
        return "all calls"
    return f"{refusal.tool}{f', {refusal.count:,} times' if refusal.count > 1 else ''}"


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
    sign, word, style = VERDICTS[firing.verdict]
    names = "".join(named(firing.agent, firing.session, max(width // 3, 16)))
    who = f"{names}  " if agents else f"event {firing.seq}  "
    said: Line = (("  ", ""), (cut(f"“{firing.text or firing.pattern}”", width - 3), "accent"))
    effect: Line = (("  ", ""), (cut(f"{word}: {firing.effect}" if word else firing.effect, width - 3), style))
    state = f"{_state_of(firing)} {ago(now - firing.ts)} ago"
    head = _head((f"{sign} ", style), state, who + firing.pattern, firing.label, width)
    return ("firing", firing.id), (head, said, effect) if _is_known(firing) else (head, said)


def _refusal_row(refusal: RefusalView, width: int, now: float) -> ToldRow:
    state = "let through" if refusal.unblocked else "refused"
    events = f"events {refusal.since}–{refusal.seq}" if refusal.count > 1 else f"event {refusal.seq}"
    what = f"{events}  {refused_words(refusal)}"
    head = _head((f"{REFUSED} ", "red"), f"{state} {ago(now - refusal.ts)} ago", what, refusal.label, width)
    return ("refusal", refusal.id), (head, (("  ", ""), (cut(refusal.why, width - 3), "")))


def _head(sign: Part, state: str, what: str, label: str | None, width: int) -> Line:
    mark = f"  [{label}]" if label else ""
    return (
        sign,
        (f"{state}  ", "bold"),
        (cut(what, width - len(state) - len(mark) - 5), "dim"),
        (mark, {"good": "good", "bad": "error"}.get(label or "", "dim")),
    )
