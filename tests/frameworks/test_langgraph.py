"""Graphs of the real LangGraph with a scripted model."""

from __future__ import annotations

import asyncio
import runpy
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import coherence
from coherence import CoherenceBlocked, Monitor
from coherence.core import events
from frameworks.agents import CASES, GOAL, SYSTEM, Playing, by_hand

pytestmark = pytest.mark.frameworks

pytest.importorskip("langgraph")

from langchain_core.language_models import FakeListChatModel  # noqa: E402
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage  # noqa: E402
from langchain_core.runnables import RunnableConfig, RunnableLambda  # noqa: E402
from langchain_core.tools import ToolException, tool  # noqa: E402
from langgraph.checkpoint.memory import InMemorySaver  # noqa: E402
from langgraph.graph import END, START, MessagesState, StateGraph  # noqa: E402
from langgraph.prebuilt import ToolNode, tools_condition  # noqa: E402
from langgraph.runtime import Runtime  # noqa: E402
from langgraph.types import Command, interrupt  # noqa: E402

from coherence.frameworks.agents import MAX_WRITTEN, Agents  # noqa: E402
from coherence.frameworks.langgraph import CoherenceGraph  # noqa: E402
from frameworks.langchain_model import Scripted, said, script, tool_named  # noqa: E402

MANUAL: dict[str, Any] = {"tick": "manual"}
ASKED: Any = {"messages": [("user", GOAL)]}
LONG = "The shop sold 40 cups of tea in May."
STREAMS = ["messages", "updates", ["values", "debug"]]


def asks(model: Any, system: str = SYSTEM) -> Callable[[MessagesState], Any]:
    """Return a node that asks a model."""

    def ask(state: MessagesState) -> Any:
        return {"messages": [model.invoke([SystemMessage(system), *state["messages"]])]}

    return ask


def aasks(model: Any) -> Callable[[MessagesState], Any]:
    async def ask(state: MessagesState) -> Any:
        return {"messages": [await model.ainvoke([SystemMessage(SYSTEM), *state["messages"]])]}

    return ask


def graph(agent: Any, tools: Any = None, **options: Any) -> Any:
    """Return the usual loop of an agent and its tools."""
    made = StateGraph(MessagesState).add_node("agent", agent).add_edge(START, "agent")
    if tools is not None:
        made.add_node("tools", tools).add_conditional_edges("agent", tools_condition).add_edge("tools", "agent")
    return made.compile(**options)


def kinds(monitor: Monitor, kind: Any) -> list[Any]:
    """Return the events of one kind, in their order."""
    monitor.flush()
    return [record.event for record in reversed(monitor.events()) if isinstance(record.event, kind)]


def messages(monitor: Monitor) -> list[tuple[str, str]]:
    return [(event.role, event.content) for event in kinds(monitor, events.Message)]


async def invoked(app: Any, how: str, asked: Any = ASKED) -> None:
    """Run a graph to its end."""
    config = {"recursion_limit": 99}
    if how == "sync":
        await asyncio.to_thread(app.invoke, asked, config)
    elif how.startswith("async"):
        await app.ainvoke(asked, config)
    else:
        mode: Any = STREAMS[int(how[-1])]
        if how.startswith("streamed"):
            await asyncio.to_thread(lambda: list(app.stream(asked, config, stream_mode=mode)))
        else:
            async for _ in app.astream(asked, config, stream_mode=mode):
                pass


