"""Plain values, whose reading runs no code of a stranger, and what can be known of others without running it."""

from __future__ import annotations

from typing import Any, TypeGuard, TypeVar

T = TypeVar("T")

MAX_DEPTH = 100
"""Largest depth of nested arguments."""

_NAME: Any = type.__dict__["__name__"]
_ARGS: Any = BaseException.__dict__["args"]
_TEXTS = (BaseException.__dict__["__str__"], KeyError.__dict__["__str__"])
"""Methods that make the text of an exception of its arguments alone."""


def is_plain(value: object, depth: int = MAX_DEPTH) -> bool:
    """Tell whether a value is exactly a str, int, float, bool, None, or a dict, list or tuple of such values.

    Examples
    --------
    >>> is_plain({"path": "a", "lines": [1, 2]}), is_plain({"path": object()}), is_plain({1: "a"})
    (True, False, False)
    """
    kind = type(value)
    # compared, not looked up in a set: the type of a type may have a hash of its own
    if kind is str or value is None or kind is int or kind is float or kind is bool:
        return True
    if not depth:
        return False
    try:
        if kind is dict:
            for key in value:  # type: ignore[attr-defined]
                if type(key) is not str:
                    return False
            value = value.values()  # type: ignore[attr-defined]
        elif kind is not list and kind is not tuple:
            return False
        for item in value:  # type: ignore[attr-defined]
            kind = type(item)
            if kind is str or kind is int or kind is float or kind is bool or item is None:
                continue  # without a call: this is on the path of every recorded call
            if not is_plain(item, depth - 1):
                return False
    except RuntimeError:  # another thread changes it
        return False
    return True


def type_name(value: object) -> str:
    """Return the name of a value's type, which the type itself cannot change.

    Examples
    --------
    >>> type_name(3)
    'int'
    """
    return name_of(type(value))


def name_of(kind: type) -> str:
    """Return the name of a type, which the type itself cannot change."""
    return kind.__name__ if type(kind) is type else str(_NAME.__get__(kind))


def is_a(value: object, kind: type[T]) -> TypeGuard[T]:
    """Do what ``isinstance`` does without a look at the value's own ``__class__``, which may lie, raise or hang."""
    return issubclass(type(value), kind)


def has_plain_text(error: BaseException) -> bool:
    """Tell whether the text of an exception is made without code of a stranger."""
    kind = type(error)
    if type(kind) is not type:  # which says what its attributes are
        return False
    for base in kind.__mro__:
        made = base.__dict__.get("__str__")
        if made is not None:
            return (made is _TEXTS[0] or made is _TEXTS[1]) and is_plain(_ARGS.__get__(error))
    return False
