"""The real OpenAI Agents SDK, with the real client before a server on the loopback device."""

from __future__ import annotations

import asyncio
import json
import re
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
from hosts.messages_stub import Step, Text, Tool

from coherence import CoherenceBlocked, Monitor
from coherence.core import events
from coherence.fleet.fleet import Fleet
from frameworks.agents import CASES, GOAL, SYSTEM, Playing, by_hand
from frameworks.model_stub import PER_CALL, ModelStub

pytestmark = pytest.mark.frameworks

pytest.importorskip("agents")

import agents  # noqa: E402
from agents import Agent, RunConfig, Runner, function_tool, handoff  # noqa: E402
from agents.mcp import MCPServerStdio  # noqa: E402

from coherence.frameworks.agents import Agents  # noqa: E402
from coherence.frameworks.openai_agents import Coherence  # noqa: E402
from frameworks.agents_sdk import Real, tool_named  # noqa: E402

SHOP = Path(__file__).with_name("mcp_shop.py")
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "frameworks" / "openai_agents_agent.py"
MANUAL: dict[str, Any] = {"tick": "manual"}
agents.set_tracing_disabled(True)


def ran(model: Real, agent: Any, watch: Coherence | None, how: str = "async", asked: str = GOAL) -> Any:
    """Run an agent to its end."""
    options: dict[str, Any] = {"max_turns": 99}
    if watch is not None:
        agent = watch.guarded(agent)
        options |= {"hooks": watch.hooks, "run_config": watch.run_config()}

    async def go() -> Any:
        try:
            if how == "async":
                return await Runner.run(agent, asked, **options)
            streamed = Runner.run_streamed(agent, asked, **options)
            async for _ in streamed.stream_events():
                pass
            return streamed
        finally:
            await model.client.close()

    return asyncio.run(go())


@pytest.mark.parametrize("how", ["async", "streamed"])
@pytest.mark.parametrize("name", list(CASES))
def test_coherence_tells_the_monitor_what_a_user_would_tell_it_by_hand(name: str, how: str) -> None:
    case = CASES[name]
    expected = by_hand(case, goes_on=True)
    with case.monitor() as monitor, ModelStub(case.steps()) as stub:
        playing = Playing(case, monitor)

        def run() -> str:
            return playing.use().result

        model = Real(stub.url, playing.answer)
        tools: list[Any] = [tool_named(tool, run) for tool in {turn.tool for turn in case.turns if turn.tool}]
        agent = Agent("shop", instructions=SYSTEM, tools=tools, model=model)
        blocked = False
        try:
            ran(model, agent, Coherence(monitor=monitor), how)
        except CoherenceBlocked:
            blocked = True
        told = playing.end()
    for event in told[0]:
        event.pop("coherence.duration_s", None)  # type: ignore[attr-defined]
    assert told == expected
    assert blocked == (name == "over budget")


TRIES: list[Step] = [*[(Text("I try."), Tool("bash", {"command": "pytest -q"}))] * 5, (Text("I stop."),)]


def test_coherence_adds_a_hint_to_a_copy_of_the_request_only_when_asked_to() -> None:
    bodies: dict[object, list[bytes]] = {}
    for guide in (None, False, True):
        with ModelStub(TRIES) as stub:
            model = Real(stub.url)
            bash = tool_named("bash", lambda: "Error: no module named yaml")
            watch = None if guide is None else Coherence(guide=guide, config=MANUAL)
            result = ran(model, Agent("shop", instructions=SYSTEM, tools=[bash], model=model), watch)
            bodies[guide] = [re.sub(rb"(msg|call|fc)_[0-9a-f]+", b"id", asked.raw) for asked in stub.asked]
            assert not any(item.get("role") == "system" for item in result.to_input_list())
            if watch is not None:
                watch.close()
    assert bodies[False] == bodies[None]  # not a byte
    hints = [item for body in bodies[True] for item in json.loads(body)["input"] if item.get("role") == "system"]
    assert any("the same error" in hint["content"] for hint in hints)


