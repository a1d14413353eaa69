"""Format of the Anthropic Messages API."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from coherence.core.validation import to_json
from coherence.integrations.conversation import Answer, Json, Result, Said, text_key
from coherence.providers.readers.anthropic_messages import AnthropicMessage, Block
from coherence.providers.readers.chat import ContentPart, text_of
from coherence.providers.transcript import TranscriptCall


class MessagesWire:
    """Messages, beta messages too."""

    END = re.compile(rb"^event: ?message_stop\b", re.MULTILINE)
    CALLS = re.compile(rb'"tool_use"')

    def items(self, body: Json) -> Sequence[Any]:
        """Return the messages."""
        given = body.get("messages")
        return given if isinstance(given, list | tuple) else ()

    def system(self, body: Json) -> str:
        """Return the system prompt."""
        given = body.get("system")
        if not isinstance(given, list | tuple):
            return given if isinstance(given, str) else ""
        return text_of(msgspec.convert(given, list[ContentPart]))

    def follows(self, body: Json) -> str | None:
        """Return nothing: each request holds the whole conversation."""
        return None

    def keys(self, item: Json) -> tuple[str, ...]:
        """Return the ids of the calls; of an answer without any, the mark of its text."""
        return _keys(_message(item).blocks()) if item.get("role") == "assistant" else ()

    def read(self, item: Json) -> Iterator[Said | Result]:
        """Yield the results in a message, then what it says."""
        message = _message(item)
        blocks = message.blocks()
        if message.role == "assistant":
            yield Said("assistant", _said(blocks), _calls(blocks, served=False))
            yield from _served(blocks)
            return
        results = [block for block in blocks if block.type == "tool_result"]
        for block in results:
            yield Result(block.tool_use_id, block.content, bool(block.is_error))
        text = text_of([block for block in blocks if block.type != "tool_result"])
        if text or not results:
            yield Said(message.role, text)

    def begins(self, item: Json) -> bool:
        """Return True for a text of the assistant: the answer continues it."""
        return item.get("role") == "assistant" and not any(block.is_call() for block in _message(item).blocks())

    def answer(self, value: Json, begun: str = "") -> Answer:
        """Return the message."""
        message = _message({"role": "assistant", "content": value.get("content") or []})
        blocks = message.blocks()
        usage = value.get("usage") or {}
        cached = usage.get("cache_read_input_tokens")
        inputs = [usage.get("input_tokens"), usage.get("cache_creation_input_tokens"), cached]
        known = [tokens for tokens in inputs if tokens is not None]
        return Answer(
            begun + _said(blocks),
            calls=_calls(blocks, served=False),
            served=tuple(_served(blocks)),
            keys=_keys(blocks, begun),
            tokens_in=sum(known) if known else None,
            tokens_out=usage.get("output_tokens"),
            tokens_cached=cached,
            model=value.get("model"),
            id=value.get("id"),
            finished=value.get("stop_reason") is not None,
        )

    def assemble(self, events: Iterable[Json]) -> Json:
        """Return the message of its events."""
        whole: dict[str, Any] = {}
        blocks: dict[int, dict[str, Any]] = {}
        inputs: dict[int, str] = {}
        for event in events:
            at = event.get("index", 0)
            delta = event.get("delta") or {}
            match event.get("type"):
                case "message_start":
                    whole = dict(event.get("message") or {})
                case "content_block_start":
                    blocks[at] = dict(event.get("content_block") or {})
                case "content_block_delta" if delta.get("type") == "text_delta" and at in blocks:
                    blocks[at]["text"] = (blocks[at].get("text") or "") + delta.get("text", "")
                case "content_block_delta" if delta.get("type") == "input_json_delta":
                    inputs[at] = inputs.get(at, "") + delta.get("partial_json", "")
                case "message_delta":
                    whole["stop_reason"] = delta.get("stop_reason") or whole.get("stop_reason")
                    told = {name: count for name, count in (event.get("usage") or {}).items() if count is not None}
                    whole["usage"] = {**(whole.get("usage") or {}), **told}
                case _:
                    pass
        for at, raw in inputs.items():
            if at in blocks and raw:
                blocks[at]["input"] = _json(raw)
        return {**whole, "content": [blocks[at] for at in sorted(blocks)]}

    def guided(self, body: Json, text: str) -> dict[str, Any]:
        """Return the request with one more block at the end of the user's newest message, behind results of tools."""
        items = list(self.items(body))
        more = {"type": "text", "text": text}
        for at in range(len(items) - 1, -1, -1):
            if isinstance(items[at], Mapping) and items[at].get("role") == "user":
                content = items[at].get("content")
                blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())
                items[at] = {**items[at], "content": [*blocks, more]}
                return {**body, "messages": items}
        return {**body, "messages": [*items, {"role": "user", "content": [more]}]}


def _message(item: Json) -> AnthropicMessage:
    return msgspec.convert(item, AnthropicMessage)


def _said(blocks: Iterable[Block]) -> str:
    return text_of([block for block in blocks if not block.is_call() and not block.type.endswith("_tool_result")])


def _calls(blocks: Iterable[Block], *, served: bool) -> tuple[TranscriptCall, ...]:
    return tuple(
        TranscriptCall(block.name or "", block.input, block.id)
        for block in blocks
        if block.is_call() and (block.type != "tool_use") == served
    )


def _served(blocks: Sequence[Block]) -> Iterator[Said | Result]:
    """Yield the calls that the provider has run, and what came of them."""
    if calls := _calls(blocks, served=True):
        yield Said("assistant", "", calls)
    for block in blocks:
        if block.type.endswith("_tool_result"):
            yield Result(block.tool_use_id, to_json("content", block.content).decode(), bool(block.is_error))


def _keys(blocks: Iterable[Block], begun: str = "") -> tuple[str, ...]:
    blocks = list(blocks)
    ids = tuple(f"call {block.id}" for block in blocks if block.is_call() and block.id)
    return ids or (text_key(begun + _said(blocks)),)


def _json(raw: str) -> Any:
    try:
        return msgspec.json.decode(raw)
    except msgspec.DecodeError:  # the stream was cut in the middle of it
        return raw
