"""Wrapped callables of every kind: their values, exceptions and steps go through unchanged, and are recorded."""

from __future__ import annotations

import asyncio
import functools
import gc
import inspect
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from coherence.guard import Guard, current_patch
from coherence.guard.context import serving
from coherence.guard.trigger import Override
from guard.helpers import Boom, Both, patched


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


def drawn_by(folder: Path, call_id: Any) -> tuple[list[tuple[int, bool]], dict[str, int]]:
    """Return which calls a patch served, by their argument, and what failed; each of 8 arguments comes 5 times."""
    memory = Both()
    thresholds = {"a": Override(failures=2)}
    with patched(folder / "guard.db", memory, thresholds=thresholds, canary_share=0.5) as guard:
        served = []

        @guard.wrap(agent="a", call_id=call_id)
        def node(thread: int, *, fails: bool = False) -> None:
            served.append((thread, current_patch() is not None))
            if fails:
                raise Boom("no")

        for _ in range(2):
            with pytest.raises(Boom):
                node(0, fails=True)
        for _ in range(5):
            node(0)  # the first calls of a patch are its own, whatever their id
        served.clear()
        for number in range(40):
            node(number % 8)
        return served, guard.errors


def test_wrap_calls_with_one_id_are_served_by_one_configuration(tmp_path: Path) -> None:
    served, errors = drawn_by(tmp_path, lambda thread, fails=False: f"thread {thread}")
    assert errors == {}
    assert len(set(served)) == 8 and {patched for _, patched in served} == {True, False}


@pytest.mark.parametrize(
    ("call_id", "trouble"),
    [
        (lambda: "takes no argument", "call_id: TypeError"),
        (lambda thread, fails=False: thread, "call_id: TypeError"),
        (lambda thread, fails=False: None, ""),
        (None, ""),
    ],
)
def test_wrap_calls_without_an_id_get_one_each(tmp_path: Path, call_id: Any, trouble: str) -> None:
    served, errors = drawn_by(tmp_path, call_id)
    assert len(set(served)) > 8
    assert errors == ({trouble: 47} if trouble else {})  # 2 that fail, the first 5, and 40