def test_coherence_refuses_a_call_and_gives_the_agent_the_reason() -> None:
    deleted: list[str] = []

    def run() -> str:
        deleted.append("rm")
        return "deleted"

    wipe: list[Step] = [(Text("I clean up."), Tool("bash", {"command": "rm -rf /"})), (Text("I stop."),)]
    for watch in (Coherence(config=MANUAL), None):
        with ModelStub(wipe) as stub:
            model = Real(stub.url)
            mine = tool_named("bash", run)
            ran(model, Agent("shop", tools=[mine], model=model), watch)
            assert mine.tool_input_guardrails is None  # the user's own tool is not changed
            output = json.loads(stub.asked[1].raw)["input"][-1]["output"]
        if watch is not None:
            assert deleted == []
            assert "coherence refused this call" in output
            watch.close()
    assert deleted == ["rm"]  # without the watch it runs


def test_coherence_lets_the_trouble_of_an_agent_reach_the_one_it_hands_over_to() -> None:
    handing: list[Step] = [(Text("The writer is better."), Tool("transfer_to_writer", {})), (Text("Written."),)]
    with ModelStub(handing) as stub:
        model = Real(stub.url)
        writer = Agent("writer", model=model)
        planner = Agent("planner", handoffs=[writer], model=model)
        watch = Coherence(config=MANUAL)
        ran(model, planner, watch, asked="Write a report.")
        fleet = watch.agents.fleet
        assert [(edge.source, edge.target) for edge in fleet.trust.edges()] == [("planner", "writer")]
        assert {m.agent: m.state.facts.goal for m in fleet} == {
            "planner": "Write a report.",
            "writer": "Write a report.",
        }
        assert {m.agent: m.counters.calls for m in fleet}["writer"] == 0  # the call was the planner's
        watch.close()


def test_coherence_lets_the_trouble_of_an_agent_that_is_a_tool_reach_its_caller() -> None:
    asking: list[Step] = [
        (Text("I ask."), Tool("write", {"input": "Write the summary."})),
        (Text("Written."),),
        (Text("Done."),),
    ]
    with ModelStub(asking) as stub:
        model = Real(stub.url)
        watch = Coherence(config=MANUAL)
        writer = watch.guarded(Agent("writer", model=model))
        tool = writer.as_tool("write", "Write.", hooks=watch.hooks, run_config=watch.run_config())
        ran(model, Agent("planner", tools=[tool], model=model), watch, asked="Write a report.")
        fleet = watch.agents.fleet
        assert [(edge.source, edge.target) for edge in fleet.trust.edges()] == [("writer", "planner")]
        assert {m.agent: m.state.facts.goal for m in fleet}["writer"] == "Write the summary."
        watch.close()


def test_coherence_runs_the_users_own_input_filter_first() -> None:
    def shortened(data: Any) -> Any:
        return agents.run.ModelInputData(input=data.model_data.input[-1:], instructions="Short.")

    with ModelStub([(Text("Hello."),)]) as stub:
        model = Real(stub.url)
        watch = Coherence(config=MANUAL)
        options: Any = {
            "hooks": watch.hooks,
            "run_config": watch.run_config(RunConfig(call_model_input_filter=shortened)),
        }

        async def go() -> None:
            await Runner.run(watch.guarded(Agent("shop", instructions=SYSTEM, model=model)), GOAL, **options)
            await model.client.close()

        asyncio.run(go())
        assert json.loads(stub.asked[0].raw)["instructions"] == "Short."
        watch.close()


def recorded(watch: Coherence, kind: type[Any]) -> list[Any]:
    """Return the events of one kind, oldest first."""
    watch.agents.flush()
    found = [record.event for record in watch.monitor.events() if isinstance(record.event, kind)]
    return found[::-1]


WIPE: list[Step] = [(Text("I clean up."), Tool("bash", {"command": "rm -rf /"})), (Text("I stop."),)]


