"""Events as the faces show them, and the part of a text that a finding rests on."""

from __future__ import annotations

import itertools

import msgspec

from coherence.core.events import (
    Feedback,
    Goal,
    Message,
    Outcome,
    Ticked,
    ToolCall,
    ToolResult,
    Usage,
    decode_event,
    text_of,
)
from coherence.core.lazy import lazy_regex
from coherence.store.rows import EventRow
from coherence.views.shapes import EventView, EvidenceView

MAX_TEXT = 20_000
"""Characters of a text that are shown."""

MAX_PART = 400
"""Characters that are highlighted, unless a quote is longer."""

_QUOTED = lazy_regex(r"“([^”]{2,})”|\"([^\"]{2,})\"|`([^`]{2,})`|'([^']{3,})'(?!\w)")
_WORD = lazy_regex(r"\w{5,}")
_SENTENCE_END = lazy_regex(r"[.!?](?=\s)|\n")


def view_of(row: EventRow) -> EventView:
    """Return an event as it is shown; one that this version cannot read has its kind and its JSON."""
    try:
        event = decode_event(row.data)
    except ValueError:
        return EventView(row.seq, row.ts, row.kind, text="" if row.kind == "purged" else row.data[:MAX_TEXT])
    seq, ts, kind, text = row.seq, row.ts, row.kind, text_of(event)[:MAX_TEXT]
    match event:
        case Message():
            if event.firing is not None and not text:
                text = f"guidance {event.firing} has reached the agent"
            return EventView(seq, ts, kind, role=event.role, text=text, model=event.model or "")
        case ToolCall():
            call = bytes(event.arguments).decode("utf-8", "replace")[:MAX_TEXT]
            return EventView(seq, ts, kind, role="assistant", tool=event.tool_name, call=call)
        case ToolResult():
            return EventView(
                seq, ts, kind, role="tool", tool=event.tool_name or "", text=text, error=event.error,
                duration_s=event.duration_s,
            )  # fmt: skip
        case Usage():
            return EventView(
                seq, ts, kind, tokens_in=event.input_tokens, tokens_out=event.output_tokens, cost_usd=event.cost_usd,
                duration_s=event.duration_s, model=event.model or "",
            )  # fmt: skip
        case Goal():
            return EventView(seq, ts, kind, role="user", text=text)
        case Outcome():
            return EventView(seq, ts, kind, text=text or ended_in_words(event), error=event.success is False)
        case Feedback():
            return EventView(seq, ts, kind, text=text or judged_in_words(event))
        case Ticked():
            asked = event.arguments
            call = "" if isinstance(asked, msgspec.UnsetType) else bytes(asked).decode("utf-8", "replace")[:MAX_TEXT]
            return EventView(seq, ts, kind, tool=event.tool_name or "", text=event.reason, call=call)
        case _:
            return EventView(seq, ts, kind, text=text, error=kind == "fault")


def ended_in_words(event: Outcome) -> str:
    """Return how a task ended."""
    score = "" if event.score is None else f"score {event.score:.2f}"
    success = {True: "the task succeeded", False: "the task failed", None: ""}[event.success]
    return ", ".join(part for part in (success, score) if part) or "the task ended"


def judged_in_words(event: Feedback) -> str:
    """Return a judgement without words in words."""
    about = "" if event.about is None else f" of {event.about}"
    return f"judgement{about}: {'none' if event.score is None else f'{event.score:+.1f}'}"


def evidence_of(row: EventRow, why: str) -> EvidenceView:
    """Return an event that a finding rests on, with the part that its sentence quotes."""
    view = view_of(row)
    text = view.text or (f"{view.tool} {view.call}" if view.tool else "")
    start, end = quoted_part(text, why)
    return EvidenceView(row.seq, text, start, end, row.kind)


def quoted_part(text: str, why: str) -> tuple[int, int]:
    """Return where a text holds what a sentence is about: (0, 0) if nowhere.

    That is the sentence of the text with the longest of the quotes; where nothing is quoted, the one that shares most
    words with it, if these are two or more.

    Examples
    --------
    >>> text = "All done. The test_login case passed. Bye."
    >>> start, end = quoted_part(text, "the claim “test_login case passed” is contradicted by event 12")
    >>> text[start:end]
    'The test_login case passed.'
    """
    found: tuple[int, int] = (0, 0)
    lowered = text.lower()
    for match in _QUOTED.finditer(why):
        quote = next(part for part in match.groups() if part is not None).strip().rstrip("…").strip().lower()
        at = lowered.find(quote) if len(quote) > 1 and len(lowered) == len(text) else -1
        if at >= 0 and len(quote) > found[1] - found[0]:
            found = (at, at + len(quote))
    return sentence_around(text, *found) if found[1] else _likest(text, why)


def _likest(text: str, why: str) -> tuple[int, int]:
    """Return the sentence of a text that shares most words with another one."""
    wanted = set(_WORD.findall(why.lower()))
    best, place, start = 1, (0, 0), 0
    for match in itertools.chain(_SENTENCE_END.finditer(text), [None]):
        end = len(text) if match is None else match.end()
        shared = len(wanted.intersection(_WORD.findall(text[start:end].lower()))) if end - start <= MAX_PART else 0
        if shared > best:
            best, place = shared, _trimmed(text, start, end)
        start = end
    return place


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def sentence_around(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the sentence, or line, that holds a part of a text; the part alone if that is long."""
    begin = 0
    for match in _SENTENCE_END.finditer(text, 0, start):
        begin = match.end()
    after = _SENTENCE_END.search(text, max(end - 1, start))
    found = _trimmed(text, begin, len(text) if after is None else after.end())
    return found if found[1] - found[0] <= MAX_PART else (start, end)
