"""JSON values that are safe to hand on: they can be written as JSON and as UTF-8 again."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Annotated, Any, TypeAlias

import msgspec

MAX_DEPTH = 100
"""Levels to which the arguments of a tool call may be nested."""

MAX_SECONDS = 1e11
"""From where on a number is no time in seconds: milliseconds since 1970 are more."""

Tokens: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]
"""A count of tokens in a file."""

# Group 1 is all that is kept, pairs and other escapes in it: no half of a pair is taken for a lone one, nor "\\ud800".
_ESCAPE = re.compile(
    r"((?:[^\\]|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\(?!u[dD][89a-fA-F][0-9a-fA-F]{2}).)++)"
    r"|\\u[dD][89a-fA-F][0-9a-fA-F]{2}",
    re.DOTALL,
)


def loads(text: str) -> Any:
    r"""Parse JSON. A lone surrogate becomes U+FFFD, an integer beyond Python's digit limit becomes infinity.

    Examples
    --------
    >>> loads(r'["\ud800", "\ud83d\ude00"]')
    ['�', '😀']
    """
    if "\\ud" in text or "\\uD" in text:
        text = _ESCAPE.sub(lambda found: found[1] or r"\ufffd", text)
    return _DECODER.decode(text)


def check_depth(value: Any) -> None:
    """Raise ``ValueError`` for a value so deep that writing it as JSON later could exhaust the stack."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [
            child
            for item in level
            if isinstance(item, dict | list)
            for child in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return
    raise ValueError(f"nested deeper than {MAX_DEPTH} levels")


def seconds_of(value: Any) -> float | None:
    """Return a time, or a length of time, in seconds from a number or an ISO 8601 text; ``None`` for anything else.

    Examples
    --------
    >>> [seconds_of(value) for value in (2.5, "1970-01-01T00:01:00Z", "noon", True, -1, None)]
    [2.5, 60.0, None, None, None, None]
    """
    if isinstance(value, str):
        try:
            at = datetime.fromisoformat(value)
            value = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            return None
    known = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < MAX_SECONDS
    return float(value) if known else None


def _integer(digits: str) -> int | float:
    try:
        return int(digits)
    except ValueError:
        return float(digits)


_DECODER = json.JSONDecoder(parse_int=_integer)
