"""OpenAI chat messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Any

import msgspec

from coherence.providers.readers.chat import ContentPart, read_chats, text_of
from coherence.providers.readers.detect import messages_of, objects
from coherence.providers.readers.source import Document, Source
from coherence.providers.readers.values import check_depth, loads
from coherence.providers.transcript import Step, Transcript, TranscriptCall

EXPECTED = "OpenAI messages {role, content, tool_calls?}: a list, an object with messages, or one a line"

OPENAI_KEYS = {"tool_calls", "function_call", "tool_call_id"}
"""Keys of messages that no other chat has."""

OPENAI_ROLES = ("developer", "tool", "function")
"""Roles of messages that no other chat has."""

_HOST = ("system", "developer")
_ROLES = (*_HOST, "user", "assistant", "tool", "function")


class _Function(msgspec.Struct):
    name: str
    arguments: Any = None

    def __post_init__(self) -> None:
        self.arguments = parse_arguments(self.arguments)


class _Custom(msgspec.Struct):
    name: str
    input: str = ""


class _Call(msgspec.Struct):
    function: _Function | None = None
    custom: _Custom | None = None
    id: str | None = None

    def __post_init__(self) -> None:
        if self.function is None and self.custom is None:
            raise ValueError("a tool call without function")

    def to_call(self) -> TranscriptCall:
        if self.function is not None:
            return TranscriptCall(self.function.name, self.function.arguments, self.id)
        assert self.custom is not None
        return TranscriptCall(self.custom.name, self.custom.input, self.id)


class OpenAIMessage(msgspec.Struct):
    """One message, of any role."""

    role: str
    content: str | list[ContentPart] | None = None
    refusal: str | None = None
    name: str | None = None
    tool_calls: list[_Call] | None = None
    function_call: _Function | None = None
    tool_call_id: str | None = None

    def __post_init__(self) -> None:
        if self.role not in _ROLES:
            raise ValueError(f"role {self.role!r} is not one of {', '.join(_ROLES)}")

    def calls(self) -> list[TranscriptCall]:
        """Return its calls of tools, in the new and the old field."""
        calls = [call.to_call() for call in self.tool_calls or ()]
        if self.function_call is not None:
            calls.append(TranscriptCall(self.function_call.name, self.function_call.arguments))
        return calls


class OpenAIReader:
    """Chat messages of OpenAI, and chats that nobody else's format fits."""

    def matches(self, documents: Sequence[Document]) -> bool:
        """Look for a message with a role, or an object that holds messages."""
        is_chat = next(messages_of(documents), None) is not None
        return is_chat or any("messages" in value for value in objects(documents))

    def read(self, source: Source) -> Iterator[Transcript]:
        """Yield each conversation."""
        return read_openai(source)


def read_openai(source: Source) -> Iterator[Transcript]:
    """Yield each conversation; of system and developer messages those after the first other one are steps."""
    for line, chat in read_chats(source, OpenAIMessage, EXPECTED):
        begun = takewhile(lambda message: message.role in _HOST, chat.messages)
        system = chat.told(text_of(message.content) for message in begun)
        yield source.transcript(_steps(chat.messages), line=line, id=chat.id, goal=chat.goal, system=system)


def _steps(messages: Iterable[OpenAIMessage]) -> Iterator[Step]:
    names: dict[str | None, str] = {}
    begun = False
    for message in messages:
        content = text_of(message.content) or message.refusal or ""
        if message.role in _HOST:
            if begun:
                yield Step(role="system", content=content, agent=message.name)
            continue
        begun = True
        if message.role == "user":
            yield Step(role="user", content=content, agent=message.name)
        elif message.role == "assistant":
            calls = message.calls()
            names.update((call.id, call.name) for call in calls if call.id is not None)
            yield Step(role="assistant", content=content, tool_calls=tuple(calls), agent=message.name)
        elif message.role in ("tool", "function"):
            yield Step(role="tool", content=content, tool_name=names.get(message.tool_call_id, message.name))


def parse_arguments(arguments: Any) -> Any:
    """Return arguments from their JSON; as they are where they are none."""
    if not isinstance(arguments, str):
        check_depth(arguments)
        return arguments
    try:
        parsed = loads(arguments)
        check_depth(parsed)
    except (ValueError, RecursionError):
        return arguments
    return parsed
