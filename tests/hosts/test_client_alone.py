"""The real client against the stub, without any of our code: what the other tests of hosts build on."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from hosts.claude_client import Finished, run_claude
from hosts.messages_stub import MessagesStub, Scripts, Text, Tool, results_of

pytestmark = pytest.mark.hosts

HOOK = '''\
"""Note what the client says, and answer as a hook of a guard would."""
import json, sys
said = json.load(sys.stdin)
event = said["hook_event_name"]
with open(sys.argv[1], "a") as log:
    log.write(json.dumps(said) + "\\n")
answer = {}
if event == "PostToolBatch":
    answer = {"additionalContext": "CONTEXT-OF-THE-HOOK"}
if event == "PreToolUse" and "rm -rf" in said["tool_input"].get("command", ""):
    answer = {"permissionDecision": "deny", "permissionDecisionReason": "DENIED-BY-THE-HOOK"}
if answer:
    print(json.dumps({"hookSpecificOutput": {"hookEventName": event, **answer}}))
'''

SCRIPTS: Scripts = {
    "new": [[Text("I write it."), Tool("Bash", {"command": "echo hello > new.txt"})], [Text("It is written.")]],
    "delete": [[Tool("Bash", {"command": "rm -rf victim"}, "toolu_delete")], [Text("Done.")]],
}


class Hook:
    """A command hook in ``folder`` that notes what it is told."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "hook.jsonl"
        script = folder / "hook.py"
        script.write_text(HOOK)
        self.command = shlex.join([sys.executable, "-I", "-S", str(script), str(self.log)])

    @property
    def settings(self) -> dict[str, Any]:
        group = {"hooks": [{"type": "command", "command": self.command, "timeout": 20}]}
        return {"hooks": {event: [group] for event in ("PreToolUse", "PostToolUse", "PostToolBatch", "Stop")}}

    def told(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]


class Host:
    """The client of one version, with folders of its own."""

    def __init__(self, folder: Path, version: str) -> None:
        self.home = folder / "home"
        self.project = folder / "project"
        self.project.mkdir()
        self.version = version

    def run(self, prompt: str, stub: MessagesStub, settings: dict[str, Any] | None = None) -> Finished:
        return run_claude(
            prompt, stub=stub, folder=self.project, home=self.home, settings=settings, version=self.version
        )


@pytest.fixture
def host(version: str, tmp_path: Path) -> Host:
    return Host(tmp_path, version)


def test_run_claude_does_what_a_script_says(host: Host) -> None:
    with MessagesStub(SCRIPTS) as stub:
        finished = host.run("[[script:new]] please", stub)
    assert finished.returncode == 0, finished
    assert finished.result["result"] == "It is written."
    assert (host.project / "new.txt").read_text() == "hello\n"
    first, second = stub.turns
    assert not results_of(first)
    (result,) = results_of(second)
    assert not result.get("is_error"), result


def test_run_claude_calls_hooks_and_hands_on_their_context(host: Host, tmp_path: Path) -> None:
    hook = Hook(tmp_path)
    with MessagesStub(SCRIPTS) as stub:
        finished = host.run("[[script:new]] please", stub, hook.settings)
    assert finished.returncode == 0, finished
    assert [said["hook_event_name"] for said in hook.told()] == ["PreToolUse", "PostToolUse", "PostToolBatch", "Stop"]
    assert {said["cwd"] for said in hook.told()} == {str(host.project)}
    assert len(stub.turns) == 2
    assert any("CONTEXT-OF-THE-HOOK" in text for text in stub.texts())


@pytest.mark.parametrize("guarded", [False, True])
def test_run_claude_deletes_a_folder_unless_a_hook_denies(host: Host, tmp_path: Path, guarded: bool) -> None:
    victim = host.project / "victim"
    victim.mkdir()
    (victim / "work.txt").write_text("a week's work")
    with MessagesStub(SCRIPTS) as stub:
        finished = host.run("[[script:delete]] please", stub, Hook(tmp_path).settings if guarded else None)
    assert finished.returncode == 0, finished
    assert victim.exists() == guarded
    (result,) = results_of(stub.turns[-1])
    assert result["tool_use_id"] == "toolu_delete"
    assert bool(result.get("is_error")) == guarded
    assert any("DENIED-BY-THE-HOOK" in text for text in stub.texts()) == guarded
