"""Nobody awaits what a guard is given to call: what is async is refused, or has failed."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable
from types import CoroutineType
from typing import TypeVar

T = TypeVar("T")


class NotAwaitedError(TypeError):
    """Something that looked like a plain function has returned what is still to be awaited."""


def refuse_async(name: str, function: object) -> None:
    """Refuse a coroutine function, an async generator function, and an object whose call is one.

    Raises
    ------
    TypeError
        With what to do instead.

    Examples
    --------
    >>> async def tell(notice): ...
    >>> refuse_async("notifier", tell)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    TypeError: notifier must not be async: nobody would await it. Write a plain function...
    """
    while isinstance(function, functools.partial):
        function = function.func
    for called in (function, getattr(type(function), "__call__", None)):  # noqa: B004 - its kind is looked at
        if inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called):
            raise TypeError(
                f"{name} must not be async: nobody would await it. Write a plain function; one of an adapter, a"
                " strategy or a notifier may wait for asyncio.run_coroutine_threadsafe(..., loop).result()"
            )


def not_awaited(value: T, name: str) -> T:
    """Return what a function returned, unless it is to be awaited; a coroutine is closed, so that nothing warns of it.

    Raises
    ------
    NotAwaitedError
        If it is.

    Examples
    --------
    >>> not_awaited({"retries": 2}, "analyze")
    {'retries': 2}
    """
    if not isinstance(value, Awaitable):
        return value
    if isinstance(value, CoroutineType):
        value.close()
        raise NotAwaitedError(f"{name} returned a coroutine: it must not be async")
    raise NotAwaitedError(
        f"{name} returned what is to be awaited, of type {type(value).__name__}: it must not be async"
    )
