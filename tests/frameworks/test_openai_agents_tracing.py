"""The real tracing of the OpenAI Agents SDK, with the real client before a server on the loopback device."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from hosts.messages_stub import Fail, Step, Text, Tool

from coherence import Monitor
from coherence.core import events
from frameworks.agents import CASES, GOAL, MODEL, SYSTEM, Playing, told
from frameworks.model_stub import PER_CALL, ModelStub

pytestmark = pytest.mark.frameworks

pytest.importorskip("agents")

import agents  # noqa: E402
import openai  # noqa: E402
from agents import Agent, RunConfig, Runner  # noqa: E402

from coherence.frameworks.openai_agents_tracing import CoherenceTracing  # noqa: E402
from frameworks.agents_sdk import Real, Telling, tool_named  # noqa: E402

MANUAL: dict[str, Any] = {"tick": "manual"}


@pytest.fixture(autouse=True)
def _traced() -> Iterator[None]:
    agents.set_tracing_disabled(False)
    yield
    agents.set_trace_processors([])
    agents.set_tracing_disabled(True)


class Chat(Telling, agents.OpenAIChatCompletionsModel):
    """The SDK's model of Chat Completions."""


def ran(agent: Any, how: str = "async", asked: str = GOAL, config: RunConfig | None = None) -> Any:
    """Run an agent as its user does who knows nothing of us."""

    async def go() -> Any:
        try:
            if how == "async":
                return await Runner.run(agent, asked, max_turns=99, run_config=config)
            streamed = Runner.run_streamed(agent, asked, max_turns=99, run_config=config)
            async for _ in streamed.stream_events():
                pass
            return streamed
        finally:
            await agent.model.client.close()

    return asyncio.run(go())


def recorded(watch: CoherenceTracing, kind: type[Any]) -> list[Any]:
    """Return the events of one kind, oldest first."""
    watch.force_flush()
    found = [record.event for record in watch.agents.monitor.events() if isinstance(record.event, kind)]
    return found[::-1]


@pytest.mark.parametrize("how", ["async", "streamed"])
@pytest.mark.parametrize("made", [Real, Chat])
@pytest.mark.parametrize("name", ["good", "looping", "injected"])
def test_coherence_tracing_tells_the_monitor_what_a_user_would_tell_it_by_hand(name: str, made: Any, how: str) -> None:
    case = CASES[name]
    with case.monitor() as m:
        if made is Chat:  # a span of Responses has the instructions that the provider repeats; this server does not
            m.message("system", SYSTEM)
        m.message("user", GOAL)
        for at, turn in enumerate(case.turns):
            m.message("assistant", turn.says, model=MODEL)
            call = m.tool_call(turn.tool, turn.arguments, call=f"c{at}") if turn.tool else ""
            m.usage(
                tokens_in=PER_CALL["input"],
                tokens_out=PER_CALL["output"],
                tokens_cached=PER_CALL["cached"],
                model=MODEL,
            )
            if turn.tool:
                m.decide()
                m.tool_result(turn.result, error=turn.error, call=call, tool=turn.tool)
        expected = told(m, [])
    with case.monitor() as monitor, ModelStub(case.steps()) as stub:
        agents.set_trace_processors([CoherenceTracing(monitor=monitor)])
        playing = Playing(case, monitor)
        model = made(stub.url, playing.answer)
        tools: list[Any] = [
            tool_named(tool, lambda: playing.use().result) for tool in {turn.tool for turn in case.turns} - {""}
        ]
        counted = agents.ModelSettings(include_usage=True)
        ran(Agent("shop", instructions=SYSTEM, tools=tools, model=model, model_settings=counted), how)
        seen = told(monitor, [])
    for event in seen[0]:
        event.pop("coherence.duration_s", None)  # type: ignore[attr-defined]
    assert seen == expected


