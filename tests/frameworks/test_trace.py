"""Functions and blocks of code as agents, tools and models; needs no framework."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

import coherence
from coherence import CoherenceBlocked, Fleet, Monitor
from coherence.core import events
from frameworks.agents import CASES, GOAL, MODEL, SYSTEM, Playing, by_hand
from frameworks.model_stub import PER_CALL

MANUAL: dict[str, Any] = {"tick": "manual"}
WRONG: Any = "chain"


def completion(turn: Any, at: int) -> dict[str, Any]:
    """Return a turn as a chat completion, as a client without an SDK reads it from JSON."""
    call = {"id": f"call{at}", "function": {"name": turn.tool, "arguments": json.dumps(dict(turn.arguments))}}
    message = {"role": "assistant", "content": turn.says, "tool_calls": [call] if turn.tool else []}
    usage = {
        "prompt_tokens": PER_CALL["input"],
        "completion_tokens": PER_CALL["output"],
        "prompt_tokens_details": {"cached_tokens": PER_CALL["cached"]},
    }
    return {"model": MODEL, "choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}


def events_of(monitor: Monitor, kind: type) -> list[Any]:
    monitor.flush()
    return [record.event for record in reversed(monitor.events()) if isinstance(record.event, kind)]


def without_details(told: Any) -> Any:
    """Return what a monitor was told without durations and types of errors, which a user by hand has not given."""
    seen, decisions, light = told
    for event in seen:
        event.pop("coherence.duration_s", None)
        event.pop("error.type", None)
    return seen, decisions, light


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("name", list(CASES))
def test_trace_tells_the_monitor_what_a_user_would_tell_it_by_hand(name: str, is_async: bool) -> None:
    case = CASES[name]
    with case.monitor() as monitor:
        playing = Playing(case, monitor)

        def ask(messages: list[dict[str, Any]]) -> Any:
            return completion(playing.answer(), playing.asked)

        def use() -> str:
            turn = playing.use()
            if turn.error:
                raise RuntimeError(turn.result)
            return turn.result

        async def aask(messages: list[dict[str, Any]]) -> Any:
            return ask(messages)

        async def ause() -> str:
            return use()

        async def run() -> None:
            model = coherence.trace(kind="model")(aask if is_async else ask)
            messages: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": GOAL}]
            for turn in case.turns:
                answer = await now(model(messages))
                messages.append(answer["choices"][0]["message"])
                if turn.tool:
                    tool = coherence.trace(kind="tool", tool=turn.tool)(with_arguments(ause if is_async else use, turn))
                    try:
                        said = await now(tool(**turn.arguments))
                    except RuntimeError as error:
                        said = str(error)
                    call = answer["choices"][0]["message"]["tool_calls"][0]["id"]
                    messages.append({"role": "tool", "tool_call_id": call, "content": said})

        blocked = False
        try:
            if is_async:
                asyncio.run(coherence.trace(monitor=monitor)(run)())
            else:
                with coherence.trace(monitor=monitor):
                    asyncio.run(run())
        except CoherenceBlocked:
            blocked = True
        told = playing.end()
    assert without_details(told) == without_details(by_hand(case))
    assert blocked == (name in {"injected", "over budget"})


def with_arguments(function: Any, turn: Any) -> Any:
    """Return a function of the arguments that a turn gives."""
    if asyncio.iscoroutinefunction(function):

        async def awaited(**arguments: Any) -> Any:
            return await function()

        return awaited

    def called(**arguments: Any) -> Any:
        return function()

    return called


async def now(value: Any) -> Any:
    return await value if hasattr(value, "__await__") else value


def test_trace_refuses_a_tool_before_its_body_runs() -> None:
    ran = []

    def bash(command: str) -> str:
        ran.append(command)
        return "done"

    watched = coherence.trace(kind="tool")(bash)
    with coherence.trace(goal="List the files.", config=MANUAL), pytest.raises(CoherenceBlocked) as refused:
        watched("rm -rf /")
    assert (ran, refused.value.tools) == ([], ("bash",))
    assert "The call did not run" in str(refused.value)
    assert bash("rm -rf /") == "done"  # the function itself, as the control


def test_trace_of_a_tool_records_its_arguments_by_name_and_what_it_returns() -> None:
    class Shop:
        @coherence.trace(kind="tool", tool="lookup")
        def find(self, order: int, *more: str, **options: Any) -> dict[str, Any]:
            return {"order": order, "options": options}

    with coherence.trace(config=MANUAL) as m:
        assert Shop().find(7, "a", deep=True) == {"order": 7, "options": {"deep": True}}
        call, result = events_of(m, events.ToolCall)[0], events_of(m, events.ToolResult)[0]
    assert call.tool_name == "lookup"
    assert bytes(call.arguments) == b'{"order":7,"more":["a"],"deep":true}'
    assert result.result == '{"options":{"deep":true},"order":7}'
    assert result.call_id == call.call_id
    assert result.duration_s >= 0


def test_trace_of_a_tool_lets_its_error_through_and_records_it() -> None:
    @coherence.trace(kind="tool")
    def read(path: str) -> str:
        raise FileNotFoundError(path)

    with coherence.trace(config=MANUAL) as m:
        with pytest.raises(FileNotFoundError):
            read("a.txt")
        (result,) = events_of(m, events.ToolResult)
    assert (result.result, result.error, result.error_type) == ("a.txt", True, "FileNotFoundError")


def test_trace_of_a_tool_without_a_signature_and_of_a_call_that_does_not_fit_it_records_what_was_given() -> None:
    @coherence.trace(kind="tool")
    def read(path: str) -> str:
        return path

    with coherence.trace(config=MANUAL) as m:
        assert coherence.trace(kind="tool", tool="most")(max)(1, 2) == 2
        with pytest.raises(TypeError):
            read("a", "b")  # type: ignore[call-arg]
        calls = events_of(m, events.ToolCall)
    assert [bytes(call.arguments) for call in calls] == [
        b'{"argument_0":1,"argument_1":2}',
        b'{"argument_0":"a","argument_1":"b"}',
    ]


def test_trace_outside_of_an_agent_changes_nothing() -> None:
    @coherence.trace(kind="tool")
    def bash(command: str) -> str:
        return command

    @coherence.trace(kind="model")
    async def ask(prompt: str) -> str:
        return prompt

    assert bash("rm -rf /") == "rm -rf /"
    assert asyncio.run(ask("hello")) == "hello"
    assert coherence.current_monitor() is None


def test_trace_stops_at_a_budget_before_the_request_is_sent() -> None:
    sent = []

    @coherence.trace(kind="model")
    def ask(prompt: str) -> dict[str, Any]:
        sent.append(prompt)
        message = {"role": "assistant", "content": "I go on."}
        usage = {"prompt_tokens": 60, "completion_tokens": 0}
        return {"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}

    @coherence.trace(budget={"tokens": 100}, config=MANUAL)
    def work(goal: str) -> None:
        for at in range(9):
            ask(f"step {at}")

    with pytest.raises(CoherenceBlocked, match="The request was not sent"):
        work("Count to nine.")
    assert sent == ["step 0", "step 1"]  # 60 tokens, then 120 of 100


@pytest.mark.parametrize("guide", [False, True])
def test_trace_guides_on_a_copy_of_the_request(guide: bool) -> None:
    sent: list[Any] = []

    @coherence.trace(kind="model")
    def ask(model: str, messages: list[Mapping[str, Any]]) -> str:
        sent.append(list(messages))
        return "I try again."

    @coherence.trace(kind="tool")
    def bash(command: str) -> str:
        raise RuntimeError("no module named yaml")

    mine: list[Mapping[str, Any]] = [{"role": "user", "content": GOAL}]
    before = list(mine)
    with coherence.trace(guide=guide, config=MANUAL) as m:
        for _ in range(5):
            ask("small", mine)
            with pytest.raises(RuntimeError):
                bash("pytest -q")
        ask("small", mine)
        hint = m.decide().message
    assert mine == before
    assert sent[0] == before
    added = [message for request in sent for message in request if message not in before]
    assert bool(added) == guide
    assert all(message["role"] == "system" for message in added)
    assert bool(hint)


def test_trace_of_an_inner_agent_joins_the_fleet_with_an_edge_to_the_outer_one() -> None:
    @coherence.trace
    def writer(task: str) -> str:
        monitor = coherence.current_monitor()
        assert monitor is not None
        monitor.message("assistant", "written")
        return monitor.agent

    with Fleet(config=MANUAL) as fleet:

        @coherence.trace(fleet=fleet)
        def planner(task: str) -> list[str]:
            return [writer("Write the summary."), writer("Write the title.")]

        assert planner("Write a report.") == ["writer", "writer"]
        goals = {m.agent: m.state.facts.goal for m in fleet}
        edges = [(edge.source, edge.target) for edge in fleet.trust.edges()]
    assert goals == {"planner": "Write a report.", "writer": "Write the title."}
    assert edges == [("writer", "planner")]


def test_trace_keeps_a_run_in_its_store_and_each_call_is_a_session(tmp_path: Any) -> None:
    @coherence.trace(agent="shop", store=tmp_path / "runs.db", config=MANUAL)
    def run(task: str) -> None:
        monitor = coherence.current_monitor()
        assert monitor is not None
        monitor.message("assistant", "done")

    run("Mend it.")
    run("Mend it again.")
    with coherence.Store(tmp_path / "runs.db") as store:
        sessions = store.sessions()
    assert [session.agent for session in sessions] == ["shop", "shop"]


def test_trace_gives_each_task_and_thread_its_own_agent() -> None:
    seen: dict[str, str] = {}

    @coherence.trace(config=MANUAL)
    async def first(task: str) -> None:
        await asyncio.sleep(0)
        monitor = coherence.current_monitor()
        assert monitor is not None
        seen[task] = monitor.state.facts.goal

    async def both() -> None:
        await asyncio.gather(*(first(f"task {at}") for at in range(8)))

    asyncio.run(both())
    assert seen == {f"task {at}": f"task {at}" for at in range(8)}

    inside: list[object] = []
    with coherence.trace(config=MANUAL):
        thread = threading.Thread(target=lambda: inside.append(coherence.current_monitor()))
        thread.start()
        thread.join()
    assert inside == [None]


def test_trace_takes_the_call_that_an_answer_told_for_the_one_that_runs() -> None:
    turn = CASES["good"].turns[0]

    @coherence.trace(kind="model")
    def ask(messages: list[Any]) -> Any:
        return completion(turn, 1)

    @coherence.trace(kind="tool")
    def read_file(path: str) -> str:
        return turn.result

    with coherence.trace(config=MANUAL) as m:
        ask([{"role": "user", "content": GOAL}])
        read_file("cart.py")
        assert [call.call_id for call in events_of(m, events.ToolCall)] == ["call1"]
        assert [result.call_id for result in events_of(m, events.ToolResult)] == ["call1"]


def numbers() -> Iterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda: coherence.trace(kind=WRONG), ValueError, "kind must be one of agent, tool, model"),
        (lambda: coherence.trace(kind="tool", store="a.db", goal="x"), ValueError, "goal, store belong to the agent"),
        (lambda: coherence.trace(tool="bash"), ValueError, "use kind='tool'"),
        (lambda: coherence.trace(numbers), TypeError, "numbers is a generator function"),
        (lambda: coherence.trace(Monitor), TypeError, "trace decorates functions"),
        (lambda: coherence.trace(kind="tool").__enter__(), TypeError, "only an agent is traced by with"),
        (lambda: coherence.trace(monitor=Monitor(embedder=False), goal="x").__enter__(), ValueError, "monitor= alone"),
    ],
)
def test_trace_says_what_is_wrong_with_its_arguments(make: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        make()


def test_trace_entered_twice_says_how_to_begin_another_block() -> None:
    block = coherence.trace(config=MANUAL)
    with block, pytest.raises(RuntimeError, match=r"coherence.trace\(...\) of its own"):
        block.__enter__()
    assert coherence.current_monitor() is None
