"""Wrapped callables of every kind: their values, exceptions and steps go through unchanged, and are recorded."""

from __future__ import annotations

import asyncio
import functools
import gc
import inspect
import threading
import time
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any

import pytest

from coherence.guard import Guard
from coherence.guard.context import serving
from guard.helpers import Boom


def test_a_function_keeps_its_name_value_and_kind_and_its_arguments_are_recorded(path: Path) -> None:
    with Guard(store=path) as guard:

        @guard.wrap(agent="a")
        def add(left: int, right: Any = 2) -> int:
            """Add."""
            return left + 1

        assert add(1, right=object()) == 2
        assert (add.__name__, add.__doc__) == ("add", "Add.")
        (trace,) = guard.traces("a")
    assert trace.task.endswith("add")
    assert trace.arguments["args"] == [1]
    assert trace.arguments["kwargs"]["right"]["unserialisable"] == "object"


def test_wrap_coroutine_functions_stay_so_and_raise_their_own(path: Path) -> None:
    error = Boom("x")

    async def main(guard: Guard) -> None:
        @guard.wrap(agent="a")
        async def double(value: int) -> int:
            await asyncio.sleep(0)
            if value < 0:
                raise error
            return 2 * value

        assert inspect.iscoroutinefunction(double)
        assert await asyncio.gather(*(double(n) for n in range(20))) == [2 * n for n in range(20)]
        with pytest.raises(Boom) as caught:
            await double(-1)
        assert caught.value is error
        out = await guard.arun(lambda: asyncio.sleep(0, "x"), agent="a")
        assert (out.result, out.success) == ("x", True)

    with Guard(store=path) as guard:
        asyncio.run(main(guard))
        assert (guard.status("a").calls, guard.status("a").failures) == (22, 1)


