"""What happens to an event before it is folded: texts that can be written, without secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from coherence.events import (
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
)
from coherence.plain import clean, to_json
from coherence.redact import redact, redact_value

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


def prepare(event: Event, *, hide_secrets: bool) -> Event:
    """Return the event as it is measured and recorded.

    State, readings and evidence all see this form, or a replay of the evidence could not give the same readings.

    Examples
    --------
    >>> prepare(Message("assistant", "export PGPASSWORD=hunter2!x"), hide_secrets=True).content
    'export PGPASSWORD=[redacted:password]'
    """
    if type(event) is ToolCall:
        return _prepare_call(event) if hide_secrets else event
    field = TEXT_OF.get(type(event))
    if field is None:
        return event
    text: str = getattr(event, field)
    plain = clean(text)
    if hide_secrets:
        plain = redact(plain)
    if plain is text:
        return event
    changed: Any = {field: plain}
    return msgspec.structs.replace(event, **changed)


def _prepare_call(event: ToolCall) -> ToolCall:
    value = msgspec.json.decode(event.arguments)
    hidden = redact_value(value)
    if hidden is value:
        return event
    return msgspec.structs.replace(event, arguments=msgspec.Raw(to_json("arguments", hidden)))
