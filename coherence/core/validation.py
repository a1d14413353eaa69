"""Values from outside, checked and made plain: what is recorded can always be written as JSON and UTF-8."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from itertools import islice
from typing import Any

import msgspec

from coherence.core.lazy import lazy_regex
from coherence.core.plain import MAX_DEPTH, is_a, is_plain, type_name
from coherence.core.strangers import ask, ask_each, report

MAX_TEXT = 200_000
"""Characters of one text that are recorded; longer ones lose their middle."""

MAX_NAME = 500
"""Characters of a name or an id that are recorded; longer ones lose their middle."""

MAX_ITEMS = 1_000_000
"""Items of a stranger's sequence or mapping that are read: it may have no end."""

_LONE_SURROGATE = lazy_regex("[\ud800-\udfff]")


def check_text(field: str, value: object, *, empty: bool = True) -> str:
    """Return a text, or raise TypeError or ValueError that names the field."""
    text = value if type(value) is str else plain_text(value)
    if text is None:
        raise TypeError(f"{field} must be a str, not {shown(value)}")
    if not empty and not text.strip():
        raise ValueError(f"{field} must not be empty, not {shown(text)}")
    return text


def plain_text(value: object) -> str | None:
    """Return a value as exactly a str if it is one, else None; no method of a subclass, which may lie, is called.

    Examples
    --------
    >>> plain_text("a"), plain_text(1)
    ('a', None)
    """
    return str.__str__(value) if issubclass(type(value), str) else None


def check_number(field: str, value: object, *, least: float = -math.inf, most: float = math.inf) -> float:
    """Return a finite number in a range, or raise TypeError or ValueError that names the field."""
    number = plain_number(value)
    if number is None:
        raise TypeError(f"{field} must be a number, not {shown(value)}")
    # in this form it refuses NaN, infinity and ints beyond any float, too
    if not max(least, -sys.float_info.max) <= number <= min(most, sys.float_info.max):
        raise ValueError(f"{field} must be {_range(least, most)}, not {shown(value)}")
    return float(number)


def check_count(field: str, value: object, *, least: int = 0, most: int = 2**53) -> int:
    """Return a whole number in a range, or raise TypeError or ValueError that names the field."""
    number = plain_number(value)
    if type(number) is not int:
        raise TypeError(f"{field} must be an int, not {shown(value)}")
    if not least <= number <= most:
        allowed = f"{least} or more" if number < least and most == 2**53 else _range(least, most)
        raise ValueError(f"{field} must be {allowed}, not {shown(value)}")
    return number


def check_flag(field: str, value: object) -> bool:
    """Return True or False, or raise TypeError: the text "false" is true to Python."""
    if type(value) is not bool:
        raise TypeError(f"{field} must be True or False, not {shown(value)}")
    return value


def check_items(field: str, value: object) -> list[object]:
    """Return the items of a list, tuple or other sequence, or raise TypeError or ValueError that names the field.

    Of a stranger's sequence, which may have no end, at most :data:`MAX_ITEMS` are read.
    """
    if is_a(value, list):
        return list(list.__iter__(value))
    if is_a(value, tuple):
        return list(tuple.__iter__(value))
    if not issubclass(type(value), Sequence) or issubclass(type(value), str | bytes):
        raise TypeError(f"{field} must be a list of numbers, not {shown(value)}")
    items: Any = value
    call = ask(value, lambda: list(islice(iter(items), MAX_ITEMS)))
    if call.failure is not None:
        raise ValueError(f"{field} cannot be read: {call.failure.kind} in {call.source}")
    found: list[object] = call.value
    return found


def plain_number(value: Any) -> float | int | None:
    """Return a value as exactly an int or a float, None for anything else; no method of a subclass is called.

    Examples
    --------
    >>> plain_number(2), plain_number(0.5), plain_number(True), plain_number("2")
    (2, 0.5, None, None)
    """
    kind = type(value)
    if kind is int or kind is float:
        found: float | int = value
        return found
    if issubclass(kind, float):
        return float.__float__(value)
    return int.__int__(value) if issubclass(kind, int) and kind is not bool else None


def _range(least: float, most: float) -> str:
    if math.isinf(most):
        return "a finite number" if math.isinf(least) else f"{least:g} or more and finite"
    return f"at most {most:g} and finite" if math.isinf(least) else f"in [{least:g}, {most:g}]"