HOWS = ["sync", "async", "async over a function", "streamed 0", "streamed 1", "streamed 2", "astreamed 0"]


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("name", list(CASES))
def test_coherence_graph_tells_the_monitor_what_a_user_would_tell_it_by_hand(name: str, how: str) -> None:
    case = CASES[name]
    expected = by_hand(case, goes_on=True)
    with case.monitor() as monitor:
        playing = Playing(case, monitor)

        def answered() -> AIMessage:
            turn = playing.answer()
            return said(turn.says, turn.tool, turn.arguments, playing.asked)

        def run() -> str:
            turn = playing.use()
            if turn.error:
                raise ToolException(turn.result)
            return turn.result

        watch = CoherenceGraph(monitor=monitor)
        tools = [tool_named(each, run) for each in {turn.tool for turn in case.turns if turn.tool}]
        model = Scripted(says=answered)
        node = aasks(model) if how in ("async", "astreamed 0") else asks(model)
        blocked = False
        try:
            asyncio.run(invoked(graph(watch.watched(node), watch.tool_node(tools)), how))
        except CoherenceBlocked:
            blocked = True
        told = playing.end()
    for event in told[0]:
        event.pop("coherence.duration_s", None)  # type: ignore[attr-defined]
    assert told == expected
    assert blocked == (name == "over budget")


def fails() -> str:
    raise ToolException("ImportError: no module named yaml")


def tries() -> Scripted:
    """Return a model that repeats a call which fails."""
    return script(*(said("I try.", "bash", {"command": "pytest -q"}, at) for at in range(5)), said("I stop."))


@pytest.mark.parametrize("how", ["sync", "async", "runnable", "async runnable"])
def test_watched_puts_a_hint_behind_the_messages_of_a_copy_only_when_asked_to(how: str) -> None:
    def node(model: Any) -> Any:
        made = aasks(model) if how == "async" else asks(model)
        return RunnableLambda(asks(model), aasks(model)) if "runnable" in how else made

    run = "async" if "async" in how else "sync"
    asked, ends = {}, {}
    for guide in (False, True):
        with Agents(config=MANUAL, guide=guide) as agents:
            watch, model = CoherenceGraph(agents=agents), tries()
            app = graph(watch.watched(node(model)), watch.tool_node([tool_named("bash", fails)]))
            call: Any = app.ainvoke(ASKED) if run == "async" else asyncio.to_thread(app.invoke, ASKED)
            ends[guide] = [message.text for message in asyncio.run(_awaited(call))["messages"]]
            asked[guide] = [[message.text for message in each] for each in model.asked]
            assert [role for role, _ in messages(agents.monitor)].count("user") == 1  # a hint is none
    bare = tries()
    asyncio.run(invoked(graph(node(bare), ToolNode([tool_named("bash", fails)])), run))
    assert asked[False] == [[message.text for message in each] for each in bare.asked]
    hinted = [(with_hint, without) for with_hint, without in zip(asked[True], asked[False], strict=True)]
    assert all(with_hint[: len(without)] == without for with_hint, without in hinted)
    assert {len(with_hint) - len(without) for with_hint, without in hinted} == {0, 1}
    assert ends[True] == ends[False]


async def _awaited(call: Any) -> Any:
    return await call


def test_watched_takes_a_hint_out_of_a_state_that_the_node_returns_whole() -> None:
    with Agents(config=MANUAL, guide=True) as agents:
        watch, model = CoherenceGraph(agents=agents), tries()

        def node(state: MessagesState) -> Command[Any]:
            found = model.invoke(state["messages"])
            goto = "tools" if found.tool_calls else END
            return Command(update={"messages": [*state["messages"], found]}, goto=goto)

        made = StateGraph(MessagesState).add_node("agent", watch.watched(node), destinations=("tools", END))
        made.add_node("tools", watch.tool_node([tool_named("bash", fails)]))
        app: Any = made.add_edge(START, "agent").add_edge("tools", "agent").compile()
        end = app.invoke(ASKED)["messages"]
    assert any(
        len(each) % 2 == 0 for each in model.asked
    )  # user, then pairs of answer and result; a hint makes it even
    assert [message.type for message in end] == ["human", *["ai", "tool"] * 5, "ai"]


