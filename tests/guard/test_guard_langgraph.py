"""A guarded node in a graph of the real LangGraph."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

import pytest

from coherence.guard import Guard, current_patch
from guard.helpers import Boom, Both, patched


class State(TypedDict, total=False):
    level: int
    asked: str


@pytest.fixture
def guard(tmp_path: Path) -> Iterator[Guard]:
    from langgraph.errors import GraphBubbleUp  # takes a second to load

    with patched(tmp_path / "guard.db", Both(), control_flow=GraphBubbleUp) as guard:
        yield guard
        assert guard.errors == {}


def graph(node: Any, **options: Any) -> Any:
    from langgraph.graph import START, StateGraph

    return StateGraph(State).add_node("node", node, **options).add_edge(START, "node").compile()


def test_wrap_sync_and_async_nodes_see_the_patch_that_serves_them(guard: Guard) -> None:
    def node(state: State) -> State:
        if state["level"] < 0:
            raise Boom("no")
        return {"level": (current_patch() or {"level": 1})["level"]}

    async def anode(state: State) -> State:
        await asyncio.sleep(0)
        return node(state)

    async def many(app: Any) -> list[int]:
        found = await asyncio.gather(*(app.ainvoke({"level": 0}) for _ in range(40)))
        return [state["level"] for state in found]

    wrap = guard.wrap(agent="a")
    app, asynchronous = graph(wrap(node)), graph(wrap(anode))
    assert app.invoke({"level": 0}) == {"level": 1}
    for _ in range(3):  # as an agent with 3 to 10 calls a day
        with pytest.raises(Boom):
            app.invoke({"level": -1})
    assert guard.status("a").phase == "serving"
    levels = [app.invoke({"level": 0})["level"] for _ in range(20)]
    levels += asyncio.run(many(app)) + asyncio.run(many(asynchronous))
    assert set(levels) == {1, 2}  # half of 100 calls: all alike with a probability of 2 ** -99
    served = [trace.patched for trace in guard.traces("a", 100)]
    assert served.count(True) == levels.count(2)


def test_wrap_an_interrupt_a_resumed_one_and_a_command_to_the_parent_are_no_failures(guard: Guard) -> None:
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import START, StateGraph
    from langgraph.types import Command, interrupt

    wrap = guard.wrap(agent="a")

    def asks(state: State) -> Command[Any]:
        found = interrupt("go on?")
        return Command(graph=Command.PARENT, update={"asked": found}, goto="after")

    inner = graph(wrap(asks))
    outer = StateGraph(State).add_node("inner", inner).add_node("after", wrap(lambda state: {"level": 7}))
    app: Any = outer.add_edge(START, "inner").compile(checkpointer=InMemorySaver())
    thread = {"configurable": {"thread_id": "1"}}
    assert app.invoke({"level": 0}, thread)["__interrupt__"][0].value == "go on?"
    assert app.invoke(Command(resume="yes"), thread) == {"level": 7, "asked": "yes"}
    traces = guard.traces("a")
    assert [trace.success for trace in traces] == [True] * 3  # asked, answered, after
    assert [(trace.error or "")[:14] for trace in traces] == ["GraphInterrupt", "", ""]
