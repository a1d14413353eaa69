"""The real LangChain with a scripted model."""

from __future__ import annotations

import asyncio
import runpy
from pathlib import Path
from typing import Any

import pytest

from coherence import CoherenceBlocked, Monitor
from coherence.core import events
from frameworks.agents import CASES, GOAL, SYSTEM, Playing, by_hand

pytestmark = pytest.mark.frameworks

pytest.importorskip("langchain")

from langchain.agents import create_agent  # noqa: E402
from langchain_core.messages import AIMessage, ToolMessage  # noqa: E402
from langchain_core.tools import ToolException  # noqa: E402
from langgraph.graph import START, MessagesState, StateGraph  # noqa: E402
from langgraph.types import Command  # noqa: E402

from coherence.frameworks.agents import Agents  # noqa: E402
from coherence.frameworks.langchain import CoherenceMiddleware  # noqa: E402
from frameworks.langchain_model import Scripted, said, script, tool_named  # noqa: E402

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "frameworks" / "langchain_agent.py"
MANUAL: dict[str, Any] = {"tick": "manual"}


ASKED: Any = {"messages": [("user", GOAL)]}


async def invoked(agent: Any, how: str, asked: Any = ASKED) -> None:
    """Run an agent to its end."""
    if how == "sync":
        await asyncio.to_thread(agent.invoke, asked, {"recursion_limit": 99})
    elif how == "async":
        await agent.ainvoke(asked, {"recursion_limit": 99})
    elif how == "streamed":
        await asyncio.to_thread(lambda: list(agent.stream(asked, {"recursion_limit": 99}, stream_mode="messages")))
    else:
        async for _ in agent.astream(asked, {"recursion_limit": 99}, stream_mode="messages"):
            pass


@pytest.mark.parametrize("how", ["sync", "async", "streamed", "async streamed"])
@pytest.mark.parametrize("name", list(CASES))
def test_coherence_middleware_tells_the_monitor_what_a_user_would_tell_it_by_hand(name: str, how: str) -> None:
    case = CASES[name]
    expected = by_hand(case, goes_on=True)
    with case.monitor() as monitor:
        playing = Playing(case, monitor)

        def answer() -> AIMessage:
            turn = playing.answer()
            return said(turn.says, turn.tool, turn.arguments, playing.asked)

        def run() -> str:
            turn = playing.use()
            if turn.error:
                raise ToolException(turn.result)
            return turn.result

        tools = [tool_named(tool, run) for tool in {turn.tool for turn in case.turns if turn.tool}]
        agent = create_agent(
            Scripted(says=answer),
            tools=tools,
            system_prompt=SYSTEM,
            middleware=[CoherenceMiddleware(monitor=monitor)],
        )
        blocked = False
        try:
            asyncio.run(invoked(agent, how))
        except CoherenceBlocked:
            blocked = True
        told = playing.end()
    for event in told[0]:
        event.pop("coherence.duration_s", None)  # type: ignore[attr-defined]
    assert told == expected
    assert blocked == (name == "over budget")


def failing(monitor_options: Any, guide: bool) -> tuple[Scripted, Any, CoherenceMiddleware]:
    """Return an agent whose call fails five times."""
    model = script(*(said("I try.", "bash", {"command": "pytest -q"}, at) for at in range(5)), said("I stop."))

    def run() -> str:
        raise ToolException("ImportError: no module named yaml")

    watch = CoherenceMiddleware(guide=guide, **monitor_options)
    return model, create_agent(model, tools=[tool_named("bash", run)], system_prompt=SYSTEM, middleware=[watch]), watch


@pytest.mark.parametrize("how", ["sync", "async"])
def test_coherence_middleware_puts_a_hint_behind_the_system_message_only_when_asked_to(how: str) -> None:
    asked = {}
    for guide in (False, True):
        model, agent, watch = failing({"config": MANUAL}, guide)
        asyncio.run(invoked(agent, how))
        watch.close()
        asked[guide] = [[message.text for message in request] for request in model.asked]
    bare = script(*(said("I try.", "bash", {"command": "pytest -q"}, at) for at in range(5)), said("I stop."))

    def run() -> str:
        raise ToolException("ImportError: no module named yaml")

    asyncio.run(invoked(create_agent(bare, tools=[tool_named("bash", run)], system_prompt=SYSTEM), how))
    assert asked[False] == [[message.text for message in request] for request in bare.asked]
    hints = [request[0] for request in asked[True] if request[0] != SYSTEM]
    assert hints
    assert all(hint.startswith(SYSTEM) for hint in hints)
    assert [request[1:] for request in asked[True]] == [request[1:] for request in asked[False]]


