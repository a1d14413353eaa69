"""``coherence explain`` and ``coherence label`` of a refusal, as a user runs them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from integrations.claude_code.payloads import bash, event

from coherence import Monitor
from coherence.cli.main import main
from coherence.core.decisions import refusal_id
from coherence.fleet.fleet import Fleet
from coherence.integrations.claude_code.session import ClaudeCodeSession
from coherence.monitor.replay import Replay
from coherence.store.store import Store

WIPE = "rm -rf ~"
PROMPT = "Tell me what is in this folder. Do not delete data."


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture
def session(store: Path) -> Iterator[ClaudeCodeSession]:
    with Fleet(embedder=False, store=store) as fleet:
        session = ClaudeCodeSession(fleet, "s1")
        session.handle(event("UserPromptSubmit", prompt=PROMPT))
        yield session


def refused(session: ClaudeCodeSession, command: str = WIPE, number: int = 1, **fields: Any) -> str:
    """Have a call refused; return what its reason says is to be explained."""
    answer = session.handle(event("PreToolUse", **bash(command, number), **fields))
    session.fleet.flush()
    found = re.search(r"\(coherence explain ([0-9a-f]{8})\)$", answer["hookSpecificOutput"]["permissionDecisionReason"])
    assert found
    return found[1]


def explained(store: Path, id: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run("explain", id, "--store", store, "--json").stdout)
    return found


def test_explain_refusal_by_the_id_that_its_reason_names(session: ClaudeCodeSession, store: Path) -> None:
    of_subagent = refused(session, agent_id="a1", agent_type="Plan")
    id = refused(session, "rm -r data", 2)
    assert explained(store, of_subagent)["agent"] == "claude-code/Plan-a1"
    found = explained(store, id)
    assert (found["agent"], found["session"], found["source"], found["tool"]) == ("claude-code", "s1", "hook", "Bash")
    assert found["refusal"] == refusal_id("claude-code", "s1", found["ts"])
    assert found["arguments"] == {"command": "rm -r data"}
    assert [each["rule"] for each in found["findings"]] == ["broken_constraint"]
    assert [each["event"]["content"] for each in found["evidence"]] == [PROMPT]
    text = run("explain", id, "--store", store).stdout
    for part in (
        f"refusal     {found['refusal']}\n",
        f"of          claude-code/s1, step {found['step']}, event {found['seq']}, ",
        'call        Bash {"command": "rm -r data"}\n',
        "rule        broken_constraint: 1.00, needs 0.50\n",
        "overridden  no; to let it through: coherence unblock --session s1 --agent claude-code\n",
        f"label       none: coherence label {found['refusal']} good|bad\n",
        "so far      1 refusal by broken_constraint, labelled: 0 right, 0 false alarms\n",
        "seen\n     ",
    ):
        assert part in text


def test_explain_refusal_that_the_person_let_through_was_a_false_alarm(session: ClaudeCodeSession, store: Path) -> None:
    id = refused(session, permission_mode="default")
    session.handle(event("PostToolUse", **bash(WIPE), tool_response={"stdout": ""}))
    session.fleet.flush()
    found = explained(store, id)
    assert (found["overridden"]["reason"], found["label"]) == ("the user let the call through", "bad")
    assert [each["event"]["kind"] for each in found["afterwards"]] == ["tool_call", "tool_result"]
    assert "overridden  yes: the user let the call through, event " in run("explain", id, "--store", store).stdout


def test_explain_refusal_an_unblock_lets_only_the_newest_call_through(session: ClaudeCodeSession, store: Path) -> None:
    older, newer = refused(session), refused(session, "rm -rf /", 2)
    assert "have the agent ask again, then: coherence unblock" in run("explain", older, "--store", store).stdout
    session.monitor.unblock("a person looked")
    session.fleet.flush()
    assert explained(store, older)["overridden"] is None
    assert explained(store, newer)["overridden"]["reason"] == "a person looked"
    assert (explained(store, older)["label"], explained(store, newer)["label"]) == (None, None)
    listed = run("explain", "--store", store).stdout.splitlines()[1:]
    assert [line.split()[4] for line in listed if line.startswith("refusal-")] == ["overridden", "refused"]


def test_explain_refusal_of_all_calls_names_the_step_and_a_raised_budget_ends_it(store: Path) -> None:
    with Fleet(embedder=False, store=store, config={"budget": {"calls": 1}}) as fleet:
        session = ClaudeCodeSession(fleet, "s1")
        session.handle(event("PreToolUse", **bash("ls")))
        session.handle(event("PostToolUse", **bash("ls"), tool_response={"stdout": "a"}))
        session.handle(event("PostToolBatch"))
        step = session.monitor.decide()
        call = refused(session, "ls a", 2)
        assert not step
        id = session.monitor.refusal_id(step)
        found = explained(store, id)
        assert (found["tool"], found["arguments"], found["overridden"]) == (None, None, None)
        assert "call        none: a step was measured" in run("explain", id, "--store", store).stdout
        refused(session, "ls b", 3)
        session.monitor.unblock("more is fine")
        fleet.flush()
    # of a block that stands, the newest refusal is nothing special
    assert explained(store, call)["overridden"]["reason"] == "more is fine"
    listed = json.loads(run("explain", "--store", store, "--json").stdout)
    assert [each["rules"] for each in listed if "refusal" in each] == [["budget.calls"]] * 2


def test_label_one_a_refusal_is_judged_and_no_call_is_let_through(session: ClaudeCodeSession, store: Path) -> None:
    id = refused(session)
    assert run("label", id, "bad", "--store", store).stdout.endswith(" of claude-code/s1 was a false alarm\n")
    newer = refused(session, number=2)  # the session takes the label in only now: this number moves up
    # between them: the measurement of the prompt, and the label
    assert explained(store, newer)["seq"] == explained(store, id)["seq"] + 3
    assert explained(store, id)["label"] == "bad" and explained(store, id)["overridden"] is None
    assert (
        "2 refusals by harmful_call, labelled: 0 right, 1 false alarms" in run("explain", id, "--store", store).stdout
    )
    assert run("label", id, "good", "--store", store).exit_code == 0
    assert explained(store, id)["label"] == "good"
    assert run("label", id, "none", "--store", store).exit_code == 0
    assert explained(store, id)["label"] is None
    log = run("log", "claude-code", "--store", store, "--kind", "feedback").stdout
    assert [line.partition("refusal ")[2].strip() for line in log.splitlines()[1:]] == [
        "a false alarm",
        "confirmed",
        "without a label",
    ]
    session.fleet.close()
    with Store(store) as kept:
        assert kept.verify() == []
        (row,) = kept.sessions()
        assert Replay(kept, row).report().differences == []


def test_label_one_of_the_host_and_of_the_command_are_one(store: Path) -> None:
    with Monitor(agent="a", session="s1", store=store, embedder=False) as m:
        m.confirm(m.check("Bash", {"command": WIPE}))
    assert explained(store, "last")["label"] == "good"
    assert "no; m.unblock(decision=1) lets it through" in run("explain", "last", "--store", store).stdout


def test_explain_refusal_that_was_purged_is_unknown(session: ClaudeCodeSession, store: Path) -> None:
    id = refused(session)
    session.fleet.close()
    assert run("purge", "--session", "s1", "--store", store, "--yes").exit_code == 0
    done = run("explain", id, "--store", store)
    assert done.exit_code == 2 and f"no firing and no refusal is called '{id}'" in done.stderr
