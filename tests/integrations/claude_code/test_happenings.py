"""What is noted beside an agent's life: questions to the person, models, settings, Esc, compactions, a cleared run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from integrations.claude_code.payloads import bash, event, interrupted_line, notes, recorded, refused_line, write

from coherence.core.events import Fault, Feedback, Goal, ToolResult
from coherence.fleet.fleet import Fleet
from coherence.integrations.claude_code.happenings import MAX_NOTE, note_of
from coherence.integrations.claude_code.session import ClaudeCodeSession
from coherence.integrations.claude_code.settings import EVENTS

PAYLOADS: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "data" / "claude_code" / "hook_payloads.jsonl").read_text().splitlines()
]


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    with Fleet(embedder=False) as made:
        yield made


def test_note_of_the_recorded_payloads() -> None:
    assert {text for payload in PAYLOADS if (text := note_of(payload))} == {
        "the user is asked whether a call of Bash may run",
        "the user is asked whether a call of WebFetch may run",
        "settings changed: user_settings /home/user/home/.claude/settings.json",
        "the user was notified: idle_prompt: Claude is waiting for your input",
        "the session was resumed",
        "the user cleared the conversation",
    }
    noted = {payload["hook_event_name"] for payload in PAYLOADS if note_of(payload)}
    assert noted <= {*EVENTS}  # else no hook would tell of them


def test_note_of_a_long_or_coloured_text_is_one_short_line() -> None:
    text = note_of(event("Notification", notification_type="x", message="\x1b[31mred\n" * 1_000))
    assert len(text) <= MAX_NOTE + 1 and text.isprintable()


def test_handle_notes_change_no_reading(fleet: Fleet) -> None:
    session = ClaudeCodeSession(fleet, "s1")
    session.handle(event("UserPromptSubmit", prompt="List the files."))
    session.handle(event("PreToolUse", **bash("ls")))
    session.handle(event("PostToolUse", **bash("ls"), tool_response={"stdout": "a.py"}))
    before = session.monitor.decide()
    measured, context = session.monitor.result, list(session.monitor.state.context)
    for name, fields in (
        ("PermissionRequest", {"tool_name": "Bash"}),
        ("ConfigChange", {"source": "user_settings"}),
    ):
        session.handle(event(name, **fields))
    after = session.monitor.decide()
    now = session.monitor.result
    assert now is not None and now.reading is not None and measured is not None and measured.reading is not None
    assert (after.kind, now.reading.metrics) == (before.kind, measured.reading.metrics)
    assert session.monitor.state.context == context
    assert len(notes(fleet)) == 2


def test_handle_esc_is_an_interruption_and_no_failure(fleet: Fleet, tmp_path: Path) -> None:
    at: dict[str, Any] = {"transcript_path": str(tmp_path / "s1.jsonl")}
    session = ClaudeCodeSession(fleet, "s1")
    session.handle(event("UserPromptSubmit", prompt="List the files.", **at))
    write(tmp_path / "s1.jsonl", interrupted_line())
    session.handle(event("UserPromptSubmit", prompt="Only the Python files.", **at))
    assert notes(fleet) == ["the user interrupted the agent"]
    session.handle(event("PreToolUse", **bash("sleep 100"), **at))
    write(tmp_path / "s1.jsonl", refused_line("t1"), interrupted_line(" for tool use"))
    session.handle(event("UserPromptSubmit", prompt="Go on.", **at))
    results = [each for each in recorded(fleet) if isinstance(each, ToolResult)]
    assert [(each.call_id, each.error) for each in results] == [("t1", False)]
    assert session.monitor.state.facts.open_calls == []
    assert not [each for each in recorded(fleet) if isinstance(each, Fault)]
    assert session.monitor.counters.errors == 0


def test_handle_another_model_is_noted(fleet: Fleet, tmp_path: Path) -> None:
    at: dict[str, Any] = {"transcript_path": str(tmp_path / "s1.jsonl")}
    session = ClaudeCodeSession(fleet, "s1")
    session.handle(event("UserPromptSubmit", prompt="List the files.", **at))
    for number, model in enumerate(("opus", "opus", "<synthetic>", "sonnet")):
        message = {"id": f"m{number}", "model": model, "content": [], "usage": {"input_tokens": 1, "output_tokens": 1}}
        write(tmp_path / "s1.jsonl", {"type": "assistant", "message": message})
    session.handle(event("PreCompact", trigger="auto", **at))
    assert notes(fleet) == ["the model changed from opus to sonnet"]


def test_handle_a_call_that_the_user_stopped_is_no_failure(fleet: Fleet) -> None:
    session = ClaudeCodeSession(fleet, "s1")
    session.handle(event("PreToolUse", **bash("sleep 100")))
    session.handle(event("PostToolUseFailure", **bash("sleep 100"), error="Interrupted", is_interrupt=True))
    (result,) = [each for each in recorded(fleet) if isinstance(each, ToolResult)]
    assert (result.error, session.monitor.counters.errors) == (False, 0)


def test_handle_a_cleared_conversation_begins_another_task(fleet: Fleet) -> None:
    session = ClaudeCodeSession(fleet, "s1")
    session.handle(event("UserPromptSubmit", prompt="List the files."))
    session.handle(event("SessionStart", source="clear"))
    session.handle(event("UserPromptSubmit", prompt="Write a poem."))
    assert session.monitor.state.facts.goal == "Write a poem."
    session.handle(event("UserPromptSubmit", prompt="Make it rhyme."))
    assert session.monitor.state.facts.goal == "Write a poem."
    assert [each.text for each in recorded(fleet) if isinstance(each, Goal)] == ["Write a poem."]


def test_handle_a_compaction_is_measured_by_what_the_user_forbade(fleet: Fleet) -> None:
    session = ClaudeCodeSession(fleet, "s1")
    session.handle(event("UserPromptSubmit", prompt="Fix the parser."))
    session.handle(event("UserPromptSubmit", prompt="Never delete the folder docs. Do not push to main."))
    session.handle(event("UserPromptSubmit", prompt="Go on with the parser."))
    summary = "The parser is being fixed. The user said never to delete the folder docs."
    session.handle(event("PostCompact", trigger="auto", compact_summary=summary))
    assert notes(fleet) == ["the summary holds 1 of 2 things that the user forbade"]
    told = session.handle(event("SessionStart", source="compact"))["hookSpecificOutput"]["additionalContext"]
    assert "Fix the parser." in told and "Go on with the parser." in told
    assert "Do not push to main" in told and "Never delete the folder docs" in told


def test_handle_a_lesson_is_told_at_the_end_of_the_step_that_failed_and_once(tmp_path: Path) -> None:
    error = "Exit code 1\nModuleNotFoundError: No module named 'yaml'"
    with Fleet(embedder=False, store=tmp_path / "store.db") as fleet:
        assert fleet.lessons is not None
        fleet.lessons.record(
            pattern="error", error_text=error, fix_text="ran `pip install pyyaml`", tool="Bash", origin=None
        )
        session = ClaudeCodeSession(fleet, "s1")
        session.handle(event("UserPromptSubmit", prompt="Run the tests."))
        told = []
        for number in range(1, 5):
            asked = bash("python3 app.py", number)
            session.handle(event("PreToolUse", **asked))
            # The call's message may have more calls: what came of all is recorded, and told, at the end of the step.
            assert session.handle(event("PostToolUseFailure", **asked, error=error)) == {}
            step = session.handle(event("PostToolBatch", tool_calls=[asked]))
            told.append(step.get("hookSpecificOutput", {}).get("additionalContext", ""))
    assert "pip install pyyaml" in told[0]
    assert len({*told}) == 4  # each step tells something new


def test_handle_without_a_lesson_a_failure_is_told_at_the_end_of_the_step_alone(tmp_path: Path) -> None:
    with Fleet(embedder=False, store=tmp_path / "store.db") as fleet:
        session = ClaudeCodeSession(fleet, "s1")
        session.handle(event("UserPromptSubmit", prompt="Run the tests."))
        told = []
        for number in range(1, 9):
            asked = bash("pytest -q", number)
            session.handle(event("PreToolUse", **asked))
            assert session.handle(event("PostToolUseFailure", **asked, error="Exit code 2\nno tests ran")) == {}
            told.append(session.handle(event("PostToolBatch", tool_calls=[asked])))
    assert any(told)


def test_handle_judgements_of_blocks_and_notes_are_told_apart(fleet: Fleet) -> None:
    session = ClaudeCodeSession(fleet, "s1")
    session.monitor.note("the model changed")
    session.monitor.confirm(3, "right")
    found = [each for each in recorded(fleet) if isinstance(each, Feedback)]
    assert [(each.about, each.score, each.decision) for each in found] == [("note", None, None), ("block", 1.0, 3)]
