"""Real agents and teams of AutoGen with a fake model client: record, guidance, refusals, budgets, trust."""

from __future__ import annotations

import asyncio
import json
import runpy
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from coherence import CoherenceBlocked, Monitor
from coherence.core import events
from frameworks.agents import CASES, GOAL, MODEL, SYSTEM, Playing, Turn, by_hand
from frameworks.model_stub import PER_CALL

pytestmark = pytest.mark.frameworks

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "frameworks"


def client_of(answer: Callable[[], Turn], asked: list[Any]) -> Any:
    """Return a model client whose answers are turns; it keeps what it was asked."""
    from autogen_core import FunctionCall
    from autogen_core.models import ChatCompletionClient, CreateResult, RequestUsage

    class Fake(ChatCompletionClient):
        model_info = {  # noqa: RUF012
            "vision": False,
            "function_calling": True,
            "json_output": False,
            "family": "unknown",
            "structured_output": False,
        }
        capabilities = model_info

        async def create(self, messages: Any, **_: Any) -> Any:
            asked.append([(type(each).__name__, str(each.content)) for each in messages])
            turn = answer()
            call = FunctionCall(id=f"c{len(asked)}", name=turn.tool, arguments=json.dumps(dict(turn.arguments)))
            return CreateResult(
                finish_reason="function_calls" if turn.tool else "stop",
                content=[call] if turn.tool else turn.says,
                thought=turn.says if turn.tool else None,
                usage=RequestUsage(PER_CALL["input"], PER_CALL["output"]),
                cached=False,
            )

        async def create_stream(self, messages: Any, **_: Any) -> AsyncIterator[Any]:
            result = await self.create(messages)
            for part in (result.thought or result.content).split(" "):
                yield f"{part} "
            yield result

        async def close(self) -> None: ...

        def actual_usage(self) -> Any: ...

        def total_usage(self) -> Any: ...

        def count_tokens(self, messages: Any, **_: Any) -> int:
            return len(messages)

        def remaining_tokens(self, messages: Any, **_: Any) -> int:
            return 1000 - len(messages)

        def dump_component(self) -> Any:
            return SimpleNamespace(config={"model": MODEL})

    return Fake()


def tools_of(use: Callable[..., str]) -> list[Any]:
    async def read_file(path: str) -> str:
        return use(path=path)

    async def edit_file(path: str, new: str) -> str:
        return use(path=path, new=new)

    async def bash(command: str) -> str:
        return use(command=command)

    def send_email(to: str, body: str) -> str:
        return use(to=to, body=body)

    return [read_file, edit_file, bash, send_email]


def agent_of(client: Any, tools: Any = (), name: str = "shop", coherence: Any = None, **options: Any) -> Any:
    from autogen_agentchat.agents import AssistantAgent

    given = {"model_client": client, ("tools" if isinstance(tools, list) else "workbench"): tools or None}
    if coherence is not None:
        given = coherence.watched(name, client, tools)
    return AssistantAgent(name, system_message=SYSTEM, max_tool_iterations=20, **given, **options)


def watching(**options: Any) -> Any:
    from coherence.frameworks.autogen import CoherenceAutogen

    return CoherenceAutogen(**options)


def run(agent: Any, coherence: Any = None) -> list[Any]:
    """Run an agent or a team to its end, and return what it yields."""

    async def every() -> list[Any]:
        stream = agent.run_stream(task=GOAL)
        return [each async for each in (stream if coherence is None else coherence.messages(stream))]

    return asyncio.run(every())