def test_coherence_records_that_a_tool_failed_though_the_sdk_hides_the_error_from_the_agent() -> None:
    @function_tool
    def bash(command: str) -> str:
        """Run a command."""
        raise RuntimeError("the password is wrong")

    @function_tool(timeout=0.05)
    async def wait(seconds: int) -> str:
        """Wait."""
        await asyncio.sleep(60)
        return "waited"

    calls: list[Step] = [(Tool("bash", {"command": "ls"}),), (Tool("wait", {"seconds": 60}),), (Text("I stop."),)]
    with ModelStub(calls) as stub:
        model = Real(stub.url)
        watch = Coherence(config=MANUAL)
        ran(model, Agent("shop", tools=[bash, wait], model=model), watch)
        results = recorded(watch, events.ToolResult)
        assert [(each.error, each.error_type) for each in results] == [(True, "RuntimeError"), (True, "timeout")]
        assert results[1].duration_s >= 0.05
        assert b"password" not in stub.asked[1].raw  # the agent is told no more than without the watch
        watch.close()


def test_coherence_lets_the_users_own_formatter_of_errors_speak() -> None:
    def formatted(told: Any) -> str:
        return f"{told.tool_name} failed"

    @function_tool
    def bash(command: str) -> str:
        """Run a command."""
        raise RuntimeError("no disk")

    with ModelStub([(Tool("bash", {"command": "ls"}),), (Text("I stop."),)]) as stub:
        model = Real(stub.url)
        watch = Coherence(config=MANUAL)
        config = watch.run_config(RunConfig(tool_error_formatter=formatted))

        async def go() -> None:
            agent = watch.guarded(Agent("shop", tools=[bash], model=model))
            await Runner.run(agent, GOAL, hooks=watch.hooks, run_config=config)
            await model.client.close()

        asyncio.run(go())
        assert json.loads(stub.asked[1].raw)["input"][-1]["output"] == "bash failed"
        assert [(each.result, each.error_type) for each in recorded(watch, events.ToolResult)] == [
            ("bash failed", "RuntimeError")
        ]
        watch.close()


def test_coherence_records_a_call_that_it_would_refuse_where_the_agent_is_not_guarded() -> None:
    with ModelStub(WIPE) as stub:
        model = Real(stub.url)
        watch = Coherence(config=MANUAL)
        agent = Agent("shop", tools=[tool_named("bash", lambda: "deleted")], model=model)

        async def go() -> None:
            await Runner.run(agent, GOAL, hooks=watch.hooks, run_config=watch.run_config())
            await model.client.close()

        asyncio.run(go())
        assert [call.tool_name for call in recorded(watch, events.ToolCall)] == ["bash"]
        assert [each.result for each in recorded(watch, events.ToolResult)] == ["deleted"]
        watch.close()


def test_coherence_refuses_calls_of_an_agent_behind_a_handoff_object() -> None:
    deleted: list[str] = []

    def run() -> str:
        deleted.append("rm")
        return "deleted"

    for watch in (Coherence(config=MANUAL), None):
        with ModelStub([(Tool("transfer_to_cleaner", {}),), *WIPE]) as stub:
            model = Real(stub.url)
            bash = tool_named("bash", run)
            cleaner = Agent("cleaner", tools=[bash], model=model)
            mine = handoff(cleaner)
            before = mine.on_invoke_handoff
            ran(model, Agent("shop", handoffs=[mine], model=model), watch)
            assert mine.on_invoke_handoff is before  # the user's own handoff is not changed
            assert bash.tool_input_guardrails is None
        if watch is not None:
            assert deleted == []
            watch.close()
    assert deleted == ["rm"]


def test_coherence_guardrail_refuses_calls_of_an_mcp_server(tmp_path: Path) -> None:
    log = tmp_path / "log"
    clean: list[Step] = [
        (Tool("search", {"word": "tea"}),),
        (Tool("shell", {"command": "rm -rf /"}),),
        (Text("I stop."),),
    ]
    for watch in (Coherence(config=MANUAL), None):
        log.write_text("")
        with ModelStub(clean) as stub:
            model = Real(stub.url)

            async def go(watch: Coherence | None = watch, model: Real = model) -> None:
                given: Any = {"command": sys.executable, "args": [str(SHOP)], "env": {"SHOP_LOG": str(log)}}
                guards = [watch.guardrail] if watch is not None else None
                options: Any = {"hooks": watch.hooks, "run_config": watch.run_config()} if watch is not None else {}
                async with MCPServerStdio(
                    given, client_session_timeout_seconds=60, tool_input_guardrails=guards
                ) as shop:
                    await Runner.run(Agent("shop", mcp_servers=[shop], model=model), GOAL, **options)
                await model.client.close()

            asyncio.run(go())
        called = log.read_text().split()
        if watch is None:
            assert called == ["search", "shell"]
        else:
            assert called == ["search"]
            results = [each.result for each in recorded(watch, events.ToolResult)]
            assert len(results) == 1  # a refused call has none
            assert "green tea" in results[0]
            watch.close()