@pytest.mark.parametrize("how", ["sync", "async"])
def test_coherence_middleware_refuses_a_call_and_gives_the_agent_the_reason(how: str) -> None:
    ran: list[str] = []

    def run() -> str:
        ran.append("rm")
        return "deleted"

    def wipes() -> Scripted:
        return script(said("I clean up.", "bash", {"command": "rm -rf /"}), said("I stop."))

    watch = CoherenceMiddleware(config=MANUAL)
    model = wipes()
    asyncio.run(invoked(create_agent(model, tools=[tool_named("bash", run)], middleware=[watch]), how))
    assert ran == []
    result = model.asked[1][-1]
    assert isinstance(result, ToolMessage)
    assert (result.status, "coherence refused this call" in result.text) == ("error", True)
    asyncio.run(invoked(create_agent(wipes(), tools=[tool_named("bash", run)]), how))
    assert ran == ["rm"]  # without the middleware it runs
    watch.close()


def test_coherence_middleware_joins_an_agent_that_a_tool_calls() -> None:
    agents = Agents(goal="Write a report.", config=MANUAL)
    writer = create_agent(script(said("Written.")), tools=[], middleware=[CoherenceMiddleware("writer", agents=agents)])

    def delegate() -> str:
        asked: Any = {"messages": [("user", "Write the summary.")]}
        return str(writer.invoke(asked)["messages"][-1].text)

    planner = create_agent(
        script(said("I delegate.", "delegate"), said("Done.")),
        tools=[tool_named("delegate", delegate)],
        middleware=[CoherenceMiddleware("planner", agents=agents)],
    )
    asyncio.run(invoked(planner, "sync", {"messages": [("user", "Write a report.")]}))
    assert [(edge.source, edge.target) for edge in agents.fleet.trust.edges()] == [("writer", "planner")]
    goals = {monitor.agent: monitor.state.facts.goal for monitor in agents.fleet}
    assert goals == {"planner": "Write a report.", "writer": "Write the summary."}
    agents.close()


def test_coherence_middleware_joins_an_agent_whose_messages_another_one_is_given() -> None:
    agents = Agents(goal="Write a report.", config=MANUAL)

    def worker(name: str, *answers: AIMessage) -> Any:
        tools = [tool_named("bash", lambda: "40 cups")]
        return create_agent(script(*answers), tools=tools, middleware=[CoherenceMiddleware(name, agents=agents)])

    made = StateGraph(MessagesState).add_node("researcher", worker("researcher", said("I look.", "bash"), said("40.")))
    made.add_node("writer", worker("writer", said("Tea sells."))).add_edge(START, "researcher")
    made.add_edge("researcher", "writer").compile().invoke(ASKED)
    assert [(edge.source, edge.target) for edge in agents.fleet.trust.edges()] == [("researcher", "writer")]
    writer = agents.watch("writer").monitor
    writer.flush()
    told = [record.event for record in reversed(writer.events())]
    assert [(event.role, event.content) for event in told if isinstance(event, events.Message)] == [
        ("user", GOAL),
        ("user", "I look."),
        ("user", "40."),
        ("assistant", "Tea sells."),
    ]
    assert not any(isinstance(event, events.ToolCall) for event in told)
    agents.close()


def test_coherence_middleware_records_the_message_in_a_command_as_the_result() -> None:
    def transfer() -> Any:
        return Command(update={"messages": [ToolMessage("The writer takes over.", tool_call_id="call1")]})

    watch = CoherenceMiddleware(config=MANUAL)
    model = script(said("I hand over.", "transfer"), said("Done."))
    create_agent(model, tools=[tool_named("transfer", transfer)], middleware=[watch]).invoke(ASKED)
    watch.monitor.flush()
    results = [record.event for record in watch.monitor.events() if isinstance(record.event, events.ToolResult)]
    assert [(event.result, event.error) for event in results] == [("The writer takes over.", False)]
    watch.close()


def test_coherence_middleware_records_an_error_of_the_model_and_lets_it_through() -> None:
    def fails() -> AIMessage:
        raise ConnectionError("no network")

    watch = CoherenceMiddleware(config=MANUAL)
    with pytest.raises(ConnectionError):
        create_agent(Scripted(says=fails), tools=[], middleware=[watch]).invoke(ASKED)
    watch.monitor.flush()
    faults = [record.event for record in watch.monitor.events() if isinstance(record.event, events.Fault)]
    assert [fault.where for fault in faults] == ["model"]
    watch.close()


def test_coherence_middleware_says_which_arguments_exclude_each_other() -> None:
    agents = Agents(config=MANUAL)
    with pytest.raises(ValueError, match="goal are those of the agents"):
        CoherenceMiddleware(agents=agents, goal="x")
    agents.close()
    with Monitor(embedder=False) as monitor, pytest.raises(ValueError, match="monitor= alone"):
        CoherenceMiddleware(monitor=monitor, goal="x")


def test_langchain_example_runs(capsys: pytest.CaptureFixture[str]) -> None:

    runpy.run_path(str(EXAMPLE), run_name="__main__")
    said = capsys.readouterr().out
    assert "coherence refused this call" in said
