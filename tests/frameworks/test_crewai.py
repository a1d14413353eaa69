"""Crews of the real CrewAI, whose models are a server on the loopback device."""

from __future__ import annotations

import asyncio
import copy
import importlib.util
import os
import subprocess
import sys
import threading
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from hosts.messages_stub import Fail, Step, Text, Tool

from coherence import CoherenceBlocked, Monitor
from coherence.core.events import Fault, Message, ToolCall, ToolResult, Usage
from coherence.integrations.openai_wire import ChatWire
from frameworks import agents as cases
from frameworks.agents import CASES, Case, Playing, by_hand
from frameworks.model_stub import PER_CALL, ModelStub

pytestmark = pytest.mark.crewai

if importlib.util.find_spec("crewai") is None:  # before the environment changes, in which other tests run then
    pytest.skip("needs the extra crewai", allow_module_level=True)
os.environ.update(
    CREWAI_DISABLE_TELEMETRY="true",
    CREWAI_DISABLE_TRACKING="true",
    CREWAI_TRACING_ENABLED="false",
    OTEL_SDK_DISABLED="true",
)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of packages that CrewAI imports
    import crewai
    from crewai import BaseLLM
    from crewai.events import AgentExecutionStartedEvent, crewai_event_bus
    from crewai.hooks.dispatch import get_scoped_hooks
    from crewai.tools import tool
    from crewai.tools.tool_failure import ToolExecutionFailedError

    from coherence.frameworks.agents import Agents
    from coherence.frameworks.crewai import CoherenceCrew

MANUAL: dict[str, Any] = {"tick": "manual"}
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "frameworks" / "crewai_crew.py"
WIPE: Step = (Tool("bash", {"command": "rm -rf /"}, "call_wipe"),)
LOOP: list[Step] = [(Tool("bash", {"command": "pytest -q"}, f"call_{at}"),) for at in range(3)]
DONE: Step = (Text("Done."),)


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what CrewAI stores out of the user's home."""
    monkeypatch.setenv("CREWAI_STORAGE_DIR", str(tmp_path / "crewai"))


def model(stub: ModelStub, **options: Any) -> Any:
    return crewai.LLM(model="openai/m", base_url=f"{stub.url}/v1", api_key="k", max_retries=0, **options)


def agent(llm: Any, role: str = "shop", *tools: Any, **options: Any) -> Any:
    options = {"max_retry_limit": 0, **options}
    return crewai.Agent(role=role, goal="Be careful.", backstory="You are one.", llm=llm, tools=list(tools), **options)


def task(of: Any, text: str = cases.GOAL, **options: Any) -> Any:
    return crewai.Task(description=text, expected_output="a word", agent=of, **options)


def crew(*tasks: Any, **options: Any) -> Any:
    made: dict[int, Any] = {id(each.agent): each.agent for each in tasks}
    return crewai.Crew(agents=list(made.values()), tasks=list(tasks), **options)


def shell(ran: list[str], answer: str = "ran it") -> Any:
    @tool("bash")
    def bash(command: str) -> str:
        """Run a command."""
        ran.append(command)
        return answer

    return bash


def broken_shell() -> Any:
    @tool("bash")
    def bash(command: str) -> str:
        """Run a command."""
        raise RuntimeError("ImportError: no module named yaml")

    return bash


def tools_of(playing: Playing) -> list[Any]:
    """Return the tools of the cases; each gives the result of the turn that asked for it."""

    def use() -> str:
        turn = playing.use()
        if turn.error:
            raise RuntimeError(turn.result)
        return turn.result

    @tool("bash")
    def bash(command: str) -> str:
        """Run a command."""
        return use()

    @tool("read_file")
    def read_file(path: str) -> str:
        """Read a file."""
        return use()

    @tool("edit_file")
    def edit_file(path: str, new: str) -> str:
        """Change a file."""
        return use()

    @tool("send_email")
    def send_email(to: str, body: str) -> str:
        """Send an email."""
        return use()

    return [bash, read_file, edit_file, send_email]


