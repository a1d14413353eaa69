"""Formats of the OpenAI APIs: Chat Completions and Responses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from coherence.integrations.conversation import Answer, Json, Result, Said, text_key
from coherence.providers.readers.chat import text_of
from coherence.providers.readers.openai_chat import OpenAIMessage
from coherence.providers.readers.openai_responses import Item, output_text
from coherence.providers.transcript import TranscriptCall


class ChatWire:
    """Chat Completions."""

    # The reason of the end stands outside of all texts: inside of one, its quotation marks have a backslash.
    END = re.compile(rb'^data: ?\[DONE\]|[^\\]"finish_reason": ?"', re.MULTILINE)
    CALLS = re.compile(rb'"(?:tool_calls|function_call)"')

    def items(self, body: Json) -> Sequence[Any]:
        """Return the messages."""
        return _sequence(body.get("messages"))

    def system(self, body: Json) -> str:
        """Return nothing: system texts are messages."""
        return ""

    def follows(self, body: Json) -> str | None:
        """Return nothing: each request holds the whole conversation."""
        return None

    def keys(self, item: Json) -> tuple[str, ...]:
        """Return the ids of the calls; of an answer without any, the mark of its text."""
        return _chat_keys(_message(item)) if item.get("role") == "assistant" else ()

    def read(self, item: Json) -> Iterator[Said | Result]:
        """Yield the message."""
        message = _message(item)
        text = text_of(message.content) or message.refusal or ""
        if message.role in ("tool", "function"):
            yield Result(message.tool_call_id, text, tool=message.name)
        elif message.role == "assistant":
            yield Said("assistant", text, _chat_calls(message))
        else:
            yield Said("user" if message.role == "user" else "system", text)

    def begins(self, item: Json) -> bool:
        """Return False: an answer begins at its beginning."""
        return False

    def answer(self, value: Json, begun: str = "") -> Answer:
        """Return the first choice, with the calls of all."""
        choices = [choice for choice in value.get("choices") or () if isinstance(choice, Mapping)]
        messages = [_message({"role": "assistant", **(choice.get("message") or {})}) for choice in choices]
        first = messages[0] if messages else OpenAIMessage(role="assistant")
        usage = value.get("usage") or {}
        return Answer(
            text_of(first.content) or first.refusal or "",
            calls=tuple(call for message in messages for call in _chat_calls(message)),
            keys=tuple(key for message in messages for key in _chat_keys(message)),
            tokens_in=usage.get("prompt_tokens"),
            tokens_out=usage.get("completion_tokens"),
            tokens_cached=(usage.get("prompt_tokens_details") or {}).get("cached_tokens"),
            model=value.get("model"),
            id=value.get("id"),
            finished=bool(choices) and all(choice.get("finish_reason") for choice in choices),
        )

    def assemble(self, events: Iterable[Json]) -> Json:
        """Return the completion of its chunks."""
        whole: dict[str, Any] = {}
        choices: dict[int, dict[str, Any]] = {}
        for event in events:
            whole.update({key: event[key] for key in ("id", "model", "usage") if event.get(key)})
            for told in event.get("choices") or ():
                message: dict[str, Any] = {"role": "assistant", "content": "", "refusal": "", "tool_calls": []}
                choice = choices.setdefault(told.get("index", 0), {"message": message})
                choice["finish_reason"] = told.get("finish_reason") or choice.get("finish_reason")
                delta, message = told.get("delta") or {}, choice["message"]
                for field in ("content", "refusal"):
                    message[field] += delta.get(field) or ""
                _add_calls(message["tool_calls"], delta.get("tool_calls") or ())
        whole["choices"] = [choices[index] for index in sorted(choices)]
        return whole

    def guided(self, body: Json, text: str) -> dict[str, Any]:
        """Return the request with one more message."""
        return {**body, "messages": [*self.items(body), {"role": "system", "content": text}]}


class ResponsesWire:
    """Responses."""

    END = re.compile(rb"^event: ?response\.(?:completed|failed|incomplete)\b", re.MULTILINE)
    CALLS = re.compile(rb'_call"')

    def items(self, body: Json) -> Sequence[Any]:
        """Return the input's items."""
        given = body.get("input")
        return [{"role": "user", "content": given}] if isinstance(given, str) else _sequence(given)

    def system(self, body: Json) -> str:
        """Return the instructions."""
        given = body.get("instructions")
        return given if isinstance(given, str) else ""

    def follows(self, body: Json) -> str | None:
        """Return the mark of the response before, which the provider keeps."""
        before = body.get("previous_response_id")
        return f"id {before}" if isinstance(before, str) else None

    def keys(self, item: Json) -> tuple[str, ...]:
        """Return the id of a call; of a message, its own id and the mark of its text."""
        made = item.get("type", "message")
        if made in _CALLS:
            return (f"call {item.get('call_id')}",)
        if made != "message" or item.get("role") != "assistant":
            return ()
        told = (f"id {item['id']}",) if isinstance(item.get("id"), str) else ()
        return (*told, text_key(text_of(_item(item).content)))

    def read(self, item: Json) -> Iterator[Said | Result]:
        """Yield the item; those of the provider's own tools and thoughts tell nothing."""
        read = _item(item)
        if read.type == "message":
            role = item.get("role", "user")
            yield Said(role if role in ("user", "assistant") else "system", text_of(read.content))
        elif read.type in _CALLS:
            yield Said("assistant", "", (_item_call(read),))
        elif read.type.endswith("_call_output"):
            yield Result(read.call_id, output_text(read.output))

    def begins(self, item: Json) -> bool:
        """Return False: an answer begins at its beginning."""
        return False

    def answer(self, value: Json, begun: str = "") -> Answer:
        """Return the response."""
        plain_items = [item for item in value.get("output") or () if isinstance(item, Mapping)]
        items = [_item(item) for item in plain_items if item.get("type") in ("message", *_CALLS)]
        usage = value.get("usage") or {}
        keys = [key for item in plain_items for key in self.keys(item)]
        return Answer(
            "\n".join(text_of(item.content) for item in items if item.type == "message"),
            calls=tuple(_item_call(item) for item in items if item.type in _CALLS),
            keys=(f"id {value.get('id')}", *keys),
            tokens_in=usage.get("input_tokens"),
            tokens_out=usage.get("output_tokens"),
            tokens_cached=(usage.get("input_tokens_details") or {}).get("cached_tokens"),
            model=value.get("model"),
            id=value.get("id"),
            finished=value.get("status") not in ("in_progress", "queued"),
        )

    def assemble(self, events: Iterable[Json]) -> Json:
        """Return the response of the last event; before that, what was said so far."""
        whole: dict[str, Any] = {}
        said: list[str] = []
        for event in events:
            if isinstance(event.get("response"), dict):
                whole = event["response"]
            if event.get("type") == "response.output_text.delta":
                said.append(event.get("delta") or "")
        if whole.get("status") == "in_progress":
            text = {"type": "output_text", "text": "".join(said)}
            whole = {**whole, "output": [{"type": "message", "role": "assistant", "content": [text]}] if said else []}
        return whole

    def guided(self, body: Json, text: str) -> dict[str, Any]:
        """Return the request with one more item."""
        return {**body, "input": [*self.items(body), {"role": "system", "content": text}]}


