"""Shared parts of the formats of chat messages: conversations, and contents of text or of parts."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from coherence.providers.readers.source import Document, Source

M = TypeVar("M")


class ContentPart(msgspec.Struct):
    """A piece of a message's content."""

    type: str = "text"
    text: str | None = None


class Chat(msgspec.Struct, Generic[M]):
    """One conversation."""

    messages: list[M]
    id: str | int | None = None
    goal: str | None = None
    system: Any = None
    """Text that the host gives the agent, beside the messages: a text, or blocks."""

    def told(self, leading: Iterable[str] = ()) -> str:
        """Return what the host tells the agent, and what its messages at the beginning say, as one text."""
        try:
            texts = [text_of(msgspec.convert(self.system, str | list[ContentPart] | None))]
        except msgspec.ValidationError:
            texts = []
        return "\n".join(text for text in (*texts, *leading) if text)


def read_chats(
    source: Source, message: type[M], expected: str, key: str = "role"
) -> Iterator[tuple[int | None, Chat[M]]]:
    """Yield each conversation and its line; a file of one message a line is one conversation.

    ``key`` is what every message has.
    """
    first = source.documents[0].value
    if isinstance(first, dict) and key in first and "messages" not in first:
        messages = [source.convert(document, message, expected) for document in source.documents]
        yield None, Chat(messages)
        return
    kind = Chat[message]  # type: ignore[valid-type]
    for document in source.documents:
        value = {"messages": document.value} if isinstance(document.value, list) else document.value
        yield document.line, source.convert(Document(value, document.line), kind, expected)


def text_of(content: str | Sequence[ContentPart] | None) -> str:
    """Return a content as text: thinking is left out, and what is not text is a marker such as ``[image]``."""
    if content is None or isinstance(content, str):
        return content or ""
    texts = (
        f"[{part.type.removesuffix('_url').removeprefix('input_')}]" if part.text is None else part.text
        for part in content
        if part.type not in ("thinking", "redacted_thinking")
    )
    return "\n".join(text for text in texts if text)


SAID_ELSEWHERE = frozenset(
    {
        *("thinking", "redacted_thinking", "reasoning", "reasoning_content"),
        *("tool_use", "tool_call", "function_call", "input_json_delta"),
    }
)
"""Types of blocks that are thoughts, or calls that the message tells in a field of its own."""


def text_of_any(content: Any, left_out: Container[str] = SAID_ELSEWHERE) -> str:
    r"""Return the content of formats whose blocks are of many kinds as text: what is not text is a marker.

    Examples
    --------
    >>> text_of_any(["See", {"type": "image_url", "image_url": {"url": "data:image/png;base64,..."}}])
    'See\n[image]'
    """
    if isinstance(content, str):
        return content
    texts = []
    for block in content if isinstance(content, list) else [content]:
        if isinstance(block, str):
            texts.append(block)
        elif isinstance(block, dict) and isinstance(kind := block.get("type", "text"), str) and kind not in left_out:
            text = block.get("text")
            texts.append(text if isinstance(text, str) else marker(kind))
    return "\n".join(text for text in texts if text)


def marker(kind: str) -> str:
    """Return what stands in a text for an image, a file and so on.

    Examples
    --------
    >>> marker("image_url"), marker("image/png"), marker("application/pdf")
    ('[image]', '[image]', '[file]')
    """
    general, slash, _ = kind.partition("/")
    if slash:
        return f"[{general}]" if general in ("image", "audio", "video") else "[file]"
    return f"[{kind.removesuffix('_url').removesuffix('-url').removeprefix('input_')[:40]}]"