@pytest.mark.parametrize("how", ["sync", "async"])
def test_tool_node_refuses_a_call_and_gives_the_agent_the_reason(how: str) -> None:
    ran: list[str] = []

    def run() -> str:
        ran.append("rm")
        return "deleted"

    def wipes() -> Scripted:
        return script(said("I clean up.", "bash", {"command": "rm -rf /"}), said("I stop."))

    model = wipes()
    with Agents(config=MANUAL) as agents:
        watch = CoherenceGraph(agents=agents)
        app = graph(watch.watched(asks(model)), watch.tool_node([tool_named("bash", run)]))
        asyncio.run(invoked(app, how))
    assert ran == []
    result = model.asked[1][-1]
    assert isinstance(result, ToolMessage)
    assert (result.status, "coherence refused this call" in result.text) == ("error", True)
    asyncio.run(invoked(graph(asks(wipes()), ToolNode([tool_named("bash", run)])), how))
    assert ran == ["rm"]  # without it, the call runs


@pytest.mark.parametrize("how", ["sync", "async"])
@pytest.mark.parametrize("given", ["wrap_tool_call", "awrap_tool_call"])
def test_tool_node_runs_a_wrapper_of_the_user_as_tool_node_itself_does(given: str, how: str) -> None:
    seen: list[str] = []

    def wrap(asked: Any, execute: Any) -> Any:
        seen.append(asked.tool_call["name"])
        return execute(asked)

    async def awrap(asked: Any, execute: Any) -> Any:
        seen.append(asked.tool_call["name"])
        return await execute(asked)

    found = []
    for watched in (False, True):
        seen.clear()
        options: dict[str, Any] = {given: wrap if given == "wrap_tool_call" else awrap}
        with Agents(config=MANUAL) as agents:
            watch = CoherenceGraph(agents=agents)
            tools = [tool_named("bash", lambda: "ran")]
            node: Any = watch.tool_node(tools, **options) if watched else ToolNode(tools, **options)
            model = script(said("I look.", "bash", {"command": "ls"}), said("Done."))
            asyncio.run(invoked(graph(watch.watched(asks(model)), node), how))
            found.append((list(seen), [event.result for event in kinds(agents.monitor, events.ToolResult)]))
    expected = [] if (given, how) == ("awrap_tool_call", "sync") else ["bash"]
    assert found == [(expected, ["ran"])] * 2  # without tool_node, the next request would not tell the result twice


def shared(watch: CoherenceGraph, researcher: Any, writer: Any, tools: Any) -> Any:
    """Return a graph of two agents that read the same messages."""
    made = StateGraph(MessagesState).add_node("researcher", watch.watched(asks(researcher)))
    made.add_node("tools", watch.tool_node(tools)).add_node("writer", watch.watched(asks(writer)))
    made.add_edge(START, "researcher").add_edge("tools", "researcher").add_edge("writer", END)
    return made.add_conditional_edges("researcher", tools_condition, {"tools": "tools", END: "writer"}).compile()


def edges(agents: Agents) -> list[tuple[str, str]]:
    return [(edge.source, edge.target) for edge in agents.fleet.trust.edges()]


def test_coherence_graph_joins_agents_along_which_messages_flow_and_keeps_their_calls_apart() -> None:
    researcher = script(*(said("I try.", "bash", {"command": "ls"}, at) for at in range(3)), said(LONG))
    with Agents(config=MANUAL) as agents:
        watch = CoherenceGraph(agents=agents)
        shared(watch, researcher, script(said("Tea sells.")), [tool_named("bash", fails)]).invoke(ASKED)
        assert edges(agents) == [("researcher", "writer")]
        mine, other = (agents.watch(name).monitor for name in ("researcher", "writer"))
        assert [len(kinds(each, events.ToolCall)) for each in (mine, other)] == [3, 0]
        assert [event.error for event in kinds(mine, events.ToolResult)] == [True] * 3
        assert [event.error for event in kinds(other, events.ToolResult)] == [False] * 3
        assert messages(other) == [
            ("system", SYSTEM),
            ("user", GOAL),
            *[("user", "I try.")] * 3,
            ("user", LONG),
            ("assistant", "Tea sells."),
        ]