def test_traces_a_cancelled_call_is_recorded_and_stays_cancelled(path: Path) -> None:
    async def main(guard: Guard) -> None:
        task = asyncio.create_task(guard.arun(lambda: asyncio.sleep(60), agent="a"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(guard.arun(lambda: asyncio.sleep(60), agent="a"), 0.01)

    with Guard(store=path) as guard:
        asyncio.run(main(guard))
        assert [trace.error for trace in guard.traces("a")] == ["CancelledError", "CancelledError"]


def counting(limit: int) -> Generator[int, str, str]:
    got = []
    for number in range(limit):
        try:
            got.append((yield number))
        except Boom:
            got.append("boom")
            yield -1
    return ",".join(map(str, got))


def test_wrap_a_generator_yields_takes_and_returns_what_it_does_itself(path: Path) -> None:
    with Guard(store=path) as guard:
        wrapped = guard.wrap(agent="a")(counting)
        for fn in (counting, wrapped):
            running = fn(3)
            assert next(running) == 0
            assert running.send("x") == 1
            assert running.throw(Boom("y")) == -1
            assert next(running) == 2
            with pytest.raises(StopIteration) as stop:
                running.send("z")
            assert stop.value.value == "x,boom,z"
        assert inspect.isgeneratorfunction(wrapped)
        (trace,) = guard.traces("a")
        assert trace.success


def test_wrap_a_generator_that_raises_or_is_closed_early(path: Path) -> None:
    closed = []

    def agent(fails: bool) -> Generator[int, None, None]:
        try:
            yield 1
            if fails:
                raise Boom("no")
            yield 2
        finally:
            closed.append(fails)

    with Guard(store=path) as guard:
        wrapped = guard.wrap(agent="a")(agent)
        with pytest.raises(Boom):
            list(wrapped(True))
        early = wrapped(False)
        assert next(early) == 1
        early.close()
        assert closed == [True, False]
        wrapped(False)  # never started: nothing ran
        assert [trace.success for trace in guard.traces("a")] == [False, True]


@pytest.mark.slow
def test_wrap_a_generator_that_is_collected_waits_for_no_lock(path: Path) -> None:
    with Guard(store=path) as guard:
        wrapped = guard.wrap(agent="a")(counting)

        def drop() -> None:
            running: list[Any] = [wrapped(3)]
            next(running[0])
            running.append(running)  # only the collector finds it

        for _ in range(1_000):
            drop()
        with serving({"level": 2}):  # a context variable is set and reset, while the collector may come by
            for _ in range(1_000):
                drop()
        view = guard._runner.view("a")

        def collect() -> None:
            with view.lock:  # as if the collector came by while this thread records a call
                gc.collect()

        thread = threading.Thread(target=collect, daemon=True)
        thread.start()
        thread.join(30)
        assert not thread.is_alive()
        for _ in range(100):  # the collector may be at work in another thread
            gc.collect()
            if guard.status("a").calls == 2_000:
                break
            time.sleep(0.05)
        assert guard.status("a").calls == 2_000
        assert guard.errors == {}


def test_wrap_a_generators_duration_is_not_its_readers(path: Path) -> None:
    with Guard(store=path) as guard:
        now = [0.0]

        def agent() -> Generator[int, None, None]:
            now[0] += 1.0
            yield 1
            now[0] += 2.0
            yield 2

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("coherence.guard.wrap.time.perf_counter", lambda: now[0])
            for _ in guard.wrap(agent="a")(agent)():
                now[0] += 100.0
        (trace,) = guard.traces("a")
        assert trace.duration_s == 3.0


def test_wrap_async_generators(path: Path) -> None:
    events: list[str] = []

    async def agent(fails: bool) -> AsyncGenerator[int, str | None]:
        try:
            got = yield 1
            events.append(str(got))
            if fails:
                raise Boom("no")
            try:
                yield 2
            except Boom:
                yield 3
        finally:
            events.append("closed")

    async def main(guard: Guard) -> None:
        wrapped = guard.wrap(agent="a")(agent)
        assert inspect.isasyncgenfunction(wrapped)
        assert [value async for value in wrapped(False)] == [1, 2]
        with pytest.raises(Boom):
            async for _ in wrapped(True):
                pass
        early = wrapped(False)
        assert await anext(early) == 1
        await early.aclose()
        talking = wrapped(False)
        assert await anext(talking) == 1
        assert await talking.asend("x") == 2
        assert await talking.athrow(Boom("y")) == 3
        with pytest.raises(StopAsyncIteration):
            await anext(talking)

    with Guard(store=path) as guard:
        asyncio.run(main(guard))
        assert [trace.success for trace in guard.traces("a")] == [True, False, True, True]
    assert events == ["None", "closed", "None", "closed", "closed", "x", "closed"]


class Agent:
    def __init__(self, name: str = "x") -> None:
        self.name = name

    async def __call__(self) -> str:
        return self.name


def test_wrap_methods_of_every_kind_partials_and_objects(path: Path) -> None:
    async def echo(value: int) -> int:
        return value

    async def stream(limit: int) -> AsyncGenerator[int, None]:
        for number in range(limit):
            yield number

    with Guard(store=path) as guard:
        wrap = guard.wrap(agent="a")

        class Methods:
            @wrap
            async def plain(self, value: int) -> int:
                return value

            @wrap
            @staticmethod
            async def static(value: int) -> int:
                return value

            @wrap
            @classmethod
            def of(cls, value: int) -> tuple[type, int]:
                return cls, value

            @staticmethod
            @wrap
            def inner(value: int) -> int:
                return value

        class Heir(Methods):
            pass

        methods = Heir()
        for fn in (methods.plain, methods.static, Heir.static, wrap(functools.partial(echo)), wrap(echo)):
            assert inspect.iscoroutinefunction(fn)
            assert asyncio.run(fn(7)) == 7
        assert (Heir.of(7), methods.of(7), methods.inner(7)) == ((Heir, 7), (Heir, 7), 7)
        assert inspect.signature(methods.plain) == inspect.signature(Heir().plain)
        assert str(inspect.signature(wrap(echo))) == "(value: 'int') -> 'int'"
        assert list(wrap(functools.partial(counting, 2))()) == [0, 1]
        assert inspect.isasyncgenfunction(wrap(functools.partial(stream, 2)))
        assert wrap(Agent)("y").name == "y"  # a class: its calls make objects
        assert asyncio.run(wrap(Agent())()) == "x"
        assert guard.status("a").calls == 11
        assert guard.errors == {}


class Pause(Exception):
    """Exception that a host raises to wait for a person."""


@pytest.mark.parametrize("given", [Pause, (Pause,), (KeyError, Exception)])
def test_wrap_exceptions_that_steer_the_host_are_no_failures(path: Path, given: Any) -> None:
    pause = Pause("approve?")

    def agent() -> None:
        raise pause

    async def aagent() -> None:
        raise pause

    def stream() -> Generator[int, None, None]:
        yield 1
        raise pause

    def interrupted() -> None:
        raise KeyboardInterrupt

    with Guard(store=path, control_flow=given) as guard:
        wrap = guard.wrap(agent="a")
        for call in (wrap(agent), lambda: asyncio.run(wrap(aagent)()), lambda: list(wrap(stream)())):
            with pytest.raises(Pause) as caught:
                call()
            assert caught.value is pause
        assert (guard.status("a").calls, guard.status("a").failures) == (3, 0)
        assert {(trace.success, trace.error) for trace in guard.traces("a")} == {(True, "Pause: approve?")}
        for _ in range(2):  # other exceptions stay failures
            with pytest.raises(KeyboardInterrupt):
                wrap(interrupted)()
        assert guard.status("a").failures == 2
