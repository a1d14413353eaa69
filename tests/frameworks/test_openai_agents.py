"""The real OpenAI Agents SDK, with the real client before a server on the loopback device."""

from __future__ import annotations

import asyncio
import json
import re
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hosts.messages_stub import Step, Text, Tool

from coherence import CoherenceBlocked, Monitor
from frameworks.agents import CASES, GOAL, MODEL, SYSTEM, Playing, by_hand
from frameworks.model_stub import ModelStub

pytestmark = pytest.mark.frameworks

pytest.importorskip("agents")

import agents  # noqa: E402
import openai  # noqa: E402
from agents import Agent, FunctionTool, RunConfig, Runner  # noqa: E402

from coherence.frameworks.agents import Agents  # noqa: E402
from coherence.frameworks.openai_agents import Coherence  # noqa: E402

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "frameworks" / "openai_agents_agent.py"
MANUAL: dict[str, Any] = {"tick": "manual"}
agents.set_tracing_disabled(True)


class Real(agents.OpenAIResponsesModel):
    """The SDK's own model; it tells when it is asked."""

    def __init__(self, url: str, asked: Callable[[], object] = lambda: None) -> None:
        self.client = openai.AsyncOpenAI(api_key="k", base_url=f"{url}/v1", max_retries=0)
        self.is_asked = asked
        super().__init__(MODEL, self.client)

    async def get_response(self, *given: Any, **named: Any) -> Any:
        self.is_asked()
        return await super().get_response(*given, **named)

    async def stream_response(self, *given: Any, **named: Any) -> Any:
        self.is_asked()
        async for event in super().stream_response(*given, **named):
            yield event


def tool_named(name: str, run: Callable[[], str]) -> FunctionTool:
    """Return a tool of one name that takes any arguments."""

    async def invoke(context: Any, arguments: str) -> str:
        return run()

    schema = {"type": "object", "properties": {}, "additionalProperties": True}
    return FunctionTool(name, "A tool.", schema, invoke, strict_json_schema=False)


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
        tools = [tool_named(tool, run) for tool in {turn.tool for turn in case.turns if turn.tool}]
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
                watch.agents.close()
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
            watch.agents.close()
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
        watch.agents.close()


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
        watch.agents.close()


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
        watch.agents.close()


def test_coherence_says_which_arguments_exclude_each_other() -> None:
    agents_ = Agents(config=MANUAL)
    with pytest.raises(ValueError, match="goal are those of the agents"):
        Coherence(agents=agents_, goal="x")
    agents_.close()
    with Monitor(embedder=False) as monitor, pytest.raises(ValueError, match="monitor= alone"):
        Coherence(monitor=monitor, goal="x")


def test_openai_agents_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert "coherence refused this call" in capsys.readouterr().out
