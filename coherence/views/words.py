"""Words of a session's row: its goal, and why its light is what it is."""

from __future__ import annotations

import msgspec

from coherence.core.decisions import Decision
from coherence.core.events import Feedback, Goal, Message, decode_event, text_of
from coherence.core.readings import POLICY, POLICY_IN_WORDS, excerpt
from coherence.core.signs import SAYS, said
from coherence.monitor.codec import decode_decision
from coherence.store.rows import EventRow

MAX_WORDS = 200
"""Characters of a goal and of a cause."""


def read_decision(data: str) -> Decision | None:
    """Return a recorded decision, ``None`` if this version cannot read it."""
    try:
        return decode_decision(data)
    except (msgspec.DecodeError, UnicodeError):
        return None


COMMENT = "labelled {label}: "
"""Beginning of the note that keeps the comment on a session's label."""


def comment_text(event: EventRow, label: str | None) -> str:
    """Return the comment on a label that an event keeps; empty if it keeps none, or that of another label."""
    try:
        found = decode_event(event.data)
    except ValueError:
        return ""
    lead = COMMENT.format(label=label)
    return found.text.removeprefix(lead) if isinstance(found, Feedback) and found.text.startswith(lead) else ""


class _Cause(msgspec.Struct):
    cause: str = ""


class _Light(msgspec.Struct):
    reading: _Cause = msgspec.field(default_factory=_Cause)


_LIGHT = msgspec.json.Decoder(_Light)


def goal_text(event: EventRow | None) -> str:
    """Return the text of a goal, or of the request that stands for it, on one line; empty if it is not kept."""
    if event is None or event.kind not in ("goal", "message"):
        return ""
    try:
        found = decode_event(event.data)
    except ValueError:
        return ""
    return excerpt(text_of(found), MAX_WORDS) if isinstance(found, Goal | Message) else ""


def is_cause(rule: str, cause: str) -> bool:
    """Tell whether the cause of a band is a rule."""
    return cause in (rule, f"rule.{rule}")


def cause_text(decided: EventRow | None, measured: EventRow | None, most: int = MAX_WORDS) -> str:
    """Return why a session's light is what it is, or why its newest call was refused, on one line.

    Parameters
    ----------
    decided, measured : EventRow or None
        The newest decision, and the newest reading.
    most : int
        Characters.
    """
    made = None if decided is None or decided is measured else decided.decision
    if made is not None and made.kind in ("warn", "block"):
        refused = read_decision(made.data)
        return "" if refused is None else excerpt(refused.message, most)
    read = None if measured is None else measured.reading
    if measured is None or read is None:
        return ""
    if read.band in (None, "green"):  # no sign to name, but a rule may have asked for more than to go on
        kind = "continue" if measured.decision is None else measured.decision.kind
        asked = read_decision(measured.decision.data) if measured.decision and kind in ("warn", "block") else None
        return "" if asked is None else excerpt(asked.message, most)
    try:
        cause = _LIGHT.decode(read.data).reading.cause
    except (msgspec.DecodeError, UnicodeError):
        return ""
    decision = None if measured.decision is None else read_decision(measured.decision.data)
    if cause == POLICY:
        return excerpt((decision.message if decision is not None else "") or POLICY_IN_WORDS, most)
    # a rule's own sentence says more than its name
    findings = () if decision is None else decision.findings
    why = next((each.why for each in findings if each.active and is_cause(each.rule, cause)), "")
    # where it begins with the call, all that is seen on a line are arguments
    lead = f"{SAYS[cause]}: " if why and cause in SAYS and not cause.startswith("rule.") else ""
    return excerpt(f"{lead}{why or said(cause)}", most)
