"""Views of a file's first documents, by which readers tell whether it is of their format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from coherence.providers.readers.source import Document

LOOK_AT = 50
"""Documents of a file that are looked at."""


def objects(documents: Sequence[Document]) -> list[dict[str, Any]]:
    """Return those of the first documents that are objects."""
    return [document.value for document in documents[:LOOK_AT] if isinstance(document.value, dict)]


def flat(documents: Sequence[Document]) -> Iterator[dict[str, Any]]:
    """Yield the objects among the first documents, and those in lists."""
    for document in documents[:LOOK_AT]:
        for each in document.value if isinstance(document.value, list) else (document.value,):
            if isinstance(each, dict):
                yield each


def records(documents: Sequence[Document]) -> Iterator[dict[str, Any]]:
    """Yield what :func:`flat` does, and the objects in the list ``data`` of an answer of an API."""
    for value in flat(documents):
        yield value
        held = value.get("data")
        for each in held if isinstance(held, list) else ():
            if isinstance(each, dict):
                yield each


def messages_of(documents: Sequence[Document]) -> Iterator[dict[str, Any]]:
    """Yield all messages with a role: documents, or those that a list or an object with ``messages`` holds."""
    for document in documents:
        value = document.value
        held = value.get("messages", [value]) if isinstance(value, dict) else value
        for message in held if isinstance(held, list) else ():
            if isinstance(message, dict) and "role" in message:
                yield message
