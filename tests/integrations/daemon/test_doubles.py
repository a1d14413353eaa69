"""Events that are reported twice are counted once, and refused twice."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from integrations.running import running, tell

from coherence.integrations.daemon.doubles import MAX_KNOWN, Doubles
from coherence.integrations.daemon.folder import control

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the daemon needs Unix sockets")


def test_doubles_one_that_names_no_prompt_or_says_anything_else_is_new() -> None:
    doubles = Doubles()
    doubles.add({"hook_event_name": "SessionStart"}, {})
    doubles.add({"hook_event_name": "Stop", "prompt_id": "p1"}, {})
    assert doubles.answer_to({"hook_event_name": "SessionStart"}) is None
    assert doubles.answer_to({"hook_event_name": "Stop", "prompt_id": "p2"}) is None
    assert doubles.answer_to({"hook_event_name": "Stop", "prompt_id": "p1", "stop_hook_active": True}) is None
    assert doubles.answer_to({"hook_event_name": "Stop", "prompt_id": "p1"}) == {}


def test_doubles_only_the_newest_are_known() -> None:
    doubles = Doubles()
    events = [{"hook_event_name": "PreToolUse", "prompt_id": "p1", "tool_use_id": f"{at}"} for at in range(300)]
    for event in events:
        doubles.add(event, {})
    assert [doubles.answer_to(event) is None for event in events].count(True) == 300 - MAX_KNOWN
    assert doubles.answer_to(events[-MAX_KNOWN]) == {} and doubles.answer_to(events[-MAX_KNOWN - 1]) is None


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