def without(told: Any, *fields: str) -> Any:
    """Return what was told, but for fields of the events."""
    seen, decisions, light = told
    return [{key: value for key, value in event.items() if key not in fields} for event in seen], decisions, light


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_watched_records_what_a_monitor_is_told_by_hand(name: str, streamed: bool) -> None:
    case = CASES[name]
    with case.monitor() as monitor:
        playing = Playing(case, monitor)
        coherence = watching(monitor=monitor)
        client, tools = client_of(playing.answer, []), tools_of(lambda **_: playing.use().result)
        agent = agent_of(client, tools, coherence=coherence, model_client_stream=streamed)
        if name == "over budget":
            with pytest.raises(CoherenceBlocked, match="tokens"):
                run(agent)
        else:
            assert run(agent)[-1].messages[-1].content == case.turns[-1].says
        told = playing.end()
    # AutoGen tells no cached tokens; how long a call took is chance.
    left_out = ("coherence.duration_s", "gen_ai.usage.cache_read.input_tokens")
    assert without(told, *left_out) == without(by_hand(case, goes_on=True), *left_out)
    durations = [event["coherence.duration_s"] for event in told[0] if event["kind"] == "tool_result"]  # type: ignore[index]
    assert durations
    assert all(0 <= duration < 60 for duration in durations)


@pytest.mark.parametrize("guide", [None, False, True])
def test_guide_alone_changes_a_request_and_only_a_copy(guide: bool | None) -> None:
    case = CASES["looping"]
    asked: list[Any] = []
    alone: list[Any] = []
    for requests, watched in ((alone, False), (asked, guide is not None)):
        client, tools = client_of(partial(next, iter(case.turns)), requests), tools_of(lambda **_: case.turns[0].result)
        if watched:
            with watching(guide=guide) as coherence:
                seen = run(agent_of(client, tools, coherence=coherence))
        else:
            seen = run(agent_of(client, tools))
        assert "returned the same error" not in str(seen)
    hints = [request for request in asked if "bash returned the same error" in request[-1][1]]
    assert bool(hints) == (guide is True)
    assert (asked == alone) == (guide is not True)


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("watched", [False, True])
def test_watched_refuses_a_call_whose_tool_does_not_run(watched: bool, own: bool) -> None:
    from autogen_core.tools import FunctionTool, StaticWorkbench

    case = CASES["injected"]
    asked: list[Any] = []
    ran: list[Any] = []

    def use(**given: Any) -> str:
        ran.append(given)
        return playing.use().result

    with case.monitor() as monitor:
        playing = Playing(case, monitor)
        tools: Any = tools_of(use)
        if own:
            tools = StaticWorkbench([FunctionTool(tool, description="") for tool in tools])
        coherence = watching(monitor=monitor) if watched else None
        assert (
            run(agent_of(client_of(playing.answer, asked), tools, coherence=coherence))[-1].messages[-1].content
            == "Done."
        )
    assert any("to" in given for given in ran) == (not watched)
    assert ("coherence refused this call" in asked[-1][-1][1]) == watched


def test_messages_raise_for_a_budget_that_ends_a_team() -> None:
    from autogen_agentchat.teams import RoundRobinGroupChat

    asked: list[Any] = []
    client = client_of(lambda: CASES["looping"].turns[0], asked)
    for reads in (False, True):
        asked.clear()
        with watching(budget={"calls": 3}) as coherence:
            agent = agent_of(client, tools_of(lambda **_: "ok"), coherence=coherence)
            team = RoundRobinGroupChat([agent], max_turns=2)
            with pytest.raises(CoherenceBlocked if reads else RuntimeError, match="3 of 3 calls"):
                run(team, coherence if reads else None)
        assert len(asked) == 3


