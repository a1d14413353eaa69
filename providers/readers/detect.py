"""Detection of a file's format by its content."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from coherence.providers.readers.langfuse import is_langfuse
from coherence.providers.readers.langsmith import is_langsmith
from coherence.providers.readers.openai_responses import ITEMS
from coherence.providers.readers.otlp import is_otlp
from coherence.providers.readers.phoenix import is_phoenix
from coherence.providers.readers.source import Document

_ENVELOPE = {"sessionId", "parentUuid", "leafUuid"}
_OPENAI_KEYS = {"tool_calls", "function_call", "tool_call_id"}
_OPENAI_ROLES = ("developer", "tool", "function")
_EXPORT = "coherence.export/"
_LOOK_AT = 50
_PLATFORMS = {"langfuse": is_langfuse, "phoenix": is_phoenix, "langsmith": is_langsmith}


def detect_format(documents: Sequence[Document]) -> str | None:
    """Return the name of a format, ``None`` if it is none that is known.

    A chat of plain texts alone is the same in OpenAI's and in Anthropic's format; it counts as OpenAI's.
    """
    values = [document.value for document in documents]
    beginning = [value for value in values[:_LOOK_AT] if isinstance(value, dict)]
    if beginning and str(beginning[0].get("schema")).startswith(_EXPORT):
        return "export"
    if any(map(is_otlp, _flat(values))):
        return "otlp"
    # Before the others, because their records have types, inputs and ids of sessions.
    for name, is_one in _PLATFORMS.items():
        if any(map(is_one, _records(values))):
            return name
    # Before the others, because a session's lines hold Anthropic messages.
    if any(_is_session_event(value) for value in beginning):
        return "claude-code"
    if any("steps" in value and "messages" not in value for value in beginning):
        return "runs"
    # Before the chats, because items of responses have roles too.
    if any(_is_response(value) for value in _flat(values)):
        return "openai-responses"
    messages = list(_messages(values))
    for message in messages:
        if message.keys() & _OPENAI_KEYS or message.get("role") in _OPENAI_ROLES:
            return "openai"
        if any(kind in ("tool_use", "tool_result") for kind in _block_types(message)):
            return "anthropic"
    if any("system" in value and "messages" in value for value in beginning) or any(map(_hints_anthropic, messages)):
        return "anthropic"
    return "openai" if messages or any("messages" in value for value in beginning) else None


def _is_session_event(value: dict[str, Any]) -> bool:
    if not isinstance(value.get("type"), str) or value.keys() & {"role", "messages", "steps"}:
        return False
    wraps = value["type"] in ("user", "assistant") and isinstance(value.get("message"), dict)
    return wraps or bool(value.keys() & _ENVELOPE)


def _is_response(value: dict[str, Any]) -> bool:
    if "messages" in value or "steps" in value:
        return False
    return value.get("type") in ITEMS or value.get("object") == "response" or isinstance(value.get("input"), list)


def _flat(values: Sequence[Any]) -> Iterator[dict[str, Any]]:
    for value in values[:_LOOK_AT]:
        for each in value if isinstance(value, list) else (value,):
            if isinstance(each, dict):
                yield each


def _records(values: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Yield objects, and those in the list of an answer of an API."""
    for value in _flat(values):
        yield value
        yield from _flat([value["data"]] if isinstance(value.get("data"), list) else [])


def _messages(values: Sequence[Any]) -> Iterator[dict[str, Any]]:
    for value in values:
        held = value.get("messages", [value]) if isinstance(value, dict) else value
        for message in held if isinstance(held, list) else ():
            if isinstance(message, dict) and "role" in message:
                yield message


def _block_types(message: dict[str, Any]) -> Iterator[Any]:
    content = message.get("content")
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict):
            yield block.get("type")


def _hints_anthropic(message: dict[str, Any]) -> bool:
    usage = message.get("usage")
    blocks = any(kind in ("thinking", "redacted_thinking", "image", "document") for kind in _block_types(message))
    return blocks or (isinstance(usage, dict) and "input_tokens" in usage)
