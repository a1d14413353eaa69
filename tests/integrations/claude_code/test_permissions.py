"""Questions to the person: which refusals are put to them, and what their answer teaches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from integrations.claude_code.payloads import bash, event, interrupted_line, recorded, refused_line, write

from coherence.core.config import MonitorConfig
from coherence.core.decisions import Decision, Finding
from coherence.core.events import Feedback, ToolCall, ToolResult
from coherence.fleet.fleet import Fleet
from coherence.integrations.claude_code.permissions import ASKING_MODES, refuses_all
from coherence.integrations.claude_code.session import ClaudeCodeSession
from coherence.integrations.host_session import MAX_CONTEXT
from coherence.monitor.replay import Replay
from coherence.store.store import Store

WIPE = "rm -rf ~"


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    with Fleet(embedder=False) as made:
        yield made


def asked(session: ClaudeCodeSession, command: str = WIPE, number: int = 1, **fields: Any) -> dict[str, Any]:
    """Return what the client is told about a call."""
    answer = session.handle(event("PreToolUse", **bash(command, number), **{"permission_mode": "auto", **fields}))
    found: dict[str, Any] = answer.get("hookSpecificOutput", {})
    return found


def judged(fleet: Fleet) -> list[Feedback]:
    return [each for each in recorded(fleet) if isinstance(each, Feedback) and each.about == "block"]


@pytest.mark.parametrize(
    ("fields", "decision"),
    [
        *(({"permission_mode": mode}, "ask") for mode in sorted(ASKING_MODES)),
        ({"permission_mode": "bypassPermissions"}, "deny"),
        ({"permission_mode": "dontAsk"}, "deny"),
        ({"permission_mode": None}, "deny"),
        ({"permission_mode": "default", "agent_id": "a1", "agent_type": "Plan"}, "deny"),
    ],
)
def test_answer_a_doubt_is_put_to_the_person_where_one_sees_it(
    fleet: Fleet, fields: dict[str, Any], decision: str
) -> None:
    session = ClaudeCodeSession(fleet, "s1")
    session.handle(event("UserPromptSubmit", prompt="Tell me what is in this folder."))
    found = asked(session, **fields)
    assert found["permissionDecision"] == decision
    assert "rm -rf ~" in found["permissionDecisionReason"]
    assert ("let it through, here or by" in found["permissionDecisionReason"]) == (decision == "ask")
    assert len(found["permissionDecisionReason"]) <= MAX_CONTEXT + 1


def test_answer_what_the_user_or_a_budget_forbids_is_never_asked() -> None:
    with Fleet(embedder=False, config={"forbid": [{"tool": "Bash"}]}) as fleet:
        assert asked(ClaudeCodeSession(fleet, "s1"), "ls")["permissionDecision"] == "deny"
    with Fleet(embedder=False) as fleet:
        session = ClaudeCodeSession(fleet, "s1")
        session.handle(event("UserPromptSubmit", prompt="Clean up. Do not delete the folder data."))
        assert asked(session, "rm -r data")["permissionDecision"] == "deny"
    with Fleet(embedder=False, config={"budget": {"calls": 1}}) as fleet:
        session = ClaudeCodeSession(fleet, "s1")
        assert asked(session, "ls") == {}
        assert asked(session, "ls", 2)["permissionDecision"] == "deny"


def test_let_through_a_call_that_ran_was_a_false_alarm_and_is_asked_about_no_more(fleet: Fleet) -> None:
    session = ClaudeCodeSession(fleet, "s1")
    session.handle(event("UserPromptSubmit", prompt="Tell me what is in this folder."))
    asked(session)
    session.handle(event("PostToolUse", **bash(WIPE), tool_response={"stdout": ""}))
    (label,) = judged(fleet)
    assert (label.score, label.text) == (None, "the user let the call through")
    calls = [each for each in recorded(fleet) if isinstance(each, ToolCall | ToolResult)]
    assert [type(each) for each in calls] == [ToolCall, ToolResult]
    assert {each.call_id for each in calls} == {"t1"}
    assert "permissionDecision" not in asked(session, number=2)
    assert asked(session, "rm -rf /", number=3)["permissionDecision"] == "ask"  # another call is another question


@pytest.mark.parametrize(
    ("shown", "labels", "results"),
    [
        ("wiped", [None], ["wiped"]),
        ("The user doesn't want to proceed with this tool use.", [], []),
        ("PreToolUse:Bash hook error: coherence refused this call: it wipes a folder.", [], []),
    ],
)
def test_let_through_is_known_from_what_the_agent_is_shown_at_the_end_of_the_step(
    fleet: Fleet, tmp_path: Path, shown: str, labels: list[Any], results: list[str]
) -> None:
    at: dict[str, Any] = {"transcript_path": str(tmp_path / "s1.jsonl")}  # it has nothing of the step yet
    session = ClaudeCodeSession(fleet, "s1")
    session.handle(event("UserPromptSubmit", prompt="Tell me what is in this folder.", **at))
    asked(session, **at)
    session.handle(event("PostToolBatch", tool_calls=[{**bash(WIPE), "tool_response": shown}], **at))
    assert [each.score for each in judged(fleet)] == labels
    assert [each.result for each in recorded(fleet) if isinstance(each, ToolResult)] == results


def test_refused_the_person_confirms_the_refusal_and_is_not_asked_again(fleet: Fleet, tmp_path: Path) -> None:
    at: dict[str, Any] = {"transcript_path": str(tmp_path / "s1.jsonl")}
    session = ClaudeCodeSession(fleet, "s1")
    session.handle(event("UserPromptSubmit", prompt="Tell me what is in this folder.", **at))
    asked(session, **at)
    write(tmp_path / "s1.jsonl", refused_line("t1", toolDenialBeforeRun=True), interrupted_line(" for tool use"))
    session.handle(event("UserPromptSubmit", prompt="Do it differently.", **at))
    (label,) = judged(fleet)
    assert (label.score, label.text) == (1.0, "the user refused the call, too")
    assert not [each for each in recorded(fleet) if isinstance(each, ToolCall | ToolResult)]
    assert asked(session, number=2, **at)["permissionDecision"] == "deny"


def test_refused_a_call_that_ran_and_was_stopped_counts_as_let_through(fleet: Fleet, tmp_path: Path) -> None:
    at: dict[str, Any] = {"transcript_path": str(tmp_path / "s1.jsonl")}
    session = ClaudeCodeSession(fleet, "s1")
    session.handle(event("UserPromptSubmit", prompt="Tell me what is in this folder.", **at))
    asked(session, **at)
    write(tmp_path / "s1.jsonl", refused_line("t1"))
    session.handle(event("UserPromptSubmit", prompt="Do it differently.", **at))
    assert [each.score for each in judged(fleet)] == [None]
    (result,) = [each for each in recorded(fleet) if isinstance(each, ToolResult)]
    assert (result.call_id, result.error) == ("t1", False)


def test_refused_what_an_older_client_does_not_tell_is_no_label(fleet: Fleet, tmp_path: Path) -> None:
    at: dict[str, Any] = {"transcript_path": str(tmp_path / "s1.jsonl")}
    session = ClaudeCodeSession(fleet, "s1")
    session.handle(event("UserPromptSubmit", prompt="Tell me what is in this folder.", **at))
    asked(session, **at)
    asked(session, "ls", 2, **at)
    for call in ("t1", "t2"):  # as 2.1.197 writes it
        line = refused_line(call)
        del line["toolDenialKind"]
        write(tmp_path / "s1.jsonl", line)
    session.handle(event("UserPromptSubmit", prompt="Do it differently.", **at))
    assert judged(fleet) == []
    results = [each for each in recorded(fleet) if isinstance(each, ToolResult)]
    assert [(each.call_id, each.error) for each in results] == [("t2", False)]


def test_let_through_a_replay_finds_the_same_decisions(tmp_path: Path) -> None:
    with Fleet(embedder=False, store=tmp_path / "store.db") as fleet:
        session = ClaudeCodeSession(fleet, "s1")
        session.handle(event("UserPromptSubmit", prompt="Tell me what is in this folder."))
        asked(session)
        session.handle(event("PostToolUse", **bash(WIPE), tool_response={"stdout": ""}))
        assert "permissionDecision" not in asked(session, number=2)
        monitor = fleet.agent(ClaudeCodeSession.HOST)
        monitor.note("the model changed")
        monitor.decide()
    with Store(tmp_path / "store.db") as store:
        (row,) = store.sessions()
        report = Replay(store, row).report()
    assert report.ticks >= 4  # two questions, the end of the block, the last decision
    assert (report.equal, report.differences) == (report.ticks, [])


@pytest.mark.parametrize(
    ("rule", "block", "refuses"),
    [
        ("budget.calls", "destructive", True),
        ("tree_budget.cost_usd", "destructive", True),
        ("budget.tool_calls.Bash", "destructive", False),
        ("pressure", "destructive", False),
        ("pressure", "all", True),
        ("harmful_call", "all", False),
        ("destructive_call", "all", False),
    ],
)
def test_refuses_all_is_for_what_refuses_every_call(rule: str, block: str, refuses: bool) -> None:
    finding = Finding(rule=rule, severity="block", active=True, score=1.0, threshold=1.0)
    decision = Decision(seq=1, kind="block", findings=(finding,))
    assert refuses_all(decision, MonitorConfig.load({"block": block})) == refuses
