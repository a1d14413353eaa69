"""The real OpenCode with our plug-in: what the model's side received, what was left on the disk, what was recorded."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hosts.hooked_home import HookedHome, skipping, temporary
from hosts.init_checks import check_deletion, check_first_session, check_gone_package, check_removal
from hosts.messages_stub import Fail, MessagesStub, Scripts, Text, Tool, Usage, results_of, texts_of
from hosts.npm_client import Done, installed, run_client

pytestmark = pytest.mark.hosts

VERSION = "1.18.33"


def shell(command: str) -> Tool:
    return Tool("bash", {"command": command, "description": "a step"})


SCRIPTS: Scripts = {
    "delete": [[Text("I look."), shell("ls")], [shell("find . -delete")], [Text("Done.")]],
    "loop": [[shell("python3 missing.py")] for _ in range(9)] + [[Text("It does not work.")]],
    "unreadable": [[Tool("read", {"filePath": "missing.py"})] for _ in range(9)] + [[Text("It is gone.")]],
    "parent": [
        [Tool("task", {"description": "count", "subagent_type": "general", "prompt": "[[script:child]] count"})],
        [Text("The subagent has counted.")],
    ],
    "child": [[shell(f"ls missing-{at}")] for at in range(4)] + [[Text("There is nothing.")]],
    "long": [[Usage({"input_tokens": 995_000}), shell("ls")], [Text("There is one.")]],
    "fault": [[Fail(400, "invalid_request_error", "the scripted fault")]],
}


class Host(HookedHome):
    """The client in a home that has a configuration already."""

    def __init__(self, folder: Path, program: Path) -> None:
        super().__init__(folder, "opencode")
        self.program = program
        self.config = self.home / ".config" / "opencode"
        self.config.mkdir(parents=True)
        (self.config / "opencode.json").write_text('{"permission": "allow"}')

    def run(self, prompt: str, stub: MessagesStub, *options: str) -> Done:
        provider = {"anthropic": {"options": {"baseURL": f"{stub.url}/v1", "apiKey": "dummy"}}}
        env = {
            "OPENCODE_CONFIG_CONTENT": json.dumps({"provider": provider}),
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "npm_config_registry": "http://127.0.0.1:9",  # it would install types for plug-ins meanwhile
            "npm_config_fetch_retries": "0",
        }
        command = [str(self.program), "run", "-m", "anthropic/claude-sonnet-4-5", *options, prompt]
        return run_client(command, folder=self.project, env=self.env | env, timeout=180)


@pytest.fixture
def host() -> Iterator[Host]:
    with skipping():
        program = installed("opencode-ai", os.environ.get("COHERENCE_HOSTS_OPENCODE", VERSION), "opencode")
    with temporary(lambda folder: Host(folder, program)) as made:
        yield made


def told(stub: MessagesStub) -> str:
    return "\n".join(text for turn in stub.turns for text in texts_of(turn))


@pytest.mark.parametrize("hooked", [True, False])
def test_init_opencode_a_deletion_that_nobody_asked_for_is_denied(host: Host, hooked: bool) -> None:
    with MessagesStub(SCRIPTS) as stub:
        check_deletion(host, lambda prompt: host.run(prompt, stub), hooked=hooked)
        refused = [each for each in results_of(stub.turns[-1]) if "coherence refused this call" in str(each)]
    assert len(refused) == hooked


@pytest.mark.parametrize("script", ["loop", "unreadable"])
def test_init_opencode_a_loop_is_told_to_the_model_and_recorded(host: Host, script: str) -> None:
    host.init()
    host.start_daemon()
    with MessagesStub(SCRIPTS) as stub:
        assert host.run(f"[[script:{script}]] Look at missing.py.", stub).returncode == 0
        assert "returned the same error" in told(stub)
    kinds = host.kinds()["opencode"]
    assert kinds.count("tool_call") == kinds.count("tool_result") == 9
    assert kinds.count("usage") == 10  # nine calls and the answer
    assert any(said.firing for said in host.messages())


def test_init_opencode_the_first_session_in_an_empty_home_is_recorded(host: Host) -> None:
    with MessagesStub(SCRIPTS) as stub:
        check_first_session(host, lambda prompt: host.run(prompt, stub), calls=9)


def test_init_opencode_a_subagent_is_recorded_as_an_agent_of_its_own(host: Host) -> None:
    host.init()
    host.start_daemon()
    with MessagesStub(SCRIPTS) as stub:
        assert host.run("[[script:parent]] Count the files.", stub).returncode == 0
    kinds = host.kinds()
    (child,) = [kind for agent, kind in kinds.items() if agent.startswith("opencode/general-")]
    assert child.count("tool_call") == 4
    assert kinds["opencode"].count("tool_call") == 1


def test_init_opencode_what_the_user_wants_is_told_again_after_a_compaction(host: Host) -> None:
    host.init()
    host.start_daemon()
    with MessagesStub(SCRIPTS) as stub:
        assert host.run("[[script:long]] Count the files.", stub).returncode == 0
        assert host.run("[[script:delete]] Tell me their names.", stub, "--continue").returncode == 0
        results = [str(block["content"]) for block in results_of(stub.turns[-1])]
    again = "Before the context was compacted, the user asked: [[script:long]] Count the files."
    assert sum(again in found for found in results) == 1
    assert host.kinds()["opencode"].count("compaction") == 1


def test_init_opencode_a_fault_of_the_model_is_recorded(host: Host) -> None:
    host.init()
    host.start_daemon()
    with MessagesStub(SCRIPTS) as stub:
        host.run("[[script:fault]] Go.", stub)
    assert host.kinds()["opencode"].count("fault") == 1


def test_init_opencode_a_package_that_is_gone_stops_no_work(host: Host) -> None:
    path = host.config / "plugins" / "coherence.js"
    with MessagesStub(SCRIPTS) as stub:
        check_gone_package(host, lambda prompt: host.run(prompt, stub), path)


def test_init_opencode_removed_leaves_the_home_as_it_was(host: Host) -> None:
    with MessagesStub(SCRIPTS) as stub:
        check_removal(host, lambda prompt: host.run(prompt, stub))
        assert "returned the same error" not in told(stub)