def as_crewai_tells(case: Case) -> Case:
    """Return a case as CrewAI lets it be seen.

    The text beside a call is dropped by its clients, an error's text has a beginning of its own, and a call that is
    the same 5 times, with the same result, ends the run.
    """
    turns = []
    for turn in case.turns:
        seen = turn._replace(says="") if turn.tool else turn
        turns.append(seen._replace(result=f"Error executing tool: {turn.result}") if turn.error else seen)
    return case._replace(turns=turns[:5] if case is CASES["looping"] else turns)


class PlayingStub(ModelStub):
    """A server that takes the answers of a case one by one."""

    def __init__(self, playing: Playing) -> None:
        super().__init__([])
        self.steps = _Answers(playing)


class _Answers(list[Step]):
    def __init__(self, playing: Playing) -> None:
        self._playing = playing

    def __bool__(self) -> bool:
        return True

    def pop(self, at: Any = 0) -> Step:
        turn = self._playing.answer()
        return (Text(turn.says), *((Tool(turn.tool, turn.arguments),) if turn.tool else ()))


def told_by(monitor: Monitor, *kinds: type) -> list[Any]:
    monitor.flush()
    return [record.event for record in reversed(monitor.events()) if isinstance(record.event, kinds)]


def of_role(watch: Any, role: str = "shop") -> Monitor:
    found: Monitor = watch.agents.watch(role).monitor
    return found


def without_details(told: Any) -> Any:
    """Return what a monitor was told without durations, which a user by hand has not given."""
    seen, decisions, light = told
    for event in seen:
        event.pop("coherence.duration_s", None)
    return seen, decisions, light


def prompts() -> tuple[str, str]:
    """Return the texts that CrewAI makes of the agent and the task of the cases."""
    with ModelStub([DONE]) as stub:
        crew(task(agent(model(stub), "shop", shell([])))).kickoff()
        system, user = stub.asked[0].body["messages"]
    return system["content"], user["content"]


@pytest.fixture
def _same_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    system, user = prompts()
    monkeypatch.setattr(cases, "SYSTEM", system)
    monkeypatch.setattr(cases, "GOAL", user)


async def _now(made: Any) -> None:
    await made.akickoff()


@pytest.mark.usefixtures("_same_texts")
@pytest.mark.parametrize("way", ["sync", "async", "streamed"])
@pytest.mark.parametrize("name", list(CASES))
def test_coherence_crew_tells_the_monitor_what_a_user_would_tell_it_by_hand(name: str, way: str) -> None:
    case, description = as_crewai_tells(CASES[name]), "Make the test suite of the shop pass."
    ends = {"looping": ToolExecutionFailedError, "over budget": CoherenceBlocked}.get(name)
    with case.monitor() as monitor:
        playing = Playing(CASES[name], monitor)
        with PlayingStub(playing) as stub, CoherenceCrew(monitor=monitor):
            made = crew(task(agent(model(stub, stream=way == "streamed"), "shop", *tools_of(playing)), description))
            try:
                asyncio.run(_now(made)) if way == "async" else made.kickoff()
                ended: type | None = None
            except (ToolExecutionFailedError, CoherenceBlocked) as error:
                ended = ToolExecutionFailedError if isinstance(error, ToolExecutionFailedError) else CoherenceBlocked
        told = playing.end()
    assert without_details(told) == by_hand(case, goes_on=True)
    assert ended is ends


def test_coherence_crew_records_the_calls_of_one_answer_each_with_its_result() -> None:
    both: Step = (Tool("bash", {"command": "ls"}, "call_1"), Tool("bash", {"command": "pwd"}, "call_2"))
    with ModelStub([both, DONE]) as stub, CoherenceCrew(config=MANUAL) as watch:
        ran: list[str] = []
        crew(task(agent(model(stub), "shop", shell(ran)))).kickoff()
        results = told_by(of_role(watch), ToolResult)
    assert sorted(ran) == ["ls", "pwd"]
    assert sorted((each.call_id, each.result) for each in results) == [("call_1", "ran it"), ("call_2", "ran it")]
    assert all(each.duration_s >= 0 for each in results)


