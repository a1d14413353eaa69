"""Format of Amazon Bedrock's Converse API."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from coherence.core.validation import to_json
from coherence.integrations.conversation import Answer, Json, Result, Said, text_key
from coherence.providers.transcript import TranscriptCall


class ConverseWire:
    """Converse and ConverseStream."""

    def items(self, body: Json) -> Sequence[Any]:
        """Return the messages."""
        given = body.get("messages")
        return given if isinstance(given, list | tuple) else ()

    def system(self, body: Json) -> str:
        """Return the system prompt."""
        return _text(body.get("system") or ())

    def follows(self, body: Json) -> str | None:
        """Return nothing: each request holds the whole conversation."""
        return None

    def keys(self, item: Json) -> tuple[str, ...]:
        """Return the ids of the calls; of an answer without any, the mark of its text."""
        return _keys(_blocks(item)) if item.get("role") == "assistant" else ()

    def read(self, item: Json) -> Iterator[Said | Result]:
        """Yield the results in a message, then what it says."""
        blocks = _blocks(item)
        if item.get("role") == "assistant":
            yield Said("assistant", _text(blocks), _calls(blocks, served=False))
            yield from _served(blocks)
            return
        results = list(_results(blocks))
        yield from results
        if (text := _text(blocks)) or not results:
            yield Said("user" if item.get("role") == "user" else "system", text)

    def begins(self, item: Json) -> bool:
        """Return True for a text of the assistant: the answer continues it."""
        return item.get("role") == "assistant" and not any("toolUse" in block for block in _blocks(item))

    def answer(self, value: Json, begun: str = "") -> Answer:
        """Return the message."""
        blocks = _blocks((value.get("output") or {}).get("message") or {})
        usage = value.get("usage") or {}
        cached = usage.get("cacheReadInputTokens")
        # the tokens that were read from a cache, or written to one, are not among the input tokens
        inputs = [usage.get("inputTokens"), usage.get("cacheWriteInputTokens"), cached]
        known = [tokens for tokens in inputs if tokens is not None]
        return Answer(
            begun + _text(blocks),
            calls=_calls(blocks, served=False),
            served=tuple(_served(blocks)),
            keys=_keys(blocks, begun),
            tokens_in=sum(known) if known else None,
            tokens_out=usage.get("outputTokens"),
            tokens_cached=cached,
            id=(value.get("ResponseMetadata") or {}).get("RequestId"),
            finished=value.get("stopReason") is not None,
        )

    def assemble(self, events: Iterable[Json]) -> Json:
        """Return the answer of its events."""
        whole: dict[str, Any] = {}
        blocks: dict[int, dict[str, Any]] = {}
        inputs: dict[int, str] = {}
        for event in events:
            for kind, told in event.items():
                at = told.get("contentBlockIndex", 0)
                if kind == "contentBlockStart":
                    blocks[at] = {name: dict(start) for name, start in (told.get("start") or {}).items()}
                elif kind == "contentBlockDelta":
                    block, delta = blocks.setdefault(at, {}), told.get("delta") or {}
                    if "text" in delta:
                        block["text"] = block.get("text", "") + delta["text"]
                    if "toolUse" in delta:
                        inputs[at] = inputs.get(at, "") + (delta["toolUse"].get("input") or "")
                    if "toolResult" in delta:
                        result = block.setdefault("toolResult", {})
                        result["content"] = [*result.get("content", ()), *delta["toolResult"]]
                elif kind == "messageStop":
                    whole["stopReason"] = told.get("stopReason")
                elif kind == "metadata":
                    whole["usage"] = told.get("usage")
        for at, raw in inputs.items():
            blocks[at].setdefault("toolUse", {})["input"] = _json(raw)
        message = {"role": "assistant", "content": [blocks[at] for at in sorted(blocks)]}
        return {**whole, "output": {"message": message}}

    def guided(self, body: Json, text: str) -> dict[str, Any]:
        """Return the request with one more block at the end of the user's newest message, behind results of tools."""
        items = list(self.items(body))
        for at in range(len(items) - 1, -1, -1):
            if items[at].get("role") == "user":
                items[at] = {**items[at], "content": [*(items[at].get("content") or ()), {"text": text}]}
                return {**body, "messages": items}
        return {**body, "messages": [*items, {"role": "user", "content": [{"text": text}]}]}


_SILENT = ("toolUse", "toolResult", "reasoningContent", "cachePoint", "toolAddition", "toolRemoval")
"""Blocks that say nothing to anybody."""


def _blocks(message: Json) -> list[Json]:
    return [block for block in message.get("content") or () if isinstance(block, Mapping)]


def _text(blocks: Iterable[Json]) -> str:
    """Return what blocks say; what is not text is a marker such as ``[image]``."""
    return "\n".join(text for block in blocks if (text := _said(block)))


def _said(block: Json) -> str:
    if "text" in block:
        return str(block["text"])
    if "json" in block:
        return to_json("json", block["json"]).decode()
    if "citationsContent" in block:
        return _text(block["citationsContent"].get("content") or ())
    return "".join(f"[{kind}]" for kind in block if kind not in _SILENT)


def _calls(blocks: Iterable[Json], *, served: bool) -> tuple[TranscriptCall, ...]:
    calls = [block["toolUse"] for block in blocks if "toolUse" in block]
    return tuple(
        TranscriptCall(call.get("name") or "", call.get("input"), call.get("toolUseId"))
        for call in calls
        if (call.get("type") == "server_tool_use") == served
    )


def _results(blocks: Iterable[Json]) -> Iterator[Result]:
    for block in blocks:
        if (result := block.get("toolResult")) is not None:
            status = result.get("status")
            error = None if status is None else status == "error"
            yield Result(result.get("toolUseId"), _text(result.get("content") or ()), error)


def _served(blocks: Sequence[Json]) -> Iterator[Said | Result]:
    """Yield the calls that the provider has run, and what came of them."""
    if calls := _calls(blocks, served=True):
        yield Said("assistant", "", calls)
    yield from _results(blocks)


def _keys(blocks: Sequence[Json], begun: str = "") -> tuple[str, ...]:
    ids = tuple(f"call {block['toolUse'].get('toolUseId')}" for block in blocks if "toolUse" in block)
    return ids or (text_key(begun + _text(blocks)),)


def _json(raw: str) -> Any:
    try:
        return msgspec.json.decode(raw) if raw else {}
    except msgspec.DecodeError:  # the stream was cut in the middle of it
        return raw
