"""Any value as plain JSON of bounded size, for a record: what cannot be serialised is tagged, nothing is fatal."""

from __future__ import annotations

import datetime
import inspect
import math
import types
import uuid
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from itertools import islice
from pathlib import PosixPath, PurePosixPath, PureWindowsPath, WindowsPath
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

import msgspec
import numpy as np

from coherence.guard.shorten import begun, shortened

MAX_ITEMS = 1000
"""Values that are kept of one value, those in containers included; the rest is counted."""

MAX_DEPTH = 20
"""How deep containers are followed."""

MAX_CHARACTERS = 50_000
"""Characters of all texts, keys and tags of one value together."""

MAX_TEXT = 8_000
"""Characters of one text; longer ones lose their middle."""

SHORT = 200
"""Characters of a key, and of the ``repr`` in a tag."""

KEY_MARGIN = 400
"""Characters of a key or tag beyond the cut that are searched for secrets too."""

_UNSET = object()
"""Stands for a field that cannot be read."""
_JSON = msgspec.json.Encoder()


def tagged(value: object) -> Any:
    r"""Return a value as JSON-like data: dicts with text keys, lists, texts, finite numbers, True, False and None.

    What JSON cannot say becomes ``{"unserialisable": type, "repr": short text}``: objects, bytes, NaN and infinities,
    ints beyond 64 bits, containers that contain themselves, whatever is too deep or too much. Tuples become lists,
    dataclasses and msgspec structs dicts of their fields, sets lists in the order of their JSON. Lone surrogates
    become U+FFFD.

    No code of the value runs: of a foreign object the name of its type is kept and not its ``repr``, which may raise,
    hang, or be of any length. At most :data:`MAX_ITEMS` values and about :data:`MAX_CHARACTERS` characters are kept,
    which is less than 500 kB of JSON, and the work is bounded accordingly. Secrets are removed from texts that are cut,
    before the cut; the rest is left to whoever writes the record.

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
    >>> loop = []
    >>> loop.append(loop)
    >>> tagged(loop)
    [{'unserialisable': 'list', 'repr': 'contains itself'}]
    """
    try:
        return _Tagging().of(value, 0)
    except Exception:  # the stack or the memory is nearly used up
        return {"unserialisable": "object", "repr": "cannot be read"}


class _Tagging:
    """One value being copied; types are looked at directly, never through the value's own attributes."""

    def __init__(self) -> None:
        self.items = MAX_ITEMS
        self.characters = MAX_CHARACTERS
        self.above: set[int] = set()

    def of(self, value: object, depth: int) -> Any:
        kind = type(value)
        try:
            if value is None or kind is bool:
                return value
            for base, scalar in _SCALARS:
                if issubclass(kind, base):
                    return scalar(self, value)
            copier = next((copier for base, copier in _CONTAINERS if issubclass(kind, base)), None)
            if copier is None and _fields(kind):
                copier = _Tagging.fields_of
            if copier is None:
                return self.tag(kind, "cannot be read" if value is _UNSET else _repr(kind, value))
            if id(value) in self.above:
                return self.tag(kind, "contains itself")
            if depth >= MAX_DEPTH:
                return self.tag(kind, "nested too deep")
            self.above.add(id(value))
            try:
                return copier(self, value, depth)
            finally:
                self.above.discard(id(value))
        except Exception as error:  # a stranger's object may raise anything while it is read
            return self.tag(kind, f"cannot be read: {_name(type(error))}")

    def tag(self, kind: type, text: str) -> dict[str, str]:
        name = _name(kind)
        self.characters -= len(name) + len(text)
        return {"unserialisable": name, "repr": text}

    def text_of(self, value: Any) -> Any:
        text = str.__str__(value)
        most = min(MAX_TEXT, self.characters)
        if len(text) > most and most < SHORT:
            return self.tag(type(value), f"{len(text):,} characters")
        self.characters -= min(len(text), most)
        return shortened(text, most)

    def whole_of(self, value: Any) -> Any:
        number = int.__int__(value)
        if -(2**63) <= number < 2**64:
            return number
        return self.tag(type(value), str(number) if abs(number) < 10**60 else f"{number.bit_length():,} bits")

    def real_of(self, value: Any) -> Any:
        number = float.__float__(value)
        return number if math.isfinite(number) else self.tag(type(value), repr(number))

    def bytes_of(self, value: Any) -> Any:
        kind = bytes if issubclass(type(value), bytes) else bytearray
        count, start = kind.__len__(value), repr(bytes(kind.__getitem__(value, slice(0, 32))))
        return self.tag(type(value), start if count <= 32 else f"{start} and {count - 32:,} more bytes")

    def dict_of(self, value: Any, depth: int) -> Any:
        return self.pairs(list(islice(dict.items(value), self.items)), dict.__len__(value), depth)

    def fields_of(self, value: Any, depth: int) -> Any:
        names = _fields(type(value))
        return self.pairs([(name, _field(value, name)) for name in names[: self.items]], len(names), depth)

    def list_of(self, value: Any, depth: int) -> Any:
        kind = list if issubclass(type(value), list) else tuple
        return self.row(list(islice(kind.__iter__(value), self.items)), kind.__len__(value), depth)

    def set_of(self, value: Any, depth: int) -> Any:
        kind = set if issubclass(type(value), set) else frozenset
        count = kind.__len__(value)
        if count < self.items:
            row = self.row(list(kind.__iter__(value)), count, depth)
            if self.items > 0 and self.characters >= MAX_TEXT:
                return sorted(row, key=_JSON.encode)
        return self.tag(type(value), f"{count:,} items")  # which of them came first differs from process to process

    def row(self, values: list[Any], count: int, depth: int) -> list[Any]:
        out: list[Any] = []
        for item in values:
            if self.items <= 0 or self.characters <= 0:
                break
            self.items -= 1
            out.append(self.of(item, depth + 1))
        if len(out) < count:
            out.append({"unserialisable": "items", "repr": f"{count - len(out):,} more"})
        return out

    def pairs(self, values: list[tuple[Any, Any]], count: int, depth: int) -> dict[str, Any]:
        out: dict[str, Any] = {}
        kept = 0
        for key, item in values:
            if self.items <= 0 or self.characters <= 0:
                break
            self.items -= 1
            kept += 1
            name = unique = self.key(key)
            number = 1
            while unique in out:
                number += 1
                unique = f"{name} ({number})"
            out[unique] = self.of(item, depth + 1)
        if kept < count:
            out["unserialisable"], out["repr"] = "items", f"{count - kept:,} more"
        return out

    def key(self, key: object) -> str:
        kind = type(key)
        text = _short(str.__str__(key)) if issubclass(kind, str) else _repr(kind, key)
        self.characters -= len(text)
        return text


