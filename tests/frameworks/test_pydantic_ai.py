"""The real Pydantic AI with a scripted model."""

from __future__ import annotations

import asyncio
import runpy
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from coherence import CoherenceBlocked, Monitor
from coherence.core import events
from frameworks.agents import CASES, GOAL, MODEL, SYSTEM, Playing, by_hand
from frameworks.model_stub import PER_CALL

pytestmark = pytest.mark.frameworks

pytest.importorskip("pydantic_ai")

from pydantic import BaseModel  # noqa: E402
from pydantic_ai import Agent, Tool, ToolFailed  # noqa: E402
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart  # noqa: E402
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel  # noqa: E402
from pydantic_ai.usage import RequestUsage  # noqa: E402

from coherence.frameworks.agents import Agents  # noqa: E402
from coherence.frameworks.pydantic_ai import Coherence  # noqa: E402

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "frameworks" / "pydantic_ai_agent.py"
MANUAL: dict[str, Any] = {"tick": "manual"}
USED = RequestUsage(
    input_tokens=PER_CALL["input"], output_tokens=PER_CALL["output"], cache_read_tokens=PER_CALL["cached"]
)


def said(text: str, tool: str = "", arguments: Any = None, at: int = 1) -> ModelResponse:
    """Return an answer."""
    calls = [ToolCallPart(tool, dict(arguments or {}), tool_call_id=f"call{at}")] if tool else []
    return ModelResponse(parts=[TextPart(text), *calls], usage=USED, model_name=MODEL)


def scripted(says: Callable[[], ModelResponse], asked: list[Any] | None = None) -> FunctionModel:
    """Return a model that says what it is told to, and keeps what it was asked."""

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if asked is not None:
            asked.append((texts(messages), info.instructions))
        return says()

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        whole = answer(messages, info)
        for at, part in enumerate(whole.parts):
            if isinstance(part, TextPart):
                for word in (part.content[:5], part.content[5:]):
                    yield word
            elif isinstance(part, ToolCallPart):
                yield {at: DeltaToolCall(part.tool_name, part.args_as_json_str(), tool_call_id=part.tool_call_id)}

    return FunctionModel(answer, stream_function=stream, model_name=MODEL)


def script(*answers: ModelResponse) -> Callable[[], ModelResponse]:
    turns = iter(answers)
    return lambda: next(turns)


def texts(messages: list[ModelMessage]) -> list[str]:
    """Return what a model was asked, part by part."""
    return [str(getattr(part, "content", part)) for message in messages for part in message.parts]


def tool_named(name: str, run: Callable[[], str]) -> Tool[Any]:
    """Return a tool of one name that takes any arguments."""

    def called(**arguments: Any) -> str:
        return run()

    return Tool.from_schema(called, name, "A tool.", {"type": "object", "additionalProperties": True})