_CALLS = ("function_call", "custom_tool_call")


def _sequence(given: object) -> Sequence[Any]:
    return given if isinstance(given, list | tuple) else ()


def _message(item: Json) -> OpenAIMessage:
    return msgspec.convert(item, OpenAIMessage)


def _item(item: Json) -> Item:
    return msgspec.convert(item, Item)


def _item_call(item: Item) -> TranscriptCall:
    return TranscriptCall(item.name or "unknown", item.arguments, item.call_id)


def _chat_calls(message: OpenAIMessage) -> tuple[TranscriptCall, ...]:
    calls = [call.to_call() for call in message.tool_calls or ()]
    if message.function_call is not None:
        calls.append(TranscriptCall(message.function_call.name, message.function_call.arguments))
    return tuple(calls)


def _chat_keys(message: OpenAIMessage) -> tuple[str, ...]:
    ids = tuple(f"call {call.id}" for call in message.tool_calls or () if call.id)
    return ids or (text_key(text_of(message.content) or message.refusal or ""),)


def _add_calls(calls: list[dict[str, Any]], deltas: Iterable[Json]) -> None:
    """Add the pieces of calls to what is there of them."""
    for delta in deltas:
        at = delta.get("index", len(calls))
        while len(calls) <= at:
            calls.append({"id": None, "function": {"name": "", "arguments": ""}})
        call, told = calls[at], delta.get("function") or {}
        call["id"] = delta.get("id") or call["id"]
        for field in ("name", "arguments"):
            call["function"][field] += told.get(field) or ""
