"""Anthropic messages: texts or blocks, with tool results in the user's messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Any

import msgspec

from coherence.core.readings import Counters
from coherence.providers.readers.chat import ContentPart, read_chats, text_of
from coherence.providers.readers.detect import messages_of, objects
from coherence.providers.readers.openai_chat import OPENAI_KEYS, OPENAI_ROLES
from coherence.providers.readers.source import Document, Source
from coherence.providers.readers.values import Tokens, check_depth, seconds_of
from coherence.providers.transcript import Step, Transcript, TranscriptCall

EXPECTED = "Anthropic messages {role, content: text or blocks}: a list, an object with messages, or one a line"

_ROLES = ("user", "assistant", "system")
_HINTS = ("thinking", "redacted_thinking", "image", "document")


class Block(ContentPart):
    """A block of a message's content, of any type."""

    name: str | None = None
    id: str | None = None
    input: Any = None
    tool_use_id: str | None = None
    content: Any = None
    is_error: bool | None = None

    def __post_init__(self) -> None:
        if self.is_call():
            if self.name is None:
                raise ValueError(f"a {self.type} block without name")
            check_depth(self.input)
        elif self.type == "tool_result":
            try:
                self.content = text_of(msgspec.convert(self.content, str | list[ContentPart] | None))
            except msgspec.ValidationError as error:
                raise ValueError(f"content of a tool_result block: {error}") from error

    def is_call(self) -> bool:
        """Return True if the block calls a tool, of the client or of the server."""
        return self.type.endswith("tool_use")


class AnthropicUsage(msgspec.Struct):
    """The tokens of one message; the parts of the input that went through the cache are counted apart."""

    input_tokens: Tokens | None = None
    cache_creation_input_tokens: Tokens | None = None
    cache_read_input_tokens: Tokens | None = None
    output_tokens: Tokens | None = None

    def to_counters(self) -> Counters:
        """Return the tokens as counters, cached input included."""
        inputs = [self.input_tokens, self.cache_creation_input_tokens, self.cache_read_input_tokens]
        known = [tokens for tokens in inputs if tokens is not None]
        return Counters(tokens_in=sum(known) if known else None, tokens_out=self.output_tokens)


class AnthropicMessage(msgspec.Struct):
    """One message."""

    role: str
    content: str | list[Block] | None = None
    usage: AnthropicUsage | None = None
    id: str | None = None
    ts: Any = None
    """Unix seconds at which it was there; known in sessions of Claude Code."""

    def __post_init__(self) -> None:
        self.ts = seconds_of(self.ts)
        if self.role not in _ROLES:
            raise ValueError(f"role {self.role!r} is not one of {', '.join(_ROLES)}")

    def blocks(self) -> list[Block]:
        """Return the content as blocks."""
        return [Block(text=self.content)] if isinstance(self.content, str) else self.content or []


class AnthropicReader:
    """Messages of the Anthropic API: texts or blocks."""

    def matches(self, documents: Sequence[Document]) -> bool:
        """Look for blocks of calls and results, or another sign; the first message that OpenAI alone has decides, too.

        A chat of plain texts alone is the same in both formats; it counts as OpenAI's.
        """
        hinted = False
        for message in messages_of(documents):
            if message.keys() & OPENAI_KEYS or message.get("role") in OPENAI_ROLES:
                return False
            kinds = list(_block_types(message))
            if "tool_use" in kinds or "tool_result" in kinds:
                return True
            usage = message.get("usage")
            hinted = hinted or any(kind in _HINTS for kind in kinds)
            hinted = hinted or (isinstance(usage, dict) and "input_tokens" in usage)
        return hinted or any("system" in value and "messages" in value for value in objects(documents))

    def read(self, source: Source) -> Iterator[Transcript]:
        """Yield each conversation."""
        return read_anthropic(source)


def _block_types(message: dict[str, Any]) -> Iterator[Any]:
    content = message.get("content")
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict):
            yield block.get("type")


def read_anthropic(source: Source) -> Iterator[Transcript]:
    """Yield each conversation."""
    for line, chat in read_chats(source, AnthropicMessage, EXPECTED):
        begun = takewhile(lambda message: message.role == "system", chat.messages)
        system = chat.told(text_of(message.blocks()) for message in begun)
        yield source.transcript(message_steps(chat.messages), line=line, id=chat.id, goal=chat.goal, system=system)


def message_steps(messages: Iterable[AnthropicMessage]) -> Iterator[Step]:
    """Yield the steps of one conversation: each tool result is a step of its own, before the user's text beside it."""
    names: dict[str | None, str] = {}
    for message in messages:
        usage = None if message.usage is None else message.usage.to_counters()
        blocks = message.blocks()
        if message.role == "assistant":
            calls = tuple(
                TranscriptCall(block.name or "", block.input, block.id) for block in blocks if block.is_call()
            )
            names.update((call.id, call.name) for call in calls if call.id is not None)
            content = text_of([block for block in blocks if not block.is_call()])
            yield Step(role="assistant", content=content, tool_calls=calls, usage=usage, ts=message.ts)
        elif message.role == "user":
            results = [block for block in blocks if block.type == "tool_result"]
            for block in results:
                yield Step(
                    role="tool",
                    content=block.content,
                    tool_name=names.get(block.tool_use_id),
                    is_error=bool(block.is_error),
                    ts=message.ts,
                )
            content = text_of([block for block in blocks if block.type != "tool_result"])
            # results alone are nothing that the user said
            if content or not results:
                yield Step(role="user", content=content, usage=usage, ts=message.ts)
