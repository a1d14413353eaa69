"""Shared parts of the formats of chat messages: conversations, and contents of text or of parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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


def read_chats(source: Source, message: type[M], expected: str) -> Iterator[tuple[int | None, Chat[M]]]:
    """Yield each conversation and its line; a file of one message a line is one conversation."""
    first = source.documents[0].value
    if isinstance(first, dict) and "role" in first and "messages" not in first:
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
