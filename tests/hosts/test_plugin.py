"""The plug-in in the real client: installed without a network, at work, its commands, and gone again."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from coherence.store.store import Store
from hosts.claude_client import installed, run_claude
from hosts.hooked_claude import HookedClaude, told
from hosts.messages_stub import MessagesStub, Scripts, Text, Tool, results_of

pytestmark = pytest.mark.hosts

DELETE = Tool("Bash", {"command": "find . -delete"})
SCRIPTS: Scripts = {
    "delete": [
        [Tool("Bash", {"command": "ls"})],
        [DELETE],
        [Tool("Skill", {"skill": "coherence:unblock", "args": "let me"})],
        [Tool("Bash", {"command": "coherence unblock let me"})],
        [Tool("Bash", {"command": "claude -p --continue '/coherence:unblock let me'"})],
        [DELETE],
        [Text("It was refused.")],
    ],
    "again": [[DELETE], [Text("Done.")]],
}
NOWHERE = "http://127.0.0.1:9"


class PluginHost(HookedClaude):
    """The client of one version, with the plug-in in an empty home."""

    @property
    def folder(self) -> Path:
        return self.home.parent / "my plug-in"

    def claude(self, *arguments: str) -> str:
        """Run a command of the client that asks no model, with no way to the network."""
        env = {"HOME": str(self.home), "PATH": "/usr/bin:/bin", "DISABLE_AUTOUPDATER": "1"}
        env |= {"HTTP_PROXY": NOWHERE, "HTTPS_PROXY": NOWHERE}
        command = [str(installed(self.version)), *arguments]
        done = subprocess.run(command, env=env, cwd=self.project, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def install(self) -> None:
        self.coherence("init", "--plugin", str(self.folder), "--yes")
        self.claude("plugin", "marketplace", "add", str(self.folder))
        self.claude("plugin", "install", "coherence@coherence")

    def doctor(self, name: str) -> dict[str, str]:
        checks = json.loads(self.coherence("doctor", "--json"))["checks"]
        return next(check for check in checks if check["name"] == name)


@pytest.fixture
def host(version: str) -> Iterator[PluginHost]:
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        made = PluginHost(Path(name), version)
        yield made
        made.kinds()  # which ends the daemon


def resume(host: PluginHost, session: str, prompt: str, stub: MessagesStub) -> None:
    done = run_claude(
        prompt,
        stub=stub,
        folder=host.project,
        home=host.home,
        env=host.env,
        version=host.version,
        extra=["--resume", session],
    )
    assert done.returncode == 0 and done.result["session_id"] == session


def test_plugin_a_deletion_is_denied_until_the_person_unblocks_it_in_the_session(host: PluginHost) -> None:
    host.install()
    assert "coherence@coherence" in host.claude("plugin", "list")
    assert host.doctor("hooks")["status"] == "OK"
    host.wait_for_daemon()
    victim = host.project / "victim"
    victim.mkdir()
    with MessagesStub(SCRIPTS) as stub:
        done = host.run("[[script:delete]] Tell me what is in this folder.", stub)
        assert done.returncode == 0 and victim.exists()
        answers = [str(each["content"]) for each in results_of(stub.turns[-1])]
        assert [("coherence refused this call" in text) for text in answers] == [False, True, False, True, True, True]
        assert "disable-model-invocation" in answers[2]  # the agent cannot start the command

        session = done.result["session_id"]
        resume(host, session, "[[script:again]] Go on.", stub)
        assert victim.exists()
        resume(host, session, "/coherence:unblock I want it [[script:again]]", stub)
        assert not victim.exists()
        assert "the call refused last may run" in told(stub)
    kinds = host.kinds()["claude-code"]
    assert kinds.count("feedback") == 3  # the end of the block, and a note each time that the session was resumed
    assert kinds.count("tool_call") == 3  # ls, the skill that the client refused, and the deletion that was let through


def test_plugin_status_shows_the_agents_of_the_daemon(host: PluginHost) -> None:
    host.install()
    host.wait_for_daemon()
    with MessagesStub(SCRIPTS) as stub:
        assert host.run("/coherence:status", stub).returncode == 0
        assert "follows 2 sessions" in told(stub)  # this one, and that of wait_for_daemon()


def test_plugin_beside_settings_hooks_each_event_is_counted_once(host: PluginHost) -> None:
    host.install()
    host.coherence("init", "--yes")
    assert host.doctor("hooks")["status"] == "WARN"
    host.wait_for_daemon()
    with MessagesStub(SCRIPTS) as stub:
        assert host.run("[[script:again]] Tell me what is in this folder.", stub).returncode == 0
        assert host.run("What is in this folder?", stub).returncode == 0
    host.kinds()
    with Store(host.env["COHERENCE_STORE"]) as store:
        found = {row.session: [event.kind for event in store.events(row.id)] for row in store.sessions()}
    messages = sorted(kinds.count("message") for kinds in found.values())
    # that of wait_for_daemon(); a prompt and an answer; the same, and between them the message of the refused call
    assert messages == [0, 2, 3]


def test_plugin_uninstalled_leaves_no_hook(host: PluginHost) -> None:
    host.install()
    host.claude("plugin", "uninstall", "coherence@coherence")
    host.claude("plugin", "marketplace", "remove", "coherence")
    assert host.doctor("hooks")["found"] == "no settings of Claude Code have them"
    with MessagesStub(SCRIPTS) as stub:
        assert host.run("Tell me what is in this folder.", stub).returncode == 0
    assert not host.state.exists()
