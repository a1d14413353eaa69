"""Any value as plain JSON of bounded size, for a record: what cannot be serialised is tagged, nothing is fatal."""

from __future__ import annotations

import datetime
import math
import pathlib
import reprlib
import uuid
import zoneinfo
from collections.abc import Iterable, Iterator
from decimal import Decimal
from enum import Enum
from typing import Any

import msgspec
import numpy as np

from coherence.core.plain import name_of
from coherence.guard.shorten import shortened

MAX_ITEMS = 1000
"""Values that are kept of one value, those in containers included; the rest is counted."""

MAX_DEPTH = 20
"""Depth to which containers are followed; one that contains itself is followed so deep too."""

MAX_CHARACTERS = 50_000
"""Characters of all texts of one value together."""

MAX_TEXT = 8_000
"""Characters of one text; longer ones lose their middle."""

MAX_KEY = 200
"""Characters of a key."""

_TIMES = (datetime.datetime, datetime.date, datetime.time, datetime.timedelta)
_PATHS = (pathlib.PosixPath, pathlib.WindowsPath, pathlib.PurePosixPath, pathlib.PureWindowsPath)
_TEXTS = (*_TIMES, *_PATHS, Decimal, uuid.UUID)
"""Of these the text is kept."""

_SHOWN = (bytes, bytearray, complex, float, int, type(None), bool)
"""Of these a short ``repr`` is kept."""

_CONTAINERS = (dict, list, tuple, set, frozenset)
_UNKNOWN = object()


def tagged(value: object) -> Any:
    r"""Return a value as JSON-like data: dicts with text keys, lists, texts, finite numbers, True, False and None.

    Tuples and sets become lists; dates, decimals, ids and paths texts. What JSON cannot say becomes
    ``{"unserialisable": type, "repr": short text}``: objects, bytes, NaN and infinities, ints beyond 64 bits, whatever
    is too deep or too much. Of keys with one text the last one is kept.

    Of an object only the name of its type is kept: its ``repr`` may raise, hang, be of any length or tell a secret. At
    most :data:`MAX_ITEMS` values and about :data:`MAX_CHARACTERS` characters are kept, and the work is bounded
    accordingly. Secrets are removed from texts that are cut, before the cut; the rest is left to whoever writes the
    record.

    Parameters
    ----------
    value : object
        Arguments or a result of a call.

    Examples
    --------
    >>> tagged({"n": 1, 2: (True, b"\x00")})
    {'n': 1, '2': [True, {'unserialisable': 'bytes', 'repr': "b'\\x00'"}]}
    >>> tagged(float("nan"))
    {'unserialisable': 'float', 'repr': 'nan'}
    """
    try:
        return _Copy().of(value, MAX_DEPTH)
    except Exception:  # the stack or the memory is nearly used up
        return {"unserialisable": "object", "repr": "cannot be read"}


class _Copy:
    """One value being copied."""

    def __init__(self) -> None:
        self.items = MAX_ITEMS
        self.characters = MAX_CHARACTERS

    def of(self, value: Any, depth: int) -> Any:
        kind = type(value)
        try:
            found = self.leaf(kind, value)
            if found is not _UNKNOWN:
                return found
            # methods of the base: those of a stranger's subclass may do anything
            base: Any = next((base for base in _CONTAINERS if issubclass(kind, base)), None)
            if base is None:
                return self.tag(kind, reprlib.repr(value) if _is_one_of(kind, _SHOWN) else "")
            if not depth:
                return self.tag(kind, "nested too deep")
            if base is dict:
                return self.table(dict.items(value), dict.__len__(value), depth - 1)
            out = self.row(base.__iter__(value), base.__len__(value), depth - 1)
            # which of a set comes first differs from process to process
            return sorted(out, key=msgspec.json.encode) if base in (set, frozenset) else out
        except Exception as error:  # a stranger's object may raise anything while it is read
            return self.tag(kind, f"cannot be read: {type(error).__name__}")

    def leaf(self, kind: type, value: Any) -> Any:
        """Return a value that holds no others, or the mark for another one."""
        if value is None or kind is bool:
            return value
        if issubclass(kind, str):
            return self.text(str.__str__(value), MAX_TEXT)
        if issubclass(kind, int) and -(2**63) <= (number := int.__int__(value)) < 2**64:
            return number
        if issubclass(kind, float) and math.isfinite(real := float.__float__(value)):
            return real
        if issubclass(kind, np.generic):
            item = np.generic.item(value)
            return self.leaf(type(item), item) if not isinstance(item, np.generic) else _UNKNOWN
        if kind is np.ndarray:
            return self.tag(kind, f"{value.dtype.name} {value.shape}")
        if _is_one_of(kind, _TEXTS) and _has_known_zone(value):
            return self.text(str(value), MAX_KEY)
        return object.__getattribute__(value, "_name_") if issubclass(kind, Enum) else _UNKNOWN

    def text(self, text: str, most: int) -> str:
        found = shortened(text, max(min(most, self.characters), MAX_KEY))
        self.characters -= min(len(text), most)
        return found

    def tag(self, kind: type, text: str) -> dict[str, str]:
        name = shortened(name_of(kind), MAX_KEY)
        self.characters -= len(name) + len(text)
        return {"unserialisable": name, "repr": text} if text else {"unserialisable": name}

    def row(self, values: Iterable[object], count: int, depth: int) -> list[Any]:
        out = [self.of(value, depth) for value in self.some(values)]
        return out if len(out) == count else [*out, _more(count - len(out))]

    def table(self, pairs: Iterable[tuple[object, object]], count: int, depth: int) -> dict[str, Any]:
        out: dict[str, Any] = {}
        kept = 0
        for key, value in self.some(pairs):
            kept += 1
            kind = type(key)
            if issubclass(kind, str):
                name = str.__str__(key)
            else:
                name = reprlib.repr(key) if _is_one_of(kind, _SHOWN) else name_of(kind)
            out[self.text(name, MAX_KEY)] = self.of(value, depth)
        return out if kept == count else out | _more(count - kept)

    def some(self, values: Iterable[Any]) -> Iterator[Any]:
        """Yield values as long as there is room."""
        for value in values:
            if self.items <= 0 or self.characters <= 0:
                return
            self.items -= 1
            yield value


def _is_one_of(kind: type, kinds: tuple[type, ...]) -> bool:
    return any(kind is each for each in kinds)  # the type of a type may have a hash of its own


def _has_known_zone(value: Any) -> bool:
    """Tell whether the text of a value asks no time zone of a stranger for its name."""
    zone = value.tzinfo if isinstance(value, datetime.datetime | datetime.time) else None
    return zone is None or _is_one_of(type(zone), (datetime.timezone, zoneinfo.ZoneInfo))


def _more(count: int) -> dict[str, str]:
    return {"unserialisable": "items", "repr": f"{count:,} more"}
