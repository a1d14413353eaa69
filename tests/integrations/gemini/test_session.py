"""A session of Gemini CLI: payloads of hooks and a transcript in, the life of an agent and answers out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from integrations.payloads import altered

from coherence.core.events import Compaction, Message, ToolCall, ToolResult, Usage
from coherence.fleet.fleet import Fleet
from coherence.integrations.gemini.results import Result, result_of
from coherence.integrations.gemini.session import GeminiSession
from coherence.integrations.host_session import MAX_CONTEXT

DATA = Path(__file__).parents[2] / "data" / "gemini"
PAYLOADS: list[dict[str, Any]] = [json.loads(line) for line in (DATA / "hook_payloads.jsonl").read_text().splitlines()]
TRANSCRIPT = DATA / "transcript.jsonl"
MISSING = "python3: can't open file 'missing.py': [Errno 2] No such file or directory"


def event(name: str, **fields: Any) -> dict[str, Any]:
    return {"session_id": "s1", "hook_event_name": name, **fields}


def call(command: str) -> dict[str, Any]:
    return event("BeforeTool", tool_name="run_shell_command", tool_input={"command": command})


def result(command: str, output: str, *, process: int = 1, status: int = 2, **fields: Any) -> dict[str, Any]:
    ended = f"\nExit Code: {status}" if status else ""
    told = f"<untrusted_context>\nOutput: {output}{ended}\nProcess Group PGID: {process}\n</untrusted_context>"
    asked = {"tool_name": "run_shell_command", "tool_input": {"command": command}}
    return event("AfterTool", **asked, tool_response={"llmContent": told, "returnDisplay": output}, **fields)


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    with Fleet(embedder=False) as made:
        yield made


def kinds(fleet: Fleet) -> list[Any]:
    return [record.event for record in reversed(fleet.agent(GeminiSession.HOST).events())]  # they come newest first


def test_handle_a_recorded_session_is_taken_in_with_its_transcript(fleet: Fleet, tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_bytes(TRANSCRIPT.read_bytes())
    session = GeminiSession(fleet, "s1")
    for payload in PAYLOADS:
        json.dumps(session.handle({**payload, "transcript_path": str(path)}, steers=False))
    assert session.ended
    found = kinds(fleet)
    said = [(each.role, each.content) for each in found if isinstance(each, Message)]
    assert said == [
        ("user", "What is in this folder?"),
        *(("assistant", text) for text in ("I look.", "I fail.", "Done.")),
    ]
    calls = [each for each in found if isinstance(each, ToolCall)]
    results = [each for each in found if isinstance(each, ToolResult)]
    # Eight calls that hooks have told, and the one of a tool that does not exist.
    assert [each.tool_name for each in calls][-2:] == ["run_shell_command", "nonsense"]
    assert len(calls) == len(results) == 9
    # The missing program, the missing file, the refused deletion, the missing tool.
    assert [each.error for each in results].count(True) == 4
    assert {each.call_id for each in calls} == {each.call_id for each in results}
    tokens = [(each.input_tokens, each.output_tokens) for each in found if isinstance(each, Usage)]
    assert tokens == [(100, 15)] * 8  # 10 written and 5 thought


def test_handle_a_session_that_goes_on_with_another_daemon_is_recorded_once(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_bytes(TRANSCRIPT.read_bytes())
    half = 8  # the write of the file
    assert PAYLOADS[half]["tool_name"] == "write_file" and PAYLOADS[half]["hook_event_name"] == "BeforeTool"
    for payloads in (PAYLOADS[:half], PAYLOADS[half:]):
        with Fleet(embedder=False, store=tmp_path / "runs.db", resume=True) as fleet:
            session = GeminiSession(fleet, "s1")
            for payload in payloads:
                session.handle({**payload, "transcript_path": str(path)}, steers=False)
            counters = session.monitor.counters
    assert counters.calls == 9
    # The third of eight messages was written after the last event of one daemon and before the first of the next.
    assert counters.tokens_in == 7 * 100


def test_handle_the_words_of_the_model_stand_before_the_call_that_follows_them(fleet: Fleet, tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_bytes(TRANSCRIPT.read_bytes())  # all of it is there when the first event of a spool is read
    session = GeminiSession(fleet, "s1")
    for payload in PAYLOADS[:4]:
        session.handle({**payload, "transcript_path": str(path)})
    told = (Message, Usage, ToolCall, ToolResult)
    order = [type(each).__name__ for each in kinds(fleet) if isinstance(each, told)]
    assert order == ["Message", "Message", "Usage", "ToolCall", "ToolResult"]


@settings(max_examples=30, deadline=None)
@given(altered(PAYLOADS))
def test_handle_fields_of_any_type_raise_nothing(payload: dict[str, Any]) -> None:
    with Fleet(embedder=False) as fleet:
        json.dumps(GeminiSession(fleet, "s1").handle(payload))


def test_handle_a_harmful_call_nobody_asked_for_is_denied_and_again_on_retry(fleet: Fleet) -> None:
    session = GeminiSession(fleet, "s1")
    session.handle(event("BeforeAgent", prompt="Tell me what is in this folder."))
    for _ in range(2):
        answer = session.handle(call("rm -rf ~"))
        assert answer["decision"] == "deny"
        assert "rm -rf ~" in answer["reason"]
        assert len(answer["reason"]) <= MAX_CONTEXT + 1
        assert session.refuses(answer)
    assert not [each for each in kinds(fleet) if isinstance(each, ToolCall)]  # none of them ran


def test_handle_observes_only_where_it_is_told_to(fleet: Fleet) -> None:
    session = GeminiSession(fleet, "s1")
    assert session.handle(call("rm -rf ~"), steers=False) == {}
    for _ in range(5):
        session.handle(call("python3 missing.py"), steers=False)
        assert session.handle(result("python3 missing.py", MISSING), steers=False) == {}
    assert fleet.agent(GeminiSession.HOST).counters.errors == 5


def test_handle_a_loop_is_told_once_each_whatever_the_process_is_called(fleet: Fleet) -> None:
    session = GeminiSession(fleet, "s1")
    session.handle(event("BeforeAgent", prompt="Run it."))
    told = []
    for process in range(6):
        session.handle(call("python3 missing.py"))
        if answer := session.handle(result("python3 missing.py", MISSING, process=process)):
            told.append(answer["hookSpecificOutput"]["additionalContext"])
            assert not session.refuses(answer)
    assert "returned the same error" in told[0]
    assert "PGID" not in "".join(told)
    assert len(set(told)) == len(told) >= 2


def test_handle_guidance_counts_as_given_once_the_transcript_shows_it(fleet: Fleet, tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.touch()
    session, given, told = GeminiSession(fleet, "s1"), [], ""
    session.handle(event("BeforeAgent", prompt="Run it.", transcript_path=str(path)))
    while not told:
        session.handle(call("python3 <missing>.py"))
        answer = session.handle(result("python3 <missing>.py", MISSING))
        told = answer.get("hookSpecificOutput", {}).get("additionalContext", "")
    given.append([each for each in kinds(fleet) if isinstance(each, Message) and each.firing])
    escaped = told.replace("<", "&lt;").replace(">", "&gt;")  # as the client does it
    shown = {"functionResponse": {"response": {"output": f"no\n\n<hook_context>{escaped}</hook_context>"}}}
    path.write_text(json.dumps({"type": "user", "content": [shown]}) + "\n")
    session.handle(event("AfterAgent", prompt_response="No."))
    given.append([each for each in kinds(fleet) if isinstance(each, Message) and each.firing])
    assert [len(each) for each in given] == [0, 1]


def test_handle_what_is_told_at_an_error_keeps_the_error_and_is_no_refusal(fleet: Fleet) -> None:
    session = GeminiSession(fleet, "s1")
    session.handle(event("BeforeAgent", prompt="Read it."))
    asked = {"tool_name": "read_file", "tool_input": {"file_path": "a.txt"}}
    fault = {"llmContent": "Could not read file.", "error": {"message": "File not found: /p/a.txt"}}
    answers = []
    for _ in range(4):
        session.handle(event("BeforeTool", **asked))
        answers.append(session.handle(event("AfterTool", **asked, tool_response=fault)))
    (first, *_) = [answer for answer in answers if answer]
    assert first["decision"] == "block"
    assert first["reason"].startswith("File not found: /p/a.txt\n\n<hook_context>")
    assert not session.refuses(first)


def test_handle_a_call_that_the_user_declined_ends_with_an_error(fleet: Fleet, tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    session = GeminiSession(fleet, "s1")
    session.handle({**call("make deploy"), "transcript_path": str(path), "timestamp": "2026-11-27T10:00:00.000Z"})
    said = {"functionResponse": {"response": {"error": "[Operation Cancelled] Reason: User denied execution."}}}
    declined = {"id": "c1", "name": "run_shell_command", "args": {"command": "make deploy"}, "status": "cancelled"}
    at = "2026-11-27T10:00:01.000Z"
    message = {"type": "gemini", "id": "m1", "timestamp": at, "toolCalls": [{**declined, "result": [said]}]}
    path.write_text(json.dumps(message) + "\n")
    session.handle(event("AfterAgent", transcript_path=str(path), prompt_response="As you wish."))
    asked, ended = [each for each in kinds(fleet) if isinstance(each, ToolCall | ToolResult)]
    assert isinstance(ended, ToolResult)
    assert ended.error
    assert ended.call_id == asked.call_id
    assert "User denied execution" in ended.result


def test_handle_an_end_that_comes_late_ends_no_session_that_was_resumed(fleet: Fleet) -> None:
    session, ended = GeminiSession(fleet, "s1"), []
    for name, second in (("SessionStart", 1), ("SessionStart", 3), ("SessionEnd", 2), ("SessionEnd", 4)):
        session.handle(event(name, timestamp=f"2026-11-27T10:00:0{second}.000Z"))
        ended.append(session.ended)
    assert ended == [False, False, False, True]


def test_handle_what_hooks_have_added_to_a_prompt_is_no_request(fleet: Fleet) -> None:
    session = GeminiSession(fleet, "s1")
    session.handle(event("BeforeAgent", prompt="<hook_context>Be brief.</hook_context>\n\nCount the files."))
    assert fleet.agent(GeminiSession.HOST).state.facts.goal == "Count the files."


def test_handle_the_answer_is_recorded_where_no_transcript_tells_it(fleet: Fleet) -> None:
    session = GeminiSession(fleet, "s1")
    session.handle(event("BeforeAgent", prompt="Hello."))
    session.handle(event("AfterAgent", prompt="Hello.", prompt_response="Good morning."))
    assert [each.content for each in kinds(fleet) if isinstance(each, Message)] == ["Hello.", "Good morning."]


@pytest.mark.parametrize(
    ("tool", "response", "expected"),
    [
        (
            "run_shell_command",
            {"llmContent": "<untrusted_context>\nOutput: a.txt\n</untrusted_context>"},
            ("a.txt", False),
        ),
        ("run_shell_command", {"llmContent": "Output: killed\nSignal: 9"}, ("Output: killed\nSignal: 9", True)),
        ("run_shell_command", {"llmContent": "Exit Code: 1 is what it says\nall right"}, (..., False)),
        ("run_shell_command", {"llmContent": "Command was cancelled by user before it could complete."}, (..., True)),
        ("write_file", {"llmContent": "Written. Here is the updated code:\nprint(1)"}, ("Written.", False)),
        ("read_file", {"llmContent": [{"text": "a"}, {"inlineData": {}}, "b"]}, ("a\nb", False)),
        ("read_file", {"llmContent": "no", "error": {"message": ""}}, ("the call failed", True)),
        ("read_file", None, ("", False)),
    ],
)
def test_result_of_each_form(tool: str, response: Any, expected: tuple[Any, bool]) -> None:
    found = result_of(tool, response)
    text, error = expected
    assert found == Result(response["llmContent"] if text is ... else text, error)


def test_handle_what_the_user_wants_is_told_again_once_the_context_was_compacted(fleet: Fleet, tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    session = GeminiSession(fleet, "s1")
    session.handle(event("BeforeAgent", prompt="Count the files.", transcript_path=str(path)))
    summary = "<state_snapshot>Under way.</state_snapshot>"
    path.write_text(json.dumps({"$set": {"messages": [{"content": [{"text": summary}]}]}}) + "\n")
    first, second = (session.handle(result("ls", "a.txt", status=0)) for _ in range(2))
    told = first["hookSpecificOutput"]["additionalContext"]
    assert told.startswith("Before the context was compacted, the user asked: Count the files. ")
    assert "the summary that took the place of the conversation does not hold the goal" in told
    assert second == {}
    assert [each.summary for each in kinds(fleet) if isinstance(each, Compaction)] == [summary]
