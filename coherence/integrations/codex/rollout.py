"""Newest part of a rollout, the file that Codex keeps of an agent: words, tokens, calls and what became of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from coherence.integrations.added_lines import object_in
from coherence.integrations.host_session import count_of, text_of

Kind: TypeAlias = Literal["turn", "text", "usage", "call", "outcome", "output", "context", "compaction", "fault"]
"""Subject of an entry.

- ``turn``: work on a request begins.
- ``text``: the agent's words.
- ``usage``: the tokens of one response.
- ``call``: the model asks for a tool.
- ``outcome``: what has been carried out has ended well or not.
- ``output``: what the model gets to see of a call.
- ``context``: what a hook has added to the context.
- ``compaction``: the summary that took the place of the conversation.
- ``fault``: the turn ended with an error.
"""

_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
"""Item by which the model asks for a tool -> its field with the arguments."""

_OUTPUTS = ("function_call_output", "custom_tool_call_output")

_HANDED_ON = "Another language model started"
"""Beginning of the line that the client puts before a summary."""


class Entry(NamedTuple):
    """One thing that a rollout says of its agent."""

    kind: Kind
    value: str = ""
    """A text; the name of a tool; ``completed`` or ``failed`` for an outcome."""
    id: str = ""
    """Of the turn, the call or the message."""
    arguments: Any = None
    tokens_in: int | None = None
    tokens_out: int | None = None


def entries_of(line: bytes) -> Iterator[Entry]:
    r"""Yield what one line of a rollout says; a line that is not understood says nothing.

    Examples
    --------
    >>> part = b'{"type": "output_text", "text": "I look."}'
    >>> said = b'{"type": "message", "role": "assistant", "id": "m1", "content": [' + part + b']}'
    >>> list(entries_of(b'{"type": "response_item", "payload": ' + said + b'}'))[0][:3]
    ('text', 'I look.', 'm1')
    """
    read = object_in(line)
    payload = read.get("payload")
    if not isinstance(payload, dict):
        return
    match read.get("type"):
        case "response_item":
            yield from _of_item(payload)
        case "event_msg":
            yield from _of_event(payload)
        case "token_usage_record":
            usage = _mapping(payload, "usage")
            yield Entry("usage", tokens_in=count_of(usage, "input_tokens"), tokens_out=count_of(usage, "output_tokens"))
        case "compacted":
            first, _, rest = text_of(payload, "message").partition("\n")
            yield Entry("compaction", rest if first.startswith(_HANDED_ON) else f"{first}\n{rest}".strip())


def _of_item(item: dict[str, Any]) -> Iterator[Entry]:
    kind, id = text_of(item, "type"), text_of(item, "call_id")
    if kind == "message":
        said = "\n".join(_texts(item.get("content")))
        if item.get("role") == "assistant" and said.strip():
            yield Entry("text", said, text_of(item, "id"))
        elif item.get("role") == "developer":
            yield from (Entry("context", text) for text in _texts(item.get("content")))
    elif kind in _CALLS and id:
        yield Entry("call", text_of(item, "name"), id, _arguments(item.get(_CALLS[kind])))
    elif kind in _OUTPUTS and id:
        output = item.get("output")
        yield Entry("output", output if isinstance(output, str) else "\n".join(_texts(output)), id)


def _of_event(event: dict[str, Any]) -> Iterator[Entry]:
    if event.get("type") == "item_completed":
        item = _mapping(event, "item")
        if text_of(item, "id") and text_of(item, "status"):
            yield Entry("outcome", text_of(item, "status"), text_of(item, "id"))
    elif event.get("type") == "task_started":
        yield Entry("turn", id=text_of(event, "turn_id"))
    elif event.get("type") == "task_complete" and (error := _mapping(event, "error")):
        yield Entry("fault", text_of(error, "message") or "unknown")


def _arguments(given: object) -> Any:
    if not isinstance(given, str):
        return given
    try:
        return msgspec.json.decode(given)
    except (ValueError, RecursionError):
        return given


def _texts(content: object) -> list[str]:
    parts = content if isinstance(content, list) else []
    return [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]


def _mapping(read: dict[str, Any], name: str) -> dict[str, Any]:
    value = read.get(name)
    return value if isinstance(value, dict) else {}
