from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from coherence.guard import Guard, Notice, current_patch
from coherence.guard.trigger import Override
from guard.helpers import BOUNDS, Boom, Both, Memory, Proposes, failing, kinds, patched


def call(guard: Guard, fn: Callable[[], Any], times: int, agent: str = "a") -> Iterator[Any]:
    for _ in range(times):
        try:
            yield guard.run(fn, agent=agent)
        except Boom:
            yield None


def fail() -> None:
    raise Boom("no")


def test_a_result_comes_back_as_the_very_object_and_is_recorded(path: Path) -> None:
    answer = object()
    with Guard(store=path) as guard:
        out = guard.run(lambda: answer, agent="a", task="t")
        assert out.result is answer
        assert (out.success, out.patch_applied, out.rolled_back) == (True, False, False)
        (trace,) = guard.traces("a")
    assert (trace.seq, trace.success, trace.task, trace.error) == (1, True, "t", None)
    assert trace.duration_s == out.duration_s >= 0


@pytest.mark.parametrize("error", [Boom("x"), KeyboardInterrupt(), SystemExit(3), GeneratorExit()])
def test_traces_whatever_is_raised_is_recorded_and_raised_as_the_very_object(path: Path, error: BaseException) -> None:
    def fn() -> None:
        raise error

    with Guard(store=path) as guard:
        with pytest.raises(type(error)) as caught:
            guard.run(fn, agent="a")
        assert caught.value is error
        (trace,) = guard.traces("a")
    assert not trace.success
    assert trace.error is not None
    assert trace.error.startswith(type(error).__name__)


def test_rollback_failures_bring_a_patch_at_the_third_for_a_new_agent(path: Path) -> None:
    # a new agent has the medium profile at its first two calls (low: < 3 calls): 2 failures are enough there
    memory, strategy = Memory(), Proposes({"level": 2})
    with patched(path, memory, strategy=strategy) as guard:
        with pytest.raises(Boom):
            guard.run(fail, agent="a")
        assert memory.applied == []
        with pytest.raises(Boom):
            guard.run(fail, agent="a")
        assert memory.applied == [{"level": 2}]
        assert guard.status("a").phase == "serving"
        assert kinds(guard.history("a")) == ["asked", "accepted", "serving"]
        assert guard.rollback("a", "it is Friday")
        assert [(past.kind, past.why) for past in guard.history("a", 2)] == [
            ("ending", "it is Friday"),
            ("restored", ""),
        ]
    ((agent, traces, metrics),) = strategy.asked
    assert (agent, traces, metrics["success_rate"], metrics["consecutive_failures"]) == ("a", 2, 0.0, 2.0)


def test_a_harmful_patch_is_rolled_back_and_a_good_one_is_confirmed(path: Path) -> None:
    for level, ends in ((2, "confirmed"), (3, "dropped")):
        memory = Memory()
        agent = failing(lambda now: {1: 0.7, 2: 1.0, 3: 0.0}[now], memory)
        strategy = Proposes({"level": level})
        notices: list[Notice] = []
        with patched(
            path.with_name(f"{level}.db"),
            memory,
            strategy=strategy,
            notifier=notices.append,
            thresholds={"a": Override(failures=30)},
        ) as guard:
            list(call(guard, failing(lambda now: 1.0, memory), 200))
            outs = list(call(guard, agent, 800))
            assert memory.config == {"level": 2 if ends == "confirmed" else 1}
            notices = [notice for notice in notices if notice.kind != "decayed"]  # from 1.0 to 0.7, without the patch
            assert [notice.kind for notice in notices][-1] == ends
            assert {notice.patch["level"] for notice in notices if notice.patch is not None} == {level}
            assert notices[-1].patch == {"level": level}
            assert guard.errors == {}
            history = guard.history("a", 1000, slices=True)
        assert ("confirmed" in kinds(history)) == (ends == "confirmed")
        if level == 3:
            final = [past.decision for past in history if past.decision.kind == "dropped"]
            assert final[0].metric in ("success", "failure_run")
            assert final[0].evidence is not None
            assert final[0].limit is not None
            assert final[0].evidence >= final[0].limit
            assert sum(out.rolled_back for out in outs if out) in (0, 1)  # a failing call returns nothing