def test_coherence_crew_refuses_a_tool_before_its_body_runs_and_tells_the_agent_why() -> None:
    for watched in (False, True):
        ran: list[str] = []
        with ModelStub([WIPE, DONE]) as stub:
            made = crew(task(agent(model(stub), "shop", shell(ran)), "List the files."))
            if watched:
                with CoherenceCrew(config=MANUAL) as watch:
                    made.kickoff()
                    monitor = of_role(watch)
                    assert told_by(monitor, ToolCall, ToolResult) == []
                    said = stub.asked[1].body["messages"][-1]
                assert said["content"].startswith("coherence refused this call: rm -rf / wipes a system")
            else:
                made.kickoff()
        assert ran == ([] if watched else ["rm -rf /"])


def test_coherence_crew_with_guide_tells_the_agent_on_a_copy_of_its_messages() -> None:
    with ModelStub([*LOOP, DONE]) as stub, CoherenceCrew(config=MANUAL, guide=True) as watch:
        watched = agent(model(stub), "shop", broken_shell())
        crew(task(watched)).kickoff()
        bodies = [asked.body["messages"] for asked in stub.asked]
        fired = [each for each in told_by(of_role(watch), Message) if each.firing]
    hinted = [body[-1]["content"] for body in bodies if body[-1]["role"] == "user"]
    # The first request ends with the task; the second follows one error, which needs no hint yet.
    assert [body[-1]["role"] for body in bodies] == ["user", "tool", "user", "user"]
    assert hinted[1].startswith("bash returned the same error 2 times")
    assert hinted[1] not in [each["content"] for each in bodies[3]]
    assert len(fired) >= 1


def test_coherence_crew_tells_the_agent_again_what_was_lost_with_a_request() -> None:
    lost: Step = (Fail(400, "invalid_request_error", "try again"),)
    with ModelStub([LOOP[0], LOOP[1], lost, DONE]) as stub, CoherenceCrew(config=MANUAL, guide=True) as watch:
        shop = agent(model(stub), "shop", broken_shell())
        with pytest.raises(Exception, match="try again"):
            crew(task(shop)).kickoff()
        assert [each.firing for each in told_by(of_role(watch), Message) if each.firing] == []
        crew(task(shop)).kickoff()
        first, second = (asked.body["messages"][-1]["content"] for asked in stub.asked[2:])
    assert first == second
    assert first.startswith("bash returned the same error 2 times")


def _bodies(watch: Any) -> list[Any]:
    with ModelStub([*LOOP, DONE]) as stub:
        made = crew(task(agent(model(stub), "shop", broken_shell())))
        if watch is None:
            made.kickoff()
        else:
            with watch:
                made.kickoff()
        return [asked.body for asked in stub.asked]


def test_coherence_crew_without_guide_changes_no_request() -> None:
    assert _bodies(CoherenceCrew(config=MANUAL)) == _bodies(None)


def test_coherence_crew_stops_at_a_budget_at_once_and_the_caller_is_told() -> None:
    spent = PER_CALL["input"] + PER_CALL["output"]
    steps: list[Step] = [(Tool("bash", {"command": f"ls {at}"}, f"call_{at}"),) for at in range(9)]
    with ModelStub(steps) as stub, CoherenceCrew(config=MANUAL, budget={"tokens": 2 * spent - 1}):
        made = crew(task(agent(model(stub), "shop", shell([]), max_retry_limit=2)))
        begun: list[Any] = []

        def count(source: Any, event: Any) -> None:
            begun.append(event)

        with crewai_event_bus.scoped_handlers():
            crewai_event_bus.on(AgentExecutionStartedEvent)(count)
            with pytest.raises(CoherenceBlocked, match="The request was not sent"):
                made.kickoff()
            crewai_event_bus.flush()
        assert len(stub.asked) == 2  # the second answer uses the budget up, and CrewAI asks no third time
        assert len(begun) == 1  # of the three times that max_retry_limit allows


def test_coherence_crew_joins_the_agents_of_tasks_that_build_on_each_other() -> None:
    with ModelStub([(Text("Facts."),), (Text("Prices."),), (Text("Report."),)]) as stub:
        llm = model(stub)
        first, second = task(agent(llm, "researcher")), task(agent(llm, "buyer"), context=[])
        third = task(agent(llm, "writer"), context=[first])
        with CoherenceCrew(config=MANUAL) as watch:
            crew(first, second, third).kickoff()
            edges = [(edge.source, edge.target) for edge in watch.agents.fleet.trust.edges()]
            said = {role: told_by(of_role(watch, role), Message)[-1].content for role in ("researcher", "writer")}
    assert edges == [("researcher", "writer")]
    assert said == {"researcher": "Facts.", "writer": "Report."}