def test_coherence_graph_joins_an_agent_that_is_given_the_words_of_another_one_as_a_users() -> None:
    with Agents(config=MANUAL) as agents:
        watch = CoherenceGraph(agents=agents)
        first = asks(script(said(LONG)))

        def retells(state: MessagesState) -> Any:
            return {"messages": [HumanMessage(first(state)["messages"][0].text, name="researcher")]}

        made = StateGraph(MessagesState).add_node("researcher", watch.watched(retells))
        made.add_node("writer", watch.watched(asks(script(said("Tea sells.")))))
        made.add_edge(START, "researcher").add_edge("researcher", "writer").compile().invoke(ASKED)
        assert edges(agents) == [("researcher", "writer")]


@pytest.mark.parametrize("subgraph", [False, True])
def test_coherence_graph_follows_a_handoff_by_a_command_of_a_tool(subgraph: bool) -> None:
    parent: Any = {"graph": Command.PARENT} if subgraph else {}

    def transfer() -> Any:
        told = ToolMessage("The writer takes over.", tool_call_id="call1", name="transfer")
        return Command(goto="writer", update={"messages": [*history, told]}, **parent)

    history: list[Any] = []
    with Agents(config=MANUAL) as agents:
        watch = CoherenceGraph(agents=agents)
        model = script(said("I hand over.", "transfer"))
        planner, tools = (
            watch.watched(asks(model), agent="planner"),
            watch.tool_node([tool_named("transfer", transfer)]),
        )
        writer = script(said("Written."))
        outer = StateGraph(MessagesState).add_node("writer", watch.watched(asks(writer)))
        if subgraph:

            def keeps(state: MessagesState) -> Any:
                found = planner(state)
                history.extend(found["messages"])
                return found

            outer.add_node("planner", graph(keeps, tools)).add_edge(START, "planner")
        else:
            outer.add_node("agent", planner).add_edge(START, "agent").add_node("tools", tools)
            outer.add_conditional_edges("agent", tools_condition)
        app: Any = outer.compile()
        list(app.stream(ASKED, stream_mode="updates", subgraphs=True))
        assert edges(agents) == [("planner", "writer")]
        results = kinds(agents.watch("planner").monitor, events.ToolResult)
        assert [(event.result, event.error) for event in results] == [("The writer takes over.", False)]
        assert ("assistant", "Written.") in messages(agents.watch("writer").monitor)


def test_coherence_graph_joins_a_graph_that_a_tool_runs() -> None:
    with Agents(config=MANUAL) as agents:
        watch = CoherenceGraph(agents=agents)
        inner = graph(watch.watched(asks(script(said("Written."))), agent="writer"))

        def delegate() -> str:
            return str(inner.invoke({"messages": [("user", "Write.")]})["messages"][-1].text)

        planner = watch.watched(asks(script(said("I delegate.", "delegate"), said("Done."))), agent="planner")
        graph(planner, watch.tool_node([tool_named("delegate", delegate)])).invoke(ASKED)
        assert edges(agents) == [("writer", "planner")]
        texts = {
            name: [text for role, text in messages(agents.watch(name).monitor) if role == "assistant"]
            for name in ("planner", "writer")
        }
        assert texts == {"planner": ["I delegate.", "Done."], "writer": ["Written."]}


def test_watched_records_an_inner_agent_once() -> None:
    with Agents(config=MANUAL) as agents:
        watch = CoherenceGraph(agents=agents)
        inner = graph(watch.watched(asks(script(said("Inner."))), agent="inner"))
        graph(watch.watched(inner, agent="outer")).invoke(ASKED)
        assert [text for role, text in messages(agents.watch("inner").monitor) if role == "assistant"] == ["Inner."]
        assert messages(agents.watch("outer").monitor) == []
        assert edges(agents) == [("inner", "outer")]


