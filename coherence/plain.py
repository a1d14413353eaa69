"""Values from outside, checked and made plain: what is recorded can always be written as JSON and UTF-8."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import msgspec

MAX_TEXT = 200_000
"""Characters of one text that are recorded; longer ones lose their middle."""

MAX_DEPTH = 100
"""How deep arguments may be nested."""

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def check_text(field: str, value: object, *, empty: bool = True) -> str:
    """Return a text, or raise TypeError or ValueError that names the field."""
    if not isinstance(value, str):
        raise TypeError(f"{field} must be a str, not {_shown(value)}")
    if not empty and not value.strip():
        raise ValueError(f"{field} must not be empty, not {value!r}")
    return value


def check_number(field: str, value: object, *, least: float = -math.inf, most: float = math.inf) -> float:
    """Return a finite number in a range, or raise TypeError or ValueError that names the field."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{field} must be a number, not {_shown(value)}")
    if not least <= value <= most or math.isinf(value):
        raise ValueError(f"{field} must be {_range(least, most)}, not {_shown(value)}")
    return value


def check_count(field: str, value: object, *, least: int = 0, most: int = 2**53) -> int:
    """Return a whole number in a range, or raise TypeError or ValueError that names the field."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{field} must be an int, not {_shown(value)}")
    if not least <= value <= most:
        raise ValueError(f"{field} must be {_range(least, most)}, not {_shown(value)}")
    return value


def check_flag(field: str, value: object) -> bool:
    """Return True or False, or raise TypeError: the text "false" is true to Python."""
    if not isinstance(value, bool):
        raise TypeError(f"{field} must be True or False, not {_shown(value)}")
    return value


def _range(least: float, most: float) -> str:
    if math.isinf(most):
        return "a finite number" if math.isinf(least) else f"{least:g} or more and finite"
    return f"at most {most:g} and finite" if math.isinf(least) else f"in [{least:g}, {most:g}]"


def _shown(value: object) -> str:
    try:
        shown = repr(value)
    except Exception:
        return type(value).__name__
    return shown if len(shown) <= 80 else shown[:80] + "…"


def clean(text: str) -> str:
    r"""Return a text that can be written as UTF-8, without its middle if it is too long.

    Examples
    --------
    >>> clean("ok"), clean("a\ud800b") == "a\ufffdb"
    ('ok', True)
    """
    if len(text) > MAX_TEXT:
        half = MAX_TEXT // 2
        whole = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        left_out = f"{len(text) - 2 * half:,} of {len(text):,} characters left out, hash {whole}"
        text = f"{text[:half]}\n[… {left_out} …]\n{text[-half:]}"
    return text if text.isascii() else _LONE_SURROGATE.sub("\ufffd", text)


def to_json(field: str, value: Any) -> bytes:
    """Return the compact JSON of any value; what JSON does not know becomes its text, NaN and infinity null.

    Raises
    ------
    ValueError
        For a value that is nested deeper than 100 levels, or contains itself; the message names the field.
    """
    try:
        return _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError, OverflowError):
        return _ENCODER.encode(_plain(field, value, 0))


def _plain(field: str, value: Any, depth: int) -> Any:
    """Copy a value into what JSON knows, the slow way."""
    if depth > MAX_DEPTH:
        raise ValueError(f"{field} must be nested at most {MAX_DEPTH} levels deep")
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("\ufffd", value)
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**64 else float(value) if abs(value) < 2**1000 else str(value)[:80]
    if isinstance(value, Mapping):
        return {clean(str(key)): _plain(field, item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(field, item, depth + 1) for item in value]
    return clean(str(value))


def _as_text(value: object) -> str:
    return clean(str(value))


_ENCODER = msgspec.json.Encoder(enc_hook=_as_text, decimal_format="number")


def call_text(name: str, arguments: Any) -> str:
    r"""Return a tool call as one text, the form in which it is embedded and compared.

    Examples
    --------
    >>> call_text("Bash", {"command": "ls"}), call_text("Bash", "ls"), call_text("Now", None)
    ('Bash({"command":"ls"})', 'Bash(ls)', 'Now(null)')
    """
    if isinstance(arguments, str):
        return f"{name}({arguments})"
    return f"{name}({to_json('arguments', arguments).decode()})"
