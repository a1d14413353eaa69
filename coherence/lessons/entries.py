"""Lessons read from JSON: lines, or one array.

A line is an object with ``pattern``, ``error_text``, ``fix_text`` and, where known, ``tool``, ``count``, ``helped``,
``failed``, ``created`` and ``seen``, and where the error was shortened its ``shape`` with the number of its normal
``form``: one of another version is derived anew. Other programs' ``error``, ``fix`` and ``ts`` (Unix seconds,
milliseconds or ISO 8601) are read as well, and one JSON array of such objects in place of lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import IO

import msgspec

from coherence.core.redact import redact_value
from coherence.core.validation import check_count, check_number, shown
from coherence.lessons import normal
from coherence.lessons.intake import make_new
from coherence.lessons.normal import ErrorShape
from coherence.lessons.table import New

MAX_BYTES = 64_000_000
"""Size of one line, and of a file that is one JSON array: these are held in memory."""

MAX_COUNT = 10**12
"""The largest number of records, successes or failures that is believed."""

MAX_SHAPE = 20_000
"""Characters of a shape."""

LATEST = 1e11
"""Unix seconds (the year 5138) from which a number is taken for milliseconds; a thousand times later for microseconds,
and then for nanoseconds."""


class RefusedEntry(msgspec.Struct, frozen=True):
    """A line that could not be read as a lesson."""

    line: int
    """Counted from 1; in a JSON array the place of the lesson."""
    why: str


def read_entries(source: IO[bytes]) -> Iterator[New | RefusedEntry]:
    r"""Yield the lessons of a file, and its lines that are none.

    Examples
    --------
    >>> import io
    >>> lines = b'{"pattern": "p", "error": "boom", "fix": "calm down", "ts": 5}\n{"pattern": "p"}\nwhat?\n'
    >>> found = list(read_entries(io.BytesIO(lines)))
    >>> [each.why if isinstance(each, RefusedEntry) else each.fix_text for each in found]
    ['calm down', 'error_text is missing', 'not JSON: Expecting value']
    """
    first = True
    for number, line in enumerate(iter(lambda: source.readline(MAX_BYTES + 1), b""), 1):
        line = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
        if len(line) > MAX_BYTES:
            yield RefusedEntry(number, f"longer than {MAX_BYTES:,} bytes; nothing after it was read")
            return
        if first and (line.lstrip().startswith(b"[") or line.strip() == b"{"):
            yield from _read_whole(number, line + source.read(MAX_BYTES))
            return
        if line.strip():
            first = False
            yield _read(number, line)


def _read_whole(number: int, data: bytes) -> Iterator[New | RefusedEntry]:
    """Yield the lessons of one JSON array, or one that takes several lines."""
    if len(data) > MAX_BYTES:
        yield RefusedEntry(number, f"one JSON value of more than {MAX_BYTES:,} bytes; write one lesson a line instead")
        return
    try:
        value = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        yield RefusedEntry(number, _no_json(error))
        return
    for place, each in enumerate(value if isinstance(value, list) else [value], 1):
        yield _read(place, each)


def _no_json(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8 text"
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return f"not JSON: {error.msg if isinstance(error, json.JSONDecodeError) else error}"


def _read(number: int, given: object) -> New | RefusedEntry:
    """Read a lesson, a line or a JSON value."""
    try:
        value = json.loads(given.decode("utf-8")) if isinstance(given, bytes) else given
    except (ValueError, RecursionError) as error:
        return RefusedEntry(number, _no_json(error))
    try:
        return _entry(value)
    except (TypeError, ValueError) as error:
        return RefusedEntry(number, str(error))


def _entry(value: object) -> New:
    if not isinstance(value, dict):
        raise TypeError(f"a lesson must be a JSON object, not {shown(value)}")
    seen = _time(value, "seen", "ts")
    created = _time(value, "created")
    tool = _either(value, "tool")
    new = make_new(
        pattern=_needed(value, "pattern"),
        error_text=_needed(value, "error_text", "error"),
        fix_text=_needed(value, "fix_text", "fix"),
        tool="" if tool is None else tool,
        origin=None,
        ts=seen if created is None else created,
    )
    counts = {
        "count": check_count("count", value.get("count", 1), least=1, most=MAX_COUNT),
        "helped": check_count("helped", value.get("helped", 0), most=MAX_COUNT),
        "failed": check_count("failed", value.get("failed", 0), most=MAX_COUNT),
    }
    shape = _shape(value.get("shape"), new.shape) if value.get("form", normal.FORM) == normal.FORM else new.shape
    return msgspec.structs.replace(new, shape=shape, seen=seen, **counts)


def _shape(value: object, default: ErrorShape) -> ErrorShape:
    """Return the shape of an error that was shortened when it was kept."""
    if value is None:
        return default
    try:
        shape = msgspec.convert(redact_value(value), ErrorShape)
    except msgspec.ValidationError as error:
        raise ValueError(f"shape: {error}") from None
    texts = (shape.exception, shape.template, shape.text, *(slot.value for slot in shape.slots))
    if len(shape.signature) != 8 or sum(map(len, texts)) > MAX_SHAPE:
        raise ValueError("shape: not one of an error")
    return shape


def _either(value: Mapping[str, object], *names: str) -> object:
    """Return the first of these fields that holds something."""
    return next((value[name] for name in names if value.get(name) is not None), None)


def _needed(value: Mapping[str, object], *names: str) -> object:
    found = _either(value, *names)
    if found is None:
        raise ValueError(f"{names[0]} is missing")
    return found


def _time(entry: Mapping[str, object], *names: str) -> float | None:
    """Return the first of these fields as Unix seconds; a time without a zone is UTC."""
    field = next((name for name in names if entry.get(name) is not None), None)
    if field is None:
        return None
    value = entry[field]
    if isinstance(value, str):
        try:
            when = datetime.fromisoformat(value)
            return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            raise ValueError(f"{field} must be Unix seconds or ISO 8601, not {shown(value)}") from None
    number = check_number(field, value, least=-LATEST * 1e9, most=LATEST * 1e9)
    for parts in (1.0, 1e3, 1e6):
        if abs(number) < LATEST * parts:
            return number / parts
    return number / 1e9
