"""Records that platforms keep of spans: what their exports have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from coherence.core.errors import TranscriptError
from coherence.providers.readers.source import Source
from coherence.providers.readers.values import MAX_SECONDS, check_depth, seconds_of

_UNITS = (1e3, 1e6, 1e9)
"""Parts of a second in which programs count."""


def records_of(source: Source, keys: Sequence[str], expected: str) -> Iterator[Mapping[str, Any]]:
    """Yield the records of a file: objects, one a line or in a list, or in a list that an object holds under a key.

    Raises
    ------
    TranscriptError
        If anything else stands there, or is nested too deep.
    """
    for document in source.documents:
        try:
            check_depth(document.value)
        except ValueError as error:
            raise TranscriptError(source.path, str(error), document.line) from error
        for value in unwrapped(document.value, keys):
            if not isinstance(value, dict):
                raise TranscriptError(
                    source.path, f"a record is a {type(value).__name__}, expected {expected}", document.line
                )
            yield value


def unwrapped(value: Any, keys: Sequence[str]) -> list[Any]:
    """Return the values of a list, or of the list that an object holds under one of some keys; else the value alone.

    Examples
    --------
    >>> unwrapped({"data": [1, 2], "meta": {}}, ["data"]), unwrapped({"id": "a"}, ["data"])
    ([1, 2], [{'id': 'a'}])
    """
    if isinstance(value, dict):
        value = next((value[key] for key in keys if isinstance(value.get(key), list)), value)
    return value if isinstance(value, list) else [value]


def moment_of(value: Any) -> float | None:
    """Return a time in Unix seconds from a text, or a number of seconds, milli-, micro- or nanoseconds.

    Examples
    --------
    >>> moment_of("2025-01-01 00:00:00.500000") == moment_of(1735689600500) == moment_of(1735689600.5)
    True
    """
    found = seconds_of(value)
    if found is None and isinstance(value, int | float) and not isinstance(value, bool) and value >= MAX_SECONDS:
        found = next((at for unit in _UNITS if (at := seconds_of(value / unit)) is not None), None)
    return found


def text_of(record: Mapping[str, Any], *names: str) -> str:
    """Return the first of some fields that is a text and not empty, or an empty text."""
    return next((record[name] for name in names if isinstance(record.get(name), str) and record[name]), "")


def mapping_of(value: Any, *path: str) -> Mapping[str, Any]:
    """Return an object inside others, empty where there is none."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def tool_message(value: Any) -> tuple[Any, str, bool]:
    """Return the content of a tool's message, the id of its call, and whether it failed; what is none is the content.

    Examples
    --------
    >>> tool_message({"type": "tool", "content": "no such file", "tool_call_id": "c1", "status": "error"})
    ('no such file', 'c1', True)
    >>> tool_message({"rows": 3})
    ({'rows': 3}, '', False)
    """
    if isinstance(value, dict) and ("tool" in (value.get("type"), value.get("role")) or "tool_call_id" in value):
        return value.get("content"), text_of(value, "tool_call_id"), value.get("status") == "error"
    return value, "", False