def test_watched_leaves_what_the_graph_gives_a_node_as_it_is() -> None:
    given: list[Any] = []

    class Asks:
        async def __call__(self, state: MessagesState, config: RunnableConfig, *, runtime: Runtime[Any]) -> Any:
            given.append((config["configurable"]["thread_id"], runtime.context))
            return {"messages": [AIMessage("Seen.")]}

    def plain(state: MessagesState, runtime: Runtime[Any], store: Any = None) -> Any:
        given.append(runtime.context)

    def pieces(state: MessagesState) -> Any:
        yield {"messages": [AIMessage("A piece.")]}

    with Agents(config=MANUAL) as agents:
        watch = CoherenceGraph(agents=agents)
        context: Any = str
        made: Any = StateGraph(MessagesState, context_schema=context).add_node("asks", watch.watched(Asks()))
        made.add_node("plain", watch.watched(plain)).add_node("pieces", watch.watched(pieces))
        made.add_edge(START, "asks").add_edge("asks", "plain").add_edge("plain", "pieces")
        app = made.compile(checkpointer=InMemorySaver())
        end = asyncio.run(app.ainvoke(ASKED, {"configurable": {"thread_id": "7"}}, context="c"))
        assert [message.text for message in end["messages"]] == [GOAL, "Seen.", "A piece."]
    assert given == [("7", "c"), "c"]
    with pytest.raises(TypeError, match="node must be a function or a Runnable"):
        watch.watched("agent")


def test_tool_node_records_the_result_of_a_tool_that_waited_for_a_person() -> None:
    @tool
    def pay() -> str:
        """Pay."""
        return f"paid: {interrupt('Pay 5 francs?')}"

    with Agents(config=MANUAL) as agents:
        watch = CoherenceGraph(agents=agents)
        model = script(said("I pay.", "pay"), said("Done."))
        app = graph(watch.watched(asks(model)), watch.tool_node([pay]), checkpointer=InMemorySaver())
        thread: Any = {"configurable": {"thread_id": "1"}}
        assert app.invoke(ASKED, thread)["__interrupt__"][0].value == "Pay 5 francs?"
        assert kinds(agents.monitor, events.ToolResult) == []
        app.invoke(Command(resume="yes"), thread)
        results = kinds(agents.monitor, events.ToolResult)
        assert [(event.result, event.error) for event in results] == [("paid: yes", False)]
        assert len(kinds(agents.monitor, events.ToolCall)) == 1


def test_coherence_graph_records_an_error_of_the_model_and_lets_it_through() -> None:
    def broken() -> AIMessage:
        raise ConnectionError("no network")

    with Agents(config=MANUAL) as agents:
        watch = CoherenceGraph(agents=agents)
        with pytest.raises(ConnectionError):
            graph(watch.watched(asks(Scripted(says=broken)))).invoke(ASKED)
        assert [fault.where for fault in kinds(agents.monitor, events.Fault)] == ["model"]


def test_coherence_graph_records_a_stream_that_the_node_leaves() -> None:
    with Agents(config=MANUAL) as agents:
        watch = CoherenceGraph(agents=agents)
        model = script(said("The first words."))

        def leaves(state: MessagesState) -> Any:
            stream: Any = model.stream(state["messages"])
            next(stream)
            stream.close()

        graph(watch.watched(leaves)).invoke(ASKED)
        assert messages(agents.monitor) == [("user", GOAL), ("assistant", "The first words.")]
        notes = [event.text for event in kinds(agents.monitor, events.Feedback) if event.about == events.NOTE]
        assert notes == ["the answer of the model was abandoned before its end"]


def test_coherence_graph_goes_on_with_a_message_that_it_cannot_read() -> None:
    strange = HumanMessage([{"type": "image_url"}])
    with Agents(config=MANUAL) as agents:
        watch = CoherenceGraph(agents=agents)
        end = graph(watch.watched(asks(script(said("I see nothing."))))).invoke({"messages": [strange]})
        assert end["messages"][-1].text == "I see nothing."
        assert [fault.where for fault in kinds(agents.monitor, events.Fault)] == ["model"]
        assert ("assistant", "I see nothing.") in messages(agents.monitor)


