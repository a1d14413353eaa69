"""Message histories of pydantic-ai: ``all_messages_json()``, ``ModelMessagesTypeAdapter.dump_json``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from coherence.core.readings import Counters
from coherence.core.validation import to_json
from coherence.providers.readers.chat import marker, read_chats
from coherence.providers.readers.detect import flat
from coherence.providers.readers.openai_chat import parse_arguments
from coherence.providers.readers.source import Document, Source
from coherence.providers.readers.values import Tokens, seconds_of
from coherence.providers.transcript import Step, Transcript, TranscriptCall

EXPECTED = "messages of pydantic-ai {kind: request or response, parts}: a list, an object with messages, or one a line"

_KINDS = ("request", "response")
_GOOD = (None, "success")


class _Part(msgspec.Struct):
    part_kind: str
    content: Any = None
    tool_name: str | None = None
    args: Any = None
    tool_call_id: str | None = None
    timestamp: Any = None
    outcome: Any = None

    def __post_init__(self) -> None:
        if self.part_kind == "file":
            # whatever else it holds is the data of the file
            media = self.content.get("media_type") if isinstance(self.content, dict) else None
            self.content = marker(media if isinstance(media, str) else "file")
        self.content = _text(self.content)
        self.args = parse_arguments(self.args)


class _Usage(msgspec.Struct):
    input_tokens: Tokens | None = None
    output_tokens: Tokens | None = None
    # before version 1
    request_tokens: Tokens | None = None
    response_tokens: Tokens | None = None
    cost: Any = None

    def to_counters(self) -> Counters:
        tokens_in = self.request_tokens if self.input_tokens is None else self.input_tokens
        tokens_out = self.response_tokens if self.output_tokens is None else self.output_tokens
        return Counters(tokens_in=tokens_in, tokens_out=tokens_out)


class _Message(msgspec.Struct):
    kind: str
    parts: list[_Part]
    instructions: Any = None
    timestamp: Any = None
    usage: _Usage | None = None

    def __post_init__(self) -> None:
        self.timestamp = seconds_of(self.timestamp)
        if self.kind not in _KINDS:
            raise ValueError(f"kind {self.kind!r} is not one of {', '.join(_KINDS)}")


class PydanticAIReader:
    """Message histories of pydantic-ai."""

    def matches(self, documents: Sequence[Document]) -> bool:
        """Look for a request or a response with parts."""
        for value in flat(documents):
            held = value.get("messages", [value])
            if isinstance(held, list) and any(map(_is_message, held)):
                return True
        return False

    def read(self, source: Source) -> Iterator[Transcript]:
        """Yield each history; instructions and the system prompts at its beginning are the system text."""
        for line, chat in read_chats(source, _Message, EXPECTED, key="parts"):
            parts = [part for message in chat.messages for part in message.parts]
            begun = _leading(parts)
            told = [message.instructions for message in chat.messages if isinstance(message.instructions, str)][:1]
            system = "\n".join(filter(None, (*(part.content for part in parts[:begun]), *told)))
            yield source.transcript(_steps(chat.messages, begun), line=line, id=chat.id, goal=chat.goal, system=system)


def _is_message(value: object) -> bool:
    return isinstance(value, dict) and value.get("kind") in _KINDS and isinstance(value.get("parts"), list)


def _leading(parts: Sequence[_Part]) -> int:
    """Return how many system prompts come first."""
    return next((at for at, part in enumerate(parts) if part.part_kind != "system-prompt"), len(parts))


def _steps(messages: Iterable[_Message], begun: int) -> Iterator[Step]:
    for message in messages:
        fresh, begun = message.parts[begun:], max(begun - len(message.parts), 0)
        if message.kind == "request":
            yield from _asked(fresh, message.timestamp)
        else:
            yield from _answered(fresh, message)


def _asked(parts: Iterable[_Part], ts: float | None) -> Iterator[Step]:
    for part in parts:
        at = seconds_of(part.timestamp) or ts
        if part.part_kind == "user-prompt":
            yield Step(role="user", content=part.content, ts=at)
        elif part.part_kind == "tool-return":
            yield _result(part, at, failed=part.outcome not in _GOOD)
        elif part.part_kind == "retry-prompt" and part.tool_name is not None:
            yield _result(part, at, failed=True)
        elif part.part_kind in ("system-prompt", "retry-prompt"):
            # a retry without a tool tells the model that its answer was not what was asked for
            yield Step(role="system", content=part.content, ts=at)


def _answered(parts: Sequence[_Part], message: _Message) -> Iterator[Step]:
    calls = [part for part in parts if part.part_kind in ("tool-call", "builtin-tool-call", "native-tool-call")]
    said = (part.content for part in parts if part.part_kind in ("text", "file"))
    yield Step(
        role="assistant",
        content="\n".join(filter(None, said)),
        tool_calls=tuple(TranscriptCall(part.tool_name or "unknown", part.args, part.tool_call_id) for part in calls),
        usage=None if message.usage is None else message.usage.to_counters(),
        ts=message.timestamp,
    )
    for part in parts:
        # tools that the provider runs answer within the response
        if part.part_kind in ("builtin-tool-return", "native-tool-return"):
            yield _result(part, message.timestamp, failed=part.outcome not in _GOOD)


def _result(part: _Part, ts: float | None, *, failed: bool) -> Step:
    return Step(role="tool", content=part.content, tool_name=part.tool_name, is_error=failed, ts=ts)


def _text(content: Any) -> str:
    """Return a content as text: words, items of words and media, or data as JSON."""
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, dict) and isinstance(content.get("kind"), str):
        content = [content]
    if isinstance(content, list) and all(isinstance(each, str) or _is_item(each) for each in content):
        return "\n".join(filter(None, map(_item_text, content)))
    return to_json("content", content).decode()


def _is_item(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("kind"), str)


def _item_text(item: str | dict[str, Any]) -> str:
    if isinstance(item, str):
        return item
    kind, media = item["kind"], item.get("media_type")
    if isinstance(item.get("content"), str):
        return str(item["content"])
    if kind == "cache-point":
        return ""
    return marker(media if kind == "binary" and isinstance(media, str) else kind)
