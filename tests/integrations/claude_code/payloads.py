"""Payloads of hooks and lines of transcripts, for the tests of sessions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from coherence.core.events import Event, Feedback
from coherence.fleet.fleet import Fleet
from coherence.integrations.claude_code.session import ClaudeCodeSession


def event(name: str, **fields: Any) -> dict[str, Any]:
    return {"session_id": "s1", "hook_event_name": name, **fields}


def bash(command: str, number: int = 1) -> dict[str, Any]:
    return {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": f"t{number}"}


def write(path: Path, *lines: dict[str, Any]) -> None:
    with path.open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def refused_line(call: str, **fields: Any) -> dict[str, Any]:
    """Return the line that 2.1.330 writes when the user refuses or stops a call."""
    text = "The user doesn't want to proceed with this tool use. The tool use was rejected."
    block = {"type": "tool_result", "content": text, "is_error": True, "tool_use_id": call}
    message = {"role": "user", "content": [block]}
    told = {"toolUseResult": "User rejected tool use", "toolDenialKind": "user-rejected"}
    return {"type": "user", "message": message, **told, **fields}


def interrupted_line(what: str = "") -> dict[str, Any]:
    text = f"[Request interrupted by user{what}]"
    return {"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": text}]}}


def recorded(fleet: Fleet, agent: str = ClaudeCodeSession.HOST) -> list[Event]:
    """Return what was recorded of an agent, oldest first."""
    return [record.event for record in reversed(fleet.agent(agent).events())]


def notes(fleet: Fleet) -> list[str]:
    return [each.text for each in recorded(fleet) if isinstance(each, Feedback) and each.about == "note"]
