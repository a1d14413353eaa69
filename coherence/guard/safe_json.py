"""Any value as plain JSON of bounded size, for a record: what cannot be serialised is tagged, nothing is fatal."""

from __future__ import annotations

import datetime
import inspect
import math
import pathlib
import reprlib
import types
import uuid
from collections.abc import Iterable, Iterator
from decimal import Decimal
from enum import Enum
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import numpy as np

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

_TIMES = (datetime.datetime, datetime.time)
_PATHS = (pathlib.PosixPath, pathlib.WindowsPath, pathlib.PurePosixPath, pathlib.PureWindowsPath)
_TEXTS = frozenset((*_TIMES, *_PATHS, datetime.date, datetime.timedelta, Decimal, uuid.UUID))
"""Of these the text is kept."""

_SHOWN = frozenset((bytes, bytearray, complex, float, int, type(None), bool))
"""Of these a short ``repr`` is kept."""


def tagged(value: object) -> Any:
    r"""Return a value as JSON-like data: dicts with text keys, lists, texts, finite numbers, True, False and None.

    Tuples and sets become lists, dataclasses and msgspec structs dicts of their fields, dates, decimals, ids and paths
    texts. What JSON cannot say becomes ``{"unserialisable": type, "repr": short text}``: objects, bytes, NaN and
    infinities, ints beyond 64 bits, whatever is too deep or too much. Of keys with one text the last one is kept.

    No code of a foreign object runs: only the name of its type is kept, as its ``repr`` may raise, hang, or be of any
    length. At most :data:`MAX_ITEMS` values and about :data:`MAX_CHARACTERS` characters are kept, and the work is
    bounded accordingly. Secrets are removed from texts that are cut, before the cut; the rest is left to whoever writes
    the record.

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
    """One value being copied; types are looked at directly, never through the value's own attributes."""

    def __init__(self) -> None:
        self.items = MAX_ITEMS
        self.characters = MAX_CHARACTERS

    def of(self, value: Any, depth: int) -> Any:
        kind = type(value)
        try:
            found = self.leaf(kind, value)
            if found is not _UNKNOWN:
                return found
            pairs = _pairs(kind, value)
            base = next((base for base in (list, tuple, set, frozenset) if issubclass(kind, base)), None)
            if pairs is None and base is None:
                return self.tag(kind, reprlib.repr(value) if kind in _SHOWN else "")
            if not depth:
                return self.tag(kind, "nested too deep")
            if pairs is not None:
                return self.table(*pairs, depth - 1)
            row: Any = base
            out = self.row(row.__iter__(value), row.__len__(value), depth - 1)
            # which of a set comes first differs from process to process
            return sorted(out, key=msgspec.json.encode) if base in (set, frozenset) else out
        except Exception as error:  # a stranger's object may raise anything while it is read
            return self.tag(kind, f"cannot be read: {_name(type(error))}")

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
        if issubclass(kind, np.generic) and kind.__module__ == "numpy":
            return self.leaf(type(value.item()), value.item())
        if kind is np.ndarray:
            return self.tag(kind, f"{value.dtype.name} {value.shape}")
        if kind in _TEXTS and (kind not in _TIMES or type(value.tzinfo) in _ZONES):
            return self.text(str(value), MAX_KEY)
        return vars(value)["_name_"] if issubclass(kind, Enum) else _UNKNOWN

    def text(self, text: str, most: int) -> str:
        found = shortened(text, max(min(most, self.characters), MAX_KEY))
        self.characters -= min(len(text), most)
        return found

    def tag(self, kind: type, text: str) -> dict[str, str]:
        name = _name(kind)
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
            kind: type = type(key)
            name = str.__str__(key) if issubclass(kind, str) else reprlib.repr(key) if kind in _SHOWN else _name(kind)
            out[self.text(name, MAX_KEY)] = self.of(value, depth)
        return out if kept == count else out | _more(count - kept)

    def some(self, values: Iterable[Any]) -> Iterator[Any]:
        """Yield values as long as there is room."""
        for value in values:
            if self.items <= 0 or self.characters <= 0:
                return
            self.items -= 1
            yield value


_UNKNOWN = object()
_ZONES = (type(None), datetime.timezone, ZoneInfo)
_FIELDS = "__dataclass_fields__"


def _pairs(kind: type, value: Any) -> tuple[Iterable[tuple[object, object]], int] | None:
    """Return the pairs of a dict, dataclass or struct, and how many there are; None for another type."""
    if issubclass(kind, dict):
        return dict.items(value), dict.__len__(value)
    names: Any = kind.__struct_fields__ if issubclass(kind, msgspec.Struct) else None
    if names is None:
        names = next((vars(base)[_FIELDS] for base in kind.__mro__ if _FIELDS in vars(base)), None)
    return None if names is None else (((name, _field(value, name)) for name in names), len(names))


def _field(value: object, name: str) -> object:
    """Return a field, and run no property that its class may have in its place."""
    found = inspect.getattr_static(value, name, None)
    return found.__get__(value) if type(found) is types.MemberDescriptorType else found


def _more(count: int) -> dict[str, str]:
    return {"unserialisable": "items", "repr": f"{count:,} more"}


def _name(kind: type) -> str:
    try:
        return shortened(str.__str__(type.__dict__["__name__"].__get__(kind)), MAX_KEY)
    except Exception:
        return "object"
