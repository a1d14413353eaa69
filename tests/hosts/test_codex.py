"""The real Codex CLI with our hooks: what the model's side received, what is left on the disk, what was recorded."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from coherence.core.events import Event, Message, ToolCall, ToolResult, Usage, decode_event
from coherence.integrations.codex import diagnosis
from coherence.integrations.codex.diagnosis import diagnose_codex
from coherence.store.store import Store
from hosts.codex_client import installed, run_codex
from hosts.hooked_home import HookedHome, skipping, temporary
from hosts.messages_stub import Scripts, Step, Text, Tool
from hosts.responses_stub import ResponsesStub, outputs_of, texts_of

pytestmark = pytest.mark.hosts


def shell(command: str) -> Tool:
    return Tool("exec_command", {"cmd": command})


RUNS: Step = (Text("I run it."), shell("python3 missing.py"))

SCRIPTS: Scripts = {
    "delete": [[shell("ls")], [shell("find . -delete")], [Text("Done.")]],
    "loop": [RUNS] * 9 + [[Text("It does not work.")]],
    "patch": [
        [shell("apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: gone.txt\n-a\n+b\n*** End Patch\nEOF\n")],
        [Tool("nonesuch", {"a": 1})],
        [shell("ls"), shell("cat notes.txt")],
        [Text("Nothing to patch.")],
    ],
}


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[HookedHome]:
    monkeypatch.delenv("CODEX_HOME", raising=False)  # that of whoever runs the tests
    with skipping():
        installed()
    with temporary(lambda folder: HookedHome(folder, "codex")) as made:
        yield made


def recorded(host: HookedHome) -> list[Event]:
    """Return what was recorded of the main agent; the daemon ends."""
    host.stop_daemon()
    with Store(host.env["COHERENCE_STORE"]) as store:
        return [
            decode_event(event.data)
            for row in store.sessions()
            if row.agent == "codex"
            for event in store.events(row.id)
        ]


@pytest.mark.parametrize("hooked", [True, False])
def test_init_what_nobody_asked_to_delete_stays(host: HookedHome, hooked: bool) -> None:
    if hooked:
        host.init()
        host.start_daemon()
    with ResponsesStub(SCRIPTS) as stub:
        done = run_codex("[[script:delete]] What is in here?", stub=stub, folder=host.project, env=host.env)
    assert done.returncode == 0, done.stderr
    assert (host.project / "notes.txt").exists() == hooked
    assert ("coherence refused this call" in outputs_of(stub.requests[-1])[-1]) == hooked
    if hooked:
        # the call that was refused is no call
        assert [bytes(each.arguments) for each in recorded(host) if isinstance(each, ToolCall)] == [b'{"command":"ls"}']


def test_init_a_loop_is_told_to_the_model_and_recorded(host: HookedHome) -> None:
    host.init()
    host.start_daemon()
    with ResponsesStub(SCRIPTS) as stub:
        done = run_codex("[[script:loop]] Run missing.py.", stub=stub, folder=host.project, env=host.env)
    assert done.returncode == 0, done.stderr
    first, last = (texts_of(stub.requests[at], "developer") for at in (0, -1))
    told = [text for text in last if text not in first]
    assert "missing.py" in "".join(told) and len(told) == len(set(told))
    found = recorded(host)
    assert sum(isinstance(each, ToolCall) for each in found) == 9
    results = [each for each in found if isinstance(each, ToolResult)]
    assert [each.error for each in results] == [True] * 9  # exit status 2, which only the rollout tells
    assert sum(isinstance(each, Usage) for each in found) == 10  # nine calls and the answer
    words = [each.content for each in found if isinstance(each, Message) and each.role == "assistant"]
    assert words == ["I run it."] * 9 + ["It does not work."]
    assert 1 <= sum(isinstance(each, Message) and bool(each.firing) for each in found) <= len(told)


def test_init_calls_without_hooks_are_recorded_from_the_rollout(host: HookedHome) -> None:
    host.init()
    host.start_daemon()
    with ResponsesStub(SCRIPTS) as stub:
        done = run_codex("[[script:patch]] Patch it.", stub=stub, folder=host.project, env=host.env)
    assert done.returncode == 0, done.stderr
    found = recorded(host)
    assert [each.tool_name for each in found if isinstance(each, ToolCall)] == ["Bash", "nonesuch", "Bash", "Bash"]
    results = {each.call_id: each for each in found if isinstance(each, ToolResult)}
    failed = [results[each.call_id].error for each in found if isinstance(each, ToolCall)]
    assert failed == [True, True, False, False]


def test_init_a_session_that_runs_while_no_daemon_does_is_recorded_once(host: HookedHome) -> None:
    host.init()
    with ResponsesStub(SCRIPTS) as stub:
        done = run_codex("[[script:loop]] Run missing.py.", stub=stub, folder=host.project, env=host.env)
    assert done.returncode == 0, done.stderr
    host.wait_for_daemon()
    found = recorded(host)
    assert isinstance(found[0], Message) and found[0].role == "user"
    assert sum(isinstance(each, ToolCall) for each in found) == 9
    assert [each.error for each in found if isinstance(each, ToolResult)] == [True] * 9


@pytest.mark.parametrize("trusted", [False, True])
def test_diagnose_codex_tells_whether_the_hooks_will_run(
    host: HookedHome, monkeypatch: pytest.MonkeyPatch, trusted: bool
) -> None:
    monkeypatch.setenv("CODEX_HOME", str(host.home / ".codex"))
    monkeypatch.setenv("PATH", f"{installed().parent}{os.pathsep}{os.environ['PATH']}")
    host.init()
    if trusted:  # as "t" in /hooks does it
        hooks = diagnosis._ask(str(installed())) or []
        states = [f'[hooks.state."{each["key"]}"]\ntrusted_hash = "{each["currentHash"]}"\n' for each in hooks]
        (host.home / ".codex" / "config.toml").write_text("\n".join(states))
    hooks_check, trust = diagnose_codex(host.state)
    assert (hooks_check.status, trust.status) == ("OK", "OK" if trusted else "FAIL")
    assert trust.found.startswith("Codex trusts all 9" if trusted else "Codex skips 9 of 9 hooks")
    host.start_daemon()
    with ResponsesStub(SCRIPTS) as stub:
        asked = "[[script:delete]] What is in here?"
        done = run_codex(asked, stub=stub, folder=host.project, env=host.env, extra=())
    assert done.returncode == 0, done.stderr
    assert (host.project / "notes.txt").exists() == trusted
    assert bool(recorded(host)) == trusted
    if trusted:
        host.init("--observe")  # another command, which nobody has trusted
        assert diagnose_codex(host.state)[1].status == "FAIL"


def test_init_removed_leaves_the_home_as_it_was(host: HookedHome) -> None:
    before = host.files()
    host.init()
    assert list(host.files()) == [".codex/hooks.json"]
    host.init("--remove")
    assert host.files() == before
    with ResponsesStub(SCRIPTS) as stub:
        done = run_codex("[[script:loop]] Run missing.py.", stub=stub, folder=host.project, env=host.env)
    assert done.returncode == 0, done.stderr
    assert "coherence" not in str(stub.requests[-1]["input"])
    assert not host.state.exists()