def test_coherence_crew_joins_an_agent_and_the_coworker_that_it_delegates_to() -> None:
    name = "ask_question_to_coworker"
    delegate: Step = (Tool(name, {"question": "Price?", "context": "Tea.", "coworker": "buyer"}, "call_1"),)
    with ModelStub([delegate, (Text("5 francs."),), (Text("It costs 5 francs."),)]) as stub:
        llm = model(stub)
        lead, buyer = agent(llm, "lead", allow_delegation=True), agent(llm, "buyer")
        made = crewai.Crew(agents=[lead, buyer], tasks=[task(lead)])
        with CoherenceCrew(config=MANUAL) as watch:
            assert made.kickoff().raw == "It costs 5 francs."
            edges = {(edge.source, edge.target) for edge in watch.agents.fleet.trust.edges()}
            (result,) = told_by(of_role(watch, "lead"), ToolResult)
    assert edges == {("buyer", "lead")}
    assert result.result == "5 francs."


def test_coherence_crew_watches_an_agent_without_a_crew_and_one_that_has_run_before() -> None:
    with ModelStub([(Text("before"),), (Text("inside"),), (Text("alone"),)]) as stub:
        made = crew(task(agent(model(stub), "shop")))
        made.kickoff()
        with CoherenceCrew(config=MANUAL) as watch:
            made.kickoff()
            agent(model(stub), "loner").kickoff("Hello.")
            said = [told_by(of_role(watch, role), Message)[-1].content for role in ("shop", "loner")]
    assert said == ["inside", "alone"]


def test_coherence_crew_records_each_copy_of_a_crew_once_and_leaves_its_counts_as_they_are() -> None:
    counts = []
    for watch in (None, CoherenceCrew(config=MANUAL)):
        with ModelStub([(Text("one"),), (Text("two"),), (Text("three"),)]) as stub, watch or nullcontext():
            made = crew(task(agent(model(stub), "shop"), "Say {what}."))
            runs = [made.kickoff({"what": "one"}), *made.kickoff_for_each([{"what": "two"}, {"what": "three"}])]
            counts.append([each.token_usage.model_dump() for each in runs])
            if watch is not None:
                monitor = of_role(watch)
                said = [each.content for each in told_by(monitor, Message) if each.role == "assistant"]
                spent = [each.input_tokens for each in told_by(monitor, Usage)]
    assert counts[0] == counts[1]
    assert said == ["one", "two", "three"]
    assert spent == [PER_CALL["input"]] * 3


def test_coherence_crew_lets_a_copy_of_a_model_ask_for_itself() -> None:
    with ModelStub([DONE, DONE, DONE]) as stub, CoherenceCrew(config=MANUAL) as watch:
        llm = model(stub)
        crew(task(agent(llm))).kickoff()
        other = copy.copy(llm)
        other.model = "other"
        for _ in range(2):
            crew(task(agent(other))).kickoff()
        assert [asked.body["model"] for asked in stub.asked] == ["m", "other", "other"]
        assert [each.model for each in told_by(of_role(watch), Usage)] == ["m", "other", "other"]


def test_coherence_crew_watches_a_request_that_is_awaited() -> None:
    question = [{"role": "user", "content": "And now?"}]
    with ModelStub([DONE, (Text("Now."),)]) as stub:
        llm = model(stub)
        shop = agent(llm)
        with CoherenceCrew(config=MANUAL) as watch:
            crew(task(shop)).kickoff()
            assert asyncio.run(llm.acall(messages=question, from_agent=shop)) == "Now."
            said = told_by(of_role(watch), Message, Usage)[-3:]
    assert [getattr(each, "content", None) for each in said] == ["And now?", "Now.", None]
    assert said[2].input_tokens == PER_CALL["input"]
    assert said[2].duration_s > 0


class TextModel(BaseLLM):
    """A model of a user's that calls tools by its text and reports no tokens."""

    answers: list[str]
    asked: list[Any]

    def call(self, messages: Any, *args: Any, **named: Any) -> str:
        self.asked.append(list(messages))
        return self.answers[len(self.asked) - 1]


