"""What happens to an event before it is folded: texts that can be written, without secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from coherence.core.events import (
    Compaction,
    Correction,
    Event,
    Fault,
    Feedback,
    Goal,
    Memory,
    Message,
    Outcome,
    ToolCall,
    ToolResult,
    Usage,
)
from coherence.core.redact import redact, redact_value
from coherence.core.validation import MAX_NAME, MAX_TEXT, clean, to_json

TEXT_OF: Mapping[type, str] = {
    Goal: "text",
    Message: "content",
    ToolResult: "result",
    Feedback: "text",
    Correction: "text",
    Memory: "text",
    Compaction: "summary",
    Outcome: "text",
    Fault: "message",
}

NAMES_OF: Mapping[type, tuple[str, ...]] = {
    Message: ("model", "response_id", "firing"),
    Feedback: ("about",),
    ToolCall: ("tool_name", "call_id"),
    ToolResult: ("tool_name", "call_id", "error_type"),
    Usage: ("model",),
    Memory: ("id",),
    Correction: ("id",),
    Fault: ("where", "error_type"),
}


def prepare(event: Event, *, hide_secrets: bool) -> Event:
    """Return the event as it is measured and recorded.

    State, readings and evidence all see this form, or a replay of the evidence could not give the same readings.

    Examples
    --------
    >>> prepare(Message("assistant", "export PGPASSWORD=hunter2!x"), hide_secrets=True).content
    'export PGPASSWORD=[redacted:password]'
    """
    kind = type(event)
    changed: dict[str, Any] = {}
    for field in NAMES_OF.get(kind, ()):
        name = getattr(event, field)
        if name is not None and (plain := clean(redact(name) if hide_secrets else name, MAX_NAME)) is not name:
            changed[field] = plain
    field = TEXT_OF.get(kind, "")
    if field:
        text = getattr(event, field)
        # Redacted before it is cut: half a secret is not recognised any more.
        plain = clean(redact(text) if hide_secrets else text)
        if plain is not text:
            changed[field] = plain
    if type(event) is ToolCall and (plain_json := _prepare_json(event.arguments, hide_secrets)) is not event.arguments:
        changed["arguments"] = plain_json
    return msgspec.structs.replace(event, **changed) if changed else event


def _prepare_json(arguments: msgspec.Raw, hide_secrets: bool) -> msgspec.Raw:
    """Return a call's arguments without secrets; if they are too long, their JSON as one text without its middle."""
    found = arguments
    if hide_secrets:
        value = msgspec.json.decode(arguments)
        hidden = redact_value(value)
        if hidden is not value:
            found = msgspec.Raw(to_json("arguments", hidden))
    whole = bytes(found)
    return found if len(whole) <= MAX_TEXT else msgspec.Raw(to_json("arguments", clean(whole.decode())))


def goal_text(goal: object, *, hide_secrets: bool) -> str:
    """Return a goal as the state will hold it; empty for what is no text."""
    if not isinstance(goal, str):
        return ""
    prepared = prepare(Goal(goal), hide_secrets=hide_secrets)
    assert isinstance(prepared, Goal)
    return prepared.text.strip()
