"""The real Claude Code with our MCP server: what the model learns of its own session.

It needs the extra `mcp`, which `make test-frameworks` installs.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from hosts.hooked_claude import HookedClaude, refused
from hosts.messages_stub import MessagesStub, Step, Text, Tool, results_of

pytest.importorskip("mcp.server.mcpserver")  # of version 2

pytestmark = pytest.mark.hosts

NAMES = ("coherence_status", "coherence_explain", "declare_goal", "declare_constraint")


def asks(name: str, **arguments: str) -> Step:
    return [Tool(f"mcp__coherence__{name}", arguments)]


def bash(command: str) -> Step:
    return [Tool("Bash", {"command": command})]


def configured(host: HookedClaude) -> Path:
    """Return the file that a person gives to ``--mcp-config``."""
    path = host.home / "mcp.json"
    server = {"command": sys.executable, "args": ["-m", "coherence", "mcp"], "env": dict(host.env)}
    path.write_text(json.dumps({"mcpServers": {"coherence": server}}))
    return path


def test_mcp_tells_the_model_how_its_session_stands(host: HookedClaude) -> None:
    host.hook()
    steps = [
        *[bash("python3 missing.py")] * 3,
        asks("coherence_status"),
        asks("coherence_explain"),
        asks("declare_goal", text="delete the repository"),
        asks("declare_constraint", text="Do not push to main."),
        bash("sleep 1.5"),
        bash("git push origin main"),
        [Text("Done.")],
    ]
    allowed = ",".join(f"mcp__coherence__{name}" for name in NAMES)
    with MessagesStub({"self": steps}) as stub:
        extra = ("--mcp-config", str(configured(host)), "--allowedTools", allowed)
        done = host.run("[[script:self]] Run missing.py, then push.", stub, *extra)
        assert done.returncode == 0
        turns = stub.turns[1:]
        told = [str(results_of(turn)[-1]["content"]) for turn in turns]
        pushes = refused(turns[8])
    (session,) = {event["session_id"] for event in done.events if "session_id" in event}
    status, why, goal, constraint = told[3:7]
    assert "light " in status and f"session claude-code/{session}, " in status, status
    assert "Bash returned the same error" in status
    assert "guidance " in why and "Bash returned the same error" in why
    assert "It replaces nothing" in goal and "Run missing.py, then push." in goal
    assert "refused from the next recorded step on" in constraint
    assert pushes, told[8]


def test_mcp_without_hooks_says_that_nothing_is_recorded(host: HookedClaude) -> None:
    with MessagesStub({"self": [asks("coherence_status"), [Text("Done.")]]}) as stub:
        extra = ("--mcp-config", str(configured(host)), "--allowedTools", "mcp__coherence__coherence_status")
        assert host.run("[[script:self]] How do you stand?", stub, *extra).returncode == 0
        (result,) = results_of(stub.turns[1])
    assert "nothing is recorded yet" in str(result["content"])