def test_coherence_crew_watches_tools_that_a_model_calls_by_its_text() -> None:
    calls = [f'Thought: I go on.\nAction: bash\nAction Input: {{"command": "{each}"}}' for each in ("ls", "rm -rf /")]
    llm = TextModel(model="text", asked=[], answers=[*calls, "Thought: I know.\nFinal Answer: Done."])
    ran: list[str] = []
    with CoherenceCrew(config=MANUAL) as watch:
        assert crew(task(agent(llm, "shop", shell(ran)))).kickoff().raw == "Done."
        monitor = of_role(watch)
        said = [each.content for each in told_by(monitor, Message) if each.role == "assistant"]
        assert [each.result for each in told_by(monitor, ToolResult)] == ["ran it"]
        assert [each.tool_name for each in told_by(monitor, ToolCall)] == ["bash"]
        assert told_by(monitor, Usage, Fault) == []
    assert ran == ["ls"]
    assert said == llm.answers
    assert "coherence refused this call" in llm.asked[2][-2]["content"]


def test_coherence_crew_leaves_nothing_behind_and_another_thread_alone() -> None:
    with ModelStub([DONE] * 3) as stub:
        llm = model(stub)
        made = crew(task(agent(llm, "shop")))
        with CoherenceCrew(config=MANUAL) as watch:
            made.kickoff()
            assert "call" in vars(llm)
            other = threading.Thread(target=crew(task(agent(llm, "other"))).kickoff)
            other.start()
            other.join()
            assert [monitor.agent for monitor in watch.agents.fleet] == ["shop"]
            counted = len(told_by(of_role(watch), Message))
        assert "call" not in vars(llm) and "acall" not in vars(llm)
        assert all(get_scoped_hooks(point) == [] for point in crewai.hooks.InterceptionPoint)
        made.kickoff()
        assert len(told_by(of_role(watch), Message)) == counted == 3
        assert len(stub.asked) == 3


def test_coherence_crew_in_a_block_of_its_own_watches_in_place_of_the_outer_one() -> None:
    with ModelStub([(Text("in"),), (Text("out"),)]) as stub:
        made = crew(task(agent(model(stub), "shop")))
        with CoherenceCrew(config=MANUAL) as outer:
            with CoherenceCrew(config=MANUAL) as inner:
                made.kickoff()
                assert told_by(of_role(inner), Message)[-1].content == "in"
            made.kickoff()
            said = [each.content for each in told_by(of_role(outer), Message) if each.role == "assistant"]
    assert said == ["out"]


def test_coherence_crew_records_that_the_model_failed_and_hands_the_error_on() -> None:
    with ModelStub([(Fail(400, "invalid_request_error", "no such model"),)]) as stub:
        made = crew(task(agent(model(stub), "shop")))
        with CoherenceCrew(config=MANUAL) as watch:
            with pytest.raises(Exception, match="no such model"):
                made.kickoff()
            (fault,) = told_by(of_role(watch), Fault)
    assert fault.where == "model"
    assert "no such model" in fault.message


def test_coherence_crew_goes_on_if_it_fails_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a fault of ours")

    for name in ("items", "answer"):
        monkeypatch.setattr(ChatWire, name, broken)
    monkeypatch.setattr(Agents, "began", broken)
    with ModelStub([LOOP[0], DONE]) as stub, CoherenceCrew(config=MANUAL) as watch:
        assert crew(task(agent(model(stub), "shop", shell([])))).kickoff().raw == "Done."
        assert {each.where for each in told_by(of_role(watch), Fault)} == {"wrap", "model"}


def test_coherence_crew_refuses_arguments_that_exclude_each_other() -> None:
    with Agents() as made:
        with pytest.raises(ValueError, match="goal are those of the agents"):
            CoherenceCrew(agents=made, goal="x")
        with CoherenceCrew(agents=made) as watch:
            assert watch.agents is made
            with pytest.raises(RuntimeError, match="entered already"):
                watch.__enter__()


def test_example_runs_as_it_is_shipped() -> None:
    ran = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    assert "refused: coherence refused this call: rm -rf / wipes a system" in ran.stdout
    assert "researcher > writer" in ran.stdout


def test_agents_import_no_crewai() -> None:
    code = "import sys, coherence, coherence.frameworks.agents; print('crewai' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
