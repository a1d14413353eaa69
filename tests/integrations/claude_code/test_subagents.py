"""Subagents that end in trouble: the main agent is told at its next step, or with the client's notification."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from coherence.fleet.fleet import Fleet
from coherence.integrations.claude_code.session import ClaudeCodeSession

OF_IT = {"agent_id": "a3d638", "agent_type": "Explore"}
NOTIFICATION = "<task-notification><task-id>a3d638</task-id></task-notification>"


@pytest.fixture
def session() -> Iterator[ClaudeCodeSession]:
    with Fleet(embedder=False) as fleet:
        made = ClaudeCodeSession(fleet, "s1")
        tell(made, "UserPromptSubmit", prompt="Count the files.")
        yield made


def tell(session: ClaudeCodeSession, event: str, **fields: Any) -> str:
    """Hand an event to a session and return what the agent is told."""
    answer = session.handle({"session_id": "s1", "hook_event_name": event, **fields})
    return str(answer.get("hookSpecificOutput", {}).get("additionalContext", ""))


def run_subagent(session: ClaudeCodeSession, failures: int) -> None:
    tell(session, "SubagentStart", **OF_IT)
    for number in range(failures):
        asked = {"tool_name": "Bash", "tool_input": {"command": "ls x"}, "tool_use_id": f"t{number}", **OF_IT}
        tell(session, "PreToolUse", **asked)
        tell(session, "PostToolUseFailure", error="Exit code 2\nls: cannot access 'x': no such file", **asked)
        tell(session, "PostToolBatch", tool_calls=[], **OF_IT)
    tell(session, "SubagentStop", last_assistant_message="There are 7.", **OF_IT)


@pytest.mark.parametrize(
    ("event", "fields"), [("PostToolBatch", {"tool_calls": []}), ("UserPromptSubmit", {"prompt": NOTIFICATION})]
)
def test_reports_the_main_agent_is_told_once_of_a_subagent_that_failed(
    session: ClaudeCodeSession, event: str, fields: dict[str, Any]
) -> None:
    run_subagent(session, failures=4)
    told = tell(session, event, **fields)
    assert told.startswith("The subagent Explore-a3d638 ended in trouble: Bash returned the same error 4 times")
    assert "\"ls: cannot access 'x': no such file\"" in told
    assert "4 of its 4 calls failed." in told
    assert "Explore-a3d638 ended" not in tell(session, event, **fields)


def test_reports_say_nothing_of_a_subagent_that_did_well(session: ClaudeCodeSession) -> None:
    run_subagent(session, failures=0)
    assert tell(session, "UserPromptSubmit", prompt=NOTIFICATION) == ""
    assert tell(session, "PostToolBatch", tool_calls=[]) == ""
