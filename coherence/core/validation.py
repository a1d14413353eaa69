"""Values from outside, checked and made plain: what is recorded can always be written as JSON and UTF-8."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import msgspec

from coherence.core.lazy import lazy_regex

MAX_TEXT = 200_000
"""Characters of one text that are recorded; longer ones lose their middle."""

MAX_NAME = 500
"""Characters of a name or an id that are recorded; longer ones lose their middle."""

MAX_DEPTH = 100
"""Largest depth of nested arguments."""

_LONE_SURROGATE = lazy_regex("[\ud800-\udfff]")


def check_text(field: str, value: object, *, empty: bool = True) -> str:
    """Return a text, or raise TypeError or ValueError that names the field."""
    if not isinstance(value, str):
        raise TypeError(f"{field} must be a str, not {shown(value)}")
    if not empty and not value.strip():
        raise ValueError(f"{field} must not be empty, not {shown(value)}")
    return str.__str__(value)  # a subclass of str cannot be encoded


def check_number(field: str, value: object, *, least: float = -math.inf, most: float = math.inf) -> float:
    """Return a finite number in a range, or raise TypeError or ValueError that names the field."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{field} must be a number, not {shown(value)}")
    # in this form it refuses NaN, infinity and ints beyond any float, too
    if not max(least, -sys.float_info.max) <= value <= min(most, sys.float_info.max):
        raise ValueError(f"{field} must be {_range(least, most)}, not {shown(value)}")
    return float(value)


def check_count(field: str, value: object, *, least: int = 0, most: int = 2**53) -> int:
    """Return a whole number in a range, or raise TypeError or ValueError that names the field."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{field} must be an int, not {shown(value)}")
    if not least <= value <= most:
        allowed = f"{least} or more" if value < least and most == 2**53 else _range(least, most)
        raise ValueError(f"{field} must be {allowed}, not {shown(value)}")
    return int(value)


def check_flag(field: str, value: object) -> bool:
    """Return True or False, or raise TypeError: the text "false" is true to Python."""
    if not isinstance(value, bool):
        raise TypeError(f"{field} must be True or False, not {shown(value)}")
    return value


def _range(least: float, most: float) -> str:
    if math.isinf(most):
        return "a finite number" if math.isinf(least) else f"{least:g} or more and finite"
    return f"at most {most:g} and finite" if math.isinf(least) else f"in [{least:g}, {most:g}]"


def shown(value: object) -> str:
    """Return a value's repr for a message, at most 80 characters of it, without secrets."""
    from coherence.core.redact import redacted_start  # which imports this module

    try:
        shown = redacted_start(repr(value), 81)
    except Exception:
        return type(value).__name__
    return shown if len(shown) <= 80 else shown[:80] + "…"


def clean(text: str, most: int = MAX_TEXT) -> str:
    r"""Return a text that can be written as UTF-8, without its middle if it is longer than ``most`` characters.

    Examples
    --------
    >>> clean("ok"), clean("a\ud800b") == "a\ufffdb"
    ('ok', True)
    """
    if len(text) > most:
        half = most // 2
        # Two texts that differ in the part left out stay two.
        whole = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        left_out = f"{len(text) - 2 * half:,} of {len(text):,} characters left out, hash {whole}"
        text = f"{text[:half]}\n[… {left_out} …]\n{text[-half:]}"
    return text if text.isascii() else _LONE_SURROGATE.sub("\ufffd", text)


def ends(text: str, most: int, between: str = " ") -> str:
    """Return a text of at most ``most`` characters as it is, of a longer one half of them from each end.

    Examples
    --------
    >>> ends("abcdef", 6), ends("abcdefg", 4), ends("abcdefg", 4, " … ")
    ('abcdef', 'ab fg', 'ab … fg')
    """
    half = most // 2
    return text if len(text) <= most else f"{text[:half]}{between}{text[len(text) - half :]}"


def to_json(field: str, value: Any) -> bytes:
    """Return the compact JSON of any value; what JSON does not know becomes its text, NaN and infinity null.

    Raises
    ------
    ValueError
        For a value that is nested deeper than 100 levels, or contains itself; the message names the field.
    """
    try:
        found = _ENCODER.encode(value)
    except Exception:  # a stranger's object may raise anything while it is read
        found = _encode_slowly(field, value)
    # Nothing is deeper than it has brackets, so hardly anything is walked.
    if found.count(b"[") + found.count(b"{") > MAX_DEPTH:
        _check_depth(field, found)
    return found


def _encode_slowly(field: str, value: Any) -> bytes:
    try:
        return _ENCODER.encode(_plain(field, value, 0))
    except ValueError:
        raise
    except Exception as error:
        raise ValueError(f"{field} cannot be read: {type(error).__name__} in {type(value).__name__}") from error


def _check_depth(field: str, found: bytes) -> None:
    depth = 0
    for token in _BRACKETS.findall(found):
        depth += 1 if token in b"[{" else -1 if token in b"]}" else 0
        if depth > MAX_DEPTH:
            raise ValueError(_TOO_DEEP.format(field=field))


def _plain(field: str, value: Any, depth: int) -> Any:
    """Copy a value into what JSON knows, the slow way."""
    if depth > MAX_DEPTH:
        raise ValueError(_TOO_DEEP.format(field=field))
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, float):
        return float(value)
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("\ufffd", str.__str__(value))
    if isinstance(value, int):
        if -(2**63) <= value < 2**64:
            return int(value)
        return float(value) if abs(value) < 2**1000 else f"int of {value.bit_length()} bits"
    if isinstance(value, Mapping):
        return {_as_text(key): _plain(field, item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(field, item, depth + 1) for item in value]
    return _as_text(value)


def _as_text(value: object) -> str:
    try:
        return _LONE_SURROGATE.sub("\ufffd", str.__str__(str(value)))
    except Exception:
        return f"<{type(value).__name__}>"


_TOO_DEEP = f"{{field}} must be nested at most {MAX_DEPTH} levels deep"
# Texts are taken whole, so that brackets within them do not count.
_BRACKETS = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[{\]}]')
_ENCODER = msgspec.json.Encoder(enc_hook=_as_text)


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


def shown_amount(value: float) -> str:
    """Return an amount of tokens or money as it can stand in a sentence.

    Examples
    --------
    >>> shown_amount(1_234_567), shown_amount(0.12345678), shown_amount(12.5)
    ('1,234,567', '0.1235', '12.5')
    """
    return f"{round(value, 4):,.12g}"
