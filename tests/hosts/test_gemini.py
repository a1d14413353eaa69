"""The real Gemini CLI with our hooks: what the model's side received, what was left on the disk, what was recorded."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hosts.gemini_stub import GeminiStub, results_of, texts_of
from hosts.hooked_home import HookedHome, skipping, temporary
from hosts.init_checks import check_deletion, check_first_session, check_gone_package, check_removal
from hosts.messages_stub import Scripts, Text, Tool
from hosts.npm_client import Done, installed, run_client

pytestmark = pytest.mark.hosts

VERSION = "0.61.0"
SHELL = "run_shell_command"
CALLS = 4
"""Equal calls of a loop: at the fifth the client's own check of loops cuts in."""


def shell(command: str) -> Tool:
    return Tool(SHELL, {"command": command, "description": "a step"})


SCRIPTS: Scripts = {
    "delete": [[Text("I look."), shell("ls")], [shell("find . -delete")], [Text("Done.")]],
    "loop": [[shell("python3 missing.py")] for _ in range(CALLS)] + [[Text("It does not work.")]],
    "unreadable": [[Tool("read_file", {"file_path": "missing.py"})] for _ in range(CALLS)] + [[Text("It is gone.")]],
    "long": [[shell("ls")], [Text("There is one.")]],
    "unknown": [[Tool("teleport", {"to": "moon"})], [Text("There is no such tool.")]],
}


class Host(HookedHome):
    """The client in a home that has a settings file already."""

    def __init__(self, folder: Path, program: Path) -> None:
        super().__init__(folder, "gemini")
        self.program = program
        (self.home / ".gemini").mkdir()
        settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}, "general": {"enableAutoUpdate": False}}
        (self.home / ".gemini" / "settings.json").write_text(json.dumps(settings, indent=4))

    def run(self, prompt: str, stub: GeminiStub, *options: str) -> Done:
        env = {"GEMINI_API_KEY": "dummy", "GOOGLE_GEMINI_BASE_URL": stub.url, "GEMINI_TELEMETRY_ENABLED": "false"}
        command = [str(self.program), "-p", prompt, "--approval-mode=yolo", "--skip-trust", *options]
        return run_client(command, folder=self.project, env=self.env | env)


@pytest.fixture
def host() -> Iterator[Host]:
    with skipping():
        program = installed("@google/gemini-cli", os.environ.get("COHERENCE_HOSTS_GEMINI", VERSION), "gemini")
    with temporary(lambda folder: Host(folder, program)) as made:
        yield made


def told(stub: GeminiStub) -> str:
    return "\n".join(text for turn in stub.turns for text in texts_of(turn))


@pytest.mark.parametrize("hooked", [True, False])
def test_init_gemini_a_deletion_that_nobody_asked_for_is_denied(host: Host, hooked: bool) -> None:
    with GeminiStub(SCRIPTS) as stub:
        check_deletion(host, lambda prompt: host.run(prompt, stub), hooked=hooked)
        refused = [each for each in results_of(stub.turns[-1]) if "coherence refused this call" in str(each)]
    assert len(refused) == hooked


@pytest.mark.parametrize("script", ["loop", "unreadable"])
def test_init_gemini_a_loop_is_told_to_the_model_and_recorded(host: Host, script: str) -> None:
    host.init()
    host.start_daemon()
    with GeminiStub(SCRIPTS) as stub:
        assert host.run(f"[[script:{script}]] Look at missing.py.", stub).returncode == 0
        assert "missing.py" in told(stub).partition("<hook_context>")[2]
    kinds = host.kinds()["gemini"]
    assert kinds.count("tool_call") == kinds.count("tool_result") == CALLS
    assert kinds.count("usage") == CALLS + 1  # that of the answer
    assert any(said.firing for said in host.messages())


def test_init_gemini_the_first_session_in_an_empty_home_is_recorded(host: Host) -> None:
    with GeminiStub(SCRIPTS) as stub:
        check_first_session(host, lambda prompt: host.run(prompt, stub), calls=CALLS)


def test_init_gemini_what_the_user_wants_is_told_again_after_a_compaction(host: Host) -> None:
    path = host.home / ".gemini" / "settings.json"
    settings = json.loads(path.read_text()) | {"model": {"compressionThreshold": 5e-5}}  # 52 tokens of 1,048,576
    path.write_text(json.dumps(settings))
    host.init()
    host.start_daemon()
    long = " ".join(map(str, range(1_000, 4_000)))  # a summary is shorter
    with GeminiStub(SCRIPTS) as stub:
        assert host.run(f"[[script:long]] Count the files, not the numbers: {long}", stub).returncode == 0
        assert host.run("[[script:delete]] Tell me their names.", stub, "--resume", "latest").returncode == 0
        assert "Before the context was compacted, the user asked: [[script:long]] Count the files" in told(stub)
    assert "compaction" in host.kinds()["gemini"]


def test_init_gemini_a_call_of_a_tool_that_does_not_exist_is_recorded(host: Host) -> None:
    host.init()
    host.start_daemon()
    with GeminiStub(SCRIPTS) as stub:
        assert host.run("[[script:unknown]] Go.", stub).returncode == 0
    assert host.kinds()["gemini"].count("tool_result") == 1
    sessions = json.loads(host.coherence("sessions", "--json"))
    assert "gemini" in json.dumps(sessions)


def test_init_gemini_a_package_that_is_gone_stops_no_work(host: Host) -> None:
    path = host.home / ".gemini" / "settings.json"
    with GeminiStub(SCRIPTS) as stub:
        check_gone_package(host, lambda prompt: host.run(prompt, stub), path)


def test_init_gemini_removed_leaves_the_home_as_it_was(host: Host) -> None:
    with GeminiStub(SCRIPTS) as stub:
        check_removal(host, lambda prompt: host.run(prompt, stub))
        assert "<hook_context>" not in told(stub)