def test_coherence_tracing_records_the_last_result_with_its_time_and_its_error() -> None:
    def fails() -> str:
        raise RuntimeError("no disk")

    agent_of: dict[str, Any] = {"tool_use_behavior": "stop_on_first_tool"}
    for run, error in ((lambda: "deleted", False), (fails, True)):
        with ModelStub([(Text("I clean."), Tool("bash", {"command": "rm -rf /"}))]) as stub:
            watch = CoherenceTracing(config=MANUAL)
            agents.set_trace_processors([watch])
            model = Real(stub.url)
            agent = Agent(
                "shop", tools=[agents.function_tool(run, name_override="bash", strict_mode=False)], **agent_of
            )
            agent.model = model
            ran(agent)
            (result,) = recorded(watch, events.ToolResult)
            assert result.error is error
            assert result.duration_s is not None
            assert [call.tool_name for call in recorded(watch, events.ToolCall)] == ["bash"]
            watch.close()


def test_coherence_tracing_joins_agents_that_hand_over_and_agents_that_are_tools() -> None:
    steps: list[Step] = [
        (Text("I ask."), Tool("look_up", {"input": "Which year?"})),
        (Text("2026."),),
        (Text("The writer is better."), Tool("transfer_to_writer", {})),
        (Text("Written."),),
    ]
    with ModelStub(steps) as stub:
        watch = CoherenceTracing(config=MANUAL)
        agents.set_trace_processors([watch])
        model = Real(stub.url)
        reader, writer = Agent("reader", model=model), Agent("writer", model=model)
        planner = Agent("planner", tools=[reader.as_tool("look_up", "Ask.")], handoffs=[writer], model=model)
        assert ran(planner, asked="Write a report.").final_output == "Written."
        edges = {(edge.source, edge.target) for edge in watch.agents.fleet.trust.edges()}
        assert edges == {("reader", "planner"), ("planner", "writer")}
        assert [call.tool_name for call in recorded(watch, events.ToolCall)] == ["look_up", "transfer_to_writer"]
        watch.close()


def test_coherence_tracing_records_no_tokens_where_the_provider_tells_none() -> None:
    with ModelStub([(Text("Hello."),)]) as stub:
        watch = CoherenceTracing(config=MANUAL)
        agents.set_trace_processors([watch])
        ran(Agent("shop", model=Chat(stub.url)), "streamed")
        assert recorded(watch, events.Usage) == []
        watch.close()


def test_coherence_tracing_records_that_no_answer_came() -> None:
    with ModelStub([(Fail(500, "server_error", "overloaded"),)]) as stub:
        watch = CoherenceTracing(config=MANUAL)
        agents.set_trace_processors([watch])
        with pytest.raises(openai.InternalServerError):
            ran(Agent("shop", model=Real(stub.url)))
        (fault,) = recorded(watch, events.Fault)
        assert "overloaded" in fault.message
        watch.close()


def test_coherence_tracing_keeps_nothing_where_the_user_keeps_data_out_of_traces() -> None:
    with ModelStub([(Text("A secret."),)]) as stub:
        watch = CoherenceTracing(config=MANUAL)
        agents.set_trace_processors([watch])
        ran(Agent("shop", model=Real(stub.url)), config=RunConfig(trace_include_sensitive_data=False))
        assert recorded(watch, events.Message) == []
        watch.close()


def test_coherence_tracing_goes_on_if_a_span_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    from coherence.integrations.openai_wire import ResponsesWire

    def broken(*_: object) -> None:
        raise RuntimeError("a fault of ours")

    with ModelStub([(Text("Hello."),)]) as stub, Monitor(embedder=False) as monitor:
        monkeypatch.setattr(ResponsesWire, "answer", broken)
        watch = CoherenceTracing(monitor=monitor)
        agents.set_trace_processors([watch])
        assert ran(Agent("shop", model=Real(stub.url))).final_output == "Hello."
        assert len(recorded(watch, events.Fault)) == 1