@pytest.fixture(autouse=True)
def _loop() -> Iterator[None]:
    """Give run_sync an event loop that is closed at the end; its own it leaves open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    loop.close()
    asyncio.set_event_loop(None)


def ran(agent: Any, how: str, asked: str = GOAL) -> None:
    """Run an agent to its end."""
    if how == "sync":
        agent.run_sync(asked)
    else:
        asyncio.get_event_loop_policy().get_event_loop().run_until_complete(ran_in_a_loop(agent, how, asked))


async def ran_in_a_loop(agent: Any, how: str, asked: str) -> None:
    if how == "async":
        await agent.run(asked)
    elif how == "streamed":
        async with agent.run_stream_events(asked) as seen:
            async for _ in seen:
                pass
    else:
        async with agent.iter(asked) as run:
            async for _ in run:
                pass


@pytest.mark.parametrize("how", ["sync", "async", "streamed", "iter"])
@pytest.mark.parametrize("name", list(CASES))
def test_coherence_tells_the_monitor_what_a_user_would_tell_it_by_hand(name: str, how: str) -> None:
    case = CASES[name]
    expected = by_hand(case, goes_on=True)
    with case.monitor() as monitor:
        playing = Playing(case, monitor)

        def answer() -> ModelResponse:
            turn = playing.answer()
            return said(turn.says, turn.tool, turn.arguments, playing.asked)

        def run() -> str:
            turn = playing.use()
            if turn.error:
                raise ToolFailed(turn.result)
            return turn.result

        tools = [tool_named(tool, run) for tool in {turn.tool for turn in case.turns if turn.tool}]
        agent = Agent(scripted(answer), tools=tools, instructions=SYSTEM, capabilities=[Coherence(monitor=monitor)])
        blocked = False
        try:
            ran(agent, how)
        except CoherenceBlocked:
            blocked = True
        told = playing.end()
    for event in told[0]:
        event.pop("coherence.duration_s", None)  # type: ignore[attr-defined]
        event.pop("error.type", None)  # type: ignore[attr-defined]
    if how == "streamed":  # a streamed FunctionModel estimates its tokens
        told, expected = without_usage(told), without_usage(expected)
        if name == "over budget":
            return
    assert told == expected
    assert blocked == (name == "over budget")


def without_usage(told: Any) -> Any:
    seen, decisions, _ = told
    return [event for event in seen if event["kind"] != "usage"], len(decisions), None


def failing(watch: Coherence | None) -> tuple[list[Any], Any]:
    """Return what the model is asked, and an agent whose call fails five times."""
    asked: list[Any] = []
    turns = script(*(said("I try.", "bash", {"command": "pytest -q"}, at) for at in range(5)), said("I stop."))

    def run() -> str:
        raise ToolFailed("ImportError: no module named yaml")

    given = [watch] if watch is not None else []
    agent = Agent(scripted(turns, asked), tools=[tool_named("bash", run)], instructions=SYSTEM, capabilities=given)
    return asked, agent


def test_coherence_adds_a_hint_to_a_copy_of_the_request_only_when_asked_to() -> None:
    asked: dict[object, Any] = {}
    history: dict[object, Any] = {}
    for guide in (None, False, True):
        watch = None if guide is None else Coherence(guide=guide, config=MANUAL)
        asked[guide], agent = failing(watch)
        history[guide] = texts(agent.run_sync(GOAL).all_messages())
        if watch is not None:
            watch.close()
    assert asked[False] == asked[None]
    assert asked[True] != asked[None]
    assert asked[True][0] == asked[None][0]  # nothing is known before the first call
    more = [
        [text for text in told[0] if text not in bare[0]] for told, bare in zip(asked[True], asked[None], strict=True)
    ]
    assert any("returned the same error" in text for hints in more for text in hints)
    assert history[True] == history[False] == history[None]  # a hint is no part of the conversation


def test_coherence_refuses_a_call_and_gives_the_agent_the_reason() -> None:
    deleted: list[str] = []

    def run() -> str:
        deleted.append("rm")
        return "deleted"

    def wipes() -> Callable[[], ModelResponse]:
        return script(said("I clean up.", "bash", {"command": "rm -rf /"}), said("I stop."))

    watch = Coherence(config=MANUAL)
    asked: list[Any] = []
    Agent(scripted(wipes(), asked), tools=[tool_named("bash", run)], capabilities=[watch]).run_sync(GOAL)
    assert deleted == []
    assert "coherence refused this call" in asked[1][0][-1]
    Agent(scripted(wipes()), tools=[tool_named("bash", run)]).run_sync(GOAL)
    assert deleted == ["rm"]  # without the capability it runs
    watch.close()


def test_coherence_joins_an_agent_that_a_tool_runs() -> None:
    agents = Agents(goal="Write a report.", config=MANUAL)
    writer = Agent(scripted(script(said("Written."))), capabilities=[Coherence("writer", agents=agents)])

    async def delegate() -> str:
        return str((await writer.run("Write the summary.")).output)

    planner = Agent(
        scripted(script(said("I delegate.", "delegate"), said("Done."))),
        tools=[delegate],
        capabilities=[Coherence("planner", agents=agents)],
    )
    planner.run_sync("Write a report.")
    assert [(edge.source, edge.target) for edge in agents.fleet.trust.edges()] == [("writer", "planner")]
    goals = {monitor.agent: monitor.state.facts.goal for monitor in agents.fleet}
    assert goals == {"planner": "Write a report.", "writer": "Write the summary."}
    agents.close()


def test_coherence_records_an_error_of_the_model_and_lets_it_through() -> None:
    def fails() -> ModelResponse:
        raise ConnectionError("no network")

    watch = Coherence(config=MANUAL)
    with pytest.raises(ConnectionError):
        Agent(scripted(fails), capabilities=[watch]).run_sync(GOAL)
    watch.monitor.flush()
    faults = [record.event for record in watch.monitor.events() if isinstance(record.event, events.Fault)]
    assert [fault.where for fault in faults] == ["model"]
    watch.close()


def test_coherence_counts_an_image_and_embeds_nothing_of_it() -> None:
    from pydantic_ai import BinaryContent

    watch = Coherence(config=MANUAL)
    agent = Agent(scripted(script(said("A cat."))), capabilities=[watch])
    agent.run_sync(["What is on it?", BinaryContent(b"\x89PNG" * 1000, media_type="image/png")])
    watch.monitor.flush()
    heard = [record.event for record in watch.monitor.events() if isinstance(record.event, events.Message)]
    assert [event.content for event in heard if event.role == "user"] == ["What is on it?\n[image]"]
    watch.close()


def recorded(watch: Coherence, kind: type[Any]) -> list[Any]:
    """Return the events of one kind, oldest first."""
    watch.monitor.flush()
    return [record.event for record in watch.monitor.events() if isinstance(record.event, kind)][::-1]


def test_coherence_records_structured_output_as_what_the_agent_says() -> None:
    class Place(BaseModel):
        city: str
        people: int

    answers = script(
        said("", "final_result", {"city": "Rome"}, 1), said("", "final_result", {"city": "Rome", "people": 3}, 2)
    )
    watch = Coherence(config=MANUAL)
    result = Agent(scripted(answers), output_type=Place, capabilities=[watch]).run_sync("Which city?")
    assert result.output == Place(city="Rome", people=3)
    heard = [(event.role, event.content) for event in recorded(watch, events.Message)]
    assert [text for role, text in heard if role == "assistant"] == ['{"city":"Rome"}', '{"city":"Rome","people":3}']
    assert [role for role, _ in heard] == ["user", "assistant", "user", "assistant"]  # it was told to try again
    assert recorded(watch, events.ToolCall) == []
    watch.close()


def test_coherence_records_a_run_by_run_stream_with_each_call_once() -> None:
    watch = Coherence(config=MANUAL)
    used: list[str] = []

    def bash(command: str) -> str:
        used.append(command)
        return "3 notes"

    look = ModelResponse(parts=[ToolCallPart("bash", {"command": "ls"}, tool_call_id="call1")])
    answers = script(look, said("There are 3 notes.", "bash", {"command": "pwd"}, 2))
    agent = Agent(scripted(answers), tools=[bash], capabilities=[watch])

    async def go() -> None:
        async with agent.run_stream("List my notes.") as stream:
            assert [text async for text in stream.stream_text()][-1] == "There are 3 notes."

    asyncio.get_event_loop_policy().get_event_loop().run_until_complete(go())
    assert used == ["ls", "pwd"]  # the second one runs while its answer is not yet complete
    assert [call.call_id for call in recorded(watch, events.ToolCall)] == ["call1", "call2"]
    assert [event.call_id for event in recorded(watch, events.ToolResult)] == ["call1", "call2"]
    assert recorded(watch, events.Message)[-1].content == "There are 3 notes."
    watch.close()


def test_coherence_notes_a_stream_that_is_left_early() -> None:
    watch = Coherence(config=MANUAL)
    agent = Agent(scripted(script(said("There are 3 notes."))), capabilities=[watch])

    async def go() -> None:
        async with agent.run_stream("List my notes.") as stream:
            async for _ in stream.stream_text(delta=True, debounce_by=None):
                raise KeyError("enough")

    with pytest.raises(KeyError):
        asyncio.get_event_loop_policy().get_event_loop().run_until_complete(go())
    (note,) = recorded(watch, events.Feedback)
    assert "abandoned" in note.text
    watch.close()


def test_coherence_says_which_arguments_exclude_each_other() -> None:
    with Monitor(embedder=False) as monitor, pytest.raises(ValueError, match="monitor= alone"):
        Coherence(monitor=monitor, goal="x")


def test_pydantic_ai_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert "coherence refused this call" in capsys.readouterr().out