def test_coherence_guarded_asks_for_the_approvals_that_the_users_tools_want() -> None:
    async def policy(context: Any, arguments: Any, call: str) -> bool:
        return False

    @function_tool(needs_approval=policy)
    def bash(command: str, seconds: int = 60) -> str:
        """Run a command."""
        return f"done in {seconds}"

    asked = []
    for watch in (Coherence(config=MANUAL), None):
        with ModelStub([(Tool("bash", {"command": "ls"}),), (Text("I stop."),)]) as stub:
            model = Real(stub.url)
            result = ran(model, Agent("shop", tools=[bash], model=model), watch)
            asked.append(len(result.interruptions))
        if watch is not None:
            watch.close()
    assert asked == [1, 1]  # the SDK wants an approval wherever a default stands in for an argument


def test_coherence_counts_an_image_that_a_tool_gives_back() -> None:
    async def look(context: Any, arguments: str) -> Any:
        return [agents.ToolOutputText(text="A cat."), agents.ToolOutputImage(image_url="data:image/png;base64,AAAA")]

    tool = tool_named("look", lambda: "")
    tool.on_invoke_tool = look
    with ModelStub([(Tool("look", {}),), (Text("I stop."),)]) as stub:
        model = Real(stub.url)
        watch = Coherence(config=MANUAL)
        ran(model, Agent("shop", tools=[tool], model=model), watch)
        assert [each.result for each in recorded(watch, events.ToolResult)] == ["A cat.\n[image]"]
        watch.close()


def test_coherence_goes_on_if_agents_cannot_be_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a fault of ours")

    handing: list[Step] = [(Tool("transfer_to_writer", {}),), (Text("Written."),)]
    with ModelStub(handing) as stub:
        model = Real(stub.url)
        watch = Coherence(config=MANUAL)
        monkeypatch.setattr(Fleet, "add_edge", broken)
        result = ran(model, Agent("planner", handoffs=[Agent("writer", model=model)], model=model), watch)
        assert result.final_output == "Written."
        assert len(recorded(watch, events.Fault)) == 1
        watch.close()


def test_coherence_says_which_arguments_exclude_each_other() -> None:
    agents_ = Agents(config=MANUAL)
    with pytest.raises(ValueError, match="goal are those of the agents"):
        Coherence(agents=agents_, goal="x")
    agents_.close()
    with Monitor(embedder=False) as monitor, pytest.raises(ValueError, match="monitor= alone"):
        Coherence(monitor=monitor, goal="x")


def test_hooks_with_calls_the_users_own_hooks_too() -> None:
    class Mine(agents.RunHooks[Any]):
        def __init__(self) -> None:
            self.seen: list[str] = []

        async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
            self.seen.append(f"answer of {agent.name}")

        async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
            self.seen.append(f"{tool.name}: {result}")

    steps: list[Step] = [(Text("I look."), Tool("bash", {"command": "ls"})), (Text("Done."),)]
    with ModelStub(steps) as stub:
        model, watch, mine = Real(stub.url), Coherence(config=MANUAL), Mine()
        agent = watch.guarded(Agent("shop", tools=[tool_named("bash", lambda: "a.py")], model=model))

        async def go() -> None:
            await Runner.run(agent, GOAL, hooks=watch.hooks_with(mine), run_config=watch.run_config())
            await model.client.close()

        asyncio.run(go())
        assert mine.seen == ["answer of shop", "bash: a.py", "answer of shop"]
        assert watch.monitor.counters.calls == 1
        assert watch.monitor.state.facts.tokens_out == 2 * PER_CALL["output"]
        watch.close()


def test_openai_agents_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert "coherence refused this call" in capsys.readouterr().out
