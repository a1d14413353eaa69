"""Messages of LangChain and LangGraph: ``messages_to_dict``, ``dumpd`` and ``model_dump``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Any

import msgspec

from coherence.core.readings import Counters
from coherence.providers.readers.chat import read_chats, text_of_any
from coherence.providers.readers.detect import flat
from coherence.providers.readers.openai_chat import OpenAIMessage, parse_arguments
from coherence.providers.readers.source import Document, Source
from coherence.providers.readers.values import Tokens
from coherence.providers.transcript import Role, Step, Transcript, TranscriptCall

EXPECTED = (
    "LangChain messages, of messages_to_dict, dumpd or model_dump: a list, an object with messages, or one a line"
)

_ROLES: dict[str, Role | None] = {
    "human": "user",
    "ai": "assistant",
    "system": "system",
    "tool": "tool",
    "function": "tool",
    "generic": "user",
    "chat": "user",
    "remove": None,
}
_CHAT: dict[str, Role] = {"assistant": "assistant", "ai": "assistant", "system": "system"}
_OWN = {"additional_kwargs", "response_metadata", "usage_metadata"}


class _Call(msgspec.Struct):
    name: str | None = None
    args: Any = None
    id: str | None = None

    def __post_init__(self) -> None:
        self.args = parse_arguments(self.args)


class _Usage(msgspec.Struct):
    input_tokens: Tokens | None = None
    output_tokens: Tokens | None = None


class _Message(msgspec.Struct):
    type: str
    content: Any = None
    name: str | None = None
    role: str | None = None
    tool_calls: list[_Call] | None = None
    invalid_tool_calls: list[_Call] | None = None
    additional_kwargs: Any = None
    usage_metadata: _Usage | None = None
    tool_call_id: str | None = None
    status: str | None = None

    def __post_init__(self) -> None:
        if self.type not in _ROLES:
            raise ValueError(f"type {self.type!r} is not one of {', '.join(_ROLES)}")

    def speaker(self) -> Role | None:
        if self.type == "chat":
            return _CHAT.get(self.role or "", "user")
        return _ROLES[self.type]

    def calls(self) -> list[TranscriptCall]:
        """Return its calls; older dumps have them as the API of OpenAI gave them."""
        found = [*(self.tool_calls or ()), *(self.invalid_tool_calls or ())]
        if found or not isinstance(self.additional_kwargs, dict):
            return [TranscriptCall(call.name or "unknown", call.args, call.id) for call in found]
        given = self.additional_kwargs
        held = {key: given[key] for key in ("tool_calls", "function_call") if given.get(key)}
        try:
            return msgspec.convert({"role": "assistant", **held}, OpenAIMessage).calls() if held else []
        except msgspec.ValidationError:
            return []


class LangChainReader:
    """Messages of LangChain and LangGraph, as a list, a state with ``messages``, or one a line."""

    def matches(self, documents: Sequence[Document]) -> bool:
        """Look for a message with the type and the fields that only LangChain has."""
        for value in flat(documents):
            held = value.get("messages", [value])
            if isinstance(held, list) and any(map(_is_message, held)):
                return True
        return False

    def read(self, source: Source) -> Iterator[Transcript]:
        """Yield each conversation."""
        plain = source._replace(documents=[Document(_plain(each.value), each.line) for each in source.documents])
        for line, chat in read_chats(plain, _Message, EXPECTED, key="type"):
            begun = takewhile(lambda message: message.speaker() == "system", chat.messages)
            system = "\n".join(filter(None, (text_of_any(message.content) for message in begun)))
            yield source.transcript(_steps(chat.messages), line=line, system=system)


def _is_message(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    if value.get("lc") == 1:
        return isinstance(value.get("kwargs"), dict) and _kind(value) in _ROLES
    if not isinstance(value.get("type"), str) or _kind(value) not in _ROLES:
        return False
    data = value.get("data")
    return (isinstance(data, dict) and "content" in data) or ("content" in value and bool(value.keys() & _OWN))


def _kind(value: dict[str, Any]) -> str:
    """Return the type of a message, by its type or the name of its class."""
    named = value.get("type")
    if value.get("lc") == 1:
        path = value.get("id")
        named = path[-1] if isinstance(path, list) and path else None
    return str(named).removesuffix("Chunk").removesuffix("Message").lower()


def _plain(value: Any) -> Any:
    """Return what a document holds in the form of ``model_dump``; what is none is left for the error."""
    if isinstance(value, list):
        return [_message(each) for each in value]
    if isinstance(value, dict) and isinstance(value.get("messages"), list):
        return {"messages": [_message(each) for each in value["messages"]]}
    return _message(value)


def _message(value: Any) -> Any:
    if not isinstance(value, dict) or not ({"lc", "type"} & value.keys()):
        return value
    fields = value.get("kwargs") if value.get("lc") == 1 else value.get("data", value)
    return {**fields, "type": _kind(value)} if isinstance(fields, dict) else value


def _steps(messages: Iterable[_Message]) -> Iterator[Step]:
    names: dict[str | None, str] = {}
    begun = False
    for message in messages:
        role, content = message.speaker(), text_of_any(message.content)
        if role is None or (role == "system" and not begun):
            continue
        begun = True
        if role == "assistant":
            calls = message.calls()
            names.update((call.id, call.name) for call in calls if call.id is not None)
            used = message.usage_metadata
            usage = None if used is None else Counters(tokens_in=used.input_tokens, tokens_out=used.output_tokens)
            yield Step(role=role, content=content, tool_calls=tuple(calls), agent=message.name, usage=usage)
        elif role == "tool":
            name = message.name or names.get(message.tool_call_id)
            yield Step(role=role, content=content, tool_name=name, is_error=message.status == "error")
        else:
            yield Step(role=role, content=content, agent=message.name)