_Scalar: TypeAlias = Callable[[_Tagging, Any], Any]
_Container: TypeAlias = Callable[[_Tagging, Any, int], Any]
_SCALARS: tuple[tuple[type | tuple[type, ...], _Scalar], ...] = (
    (str, _Tagging.text_of),
    (int, _Tagging.whole_of),
    (float, _Tagging.real_of),
    ((bytes, bytearray), _Tagging.bytes_of),
)
_CONTAINERS: tuple[tuple[type | tuple[type, ...], _Container], ...] = (
    (dict, _Tagging.dict_of),
    ((list, tuple), _Tagging.list_of),
    ((set, frozenset), _Tagging.set_of),
)


def _fields(kind: type) -> tuple[str, ...]:
    """Return the names of a dataclass's or a struct's fields, none for other types."""
    if issubclass(kind, msgspec.Struct):
        return kind.__struct_fields__
    for base in kind.__mro__:
        if "__dataclass_fields__" in vars(base):
            return tuple(vars(base)["__dataclass_fields__"])
    return ()


def _field(value: object, name: str) -> object:
    """Return a field, and run no property that its class may have in its place."""
    try:
        found = inspect.getattr_static(value, name)
        return found.__get__(value) if type(found) is types.MemberDescriptorType else found
    except Exception:
        return _UNSET


def _repr(kind: type, value: Any) -> str:
    """Return a short text for a value: its ``repr`` where that runs no foreign code, else what kind it is."""
    if issubclass(kind, int):
        number = int.__int__(value)
        return repr(bool(number) if kind is bool else number) if abs(number) < 10**60 else "int"
    if kind is tuple:
        return _short(f"({', '.join(_repr(type(item), item) for item in value[:8])})")
    if issubclass(kind, Enum):
        return _short(f"{_name(kind)}.{vars(value).get('_name_')}")
    if kind is bytes:
        return repr(value[:32]) + ("…" if len(value) > 32 else "")
    if kind is np.ndarray:
        return _short(f"{value.dtype.name} {value.shape}")
    plain = kind in _PLAIN or (issubclass(kind, np.number) and kind.__module__ == "numpy")
    if plain and (kind not in _TIMES or type(value.tzinfo) in _ZONES):
        return _short(repr(value))
    return _name(kind)


def _name(kind: type) -> str:
    try:
        return _short(str.__str__(type.__dict__["__name__"].__get__(kind)))
    except Exception:
        return "object"


def _short(text: str) -> str:
    return begun(text, SHORT, KEY_MARGIN)


_TIMES = (datetime.datetime, datetime.time)
_PATHS = (PosixPath, WindowsPath, PurePosixPath, PureWindowsPath)
_PLAIN = {type(None), float, complex, type, Decimal, uuid.UUID, np.bool_, datetime.date, datetime.timedelta}
_PLAIN.update(_TIMES, _PATHS)
_ZONES = (type(None), datetime.timezone, ZoneInfo)