def test_history_without_an_adapter_or_bounds_a_proposal_is_recorded_and_nothing_is_claimed(path: Path) -> None:
    with Guard(store=path, strategy=Proposes({"level": 2}), bounds=BOUNDS) as guard:
        list(call(guard, fail, 2))
        assert kinds(guard.history("a")) == ["asked", "proposed"]
    memory = Memory()
    with Guard(store=path, strategy=Proposes({"level": 2}), config_adapter=memory) as guard:
        list(call(guard, fail, 2, "b"))
        assert kinds(guard.history("b")) == ["asked", "proposed"]
    assert memory.applied == []


@pytest.mark.parametrize("patch", [None, {}, {"other": 1}, {"level": 99}, {"level": float("nan")}, 7, Boom("s")])
def test_history_what_is_not_a_patch_within_bounds_is_declined(path: Path, patch: object) -> None:
    memory = Memory()
    with patched(path, memory, strategy=Proposes(patch)) as guard:
        list(call(guard, fail, 3))
        assert kinds(guard.history("a")) == ["asked", "declined"]
        assert memory.applied == []


def test_traces_an_adapter_that_serves_both_is_asked_once_and_calls_see_their_patch(path: Path) -> None:
    memory = Both()
    seen: list[bool] = []

    def agent() -> str:
        patch = current_patch()
        seen.append(patch is not None)
        if patch is None and memory.config["level"] == 1 and len(seen) % 4 == 0:
            raise Boom("no")
        return "done"

    with patched(path, memory) as guard:
        list(call(guard, agent, 600))
        assert memory.config == {"level": 2}
        assert memory.applied == [{"level": 2}]
        assert memory.restored == []
        served = sum(trace.patched for trace in guard.traces("a", 600))
    assert served == sum(seen)
    assert 0 < served < 350
    assert current_patch() is None


def test_what_fails_on_our_side_is_counted_and_the_result_comes_back(path: Path) -> None:
    def bad(*_: object) -> Any:
        raise Boom("ours")

    memory = Memory()
    memory.get_config = bad  # type: ignore[method-assign, assignment]
    guard = patched(path, memory, notifier=bad, is_success=bad, cost_of=bad, measures=bad)
    assert guard.run(lambda: 5, agent="a").result == 5
    list(call(guard, fail, 3))
    assert guard.errors == {"is_success: Boom": 1, "cost_of: Boom": 1, "strategy: Boom": 1}
    guard.close()
    assert guard.run(lambda: 6, agent="a").result == 6  # closed: nothing is recorded


def test_a_call_near_the_end_of_the_stack_keeps_its_result(path: Path) -> None:
    with Guard(store=path) as guard:
        results: list[int] = []

        def deep(left: int) -> None:
            if left:
                deep(left - 1)
            else:
                results.append(guard.run(lambda: 1, agent="a").result)

        depth = len(inspect.stack(0))
        for room in range(3, 60):
            try:
                deep(sys.getrecursionlimit() - depth - room)
            except RecursionError:
                continue  # not even the call itself had room
        assert results
        assert set(results) == {1}


def test_traces_the_account_goes_on_after_a_restart_from_what_is_kept(path: Path) -> None:
    with Guard(store=path) as guard:
        for number in range(250):
            guard.run(lambda: 1, agent="a", task=str(number))
        before = guard.status("a")
    with Guard(store=path) as guard:
        assert guard.status("a") == before
        assert before.calls == 250
        assert [trace.task for trace in guard.traces("a", 2)] == ["248", "249"]


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"policy": "x"}, ValueError),
        ({"durability": "x"}, ValueError),
        ({"strategy": object()}, TypeError),
        ({"config_adapter": object()}, TypeError),
        ({"notifier": 3}, TypeError),
        ({"bounds": {}}, TypeError),
        ({"canary_share": 0}, ValueError),
        ({"canary_slice": 0}, ValueError),
        ({"store": 3}, TypeError),
        ({"control_flow": "GraphBubbleUp"}, TypeError),
        ({"control_flow": (Boom, int)}, TypeError),
    ],
)
def test_guard_wrong_arguments_are_named(path: Path, wrong: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match=next(iter(wrong))):
        Guard(**{"store": path, **wrong})
