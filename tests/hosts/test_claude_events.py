"""What only a person at the real client can do: answer a question, press Esc, look at the status line."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coherence.core.events import Event, Fault, Feedback, ToolCall, ToolResult, Usage, decode_event
from coherence.integrations.claude_code import statusline
from coherence.lessons import LessonStore
from coherence.store.store import Store
from hosts.claude_client import VERSION
from hosts.claude_terminal import ClaudeTerminal
from hosts.hooked_claude import HookedClaude
from hosts.messages_stub import MessagesStub, Scripts, Text, Tool, Wait, results_of, texts_of
from hosts.npm_client import UnavailableError

pytestmark = pytest.mark.hosts

SCRIPTS: Scripts = {
    "delete": [[Tool("Bash", {"command": "find . -delete"})], [Text("That was it.")]],
    "wait": [[Text("I think."), Wait(60), Text("That was it.")]],
    "call": [[Tool("Bash", {"command": "python3 -c 'import time; time.sleep(60)'"})], [Text("That was it.")]],
    "fail": [[Tool("Bash", {"command": "python3 app.py"})], [Text("That was it.")]],
}


@pytest.fixture
def host(version: str) -> Iterator[HookedClaude]:
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        made = HookedClaude(Path(name), version)
        made.coherence("init", "--yes")
        path = made.home / ".claude" / "settings.json"
        read = json.loads(path.read_text())
        line = f"{sys.executable} -I -S {statusline.__file__} {made.state}"
        allowed = {"allow": ["Bash(python3:*)"]}
        path.write_text(
            json.dumps({**read, "permissions": allowed, "statusLine": {"type": "command", "command": line}})
        )
        made.wait_for_daemon()
        yield made
        made.coherence("daemon", "stop")


def at_the_keyboard(host: HookedClaude, stub: MessagesStub) -> ClaudeTerminal:
    mode = ("--permission-mode", "default")
    try:
        return ClaudeTerminal(
            stub=stub, folder=host.project, home=host.home, env=host.env, version=host.version, extra=mode
        )
    except UnavailableError as error:
        pytest.skip(str(error))


def recorded(host: HookedClaude) -> list[Event]:
    """Return what was recorded of the main agent, once the daemon has written all of it."""
    host.coherence("daemon", "stop")
    until = time.monotonic() + 30
    while (host.state / "daemon.sock").exists():
        assert time.monotonic() < until
        time.sleep(0.05)
    with Store(host.env["COHERENCE_STORE"]) as store:
        rows = [row for row in store.sessions() if row.agent == "claude-code" and row.session != "warm"]
        return [decode_event(event.data) for row in rows for event in store.events(row.id)]


def judged(events: list[Event]) -> list[tuple[float | None, str]]:
    return [(each.score, each.text) for each in events if isinstance(each, Feedback) and each.about == "block"]


def noted(events: list[Event]) -> list[str]:
    return [each.text for each in events if isinstance(each, Feedback) and each.about == "note"]


def test_questions_the_person_reads_our_reason_and_lets_the_call_through(host: HookedClaude) -> None:
    (host.project / "victim").mkdir()
    with MessagesStub(SCRIPTS) as stub, at_the_keyboard(host, stub) as terminal:
        terminal.type("[[script:delete]] Tell me what is in this folder.")
        shown = terminal.wait_for("Do you want to proceed?")
        assert "coherence refused this call: find . -delete wipes" in shown
        terminal.press("Enter")
        terminal.wait_for("That was it.")
    assert not (host.project / "victim").exists()
    events = recorded(host)
    assert judged(events) == [(None, "the user let the call through")]
    assert [type(each) for each in events if isinstance(each, ToolCall | ToolResult)] == [ToolCall, ToolResult]
    assert "the user is asked whether a call of Bash may run" in noted(events)


def test_questions_the_person_says_no_and_the_refusal_is_confirmed(host: HookedClaude) -> None:
    (host.project / "victim").mkdir()
    with MessagesStub(SCRIPTS) as stub, at_the_keyboard(host, stub) as terminal:
        terminal.type("[[script:delete]] Tell me what is in this folder.")
        terminal.wait_for("Do you want to proceed?")
        terminal.press("Escape")
        terminal.wait_until(lambda: "Do you want to proceed?" not in terminal.screen())  # 2.1.197 says no more
        terminal.type("Do nothing.")
        terminal.wait_until(lambda: len(stub.turns) == 2)
    assert (host.project / "victim").exists()
    events = recorded(host)
    told = [(1.0, "the user refused the call, too")]
    assert judged(events) == (told if host.version == VERSION else [])  # an older one does not tell whether it ran
    assert not [each for each in events if isinstance(each, ToolCall | ToolResult)]


@pytest.mark.parametrize("script", ["wait", "call"])
def test_interruption_esc_is_noted_and_no_failure(host: HookedClaude, script: str) -> None:
    with MessagesStub(SCRIPTS) as stub, at_the_keyboard(host, stub) as terminal:
        terminal.type(f"[[script:{script}]] Tell me what is in this folder.")
        terminal.wait_until(lambda: len(stub.turns) == 1)
        if script == "call":
            terminal.wait_until(lambda: "time.sleep" in terminal.screen())
        time.sleep(2)
        terminal.press("Escape")
        terminal.wait_for("What should Claude do instead?", "Interrupted")
        terminal.type("Do nothing.")
        terminal.wait_until(lambda: len(stub.turns) == 2)
    events = recorded(host)
    assert "the user interrupted the agent" in noted(events)
    assert not [each for each in events if isinstance(each, Fault)]
    results = [each for each in events if isinstance(each, ToolResult)]
    assert [each.error for each in results] == ([False] if script == "call" else [])


def test_costs_and_context_of_the_status_line_reach_the_record(host: HookedClaude) -> None:
    with MessagesStub(SCRIPTS) as stub, at_the_keyboard(host, stub) as terminal:
        terminal.type("Say hello.")
        terminal.wait_for("· context ")
        terminal.type("Say hello again.")
        # 14,000 tokens at the price of the client's own table, twice
        terminal.wait_until(lambda: len(stub.turns) == 2 and any(cost > 0.1 for cost in costs(host)))
        (agent,) = agents(host)
        terminal.wait_for(f"context {agent['context_percent']:.0f}% · ${agent['cost_usd']:.2f}")
        terminal.type("/exit")
        terminal.wait_until(lambda: not agents(host))
    used = [each for each in recorded(host) if isinstance(each, Usage)]
    assert sum(each.cost_usd or 0.0 for each in used) == pytest.approx(agent["cost_usd"])
    assert sum(each.input_tokens is not None for each in used) == 2


def agents(host: HookedClaude) -> list[dict[str, Any]]:
    found = json.loads(host.coherence("status", "--json"))
    return [agent for session in found["sessions"] if session["session"] != "warm" for agent in session["agents"]]


def costs(host: HookedClaude) -> list[float]:
    return [cost for each in agents(host) if isinstance(cost := each["cost_usd"], float)]


def test_lesson_reaches_the_model_after_the_step_that_failed(host: HookedClaude) -> None:
    (host.project / "app.py").write_text("import yamlx")
    with LessonStore(host.env["COHERENCE_STORE"]) as lessons:
        lessons.record(
            pattern="ModuleNotFoundError",
            error_text="ModuleNotFoundError: No module named 'yamlx'",
            fix_text="pip install yamlx",
            tool="Bash",
        )
    with MessagesStub(SCRIPTS) as stub:
        assert host.run("[[script:fail]] Run app.py.", stub).returncode == 0
        (failed,) = results_of(stub.turns[-1])
        assert "No module named" in str(failed["content"])
        texts = [text for text in texts_of(stub.turns[-1]) if "pip install yamlx" in text]
    assert len(texts) == 1 and "PostToolBatch" in texts[0]


def test_clear_begins_another_task(host: HookedClaude) -> None:
    with MessagesStub(SCRIPTS) as stub, at_the_keyboard(host, stub) as terminal:
        terminal.type("Say hello.")
        terminal.wait_until(lambda: len(stub.turns) == 1)
        time.sleep(2)
        terminal.type("/clear")
        time.sleep(3)
        terminal.type("Write a poem.")
        terminal.wait_until(lambda: len(stub.turns) == 2)
        time.sleep(2)
    events = recorded(host)
    assert "the user cleared the conversation" in noted(events)
