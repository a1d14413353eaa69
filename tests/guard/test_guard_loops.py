"""Event loops, calls within calls, and what is returned before it has run."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from coherence.guard import Guard, current_patch
from guard.helpers import Boom, Both, Memory, Proposes, patched


async def later(value: int) -> int:
    await asyncio.sleep(0)
    return value


def numbers() -> Generator[int, None, None]:
    yield 1


@pytest.mark.parametrize("fn", [lambda: later(1), numbers], ids=["coroutine", "generator"])
def test_what_has_not_run_yet_is_neither_a_success_nor_a_failure(path: Path, fn: Callable[[], Any]) -> None:
    asked: list[object] = []
    with Guard(store=path, is_success=asked.append) as guard:
        out = guard.run(fn, agent="a")
        assert (out.success, out.patch_applied, out.rolled_back) == (None, False, False)
        assert guard.status("a").calls == 0
        assert asked == []
        (said,) = guard.errors
        assert "use arun or wrap" in said
        done = out.result if isinstance(out.result, Generator) else [asyncio.run(out.result)]
        assert list(done) == [1]


def test_guard_a_loop_whose_executor_is_full_holds_up_nothing(path: Path) -> None:
    go = threading.Event()

    async def main(guard: Guard) -> int:
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1) as executor:
            loop.set_default_executor(executor)
            blocked = loop.run_in_executor(None, go.wait, 60)
            out = await asyncio.wait_for(guard.arun(lambda: later(7), agent="a"), 30)
            assert not go.is_set()
            go.set()
            await blocked
        return out.result

    with Guard(store=path, durability="full") as guard:
        assert asyncio.run(main(guard)) == 7


def test_an_awaited_call_does_not_wait_for_its_steps_and_loses_no_result_by_them(path: Path) -> None:
    begun, go = threading.Event(), threading.Event()

    class Slow(Proposes):
        def analyze(self, **_: Any) -> Any:
            begun.set()
            go.wait(60)
            return self.patch

    memory = Memory()

    async def main(guard: Guard) -> None:
        await guard.arun(lambda: later(0), agent="a")
        out = await asyncio.wait_for(guard.arun(lambda: later(0), agent="a"), 30)  # wait_s is twice as long
        assert (out.result, out.success, out.patch_applied) == (0, False, False)
        begun.wait(60)

    with patched(path, memory, strategy=Slow({"level": 2}), is_success=bool, wait_s=60) as guard:
        asyncio.run(main(guard))
        assert memory.applied == []
        go.set()
    assert memory.applied == [{"level": 2}]  # close waits for the step
    assert guard.errors == {}


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_guard_who_interrupts_a_call_is_not_kept_waiting(path: Path, error: type[BaseException]) -> None:
    go = threading.Event()

    class Hangs:
        def analyze(self, **_: object) -> None:
            go.wait(60)

    def fn() -> None:
        raise error

    guard = Guard(store=path, strategy=Hangs(), wait_s=3600)  # it would hang if it waited
    for _ in range(2):
        with pytest.raises(error):
            guard.run(fn, agent="a")
    assert not go.is_set()
    go.set()
    guard.close()
    assert [past.kind for past in Guard(store=path).history("a")] == ["asked", "declined"]


def test_status_a_call_within_a_call_sees_the_patch_of_its_own_agent(path: Path) -> None:
    memory = Both()

    def fail() -> None:
        raise Boom("no")

    with patched(path, memory, canary_share=1.0) as guard:
        for _ in range(2):
            with suppress(Boom):
                guard.run(fail, agent="a")
        assert guard.status("a").phase == "serving"
        seen: list[object] = []

        def outer() -> None:
            seen.append(current_patch())
            guard.run(lambda: seen.append(current_patch()), agent="other")
            guard.run(lambda: seen.append(current_patch()), agent="a")
            seen.append(current_patch())

        guard.run(outer, agent="a")
        patch = {"level": 2}
        assert seen == [patch, None, patch, patch]


def test_strategy_adapter_and_notifier_may_use_the_guard(path: Path) -> None:
    memory, used = Memory(), list[str]()

    class Uses(Proposes):
        def analyze(self, **given: Any) -> Any:
            used.append(f"calls: {guard.status('a').calls}")
            guard.run(lambda: 1, agent="a", task="strategy")
            guard.flush()
            return self.patch

    def notify(notice: object) -> None:
        used.append(guard.status("a").phase)
        guard.run(lambda: 1, agent="a", task="notifier")

    def fail() -> None:
        raise Boom("no")

    guard = patched(path, memory, strategy=Uses({"level": 2}), notifier=notify, wait_s=60)
    with guard:
        for _ in range(2):
            with suppress(Boom):
                guard.run(fail, agent="a")
        assert used == ["calls: 2", "serving", "serving"]  # what follows comes first
        assert guard.errors == {}
    assert memory.applied == [{"level": 2}]
