"""Real agents of smolagents with a fake model: record, guidance, refusals, budgets, managed agents."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from coherence import CoherenceBlocked, Monitor
from coherence.core import events
from frameworks.agents import CASES, GOAL, MODEL, SYSTEM, Case, Playing, Turn, by_hand
from frameworks.model_stub import PER_CALL

pytestmark = pytest.mark.frameworks

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "frameworks"

USAGE = SimpleNamespace(prompt_tokens_details=SimpleNamespace(cached_tokens=PER_CALL["cached"]))
SPENT = {"input_tokens": PER_CALL["input"], "output_tokens": PER_CALL["output"]}


def model_of(answer: Callable[[], Turn], asked: list[Any]) -> Any:
    """Return a model whose answers are turns; it keeps what it was asked as texts."""
    from smolagents import Model, models
    from smolagents.monitoring import TokenUsage

    class Fake(Model):
        def __init__(self) -> None:
            super().__init__(model_id=MODEL)

        def generate(self, messages: Any, **_: Any) -> Any:
            asked.append([(str(each.role), str(each.content)) for each in messages if not isinstance(each, dict)])
            turn = answer()
            tool, given = (turn.tool, dict(turn.arguments)) if turn.tool else ("final_answer", {"answer": turn.says})
            function = models.ChatMessageToolCallFunction(name=tool, arguments=json.dumps(given))
            call = models.ChatMessageToolCall(function=function, id=f"c{len(asked)}", type="function")
            return models.ChatMessage(
                role=models.MessageRole.ASSISTANT,
                content=turn.says if turn.tool else None,
                tool_calls=[call],
                raw=SimpleNamespace(model=MODEL, usage=USAGE),
                token_usage=TokenUsage(**SPENT),
            )

        def generate_stream(self, messages: Any, **_: Any) -> Iterator[Any]:
            whole = self.generate(messages)
            yield models.ChatMessageStreamDelta(content=whole.content)
            for at, call in enumerate(whole.tool_calls):
                yield models.ChatMessageStreamDelta(
                    tool_calls=[
                        models.ChatMessageToolCallStreamDelta(
                            index=at, id=call.id, type="function", function=call.function
                        )
                    ]
                )
            yield models.ChatMessageStreamDelta(token_usage=whole.token_usage)

    return Fake()


def code_model(answers: Sequence[str]) -> Any:
    """Return a model that answers with texts, which hold code."""
    from smolagents import ChatMessage, MessageRole, Model

    left = iter(answers)

    class Fake(Model):
        def generate(self, messages: Any, **_: Any) -> Any:
            return ChatMessage(role=MessageRole.ASSISTANT, content=next(left))

    return Fake(model_id=MODEL)


def tool_of(tool_name: str, arguments: Sequence[str], use: Callable[..., str]) -> Any:
    from smolagents import Tool

    class Made(Tool):
        name = tool_name
        description = "A tool of the shop."
        inputs = {each: {"type": "string", "description": each} for each in arguments}  # noqa: RUF012
        output_type = "string"
        skip_forward_signature_validation = True

        def forward(self, **given: Any) -> str:
            return use(**given)

    return Made()


def agent_of(model: Any, use: Callable[..., str], **options: Any) -> Any:
    from smolagents import LogLevel, ToolCallingAgent

    given = {
        "read_file": ["path"],
        "edit_file": ["path", "new"],
        "bash": ["command"],
        "send_email": ["to", "body"],
    }
    tools = [tool_of(name, arguments, use) for name, arguments in given.items()]
    agent = ToolCallingAgent(tools=tools, model=model, verbosity_level=LogLevel.OFF, **options)
    agent.prompt_templates["system_prompt"] = SYSTEM
    return agent


def instrumentor(**options: Any) -> Any:
    from coherence.frameworks.smolagents import CoherenceInstrumentor

    return CoherenceInstrumentor(**options)


def without(told: Any, *fields: str) -> Any:
    """Return what was told, but for fields of the events."""
    seen, decisions, light = told
    return [{key: value for key, value in event.items() if key not in fields} for event in seen], decisions, light


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_instrument_records_what_a_monitor_is_told_by_hand(name: str, streamed: bool) -> None:
    case = CASES[name]
    with case.monitor() as monitor:
        playing = Playing(case, monitor)
        agent = agent_of(model_of(playing.answer, []), lambda **_: playing.use().result, stream_outputs=streamed)
        instrumentor(monitor=monitor).instrument(agent)
        if name == "over budget":
            with pytest.raises(CoherenceBlocked, match="tokens"):
                agent.run(GOAL)
        else:
            assert agent.run(GOAL) == case.turns[-1].says
        told = playing.end()
    # Deltas of a stream have no cached tokens; how long a call took is chance.
    left_out = ["coherence.duration_s", *(["gen_ai.usage.cache_read.input_tokens"] if streamed else [])]
    assert without(told, *left_out) == without(by_hand(case, goes_on=True), *left_out)
    if not streamed:
        durations = [event["coherence.duration_s"] for event in told[0] if event["kind"] == "tool_result"]  # type: ignore[index]
        assert durations
        assert all(0 <= duration < 60 for duration in durations)


def looping() -> Case:
    return CASES["looping"]


@pytest.mark.parametrize("guide", [None, False, True])
def test_guide_alone_changes_a_request_and_only_a_copy(guide: bool | None) -> None:
    case = looping()
    asked: list[Any] = []
    alone: list[Any] = []
    for requests, watched in ((alone, False), (asked, guide is not None)):
        agent = agent_of(model_of(partial(next, iter(case.turns)), requests), lambda **_: case.turns[0].result)
        if watched:
            with instrumentor(guide=guide) as coherence:
                coherence.instrument(agent).run(GOAL)
        else:
            agent.run(GOAL)
        assert "returned the same error" not in str(agent.memory.get_full_steps())
    hints = [request for request in asked if "bash returned the same error" in request[-1][1]]
    assert bool(hints) == (guide is True)
    assert (asked == alone) == (guide is not True)


@pytest.mark.parametrize("watched", [False, True])
def test_instrument_refuses_a_call_whose_tool_does_not_run(watched: bool) -> None:
    case = CASES["injected"]
    asked: list[Any] = []
    ran: list[Any] = []

    def use(**given: Any) -> str:
        ran.append(given)
        return playing.use().result

    with case.monitor() as monitor:
        playing = Playing(case, monitor)
        agent = agent_of(model_of(playing.answer, asked), use)
        if watched:
            instrumentor(monitor=monitor).instrument(agent)
        assert agent.run(GOAL) == "Done."
    assert any("to" in given for given in ran) == (not watched)
    assert ("coherence refused this call" in asked[-1][-1][1]) == watched


@pytest.mark.parametrize("watched", [False, True])
def test_instrument_refuses_code_that_destroys(tmp_path: Path, watched: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from smolagents import CodeAgent, LogLevel

    monkeypatch.chdir(tmp_path)
    (tmp_path / "src").mkdir()
    wipes = "Thought: I tidy up.\n<code>\nimport subprocess\nsubprocess.run('rm -rf src', shell=True)\n</code>"
    counts = "Thought: I count.\n<code>\nprint(6 * 7)\n</code>"
    ends = "Thought: Done.\n<code>\nfinal_answer('42')\n</code>"
    agent = CodeAgent(
        tools=[],
        model=code_model([counts, wipes, ends]),
        additional_authorized_imports=["subprocess"],
        verbosity_level=LogLevel.OFF,
    )
    with instrumentor(goal="Count.") as coherence:
        if watched:
            coherence.instrument(agent)
        assert agent.run("Count.") == "42"
        seen = [record.event for record in reversed(coherence.agents.monitor.events())]
    assert (tmp_path / "src").exists() == watched
    if watched:
        said = [each.content for each in seen if isinstance(each, events.Message) and each.role == "assistant"]
        assert said == [counts, wipes, ends]
        results = [each.result for each in seen if isinstance(each, events.ToolResult)]
        assert results == ["42", "42"]  # what the code printed, and the answer
        assert "coherence refused this call" in str(agent.memory.steps[2].observations)


def test_instrument_watches_managed_agents_whose_pressure_reaches_their_manager() -> None:
    counts = iter([Turn("I count.", "bash", {"command": "ls | wc -l"}), Turn("There are 7.")])
    worker = agent_of(
        model_of(lambda: next(counts), []),
        lambda **_: "7",
        name="counter",
        description="It counts.",
    )
    asks = iter([Turn("I ask the counter.", "counter", {"task": "Count the files."}), Turn("It is 7.")])
    boss = agent_of(
        model_of(lambda: next(asks), []),
        lambda **_: "",
        managed_agents=[worker],
    )
    with instrumentor(agent="boss") as coherence:
        assert coherence.instrument(boss).run(GOAL) == "It is 7."
        fleet = coherence.agents.fleet
        assert {monitor.agent for monitor in fleet} == {"boss", "counter"}
        assert [(edge.source, edge.target) for edge in fleet.trust.edges()] == [("counter", "boss")]
        seen = [record.event for record in fleet.agent("boss").events()]
        (result,) = [each.result for each in seen if isinstance(each, events.ToolResult)]
        assert "There are 7." in result
        assert fleet.agent("counter").counters.calls == 1


def test_instrument_stops_a_streamed_run_at_a_budget() -> None:
    case = looping()
    turns = iter(case.turns)
    asked: list[Any] = []
    agent = agent_of(model_of(lambda: next(turns), asked), lambda **_: "ok")
    with instrumentor(budget={"calls": 3}) as coherence, pytest.raises(CoherenceBlocked, match="3 of 3 calls"):
        list(coherence.instrument(agent).run(GOAL, stream=True))
    assert len(asked) == 3


def test_instrument_of_a_watched_agent_is_an_error() -> None:
    agent = agent_of(model_of(lambda: Turn("Done."), []), lambda **_: "")
    with instrumentor() as coherence:
        coherence.instrument(agent)
        with pytest.raises(ValueError, match="watched already"):
            coherence.instrument(agent)


def test_instrument_leaves_errors_of_tools_and_models_as_they_are() -> None:
    from smolagents import AgentGenerationError

    def fails() -> Turn:
        if broken:
            raise OSError("no route")
        broken.append(True)
        return Turn("I look.", "bash", {"command": "ls"})

    def use(**_: Any) -> str:
        raise OSError("disk full")

    broken: list[bool] = []
    agent = agent_of(model_of(fails, []), use)
    with instrumentor() as coherence:
        with pytest.raises(AgentGenerationError, match="no route"):
            coherence.instrument(agent).run(GOAL)
        seen = [record.event for record in coherence.agents.monitor.events()]
    (result,) = [each for each in seen if isinstance(each, events.ToolResult)]
    assert "disk full" in result.result
    assert result.error


def test_instrument_that_fails_leaves_the_run_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from coherence.integrations.conversation import Conversation

    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("broken")

    for method in ("take", "answered", "came", "called"):
        monkeypatch.setattr(Conversation, method, fails)
    turns = iter(CASES["good"].turns)
    agent = agent_of(model_of(lambda: next(turns), []), lambda **_: "ok")
    with Monitor(embedder=False) as monitor:
        assert instrumentor(monitor=monitor).instrument(agent).run(GOAL) == CASES["good"].turns[-1].says
        faults = [str(record.event) for record in monitor.events() if isinstance(record.event, events.Fault)]
    assert all("broken" in fault for fault in faults)
    assert faults


def test_agents_import_no_framework() -> None:
    seen = "import sys, coherence.frameworks.agents; print('smolagents' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", seen], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_smolagents_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "smolagents_agent.py"), run_name="__main__")
    said = capsys.readouterr().out
    assert "coherence refused this call" in said
    assert "answer: 42" in said


def test_instrument_notes_an_answer_that_nobody_waited_for() -> None:
    turns = iter(CASES["good"].turns)
    agent = agent_of(model_of(lambda: next(turns), []), lambda **_: "ok", stream_outputs=True)
    with instrumentor() as coherence:
        deltas = coherence.instrument(agent).model.generate_stream([{"role": "user", "content": GOAL}])
        assert next(deltas).content == CASES["good"].turns[0].says
        deltas.close()
        seen = [record.event for record in coherence.agents.monitor.events()]
    said = [each.content for each in seen if isinstance(each, events.Message) and each.role == "assistant"]
    assert said == [CASES["good"].turns[0].says]
    assert any("abandoned" in str(each) for each in seen)
    assert not any(isinstance(each, events.ToolCall) for each in seen)