def shown(value: object) -> str:
    """Return a value's repr for a message, at most 80 characters of it, without secrets."""
    from coherence.core.redact import redacted_start  # which imports this module

    if is_plain(value):
        try:
            found = redacted_start(repr(value), 81)
        except Exception:  # an int of thousands of digits
            return type_name(value)
    else:
        call = ask(value, lambda: redacted_start(str.__str__(repr(value)), 81))
        if call.failure is not None:
            return type_name(value)
        found = call.value
    return found if len(found) <= 80 else found[:80] + "…"


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

    A value that cannot be read, because it raises or hangs meanwhile, becomes ``<its type>``.

    Raises
    ------
    ValueError
        For a value that is nested deeper than 100 levels, or contains itself; the message names the field.
    """
    try:
        found = _ENCODER.encode(value) if is_plain(value) else b""
    except Exception:  # of lone surrogates or huge ints
        found = b""
    found = found or _ENCODER.encode(_plain(field, value))
    # Nothing is deeper than it has brackets, so hardly anything is walked.
    if len(found) > MAX_DEPTH and found.count(b"[") + found.count(b"{") > MAX_DEPTH:
        _check_depth(field, found)
    return found


def _check_depth(field: str, found: bytes) -> None:
    depth = 0
    for token in _BRACKETS.findall(found):
        depth += 1 if token in b"[{" else -1 if token in b"]}" else 0
        if depth > MAX_DEPTH:
            raise ValueError(_TOO_DEEP.format(field=field))


class _Stranger:
    """Place of a value that has to be asked for its JSON."""

    __slots__ = ("found", "value")

    def __init__(self, value: object) -> None:
        self.value = value
        self.found = msgspec.Raw(b"null")


def _plain(field: str, value: Any) -> Any:
    """Copy a value into what JSON knows, the slow way; strangers are asked, all at once."""
    strangers: list[_Stranger] = []
    made = _copied(field, value, 0, strangers)
    if strangers:
        calls = ask_each([(_blamed(each.value), _reader(each.value)) for each in strangers])
        for stranger, call in zip(strangers, calls, strict=True):
            unread = msgspec.json.encode(f"<{type_name(stranger.value)}>")
            stranger.found = msgspec.Raw(unread if call.failure is not None else call.value)
        report(field, calls)
    return made


def _copied(field: str, value: Any, depth: int, strangers: list[_Stranger]) -> Any:
    """Copy a value by the methods of the built-in types, which those of a subclass cannot replace."""
    if depth > MAX_DEPTH:
        raise ValueError(_TOO_DEEP.format(field=field))
    kind = type(value)
    if value is None or kind is bool:
        return value
    if issubclass(kind, str):
        return _LONE_SURROGATE.sub("\ufffd", str.__str__(value))
    if isinstance(number := plain_number(value), float):
        return number
    if number is not None:
        if -(2**63) <= number < 2**64:
            return number
        return float(number) if abs(number) < 2**1000 else f"int of {number.bit_length()} bits"
    if issubclass(kind, dict):
        items = list(dict.items(value))
        if all(issubclass(type(key), _KEYS) for key, _ in items):
            return {_key(key): _copied(field, item, depth + 1, strangers) for key, item in items}
    for base in (list, tuple, set, frozenset):
        if issubclass(kind, base):
            return [_copied(field, item, depth + 1, strangers) for item in list(base.__iter__(value))]
    strangers.append(_Stranger(value))
    return strangers[-1]


_KEYS = (str, int, float, type(None))
"""Types of keys, with their subclasses, whose text is known without asking them."""


def _key(key: Any) -> str:
    number = plain_number(key)
    return clean(str.__str__(key)) if issubclass(type(key), str) else str(key if number is None else number)


def _blamed(value: Any) -> object:
    """Return what hangs if a value hangs: a key of a dict."""
    if not issubclass(type(value), dict):
        return value
    return next(key for key in list(dict.keys(value)) if not issubclass(type(key), _KEYS))


def _reader(value: Any) -> Callable[[], bytes]:
    """Return the function that makes a stranger's JSON, on a worker."""

    def read() -> bytes:
        try:
            return _ENCODER.encode(value)  # dates, ids, enums, dataclasses
        except Exception:
            return _ENCODER.encode(_known(value, 0))

    return read


def _known(value: Any, depth: int) -> Any:
    """Return what JSON knows of what a stranger has handed over; runs its code."""
    if depth > MAX_DEPTH:
        raise ValueError("nested too deep")
    if isinstance(value, Mapping):
        return {_as_text(key): _known(item, depth + 1) for key, item in islice(value.items(), MAX_ITEMS)}
    return value if is_plain(value) and value is not None and type(value) is not str else _as_text(value)


def _as_text(value: object) -> str:
    """Return the text of a value; runs its code."""
    return _LONE_SURROGATE.sub("\ufffd", str.__str__(str(value)))


def _asked_for(value: object) -> object:
    return value.found if type(value) is _Stranger else _as_text(value)


_TOO_DEEP = f"{{field}} must be nested at most {MAX_DEPTH} levels deep"
# Texts are taken whole, so that brackets within them do not count.
_BRACKETS = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[{\]}]')
_ENCODER = msgspec.json.Encoder(enc_hook=_asked_for)


def call_text(name: str, arguments: Any) -> str:
    r"""Return a tool call as one text, the form in which it is embedded and compared.

    Examples
    --------
    >>> call_text("Bash", {"command": "ls"}), call_text("Bash", "ls"), call_text("Now", None)
    ('Bash({"command":"ls"})', 'Bash(ls)', 'Now(null)')
    """
    text = plain_text(arguments)
    if text is not None:
        return f"{name}({text})"
    return f"{name}({to_json('arguments', arguments).decode()})"


def shown_amount(value: float) -> str:
    """Return an amount of tokens or money as it can stand in a sentence.

    Examples
    --------
    >>> shown_amount(1_234_567), shown_amount(0.12345678), shown_amount(12.5)
    ('1,234,567', '0.1235', '12.5')
    """
    return f"{round(value, 4):,.12g}"
