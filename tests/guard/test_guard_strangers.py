"""Callbacks and objects of strangers around a guard: the call's own result or exception comes back, unchanged."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hostile
import pytest
from hostile import HANGS, RAISES, cases, failing, hang, lying_number, lying_text, speaking, touchy

from coherence.guard.guard import Guard
from guard.helpers import Memory, call

SOON_S = 12.0
"""Seconds in which a call that waits 0.2 to 1 s for a stranger has returned, on a busy machine too."""

ACTS = {**HANGS, **RAISES}
acts = pytest.mark.parametrize("act", cases(ACTS))
quick_acts = pytest.mark.parametrize("act", cases(ACTS, slow=("spins", "hangs")))


@pytest.fixture(autouse=True)
def end_what_hangs() -> Iterator[None]:
    yield
    hostile.let_go()


def guarded(path: Path, **options: Any) -> Guard:
    return Guard(store=path, **{"wait_s": 0.2, **options})


def count(guard: Guard, stage: str) -> int:
    return sum(times for kind, times in guard.errors.items() if kind.startswith(f"{stage}: "))


@acts
@pytest.mark.parametrize("name", ["is_success", "cost_of"])
def test_guard_run_returns_its_result_whatever_a_callback_does(name: str, act: Callable[[], Any], path: Path) -> None:
    result = object()
    answers = iter([act])
    # the first answer is the stranger's; then the callback is well again
    callback = lambda given: next(answers, lambda: name == "is_success")() if given is result else None  # noqa: E731
    with guarded(path, **{name: callback}) as guard:
        begun = time.monotonic()
        out = guard.run(lambda: result, agent="a")
        assert time.monotonic() - begun < SOON_S
        assert out.result is result and out.success is True
        if act is not RAISES["returns no str"]:  # 5 is true, and a price
            assert count(guard, name) == 1
        hostile.let_go()
        assert guard.run(lambda: 3, agent="a").result == 3
        assert guard.status("a").calls == 2


@quick_acts
def test_guard_arun_returns_its_result_whatever_a_callback_does(act: Callable[[], Any], path: Path) -> None:
    async def work() -> str:
        return "done"

    with guarded(path, is_success=lambda result: act(), cost_of=lambda result: act()) as guard:
        begun = time.monotonic()
        assert asyncio.run(guard.arun(work, agent="a")).result == "done"
        assert time.monotonic() - begun < SOON_S
        assert guard.status("a").calls == 1


def test_guard_run_asks_a_callback_that_hangs_once_in_a_thousand_calls(path: Path) -> None:
    asked: list[int] = []

    def is_success(result: object) -> bool:
        asked.append(1)
        hang()
        return True

    with guarded(path, is_success=is_success) as guard:
        begun = time.monotonic()
        for n in range(1_000):
            assert guard.run(lambda n=n: n, agent="a").result == n  # type: ignore[misc]
        assert time.monotonic() - begun < 60  # a thousand waits would be a thousand seconds
        assert len(asked) == 1
        assert guard.errors == {"is_success: timeout": 1, "is_success: disabled": 999}
        assert guard.status("a").calls == 1_000


@quick_acts
@pytest.mark.parametrize("make", [speaking, touchy])
def test_guard_run_returns_an_object_that_cannot_be_read(
    make: Callable[..., object], act: Callable[[], Any], path: Path
) -> None:
    result = make(act)
    with guarded(path) as guard:
        wrapped = guard.wrap(agent="a")(lambda given: given)
        assert guard.run(lambda: result, agent="a").result is result
        assert wrapped(result) is result
        found: list[object] = []

        async def main() -> None:  # asyncio.run shows what a task returns
            found.append((await guard.arun(lambda: result, agent="a")).result)

        asyncio.run(main())
        assert found[0] is result
        assert guard.errors == {}
        assert guard.traces("a")[1].arguments["args"] == [{"unserialisable": type(result).__name__}]


class Hostile(Exception):
    """An exception that does something whatever is asked of it."""

    act: Callable[[], Any] = staticmethod(hang)

    def __str__(self) -> str:
        return type(self).act()  # type: ignore[no-any-return]

    __repr__ = __str__

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return object.__getattribute__(self, "act")()

    @property
    def args(self) -> Any:  # type: ignore[override]
        return object.__getattribute__(self, "act")()


@quick_acts
def test_guard_run_raises_the_exception_that_was_raised_whatever_its_text_does(
    act: Callable[[], Any], path: Path
) -> None:
    kind = type("Hostile", (Hostile,), {"act": staticmethod(act)})
    with guarded(path) as guard:
        for error in (failing(act), kind(), ValueError(speaking(act))):
            raised: list[object] = []

            def work(error: BaseException = error) -> None:
                raise error

            begun = time.monotonic()
            try:
                guard.run(work, agent="a")
            except BaseException as found:
                raised.append(found)
            assert time.monotonic() - begun < SOON_S
            assert raised[0] is error
            out = guard.run(work, agent="a", raises=False)
            assert out.error is error and out.success is False
        assert count(guard, "error") == 6
        assert [trace.error for trace in guard.traces("a")] == ["Failing"] * 2 + ["Hostile"] * 2 + ["ValueError"] * 2


@quick_acts
def test_guard_run_of_a_task_that_cannot_be_read_is_recorded(act: Callable[[], Any], path: Path) -> None:
    task: Any = touchy(act)
    with guarded(path) as guard:
        assert guard.run(lambda: 1, agent="a", task=task).result == 1
        assert guard.run(lambda: 2, agent=lying_text("a", act), task=lying_text("answer", act)).result == 2
        assert [trace.task for trace in guard.traces("a")] == ["Touchy", "answer"]
        assert count(guard, "task") == 1


@quick_acts
def test_guard_wrap_call_id_that_fails_is_counted(act: Callable[[], Any], path: Path) -> None:
    with guarded(path) as guard:
        wrapped = guard.wrap(agent="a", call_id=lambda given: act())(lambda given: given)
        begun = time.monotonic()
        assert [wrapped(n) for n in range(3)] == [0, 1, 2]
        assert time.monotonic() - begun < SOON_S
        assert count(guard, "call_id") == 3


CLOCKS: dict[str, Callable[[], Any]] = {
    **{name: act for name, act in ACTS.items() if name != "returns no str"},  # 5 is a time
    "NaN": lambda: math.nan,
    "infinite": lambda: math.inf,
    "a text": lambda: "12:00",
    "no number": lambda: None,
    "beyond all years": lambda: 1e300,
    "a float that lies": lambda: lying_number(float, math.nan, hang),
}


@pytest.mark.parametrize("act", cases(CLOCKS, slow=("spins", "hangs", "a float that lies")))
def test_guard_clock_that_fails_goes_on_from_its_newest_reading(act: Callable[[], Any], path: Path) -> None:
    readings = iter([1_000.0, 1_001.0])
    with guarded(path, clock=lambda: next(readings, None) or act()) as guard:
        begun = time.monotonic()
        for n in range(4):
            assert guard.run(lambda n=n: n, agent="a").result == n  # type: ignore[misc]
        assert time.monotonic() - begun < SOON_S
        assert count(guard, "clock") >= 1
        first, *_, last = (trace.at for trace in guard.traces("a"))
        assert first >= 1_000.0 and 1_001.0 <= last < 1_001.0 + 4 * SOON_S
        assert guard.status("a").calls == 4


def test_guard_clock_that_never_answers_is_the_system_clock(path: Path) -> None:
    with guarded(path, clock=lambda: math.nan) as guard:
        before = time.time()
        guard.run(lambda: 1, agent="a")
        (trace,) = guard.traces("a")
        assert before <= trace.at <= time.time()
        assert count(guard, "clock") >= 1


def test_guard_clock_that_goes_back_is_counted(path: Path) -> None:
    readings = iter([7_200.0])
    with guarded(path, clock=lambda: next(readings, 0.0)) as guard:
        guard.run(lambda: 1, agent="a")
        guard.run(lambda: 2, agent="a")
        assert guard.errors["clock: the clock went back"] == 1
        assert guard.status("a").calls == 2


def test_guard_refuses_a_clock_that_cannot_be_called(path: Path) -> None:
    with pytest.raises(TypeError, match=r"^clock must be callable, not 5$"):
        Guard(store=path, clock=5)  # type: ignore[arg-type]


@pytest.mark.parametrize("act", cases(HANGS))
def test_guard_propose_does_not_wait_for_ever_for_an_adapter(
    act: Callable[[], Any], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stuck(Memory):
        def apply_config(self, *, agent_id: str, config_patch: dict[str, Any]) -> object:
            return act()

    monkeypatch.setattr("coherence.guard.executor.CHANGE_S", 0.3)
    monkeypatch.setattr("coherence.guard.runner.CHANGE_S", 0.3)
    with guarded(path, config_adapter=Stuck()) as guard:
        call(guard, 3)
        begun = time.monotonic()
        guard.propose("a", {"level": 2})
        assert guard.run(lambda: "done", agent="a").result == "done"
        assert time.monotonic() - begun < SOON_S
        assert guard.status("a").calls == 4
