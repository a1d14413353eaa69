"""The plug-in for OpenCode, run by node with a hook that notes what it is told and answers as it is asked to."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from coherence.integrations.opencode.settings import plugin_text

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="node is not here")

HOOK = """\
import json, sys
said = json.load(sys.stdin)
with open(sys.argv[1], "a") as log:
    log.write(json.dumps(said) + "\\n")
answers = json.loads(sys.argv[2])
print(json.dumps(answers.get(said["hook_event_name"], {})))
"""

DRIVER = """\
import { readFileSync } from "node:fs"
import { Coherence } from "./plugin.mjs"
const hooks = await Coherence({ directory: "/project" })
const results = []
for (const [name, ...given] of JSON.parse(readFileSync(0, "utf8"))) {
  try {
    await hooks[name](...given)
    results.push(given.at(-1))
  } catch (error) {
    results.push(error.message)
  }
}
console.log(JSON.stringify(results))
"""


class Plugin:
    """The plug-in in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "told.jsonl"
        (folder / "hook.py").write_text(HOOK)
        (folder / "driver.mjs").write_text(DRIVER)

    def run(self, *calls: Any, answers: dict[str, Any] | None = None, program: str = sys.executable) -> list[Any]:
        """Call hooks one after the other; return what each has made of its last argument, or why it has refused."""
        command = [program, str(self.folder / "hook.py"), str(self.log), json.dumps(answers or {})]
        (self.folder / "plugin.mjs").write_text(plugin_text(shlex.join(command)))
        done = subprocess.run(
            ["node", str(self.folder / "driver.mjs")], input=json.dumps(calls), capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        found: list[Any] = json.loads(done.stdout)
        return found

    def told(self) -> list[dict[str, Any]]:
        """Return what the hook was told."""
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return Plugin(tmp_path)


def before(call: str = "c1", session: str = "s1") -> list[Any]:
    return ["tool.execute.before", {"tool": "bash", "sessionID": session, "callID": call}, {"args": {"command": "ls"}}]


def after(call: str = "c1", session: str = "s1", **result: Any) -> list[Any]:
    asked = {"tool": "bash", "sessionID": session, "callID": call, "args": {"command": "ls"}}
    return ["tool.execute.after", asked, result or {"output": "a.txt", "metadata": {"exit": 0}}]


def event(kind: str, **properties: Any) -> list[Any]:
    return ["event", {"event": {"type": kind, "properties": properties}}]


def part(session: str = "s1", **fields: Any) -> list[Any]:
    return event("message.part.updated", sessionID=session, part=fields)


def said(message: str = "m1", session: str = "s1", **fields: Any) -> list[Any]:
    return event("message.updated", sessionID=session, info={"id": message, "role": "assistant", **fields})


def failure(call: str = "c1") -> list[Any]:
    return part(type="tool", tool="bash", callID=call, state={"status": "error", "error": "no such file"})


def request(*parts: dict[str, Any]) -> list[Any]:
    return ["experimental.chat.messages.transform", {}, {"messages": [{"info": {}, "parts": list(parts)}]}]


def test_plugin_words_and_tokens_go_with_the_next_event(plugin: Plugin) -> None:
    plugin.run(
        said(),
        part(type="text", messageID="m1", id="p1", text="I l"),  # not at its end yet
        part(type="text", messageID="m1", id="p1", text="I look.", time={"start": 1, "end": 2}),
        before(),
        part(type="step-finish", id="p2", tokens={"input": 7}, cost=0.5),
        event("session.idle", sessionID="s1"),
        event("session.updated", sessionID="s1", info={}),
    )
    call, idle = plugin.told()
    assert call["notes"] == [{"kind": "text", "id": "p1", "text": "I look."}]
    assert {**call, "notes": []} == {
        "hook_event_name": "tool.execute.before",
        "session_id": "s1",
        "cwd": "/project",
        "tool_name": "bash",
        "tool_input": {"command": "ls"},
        "call_id": "c1",
        "notes": [],
    }
    assert idle["notes"] == [{"kind": "usage", "id": "p2", "tokens": {"input": 7}, "cost": 0.5}]


def test_plugin_words_of_the_user_are_none_of_the_model_and_a_summary_is_one(plugin: Plugin) -> None:
    plugin.run(
        part(type="text", messageID="m1", id="p1", text="Continue.", synthetic=True, time={"end": 2}),
        said("m2", summary=True),
        part(type="text", messageID="m2", id="p2", text="What was asked for is under way.", time={"end": 2}),
        event("session.idle", sessionID="s1"),
    )
    assert plugin.told()[0]["notes"] == [{"kind": "compaction", "id": "p2", "text": "What was asked for is under way."}]


def test_plugin_a_denied_call_raises_its_reason_and_is_no_failure(plugin: Plugin) -> None:
    answers = {"tool.execute.before": {"decision": "deny", "reason": "It deletes all."}}
    assert plugin.run(before(), failure(), answers=answers)[0] == "It deletes all."
    assert [each["hook_event_name"] for each in plugin.told()] == ["tool.execute.before"]


def test_plugin_what_is_told_after_a_call_is_added_to_its_output_and_seen_in_the_next_request(plugin: Plugin) -> None:
    output = {"type": "tool", "callID": "c1", "state": {"status": "completed", "output": "a.txt\n\nIt failed twice."}}
    results = plugin.run(
        after(),
        request(output),
        event("session.idle", sessionID="s1"),
        answers={"tool.execute.after": {"context": "It failed twice."}},
    )
    assert results[0]["output"] == "a.txt\n\nIt failed twice."
    assert plugin.told()[-1]["notes"] == [{"kind": "shown", "text": "It failed twice."}]


def test_plugin_what_is_told_after_a_failure_is_added_to_its_error_in_each_request_once(plugin: Plugin) -> None:
    error = {"type": "tool", "callID": "c1", "state": {"status": "error", "error": "no such file"}}
    told = "no such file\n\nIt failed twice."
    again = {**error, "state": {"status": "error", "error": told}}
    results = plugin.run(
        failure(),
        request(error),
        request(again),
        event("session.idle", sessionID="s1"),
        answers={"tool.failed": {"context": "It failed twice."}},
    )
    assert [found["messages"][0]["parts"][0]["state"]["error"] for found in results[1:3]] == [told, told]
    assert plugin.told()[-1]["notes"] == [{"kind": "shown", "text": "It failed twice."}]


def test_plugin_content_of_a_server_of_tools_is_told_and_added_to(plugin: Plugin) -> None:
    content = [{"type": "text", "text": "a.txt"}]
    (found,) = plugin.run(after(content=content), answers={"tool.execute.after": {"context": "It failed twice."}})
    assert plugin.told()[0]["output"] == content
    assert found == {"content": [*content, {"type": "text", "text": "It failed twice."}]}


def test_plugin_a_subagent_is_told_as_one_of_the_session_that_has_started_it(plugin: Plugin) -> None:
    message: dict[str, Any] = {"message": {"model": {"modelID": "m"}}}
    texts = [{"type": "text", "text": "Count."}, {"type": "text", "text": "added", "synthetic": True}, {"type": "file"}]
    plugin.run(
        event("session.created", sessionID="s1", info={"id": "s1"}),
        event("session.created", sessionID="s2", info={"id": "s2", "parentID": "s1", "agent": "general"}),
        ["chat.message", {"sessionID": "s2"}, {**message, "parts": texts}],
        said("m2", "s2"),
        part("s2", type="text", messageID="m2", id="p1", text="One.", time={"end": 2}),
        event("session.error", sessionID="s1", error={"name": "APIError", "data": {"message": "overloaded"}}),
        after(session="s1"),
    )
    asked, ended = plugin.told()
    assert (asked["session_id"], asked["agent_id"], asked["agent_type"]) == ("s1", "s2", "general")
    assert (asked["prompt"], asked["model"]) == ("Count.", "m")
    assert ended["session_id"] == "s1" and "agent_id" not in ended
    assert ended["notes"] == [
        {"agent_id": "s2", "agent_type": "general", "kind": "text", "id": "p1", "text": "One."},
        {"kind": "error", "text": "overloaded"},
    ]


@pytest.mark.parametrize("program", ["/gone/python", "false", "echo"])
def test_plugin_a_hook_that_does_not_work_stops_nothing(plugin: Plugin, program: str) -> None:
    results = plugin.run(before(), after(), event("session.idle", sessionID="s1"), program=program)
    assert results[0] == {"args": {"command": "ls"}}
    assert results[1]["output"] == "a.txt"
