"""Events that are reported twice are counted once, and refused twice."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from integrations.running import running, tell

from coherence.integrations.daemon.deduplication import MAX_KNOWN, Deduplicator
from coherence.integrations.daemon.folder import control

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the daemon needs Unix sockets")

REFUSAL = {"decision": "deny"}


def test_deduplicator_an_event_that_names_no_prompt_or_says_anything_else_is_new() -> None:
    events = Deduplicator()
    events.add({"hook_event_name": "SessionStart"}, {})
    events.add({"hook_event_name": "Stop", "prompt_id": "p1"}, {})
    assert events.answer_to({"hook_event_name": "SessionStart"}) is None
    assert events.answer_to({"hook_event_name": "Stop", "prompt_id": "p2"}) is None
    assert events.answer_to({"hook_event_name": "Stop", "prompt_id": "p1", "stop_hook_active": True}) is None
    assert events.answer_to({"hook_event_name": "Stop", "prompt_id": "p1"}) == {}


def test_deduplicator_a_call_and_its_result_are_known_by_agent_and_id_whatever_else_they_say() -> None:
    events, call = Deduplicator(), {"hook_event_name": "PreToolUse", "tool_use_id": "t1"}
    events.add(call, REFUSAL)
    assert events.answer_to({**call, "permission_mode": "plan"}) == REFUSAL
    assert events.answer_to({**call, "agent_id": "a"}) is None
    assert events.answer_to({**call, "tool_use_id": "t2"}) is None
    result = {**call, "hook_event_name": "PostToolUse"}
    assert events.answer_to(result) is None
    events.add(result, {})
    assert events.answer_to({**call, "hook_event_name": "PostToolUseFailure"}) == {}  # a call has one result


def test_deduplicator_what_was_recorded_is_known_by_its_words_and_other_words_may_be_said_twice() -> None:
    events = Deduplicator([("user", "Go."), ("call", "t0")])
    prompt = {"hook_event_name": "UserPromptSubmit", "prompt": "On."}
    events.add(prompt, {})
    assert events.answer_to(prompt) is None
    assert events.answer_to({**prompt, "prompt": "Go."}) == {}
    assert events.answer_to({"hook_event_name": "PreToolUse", "tool_use_id": "t0"}) == {}
    assert events.answer_to({"hook_event_name": "PostToolUse", "tool_use_id": "t0"}) is None


def test_deduplicator_an_event_that_is_forgotten_is_new() -> None:
    events, call = Deduplicator(), {"hook_event_name": "PreToolUse", "tool_use_id": "t1"}
    stop = {"hook_event_name": "Stop", "prompt_id": "p1"}
    for event in (call, stop):
        events.add(event, {})
        events.forget(event)
        assert events.answer_to(event) is None


def test_deduplicator_only_the_newest_are_known() -> None:
    events = Deduplicator()
    calls = [{"hook_event_name": "PreToolUse", "tool_use_id": f"{at}"} for at in range(MAX_KNOWN + 44)]
    for call in calls:
        events.add(call, {})
    assert [events.answer_to(call) is None for call in calls].count(True) == 44
    assert events.answer_to(calls[44]) == {} and events.answer_to(calls[43]) is None


def test_handle_an_event_that_two_hooks_report_is_counted_once_and_refused_to_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = {"tool_name": "Bash", "prompt_id": "p1"}
    with running(tmp_path / "state"):
        for at in range(3):
            call = {**asked, "tool_use_id": f"t{at}", "tool_input": {"command": f"ls {at}"}}
            for _ in range(2):
                assert tell("PreToolUse", "s1", **call) == {}
            for _ in range(2):
                tell("PostToolUseFailure", "s1", **call, error="no such file")
        harmful = {**asked, "tool_use_id": "t3", "tool_input": {"command": "rm -rf /"}}
        first, second = (tell("PreToolUse", "s1", **harmful) for _ in range(2))
        assert first == second and first["hookSpecificOutput"]["permissionDecision"] == "deny"
        found = control(tmp_path / "state", "status")
    assert found is not None
    (agent,) = found["sessions"][0]["agents"]
    assert (agent["calls"], agent["errors"]) == (3, 3)