@pytest.mark.parametrize("swarm", [False, True])
def test_watched_lets_the_pressure_of_an_agent_reach_the_one_that_reads_it(swarm: bool) -> None:
    from autogen_agentchat.conditions import MaxMessageTermination, TextMentionTermination
    from autogen_agentchat.teams import RoundRobinGroupChat, Swarm

    plans = [Turn("I hand over.", "transfer_to_writer")] if swarm else [Turn("The plan: write it.")]
    with watching() as coherence:
        planner = agent_of(
            client_of(partial(next, iter(plans)), []),
            name="planner",
            coherence=coherence,
            **({"handoffs": ["writer"]} if swarm else {}),
        )
        writes = client_of(partial(next, iter([Turn("Written. END")])), [])
        writer = agent_of(writes, name="writer", coherence=coherence)
        end = TextMentionTermination("END") | MaxMessageTermination(10)
        made = Swarm if swarm else RoundRobinGroupChat
        run(made([planner, writer], termination_condition=end), coherence)
        fleet = coherence.agents.fleet
        assert [(edge.source, edge.target) for edge in fleet.trust.edges()] == [("planner", "writer")]
        seen = [record.event for record in reversed(fleet.agent("writer").events())]
        asked = [each.content for each in seen if isinstance(each, events.Message) and each.role == "user"]
        told = [each.result for each in seen if isinstance(each, events.ToolResult) and each.tool_name == "planner"]
    assert asked[0] == GOAL
    assert any(("Transferred to writer" if swarm else "The plan: write it.") in text for text in told)


def test_watched_of_a_watched_client_is_an_error() -> None:
    with watching() as coherence:
        given = coherence.watched("shop", client_of(lambda: Turn("Done."), []))
        client = given["model_client"]
        assert list(given) == ["model_client"]
        with pytest.raises(ValueError, match="watched already"):
            coherence.watched("other", client)
        assert client.count_tokens([1, 2]) == 2
        assert client.dump_component().config == {"model": MODEL}


def test_watched_leaves_errors_as_they_are() -> None:
    def answers() -> Turn:
        if broken:
            raise OSError("no route")
        broken.append(True)
        return Turn("I look.", "bash", {"command": "ls"})

    def use(**_: Any) -> str:
        raise OSError("disk full")

    broken: list[bool] = []
    with watching() as coherence:
        agent = agent_of(client_of(answers, []), tools_of(use), coherence=coherence)
        with pytest.raises(OSError, match="no route"):
            run(agent, coherence)
        seen = [record.event for record in coherence.agents.monitor.events()]
    (result,) = [each for each in seen if isinstance(each, events.ToolResult)]
    assert "disk full" in result.result
    assert result.error


def test_watched_that_fails_leaves_the_run_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from coherence.integrations.conversation import Conversation

    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("broken")

    for method in ("take", "answered", "came", "called"):
        monkeypatch.setattr(Conversation, method, fails)
    with Monitor(embedder=False) as monitor:
        coherence = watching(monitor=monitor)
        client = client_of(partial(next, iter(CASES["good"].turns)), [])
        agent = agent_of(client, tools_of(lambda **_: "ok"), coherence=coherence)
        assert run(agent)[-1].messages[-1].content == CASES["good"].turns[-1].says
        faults = [str(record.event) for record in monitor.events() if isinstance(record.event, events.Fault)]
    assert all("broken" in fault for fault in faults)
    assert faults


def test_agents_import_no_framework() -> None:
    seen = "import sys, coherence.frameworks.agents; print('autogen_core' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", seen], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_autogen_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "autogen_team.py"), run_name="__main__")
    said = capsys.readouterr().out
    assert "coherence refused this call" in said
    assert "[('planner', 'writer')]" in said


def test_watched_notes_an_answer_that_nobody_waited_for() -> None:
    from autogen_core.models import UserMessage

    async def begins(client: Any) -> str:
        stream = client.create_stream([UserMessage(content=GOAL, source="user")])
        part = await anext(stream)
        await stream.aclose()
        return str(part)

    with watching() as coherence:
        client = coherence.watched("shop", client_of(lambda: Turn("It works."), []))["model_client"]
        assert asyncio.run(begins(client)) == "It "
        seen = [record.event for record in coherence.agents.monitor.events()]
    said = [each.content for each in seen if isinstance(each, events.Message) and each.role == "assistant"]
    assert said == ["It "]
    assert any("abandoned" in str(each) for each in seen)
