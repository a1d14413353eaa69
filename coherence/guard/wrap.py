"""Wrapping callables of every kind; what they return, yield and raise goes through unchanged."""

from __future__ import annotations

import functools
import inspect
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from coherence.guard.context import serving
from coherence.guard.safe_json import tagged

if TYPE_CHECKING:
    from coherence.guard.measure import Started
    from coherence.guard.runner import Runner

F = TypeVar("F", bound=Callable[..., Any])


def wrapped(
    runner: Runner,
    begin: Callable[[str, str, Any, Callable[[], str | None] | None], Started],
    fn: F,
    agent: str,
    task: str | None,
    call_id: Callable[..., str | None] | None,
) -> F:
    """Return a callable of the same kind that records each call of ``fn``, begun by ``begin``."""
    if isinstance(fn, staticmethod | classmethod):  # in a class body, above which the decorator stands
        return type(fn)(wrapped(runner, begin, fn.__func__, agent, task, call_id))
    if not callable(fn):
        raise TypeError(f"wrap takes a callable, not {type(fn).__name__}")
    name = task if task is not None else str(getattr(fn, "__qualname__", type(fn).__name__))
    method = getattr(type(fn), "__call__", None)  # noqa: B004 - its kind, not whether it is one

    def start(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Started:
        drawn = None if call_id is None else lambda: call_id(*args, **kwargs)
        return begin(agent, name, {"args": tagged(args), "kwargs": tagged(kwargs)}, drawn)

    if inspect.isasyncgenfunction(fn) or inspect.isasyncgenfunction(method):

        @functools.wraps(fn)
        async def agenerator(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
            run = _Running(runner, start(args, kwargs), waits=False)
            inner = fn(*args, **kwargs)
            step = functools.partial(_first, inner)
            while True:
                try:
                    with run.timed():
                        value = await step()
                except StopAsyncIteration:
                    run.returned(None)
                    return
                except BaseException as error:
                    run.failed(error)
                    raise
                try:
                    step = functools.partial(inner.asend, (yield value))
                except GeneratorExit:
                    with run.closing():
                        await inner.aclose()
                    raise
                except BaseException as error:
                    step = functools.partial(inner.athrow, error)

        return agenerator  # type: ignore[return-value]

    if inspect.isgeneratorfunction(fn) or inspect.isgeneratorfunction(method):

        @functools.wraps(fn)
        def generator(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            run = _Running(runner, start(args, kwargs), waits=True)
            inner = fn(*args, **kwargs)
            step = functools.partial(next, inner)
            while True:
                try:
                    with run.timed():
                        value = step()
                except StopIteration as stop:
                    run.returned(stop.value)
                    return stop.value
                except BaseException as error:
                    run.failed(error)
                    raise
                try:
                    step = functools.partial(inner.send, (yield value))
                except GeneratorExit:
                    with run.closing():
                        inner.close()
                    raise
                except BaseException as error:
                    step = functools.partial(inner.throw, error)

        return generator  # type: ignore[return-value]

    if inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(method):

        @functools.wraps(fn)
        async def coroutine(*args: Any, **kwargs: Any) -> Any:
            return (await runner.acalled(start(args, kwargs), lambda: fn(*args, **kwargs))).result

        return coroutine  # type: ignore[return-value]

    @functools.wraps(fn)
    def function(*args: Any, **kwargs: Any) -> Any:
        return runner.called(start(args, kwargs), lambda: fn(*args, **kwargs)).result

    return function  # type: ignore[return-value]


def _first(inner: AsyncGenerator[Any, Any]) -> Awaitable[Any]:
    """Begin an async generator unknown to the event loop, which at its end would close it beside who holds it."""
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(None, None)
    try:
        return anext(inner)
    finally:
        sys.set_asyncgen_hooks(*hooks)


class _Running:
    """A generator under way: what it did takes the time that was spent in it, not in who reads it."""

    def __init__(self, runner: Runner, started: Started, *, waits: bool) -> None:
        self._runner = runner
        self._started = started
        self._waits = waits
        self._spent_s = 0.0

    @contextmanager
    def timed(self) -> Iterator[None]:
        began_s = time.perf_counter()
        try:
            with serving(self._started.patch):
                yield
        finally:
            self._spent_s += time.perf_counter() - began_s

    def returned(self, result: Any) -> None:
        self._runner.record(self._started, result=result, duration_s=self._spent_s, wait=self._waits)

    def failed(self, error: BaseException) -> None:
        self._runner.record(self._started, error=error, duration_s=self._spent_s, wait=self._waits)

    @contextmanager
    def closing(self) -> Iterator[None]:
        """Leave the record of what is being closed for later, and the context as it is.

        A collector of garbage may close a generator at any place: while this thread holds a lock, or while it sets a
        context variable, which must not be set anew in the middle of it (CPython 3.11 crashes).
        """
        error: BaseException | None = None
        began_s = time.perf_counter()
        try:
            yield
        except BaseException as raised:
            error = raised
            raise
        finally:
            self._runner.leave(self._started, self._spent_s + time.perf_counter() - began_s, error)
