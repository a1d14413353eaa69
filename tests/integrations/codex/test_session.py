"""A session of Codex CLI: payloads of hooks and lines of rollouts in, the lives of agents and answers out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from integrations.payloads import altered

from coherence.core.events import Compaction, Fault, Message, ToolCall, ToolResult, Usage
from coherence.fleet.fleet import Fleet
from coherence.integrations.codex.session import CodexSession

RECORDED: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "data" / "codex" / "sessions.jsonl").read_text().splitlines()
]
PAYLOADS = [each["hook"] for each in RECORDED if "hook" in each]
LINES = [each["line"] for each in RECORDED if "line" in each]


class Played:
    """A recorded session, played in a folder of its own."""

    def __init__(self, name: str, folder: Path, fleet: Fleet, rollout: str = "") -> None:
        self.steps = [each for each in RECORDED if each["session"] == name]
        self.folder, self.fleet, self.rollout = folder, fleet, rollout
        self.session = CodexSession(fleet, "s1")
        self.answers: list[tuple[str, dict[str, Any]]] = []

    def place(self, path: str) -> str:
        return str(self.folder / (self.rollout or Path(path).name))

    def write(self, step: dict[str, Any]) -> None:
        with open(self.place(step["rollout"]), "a") as file:
            file.write(json.dumps(step["line"]) + "\n")

    def tell(self, payload: dict[str, Any]) -> None:
        own = {name: self.place(payload[name]) for name in payload if name.endswith("transcript_path")}
        if answer := self.session.handle({**payload, **own}):
            self.answers.append((payload["hook_event_name"], answer))

    def live(self) -> None:
        """Play it in the order in which it was recorded."""
        for step in self.steps:
            self.tell(step["hook"]) if "hook" in step else self.write(step)

    def late(self) -> None:
        """Play it as if no daemon had run until the end: all of the rollouts first, then the spool."""
        for step in self.steps:
            if "line" in step:
                self.write(step)
        for step in self.steps:
            if "hook" in step:
                self.tell(step["hook"])

    def of(self, kind: type, agent: str = CodexSession.HOST) -> list[Any]:
        events = [record.event for record in reversed(self.fleet.agent(agent).events())]  # they come newest first
        return [each for each in events if isinstance(each, kind)]


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    with Fleet(embedder=False) as made:
        yield made


def event(name: str, **fields: Any) -> dict[str, Any]:
    return {"session_id": "s1", "hook_event_name": name, **fields}


def call(command: str, number: int = 1, **fields: Any) -> dict[str, Any]:
    return event("PreToolUse", tool_name="Bash", tool_input={"command": command}, tool_use_id=f"c{number}", **fields)


def ended(command: str, response: str, number: int = 1, **fields: Any) -> dict[str, Any]:
    asked = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": f"c{number}"}
    return event("PostToolUse", **asked, tool_response=response, **fields)


@pytest.mark.parametrize("played", ["live", "late"])
def test_handle_calls_and_what_became_of_them_are_recorded_once(fleet: Fleet, tmp_path: Path, played: str) -> None:
    of = Played("calls", tmp_path, fleet)
    getattr(of, played)()
    results = {each.call_id: each.error for each in of.of(ToolResult)}
    calls = [(each.tool_name, json.loads(bytes(each.arguments)), results.pop(each.call_id)) for each in of.of(ToolCall)]
    assert not results
    in_bash = [(arguments["command"].split("\n")[0], failed) for tool, arguments, failed in calls if tool == "Bash"]
    in_bash[2:4] = sorted(in_bash[2:4])  # two of one step, whose hooks run at the same time
    assert in_bash == [
        ("ls", False),
        ("python3 missing.py", True),  # exit status 2, which only the rollout tells
        ("echo a", False),
        ("sleep 1; echo b", False),
        ("apply_patch <<'EOF'", True),  # of a file that is not there: no hook tells the end
        ("apply_patch <<'EOF'", False),
        ("sleep 2; echo late; exit 4", True),  # its end is told while write_stdin waits for it
    ]
    assert {each.tool_name for each in of.of(ToolResult)} == {"Bash", "nonesuch", "write_stdin"}
    others = [(tool, failed) for tool, _, failed in calls if tool != "Bash"]
    assert others == [("nonesuch", True), ("write_stdin", False)]


@pytest.mark.parametrize("played", ["live", "late"])
def test_handle_words_tokens_and_requests_come_in_their_order(fleet: Fleet, tmp_path: Path, played: str) -> None:
    of = Played("calls", tmp_path, fleet)
    getattr(of, played)()
    said = [(each.role, each.content) for each in of.of(Message) if not each.firing]
    assert said == [
        ("user", "[[script:calls]] Tell me what is in here."),
        ("assistant", "I look."),
        ("assistant", "Done."),
    ]
    tokens = [each["payload"]["usage"]["input_tokens"] for each in LINES if each["type"] == "token_usage_record"]
    assert [each.input_tokens for each in of.of(Usage)] == tokens[:10]  # ten responses make the session
    assert isinstance(of.of(object)[0], Message)


def test_handle_the_deletion_is_denied_and_no_call(fleet: Fleet, tmp_path: Path) -> None:
    of = Played("calls", tmp_path, fleet)
    of.live()
    (denied,) = [answer["hookSpecificOutput"] for name, answer in of.answers if name == "PreToolUse"]
    assert denied["permissionDecision"] == "deny" and "find . -delete" in denied["permissionDecisionReason"]
    assert not [each for each in of.of(ToolCall) if b"-delete" in bytes(each.arguments)]


def test_handle_a_subagent_is_an_agent_of_its_own(fleet: Fleet, tmp_path: Path) -> None:
    of = Played("subagent", tmp_path, fleet)
    of.live()
    assert [each.tool_name for each in of.of(ToolCall)] == ["spawn_agent", "multi_agent_v1wait_agent"]
    (agent,) = [monitor.agent for monitor in fleet if monitor.agent != CodexSession.HOST]
    assert agent.startswith(f"{CodexSession.HOST}/default-")
    assert fleet.agent(agent).state.facts.goal == "[[script:child]] count"
    assert [each.error for each in of.of(ToolResult, agent)] == [True]
    assert [each.content for each in of.of(Message, agent) if each.role == "assistant"] == ["There is none."]


def test_handle_a_turn_that_ends_with_an_error_is_a_fault(fleet: Fleet, tmp_path: Path) -> None:
    of = Played("fault", tmp_path, fleet)
    of.live()
    (fault,) = of.of(Fault)
    assert fault.where == "model" and "no such model" in fault.message


@pytest.mark.parametrize("played", ["live", "late"])
def test_handle_the_goal_is_restated_after_a_compaction(fleet: Fleet, tmp_path: Path, played: str) -> None:
    of = Played("compaction", tmp_path, fleet)
    getattr(of, played)()
    assert [each.summary for each in of.of(Compaction)] == ["Done."]  # what the stub said to it
    said = [each.content for each in of.of(Message) if each.role == "assistant"]
    assert said == ["hm", "SUMMARY of it"]  # the second is the answer at the end, which the stub called so
    (told,) = [answer["hookSpecificOutput"] for name, answer in of.answers if name == "SessionStart"]
    assert "the user asked: [[script:compact]] Tell me what is in here." in told["additionalContext"]


def test_handle_compactions_without_a_rollout_are_recorded_too(fleet: Fleet) -> None:
    session = CodexSession(fleet, "s1")
    session.handle(event("PostCompact", trigger="auto", transcript_path=None))
    (found,) = [each.event for each in fleet.agent("codex").events() if isinstance(each.event, Compaction)]
    assert found.summary == ""


def test_handle_guidance_is_told_once_at_the_end_of_a_step_and_counts_once_it_was_shown(
    fleet: Fleet, tmp_path: Path
) -> None:
    path = tmp_path / "rollout-s1.jsonl"
    path.touch()
    at = {"transcript_path": str(path), "turn_id": "t1"}

    def write(kind: str, **payload: Any) -> None:
        with path.open("a") as file:
            file.write(json.dumps({"type": kind, "payload": payload}) + "\n")

    session = CodexSession(fleet, "s1")
    write("event_msg", type="task_started", turn_id="t1")
    session.handle(event("UserPromptSubmit", prompt="Make the tests pass.", **at))
    told: list[str] = []
    for number in range(0, 20, 2):
        for each in (number, number + 1):
            session.handle(call("pytest -q", each, **at))
        for each in (number, number + 1):
            write("event_msg", type="item_completed", item={"id": f"c{each}", "status": "failed"})
            answer = session.handle(ended("pytest -q", "ERROR: file or directory not found: tests", each, **at))
            if answer:
                assert each == number + 1  # the other call of the step has ended before
                told.append(answer["hookSpecificOutput"]["additionalContext"])
    assert len(told) == len(set(told)) and "file or directory not found" in " ".join(told)

    def shown() -> int:
        return sum(isinstance(each.event, Message) and bool(each.event.firing) for each in session.monitor.events())

    assert shown() == 0
    write("response_item", type="message", role="developer", content=[{"type": "input_text", "text": told[0]}])
    session.handle(event("Stop", last_assistant_message="I give up.", **at))
    assert shown() == 1


def test_handle_what_another_session_has_said_is_not_its_own(fleet: Fleet, tmp_path: Path) -> None:
    path = tmp_path / "rollout-s1.jsonl"
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Of the other."}]}
    lines = [
        {"type": "event_msg", "payload": {"type": "task_started", "turn_id": "t0"}},
        {"type": "response_item", "payload": said},
        {"type": "event_msg", "payload": {"type": "task_started", "turn_id": "t1"}},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    session = CodexSession(fleet, "s1")
    at = {"transcript_path": str(path)}
    session.handle(event("SessionStart", source="resume", **at))
    session.handle(event("UserPromptSubmit", prompt="Go on.", turn_id="t1", **at))
    session.handle(event("Stop", last_assistant_message="I do.", turn_id="t1", **at))
    said_now = [each.event.content for each in session.monitor.events() if isinstance(each.event, Message)]
    assert said_now == ["I do.", "Go on."]


@pytest.mark.parametrize("played", ["live", "late"])
def test_handle_a_session_that_is_resumed_goes_on_where_it_was(tmp_path: Path, played: str) -> None:
    for name in ("calls", "fault"):
        with Fleet(embedder=False, store=tmp_path / "runs.db", resume=True) as fleet:
            of = Played(name, tmp_path, fleet, rollout="one for both.jsonl")
            getattr(of, played)()
            if name == "fault":
                assert fleet.agent("codex").counters.calls == 9  # those of the first; the second has none
                assert [type(each) for each in of.of(object) if isinstance(each, Message | Fault | ToolResult)] == [
                    Message,
                    Fault,
                ]


def test_handle_a_daemon_that_starts_in_the_middle_of_a_turn_records_the_rest_once(tmp_path: Path) -> None:
    steps = [each for each in RECORDED if each["session"] == "calls"]
    third = [at for at, each in enumerate(steps) if "hook" in each][3]  # the first result
    for begin, end in ((0, third + 1), (third + 1, len(steps))):
        with Fleet(embedder=False, store=tmp_path / "runs.db", resume=True) as fleet:
            of = Played("calls", tmp_path, fleet)
            of.steps = steps[begin:end]
            of.live()
            counters = fleet.agent("codex").counters
    assert counters.calls == 9 and counters.errors == 4
    tokens = [each["payload"]["usage"]["input_tokens"] for each in LINES if each["type"] == "token_usage_record"]
    # The second response was written after the last event of one daemon and before the first of the next.
    assert counters.tokens_in == sum(tokens[:10]) - tokens[1]


def test_handle_a_refused_call_without_an_id_hides_no_other_one(fleet: Fleet) -> None:
    session = CodexSession(fleet, "s1")
    for command in ("rm -rf ~", "ls"):
        session.handle(event("PreToolUse", tool_name="Bash", tool_input={"command": command}))
    session.handle(event("PostToolUse", tool_name="Bash", tool_input={"command": "ls"}, tool_response="a.py"))
    assert session.monitor.counters.calls == 1


def test_handle_observes_only_where_it_is_told_to(fleet: Fleet) -> None:
    session = CodexSession(fleet, "s1")
    assert session.handle(call("rm -rf ~"), steers=False) == {}
    assert [each.event.tool_name for each in session.monitor.events() if isinstance(each.event, ToolCall)] == ["Bash"]


@settings(max_examples=30, deadline=None)
@given(altered(PAYLOADS))
def test_handle_fields_of_any_type_raise_nothing(payload: dict[str, Any]) -> None:
    with Fleet(embedder=False) as fleet:
        json.dumps(CodexSession(fleet, "s1").handle(payload))