def test_coherence_graph_goes_on_when_its_agents_are_closed() -> None:
    watch = CoherenceGraph(config=MANUAL)
    model = script(said("I look.", "bash", {"command": "ls"}), said("Done."))
    app = graph(watch.watched(asks(model)), watch.tool_node([tool_named("bash", lambda: "ran")]))
    watch.close()
    assert [message.text for message in app.invoke(ASKED)["messages"]] == [GOAL, "I look.", "ran", "Done."]


def test_watched_keeps_interrupts_and_streams_of_a_subgraph() -> None:
    def pays(state: MessagesState) -> Any:
        return {"messages": [AIMessage(f"Paid: {interrupt('Pay 5 francs?')}")]}

    with Agents(config=MANUAL) as agents:
        watch = CoherenceGraph(agents=agents)
        app = graph(watch.watched(graph(watch.watched(pays)), agent="outer"), checkpointer=InMemorySaver())
        thread: Any = {"configurable": {"thread_id": "1"}}
        assert app.invoke(ASKED, thread)["__interrupt__"][0].value == "Pay 5 francs?"
        resumed = list(app.stream(Command(resume="yes"), thread, subgraphs=True, stream_mode="updates"))
        assert [len(where) for where, _ in resumed] == [1, 0]  # the inner node, then the outer one
        assert app.get_state(thread).values["messages"][-1].text == "Paid: yes"


class Counting(ThreadPoolExecutor):
    """Threads of an event loop that count what they are asked to run."""

    asked = 0

    def submit(self, *args: Any, **options: Any) -> Any:
        self.asked += 1
        return super().submit(*args, **options)


def test_watched_needs_no_thread_for_a_token_in_an_event_loop() -> None:
    async def turns(words: int) -> int:
        counting = Counting(2)
        asyncio.get_running_loop().set_default_executor(counting)
        model = FakeListChatModel(responses=["a" * words])  # one token for each character

        async def node(state: MessagesState) -> Any:
            return {"messages": [await model.ainvoke(state["messages"])]}

        with Agents(config=MANUAL) as agents:
            app = graph(CoherenceGraph(agents=agents).watched(node))
            seen = [each async for each in app.astream(ASKED, stream_mode="messages")]
            assert len(seen) >= words
            assert ("assistant", "a" * words) in messages(agents.monitor)
        return counting.asked

    few, many = asyncio.run(turns(2)), asyncio.run(turns(50))
    assert many == few


def test_coherence_graph_says_which_arguments_exclude_each_other() -> None:
    with Agents(config=MANUAL) as agents, pytest.raises(ValueError, match="goal are those of the agents"):
        CoherenceGraph(agents=agents, goal="x")


def test_agents_writers_are_those_of_the_first_known_mark_and_the_oldest_are_forgotten() -> None:
    with Agents(config=MANUAL) as agents:
        agents.wrote("a", ["id 1", "text x"])
        agents.wrote("b", ["text x"])
        assert agents.writers(["id 2", "id 1", "text x"]) == ("a",)
        assert agents.writers(["text x"]) == ("a", "b")
        agents.wrote("a", ["text x"])
        assert agents.writers(["text x"]) == ("b", "a")
        agents.wrote("c", (f"id {at}" for at in range(100, 100 + MAX_WRITTEN)))
        assert agents.writers(["id 1", "text x"]) == ()


def test_agents_load_no_framework() -> None:
    code = "import sys, coherence.frameworks.agents; print([m for m in sys.modules if m.startswith('lang')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_langgraph_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    example = Path(coherence.__file__).parents[1] / "examples" / "frameworks" / "langgraph_agents.py"
    runpy.run_path(str(example), run_name="__main__")
    printed = capsys.readouterr().out
    assert "coherence refused this call" in printed
    assert "researcher > writer" in printed
