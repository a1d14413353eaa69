"""Wrapped callables beside themselves: whatever is done to them, they do what the function does."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator, Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from coherence.guard import Guard
from guard.helpers import Boom


def raising(error: BaseException) -> Callable[[], Any]:
    def function() -> None:
        raise error

    return function


def came_of(fn: Callable[[], Any]) -> tuple[type[BaseException], BaseException | None]:
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - any of them
        fn()
    return type(caught.value), caught.value.__cause__


@pytest.mark.parametrize(
    "error", [StopIteration(3), StopAsyncIteration(), GeneratorExit(), KeyboardInterrupt(), Boom()]
)
def test_wrap_exceptions_that_steer_python_are_raised_as_ever(tmp_path: Path, error: BaseException) -> None:
    with Guard(store=tmp_path / "guard.db") as guard:
        wrap = guard.wrap(agent="a")
        with pytest.raises(type(error)) as caught:
            wrap(raising(error))()
        assert caught.value is error

        def generator() -> Generator[int, None, None]:
            yield 1
            raise error

        async def stream() -> AsyncGenerator[int, None]:
            yield 1
            raise error

        async def coroutine() -> None:
            raise error

        async def drain(fn: Any) -> None:
            async for _ in fn():
                pass

        # A StopIteration that leaves a generator or a coroutine becomes a RuntimeError with it as the cause.
        assert came_of(lambda: list(wrap(generator)())) == came_of(lambda: list(generator()))
        if not isinstance(error, KeyboardInterrupt):  # which ends the event loop
            assert came_of(lambda: asyncio.run(wrap(coroutine)())) == came_of(lambda: asyncio.run(coroutine()))
            assert came_of(lambda: asyncio.run(drain(wrap(stream)))) == came_of(lambda: asyncio.run(drain(stream)))
        assert guard.status("a").failures >= 2


@pytest.mark.slow
def test_wrap_an_async_generator_that_is_dropped_or_outlives_its_loop_is_closed_and_recorded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    closed: list[str] = []

    async def agent(name: str) -> AsyncGenerator[int, None]:
        try:
            yield 1
            yield 2
        finally:
            await asyncio.sleep(0)
            closed.append(name)

    kept: list[Any] = []

    async def main(fn: Any, name: str) -> None:
        async for _ in fn(f"{name} dropped"):
            break
        gc.collect()
        await asyncio.sleep(0.01)
        left = fn(f"{name} left")
        kept.append(left)
        assert await anext(left) == 1

    with Guard(store=tmp_path / "guard.db") as guard:
        asyncio.run(main(agent, "plain"))
        asyncio.run(main(guard.wrap(agent="a")(agent), "guarded"))
        assert not caplog.records  # the event loop closes each once
        assert closed == ["plain dropped", "plain left", "guarded dropped", "guarded left"]
        assert [trace.success for trace in guard.traces("a")] == [True, True]
        assert guard.errors == {}


def test_wrap_an_exception_that_comes_back_from_the_reader_keeps_its_identity(tmp_path: Path) -> None:
    error = Boom("from the reader")

    def agent() -> Generator[int, None, None]:
        yield 1

    with Guard(store=tmp_path / "guard.db") as guard:
        running = guard.wrap(agent="a")(agent)()
        next(running)
        with pytest.raises(Boom) as caught:
            running.throw(error)
        assert caught.value is error
        assert caught.value.__context__ is None
        assert [trace.error for trace in guard.traces("a")] == ["Boom: from the reader"]
