"""A session of Claude Code: payloads of hooks in, the lives of agents and answers out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest
from hypothesis import given, settings
from integrations.payloads import altered

from coherence.core.decisions import Decision
from coherence.core.events import NOTE, Compaction, Fault, Feedback, Message, Ticked, ToolCall, ToolResult, Usage
from coherence.fleet.fleet import Fleet
from coherence.integrations.claude_code.agent import MAX_TICKS
from coherence.integrations.claude_code.happenings import note_of
from coherence.integrations.claude_code.results import result_of
from coherence.integrations.claude_code.session import ClaudeCodeSession
from coherence.integrations.host_session import MAX_CONTEXT, MAX_NOTE, MAX_NOTES
from coherence.monitor.monitor import Monitor

PAYLOADS: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "data" / "claude_code" / "hook_payloads.jsonl").read_text().splitlines()
]


def event(name: str, **fields: Any) -> dict[str, Any]:
    return {"session_id": "s1", "hook_event_name": name, **fields}


def call(command: str, number: int = 1, **fields: Any) -> dict[str, Any]:
    return event("PreToolUse", tool_name="Bash", tool_input={"command": command}, tool_use_id=f"t{number}", **fields)


def failure(command: str, error: str, number: int = 1, **fields: Any) -> dict[str, Any]:
    asked = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": f"t{number}"}
    return event("PostToolUseFailure", **asked, error=error, duration_ms=126, **fields)


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    with Fleet(embedder=False) as made:
        yield made


def kinds(fleet: Fleet, agent: str = ClaudeCodeSession.HOST) -> list[Any]:
    return [record.event for record in reversed(fleet.agent(agent).events())]  # they come newest first


def result(command: str, text: str, number: int = 1, **fields: Any) -> dict[str, Any]:
    asked = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": f"t{number}"}
    return event("PostToolUse", **asked, tool_response={"stdout": text, "stderr": ""}, **fields)


def test_handle_waits_for_a_measurement_only_where_there_is_trouble(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = ClaudeCodeSession(fleet, "s1")
    waited: list[int] = []
    decide = session.monitor.decide

    def note() -> Decision:
        waited.append(number)
        return decide()

    monkeypatch.setattr(session.monitor, "decide", note)
    session.handle(event("UserPromptSubmit", prompt="Count the files."))
    for number, (command, failed) in enumerate([("ls a", False), ("ls b", False), ("ls c", True), ("ls a", False)]):
        session.handle(call(command, number))
        session.handle(failure(command, "no", number) if failed else result(command, "3 files", number))
        session.handle(event("PostToolBatch", tool_calls=[]))
    assert waited == [2, 3]  # one has failed, and one repeats the first


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ("3 files", [("3 files", False)]),
        ([{"type": "text", "text": "3 files"}], [("3 files", False)]),
        ("Permission to use Bash with command ls has been denied.", [(ANY, True)]),
        ("The user doesn't want to take this action right now.", []),  # the transcript tells whether it had begun
        (None, []),
    ],
)
def test_handle_takes_results_from_the_end_of_the_step(
    fleet: Fleet, tmp_path: Path, shown: Any, expected: list[Any]
) -> None:
    at = {"transcript_path": str(tmp_path / "s1.jsonl")}  # it has nothing of the step yet
    session = ClaudeCodeSession(fleet, "s1")
    session.handle(event("UserPromptSubmit", prompt="Count the files.", **at))
    session.handle(call("ls", 1, **at))
    session.handle(call("ls missing", 2, **at))
    session.handle(failure("ls missing", "Exit code 2", 2, **at))
    asked = ({**result("ls", "", 1), "tool_response": shown}, {**failure("ls missing", "", 2), "tool_response": "no"})
    session.handle(event("PostToolBatch", tool_calls=list(asked), **at))
    found = {each.call_id: (each.result, each.error) for each in kinds(fleet) if isinstance(each, ToolResult)}
    assert found.pop("t2") == ("no", True)
    assert list(found.values()) == expected


def test_handle_tells_before_the_next_call_what_was_measured_meanwhile(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = ClaudeCodeSession(fleet, "s1")
    session.handle(call("ls a", 1))
    session.handle(result("ls a", "3 files", 1))
    assert session.handle(event("PostToolBatch", tool_calls=[])) == {}
    warns = Decision(seq=9, kind="warn", message="Little is left.")
    monkeypatch.setattr(Monitor, "known_decision", warns)
    monkeypatch.setattr(session.monitor, "decide", lambda: warns)
    told = session.handle(call("ls b", 2))["hookSpecificOutput"]
    assert "Little is left." in told["additionalContext"]
    assert "permissionDecision" not in told
    assert session.handle(call("ls c", 3)) == {}  # told once


def test_handle_every_recorded_payload_is_taken_in(fleet: Fleet) -> None:
    session = ClaudeCodeSession(fleet, "s1")
    for payload in PAYLOADS:
        json.dumps(session.handle(payload))
    faults = [each for each in kinds(fleet) if isinstance(each, Fault)]
    assert [fault.where for fault in faults] == ["model"]  # the scripted failure of the model
    # Of some calls only the end was recorded, or the end of their step.
    told = {each["tool_use_id"] for each in PAYLOADS if "tool_use_id" in each and "agent_id" not in each}
    assert {each.call_id for each in kinds(fleet) if isinstance(each, ToolCall)} == told
    assert [monitor.agent for monitor in fleet][1] == f"{ClaudeCodeSession.HOST}/general-purpose-a3d63806348a"


@settings(max_examples=30, deadline=None)
@given(altered(PAYLOADS))
def test_handle_fields_of_any_type_raise_nothing(payload: dict[str, Any]) -> None:
    with Fleet(embedder=False) as fleet:
        json.dumps(ClaudeCodeSession(fleet, "s1").handle(payload))


def test_handle_a_harmful_call_nobody_asked_for_is_denied_and_again_on_retry(fleet: Fleet) -> None:
    session = ClaudeCodeSession(fleet, "s1")
    session.handle(event("UserPromptSubmit", prompt="Tell me what is in this folder."))
    for number in (1, 2):
        answer = session.handle(call("rm -rf ~", number))["hookSpecificOutput"]
        assert answer["permissionDecision"] == "deny"
        assert "rm -rf ~" in answer["permissionDecisionReason"]
        assert len(answer["permissionDecisionReason"]) <= MAX_CONTEXT + 1
    assert not [each for each in kinds(fleet) if isinstance(each, ToolCall)]  # none of them ran


def test_handle_observes_only_where_it_is_told_to(fleet: Fleet) -> None:
    session = ClaudeCodeSession(fleet, "s1")
    assert session.handle(call("rm -rf ~"), steers=False) == {}
    for number in range(2, 12):
        session.handle(call("pytest -q", number), steers=False)
        session.handle(failure("pytest -q", "Exit code 2\nno such file", number), steers=False)
        assert session.handle(event("PostToolBatch", tool_calls=[]), steers=False) == {}
    assert fleet.agent(ClaudeCodeSession.HOST).counters.errors == 10


def test_handle_a_loop_is_told_to_the_agent_in_facts_and_not_twice(fleet: Fleet) -> None:
    session = ClaudeCodeSession(fleet, "s1")
    session.handle(event("UserPromptSubmit", prompt="Make the tests pass."))
    told = []
    for number in range(12):
        session.handle(call("pytest -q", number))
        session.handle(failure("pytest -q", "Exit code 2\nERROR: file or directory not found: tests", number))
        answer = session.handle(event("PostToolBatch", tool_calls=[]))
        if answer:
            told.append(answer["hookSpecificOutput"]["additionalContext"])
    assert told
    assert all(one != other for one, other in pairwise(told))
    assert "file or directory not found" in " ".join(told)
    given_out = {each.firing for each in kinds(fleet) if isinstance(each, Message) and each.firing}
    assert len(given_out) <= len(told)


def test_handle_an_event_that_is_not_known_is_kept_in_a_small_form_and_changes_no_reading(fleet: Fleet) -> None:
    session = ClaudeCodeSession(fleet, "s1")
    session.handle(event("UserPromptSubmit", prompt="List the files."))
    before = fleet.agent(ClaudeCodeSession.HOST).decide()
    for number in range(MAX_NOTES + 50):
        answer = session.handle(event("Elicitation", server="s", number=number, text="x" * 10_000, cwd="/src"))
        assert answer == {}
    notes = [each.text for each in kinds(fleet) if isinstance(each, Feedback) and each.about == NOTE]
    assert len(notes) == MAX_NOTES
    assert notes[0].startswith("Elicitation: server: s, number: 0, text: xxx")
    assert all(len(note) <= MAX_NOTE + 1 for note in notes)  # and a mark that something is left out
    after = fleet.agent(ClaudeCodeSession.HOST).decide()
    assert (after.kind, [each.rule for each in after.findings]) == (
        before.kind,
        [each.rule for each in before.findings],
    )
    assert fleet.agent(ClaudeCodeSession.HOST).counters.calls == 0


def test_handle_fields_that_are_not_known_are_kept_once(fleet: Fleet) -> None:
    session = ClaudeCodeSession(fleet, "s1")
    for payload in PAYLOADS:
        session.handle(payload)
    known = {note_of(payload) for payload in PAYLOADS}
    told = [each.text for each in kinds(fleet) if isinstance(each, Feedback) and each.text not in known]
    assert {each.partition(":")[0] for each in told} == {
        payload["hook_event_name"] for payload in PAYLOADS if payload["hook_event_name"] not in session.handlers
    }
    for number in range(3):
        session.handle(call("ls", number, sandbox={"net": False, "files": []}, depth=number))
    (new,) = [each.text for each in kinds(fleet) if isinstance(each, Feedback) and each.text not in {*known, *told}]
    assert new == "PreToolUse with new fields: depth: 0, sandbox: dict of 2"


def test_handle_a_call_that_ran_in_spite_of_a_refusal_is_recorded(fleet: Fleet, tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    at = {"transcript_path": str(path)}
    session = ClaudeCodeSession(fleet, "s1")
    session.handle(event("UserPromptSubmit", prompt="Tell me what is in this folder.", **at))
    refused = "PreToolUse:Bash hook error: coherence refused this call: it deletes"
    for number, shown in ((1, refused), (2, "deleted")):  # nobody waited for the second answer
        asked = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": "rm -rf ~"}}
        write(path, assistant(f"m{number}", asked))
        assert session.handle(call("rm -rf ~", number, **at))["hookSpecificOutput"]["permissionDecision"] == "deny"
        write(path, result_line(f"t{number}", shown))
    session.handle(event("Stop", last_assistant_message="Done.", **at))
    assert [each.call_id for each in kinds(fleet) if isinstance(each, ToolCall)] == ["t2"]
    assert [each.result for each in kinds(fleet) if isinstance(each, ToolResult)] == ["deleted"]


def test_handle_what_a_client_refused_before_any_hook_is_no_gap(fleet: Fleet, tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    at = {"transcript_path": str(path)}
    session = ClaudeCodeSession(fleet, "s1")
    session.handle(event("UserPromptSubmit", prompt="List the files.", **at))
    for number, shown in ((1, "<tool_use_error>InputValidationError</tool_use_error>"), (2, "a.py")):
        write(path, assistant(f"m{number}", {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {}}))
        write(path, result_line(f"t{number}", shown))
        session.handle(event("Stop", last_assistant_message="", **at))
    assert [each.call_id for each in kinds(fleet) if isinstance(each, ToolCall)] == ["t1", "t2"]
    assert [each.message for each in kinds(fleet) if isinstance(each, Fault)] == [
        "1 call taken from the transcript: no hook told, or the daemon was killed"
    ]


def test_handle_what_follows_a_compaction_is_no_gap_where_hooks_tell_of_it_late(fleet: Fleet, tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    at = {"transcript_path": str(path)}
    session = ClaudeCodeSession(fleet, "s1")
    session.handle(event("SessionStart", source="startup", **at))
    session.handle(event("UserPromptSubmit", prompt="List the files.", **at))
    summary = {"type": "user", "isCompactSummary": True, "message": {"role": "user", "content": "The files are asked."}}
    write(path, assistant("m1", {"type": "text", "text": "I look."}), summary)
    write(path, assistant("m2", {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}))
    write(path, result_line("t1", "a.py"))
    session.handle(event("PreCompact", trigger="auto", **at))
    session.handle(event("PostCompact", trigger="auto", compact_summary="The files are asked.", **at))
    session.handle(call("ls", 1, **at))
    session.handle(event("PostToolBatch", tool_calls=[{"tool_use_id": "t1"}], **at))
    told = [each for each in kinds(fleet) if isinstance(each, Message | Compaction | ToolCall | ToolResult | Fault)]
    assert [type(each) for each in told] == [Message, Message, Compaction, Message, ToolCall, ToolResult]


def test_handle_a_long_history_is_recorded_and_measured_a_bounded_number_of_times(fleet: Fleet, tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    for number in range(200):
        write(path, assistant(f"m{number}", {"type": "tool_use", "id": f"h{number}", "name": "Bash", "input": {}}))
        write(path, result_line(f"h{number}", "ok"))
    session = ClaudeCodeSession(fleet, "s1")  # the hooks were installed in the middle of the session
    write(path, assistant("m", {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}))
    session.handle(call("ls", 1, transcript_path=str(path)))
    assert sum(isinstance(each, ToolCall) for each in kinds(fleet)) == 201
    measured = [each for each in kinds(fleet) if isinstance(each, Ticked) and each.tool_name is None]
    assert len(measured) == MAX_TICKS
    assert not [each for each in kinds(fleet) if isinstance(each, Fault)]  # no hook has failed


def test_handle_prompts_of_the_client_itself_are_no_requests(fleet: Fleet) -> None:
    session = ClaudeCodeSession(fleet, "s1")
    session.handle(event("UserPromptSubmit", prompt="Count the files."))
    session.handle(event("UserPromptSubmit", prompt="<task-notification><task-id>7</task-id></task-notification>"))
    assert fleet.agent(ClaudeCodeSession.HOST).state.facts.goal == "Count the files."
    assert [each.content for each in kinds(fleet) if isinstance(each, Message)] == ["Count the files."]


def test_handle_the_goal_is_restated_after_a_compaction(fleet: Fleet) -> None:
    session = ClaudeCodeSession(fleet, "s1")
    session.handle(event("UserPromptSubmit", prompt="Fix the parser; never touch docs/."))
    session.handle(event("PreCompact", trigger="auto", custom_instructions=None))
    session.handle(event("PostCompact", trigger="auto", compact_summary="Files were edited."))
    assert session.handle(event("SessionStart", source="startup")) == {}
    answer = session.handle(event("SessionStart", source="compact"))["hookSpecificOutput"]
    assert answer["hookEventName"] == "SessionStart"
    assert "Fix the parser; never touch docs/." in answer["additionalContext"]
    assert [each.summary for each in kinds(fleet) if isinstance(each, Compaction)] == ["Files were edited."]


def test_handle_a_subagent_is_an_agent_of_its_own_whose_trouble_reaches_the_main_one(fleet: Fleet) -> None:
    session = ClaudeCodeSession(fleet, "s1")
    session.handle(event("UserPromptSubmit", prompt="Count the files."))
    of_it = {"agent_id": "a3d638", "agent_type": "Explore"}
    session.handle(event("SubagentStart", **of_it))
    for number in range(8):
        session.handle(call("ls x", number, **of_it))
        session.handle(failure("ls x", "Exit code 2\nls: no such file", number, **of_it))
        session.handle(event("PostToolBatch", tool_calls=[], **of_it))
    name = f"{ClaudeCodeSession.HOST}/Explore-a3d638"
    assert fleet.agent(name).counters.errors == 8
    assert fleet.agent(ClaudeCodeSession.HOST).counters.errors == 0
    reached = fleet.pressures()[ClaudeCodeSession.HOST]
    assert reached.path == (name, ClaudeCodeSession.HOST)
    assert reached.value == pytest.approx(0.4 * fleet.agent(name).own_pressure)  # the edge's first weight
    session.handle(event("SubagentStop", last_assistant_message="There is none.", **of_it))
    said = [each for each in kinds(fleet, name) if isinstance(each, Message) and not each.firing]
    assert [(each.role, each.content) for each in said] == [("assistant", "There is none.")]


def test_handle_results_and_failures_belong_to_their_calls(fleet: Fleet) -> None:
    session = ClaudeCodeSession(fleet, "s1")
    session.handle(call("ls", 7))
    response = {"stdout": "a.py\nb.py", "stderr": "", "interrupted": False}
    asked = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "t7"}
    session.handle(event("PostToolUse", **asked, tool_response=response, duration_ms=459))
    (result,) = [each for each in kinds(fleet) if isinstance(each, ToolResult)]
    assert (result.result, result.error, result.call_id, result.duration_s) == ("a.py\nb.py", False, "t7", 0.459)


@pytest.mark.parametrize(
    ("response", "shown"),
    [
        ("plain", "plain"),
        ({"stdout": "", "stderr": "boom"}, "boom"),
        ({"type": "text", "file": {"filePath": "/a", "content": "x = 1"}}, "x = 1"),
        ({"content": [{"type": "text", "text": "done"}], "agentId": "a1"}, [{"type": "text", "text": "done"}]),
        ({"task": {"id": "1"}}, {"task": {"id": "1"}}),
        (None, None),
    ],
)
def test_result_of_shows_what_the_agent_sees(response: Any, shown: Any) -> None:
    assert result_of(response) == shown


def write(path: Path, *lines: dict[str, Any]) -> None:
    with path.open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def assistant(id: str, block: dict[str, Any], tokens: int = 10) -> dict[str, Any]:
    usage = {"input_tokens": tokens, "output_tokens": 5}
    return {"type": "assistant", "message": {"id": id, "model": "c", "content": [block], "usage": usage}}


def result_line(id: str, text: str) -> dict[str, Any]:
    content = [
        {"type": "tool_result", "tool_use_id": id, "content": text, "is_error": text.startswith(("PreTool", "<"))}
    ]
    return {"type": "user", "message": {"role": "user", "content": content}}


@pytest.mark.parametrize("lags", [False, True])
def test_handle_words_and_tokens_come_from_the_transcript_once_and_in_order(
    fleet: Fleet, tmp_path: Path, lags: bool
) -> None:
    path = tmp_path / "s1.jsonl"
    at = {"transcript_path": str(path)}
    session = ClaudeCodeSession(fleet, "s1")
    session.handle(event("UserPromptSubmit", prompt="List the files.", **at))
    asked = (
        assistant("m1", {"type": "text", "text": "I look."}),
        assistant("m1", {"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}, tokens=20),
    )
    if not lags:
        write(path, *asked)
    session.handle(call("ls", 1, **at))
    if lags:
        write(path, *asked)
    same = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "t1"}
    session.handle(event("PostToolUse", **same, tool_response={"stdout": "a.py"}, **at))
    session.handle(event("PostToolBatch", tool_calls=[same], **at))
    answer = assistant("m2", {"type": "text", "text": "There is a.py."})
    if not lags:
        write(path, answer)
    session.handle(event("Stop", last_assistant_message="There is a.py.", **at))
    if lags:
        write(path, answer)
    session.handle(event("SessionEnd", reason="other", **at))
    said = [each.content for each in kinds(fleet) if isinstance(each, Message)]
    assert said == ["List the files.", "I look.", "There is a.py."]
    # each part of m1 repeats its tokens, and the last one knows best
    assert [each.input_tokens for each in kinds(fleet) if isinstance(each, Usage)] == [20, 10]
    order = [type(each) for each in kinds(fleet) if isinstance(each, ToolCall | Message)]
    assert order == [Message, Message, ToolCall, Message]  # a call waits for the words before it


def test_handle_words_between_two_calls_of_a_message_are_recorded_between_them(fleet: Fleet, tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    at = {"transcript_path": str(path)}
    session = ClaudeCodeSession(fleet, "s1")
    session.handle(event("UserPromptSubmit", prompt="List the files.", **at))
    for number, words in ((1, "First here."), (2, "Then there.")):
        write(path, assistant("m1", {"type": "text", "text": words}))
        write(path, assistant("m1", {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {}}))
    for number in (1, 2):
        session.handle(call("ls", number, **at))
    told = [
        each.content if isinstance(each, Message) else each.call_id
        for each in kinds(fleet)
        if isinstance(each, Message | ToolCall)
    ]
    assert told == ["List the files.", "First here.", "t1", "Then there.", "t2"]


def test_handle_guidance_counts_as_delivered_once_the_transcript_shows_it(fleet: Fleet, tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    path.touch()
    at = {"transcript_path": str(path)}
    session = ClaudeCodeSession(fleet, "s1")
    session.handle(event("UserPromptSubmit", prompt="Make the tests pass.", **at))
    told = ""
    for number in range(12):
        session.handle(call("pytest -q", number, **at))
        session.handle(failure("pytest -q", "Exit code 2\nERROR: file or directory not found: tests", number, **at))
        answer = session.handle(event("PostToolBatch", tool_calls=[], **at))
        result = fleet.agent(ClaudeCodeSession.HOST).result
        assert result is not None
        if answer and result.decision.guidance:
            told = answer["hookSpecificOutput"]["additionalContext"]
            break
    assert told
    assert not [each for each in kinds(fleet) if isinstance(each, Message) and each.firing]
    write(path, {"type": "attachment", "attachment": {"type": "hook_additional_context", "content": [told]}})
    session.handle(event("Stop", last_assistant_message="I give up.", **at))
    assert len([each for each in kinds(fleet) if isinstance(each, Message) and each.firing]) == 1


def test_handle_a_person_ends_what_blocks_in_a_prompt_and_both_are_told(fleet: Fleet) -> None:
    session = ClaudeCodeSession(fleet, "s1")
    session.handle(event("UserPromptSubmit", prompt="List the files."))
    assert session.handle(call("rm -rf /"))
    answer = session.handle(event("UserPromptSubmit", prompt="/coherence:unblock I looked"))
    told = "claude-code: the call refused last may run"
    assert answer["systemMessage"] == f"coherence: {told}" and session.unblocked
    assert answer["hookSpecificOutput"]["additionalContext"].endswith(told)
    assert session.handle(call("rm -rf /", 2)) == {}
    facts = fleet.agent(ClaudeCodeSession.HOST).state.facts
    assert facts.goal == facts.request == "List the files."
    (said,) = [each for each in kinds(fleet) if isinstance(each, Feedback)]
    assert said.text == "I looked"


def test_handle_unblocking_nothing_says_so_and_other_prompts_unblock_nothing(fleet: Fleet) -> None:
    session = ClaudeCodeSession(fleet, "s1")
    answer = session.handle(event("UserPromptSubmit", prompt="/coherence:unblock"))
    assert answer["systemMessage"] == "coherence: no agent is blocked"
    session.unblocked = False
    session.handle(event("UserPromptSubmit", prompt="List the files."))
    assert session.handle(call("rm -rf /"))
    for prompt in ("/coherence:status", "Do /coherence:unblock", "<task-notification>/coherence:unblock"):
        assert session.handle(event("UserPromptSubmit", prompt=prompt)) == {} and not session.unblocked
    asked = event("PreToolUse", tool_name="Skill", tool_input={"skill": "coherence:unblock"}, tool_use_id="t8")
    session.handle(asked)
    assert session.handle(call("rm -rf /", 9))


def test_handle_a_prompt_that_an_agent_has_scheduled_unblocks_nothing(fleet: Fleet) -> None:
    session = ClaudeCodeSession(fleet, "s1")
    assert session.handle(call("rm -rf /"))
    unblock = event("UserPromptSubmit", prompt="/coherence:unblock by cron")
    crons = [{"id": "9594d5be", "schedule": "* * * * *", "recurring": False, "prompt": unblock["prompt"]}]
    session.handle(event("Stop", session_crons=crons))
    assert "no block was ended" in session.handle(unblock)["systemMessage"]
    kept = session.unblocked
    assert session.handle(call("rm -rf /", 2))
    session.handle(event("Stop", session_crons=[]))  # it has been entered, once
    assert session.handle(unblock)["systemMessage"].endswith("may run")
    assert (kept, session.unblocked) == (False, True)
    assert session.handle(call("rm -rf /", 3)) == {}


def test_handle_a_transcript_is_not_read_again_after_the_daemon_was_restarted(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    write(path, assistant("m1", {"type": "text", "text": "I look."}, tokens=20))
    at = {"transcript_path": str(path)}
    for _ in range(2):
        with Fleet(embedder=False, store=tmp_path / "runs.db", resume=True) as fleet:
            session = ClaudeCodeSession(fleet, "s1")
            session.handle(event("UserPromptSubmit", prompt="List the files.", **at))
            session.handle(event("Stop", last_assistant_message="I look.", **at))
            assert session.monitor.counters.tokens_in == 20
