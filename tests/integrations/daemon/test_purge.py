"""Purging a session of hooks: nothing of its texts is left in any file, with and without a daemon."""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from integrations.running import call, running, tell

from coherence.cli.main import main
from coherence.integrations.daemon import hook
from coherence.integrations.daemon.log import OLD_LOG
from coherence.integrations.daemon.purge import Removed, forget_session
from coherence.store.store import Store

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the daemon needs Unix sockets")

MARK, OTHER = "Aldermaston", "Wexcombe"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the state folder, in which the tests' daemons keep their store too."""
    monkeypatch.chdir(tmp_path)  # back again at the end
    monkeypatch.setenv("COHERENCE_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("COHERENCE_STORE", str(tmp_path / "state" / "store.db"))
    return tmp_path / "state"


def live(session: str, word: str) -> None:
    """Let a session and its subagent say a word wherever they can: errors and their fix, a refused call, an answer."""
    tell("UserPromptSubmit", session, prompt=f"Look into {word}, please")
    agents: list[dict[str, str]] = [{}, {"agent_id": "a1", "agent_type": "Explore"}]
    for agent in agents:
        for at in range(4):
            asked: dict[str, Any] = {"tool_name": "Bash", "tool_use_id": f"{session} {at}", **agent}
            asked["tool_input"] = {"command": f"python3 -m {word}"}
            tell("PreToolUse", session, **asked)
            tell("PostToolUseFailure", session, error=f"ModuleNotFoundError: No module named '{word}'", **asked)
            tell("PostToolBatch", session, **agent)
        for at, command in enumerate((f"pip install {word}", f"python3 -m {word}")):
            asked = {"tool_name": "Bash", "tool_use_id": f"{session} fix {at}", **agent}
            asked["tool_input"] = {"command": command}
            tell("PreToolUse", session, **asked)
            tell("PostToolUse", session, tool_response={"stdout": f"{word} done"}, **asked)
            tell("PostToolBatch", session, **agent)
    assert not call(session, f"rm -rf / # {word}")
    tell("Stop", session, last_assistant_message=f"I have seen {word}.")


def keep(folder: Path, session: str, word: str, name: str) -> Path:
    """Put a payload into the spool as a hook does."""
    payload = {"hook_event_name": "UserPromptSubmit", "session_id": session, "prompt": word}
    path = folder / hook.SPOOL / name
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_bytes(hook.request(json.dumps(payload).encode(), observe=False))
    return path


def holding(folder: Path, word: str) -> set[str]:
    """Return the files that hold a text, but for the socket."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)) for path in files if word.encode() in path.read_bytes()}


def purge(session: str, *options: str) -> Result:
    return CliRunner().invoke(main, ["purge", "--session", session, "--yes", *options])


def test_purge_session_leaves_nothing_in_any_file_while_the_daemon_runs(folder: Path) -> None:
    with running(folder) as process:
        live("s2", OTHER)
        live("s1", MARK)
        keep(folder, "s1", MARK, "1.part")  # of a hook that was killed
        (folder / hook.LOG).write_text(f"ERROR {MARK}\n")
        (folder / OLD_LOG).write_text(f"ERROR {MARK}\n")
        with Store(folder / "store.db") as store:
            learned = store.fetch("SELECT error_text, fix_text FROM lessons")
        assert MARK in str(learned), "a lesson was learned from it"
        before = holding(folder, MARK)
        assert {"store.db", "store.db-wal"} & before and {"spool/1.part", hook.LOG, OLD_LOG} <= before
        done = purge("s1")
        assert (done.exit_code, done.stderr) == (0, ""), done.output
        assert "purged: " in done.stdout and " of 2 sessions, 1 lessons" in done.stdout  # of both agents, one each
        assert f"removed from {folder}: 1 payload and 1 refusal" in done.stdout
        assert holding(folder, MARK) == set()
        assert holding(folder, OTHER)
        assert process.poll() is None
        assert not call("s2", f"rm -rf / # {OTHER}"), "the other session is still followed"
        assert call("s1", "ls"), "an event that comes later begins another session"
    assert holding(folder, MARK) == set()
    with Store(folder / "store.db") as store:
        assert store.verify() == [] and store.count_purged() > 20
        assert {(row.agent, row.session) for row in store.sessions()} == {
            ("claude-code", "s2"),
            ("claude-code/Explore-a1", "s2"),
            ("claude-code", "s1~2"),
        }


def test_purge_session_while_events_come_begins_another_one(folder: Path) -> None:
    sent, over = 0, threading.Event()

    def talk() -> None:
        nonlocal sent
        while not over.is_set():
            tell("UserPromptSubmit", "s1", prompt=f"Look into {MARK}-{sent:05}, please")
            sent += 1

    with running(folder):
        tell("UserPromptSubmit", "s2", prompt=OTHER)
        thread = threading.Thread(target=talk)
        thread.start()
        try:
            while sent < 30:
                assert thread.is_alive(), "a hook got no answer"
                time.sleep(0.01)
            before = sent
            assert purge("s1").exit_code == 0
            after = sent
            while sent < after + 10:
                assert thread.is_alive(), "a hook got no answer"
                time.sleep(0.01)
        finally:
            over.set()
            thread.join()
    assert [at for at in range(before) if holding(folder, f"{MARK}-{at:05}")] == []
    assert holding(folder, f"{MARK}-{sent - 1:05}") == {"store.db"}
    with Store(folder / "store.db") as store:
        assert store.verify() == []
        assert {row.session for row in store.sessions()} == {"s2", "s1~2"}


def test_purge_session_without_a_daemon_takes_what_waits_for_one(folder: Path) -> None:
    with running(folder):
        tell("UserPromptSubmit", "s1", prompt=MARK)
        assert not call("s1", f"rm -rf / # {MARK}")
    keep(folder, "s1", MARK, "1.payload")
    other = keep(folder, "s2", OTHER, "2.payload")
    done = purge("s1")
    assert (done.exit_code, done.stderr) == (0, "")
    assert f"removed from {folder}: 1 payload and 1 refusal" in done.stdout
    assert holding(folder, MARK) == set() and other.exists()
    again = purge("s1")
    assert again.exit_code == 0 and "purged: 0 events of 1 sessions, 0 lessons" in again.stdout


def test_purge_session_of_another_store_leaves_the_daemons_alone(folder: Path, tmp_path: Path) -> None:
    with running(folder):
        tell("UserPromptSubmit", "s1", prompt=MARK)
        with Store(tmp_path / "copy.db") as other, other.transaction() as transaction:
            transaction.add_session(session="s1", agent="x", parent=None, source="api", started=1.0, config="{}")
        done = purge("s1", "--store", str(tmp_path / "copy.db"))
        assert done.exit_code == 0 and "of 1 sessions" in done.stdout and "removed from" not in done.stdout
    assert holding(folder, MARK)


def test_purge_session_that_is_not_there_changes_nothing(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    Store(folder / "store.db").close()
    kept = keep(folder, "nobody", MARK, "1.payload")
    done = purge("nobody")
    assert done.exit_code == 2 and "there is no session nobody" in done.stderr and kept.exists()


def test_purge_needs_a_name(folder: Path) -> None:
    done = CliRunner().invoke(main, ["purge", "--yes"])
    assert done.exit_code == 2 and "--agent, --session or both" in done.stderr


def test_forget_session_removes_parts_of_payloads_and_leaves_those_of_others(folder: Path) -> None:
    folder.mkdir()
    mine, cut = keep(folder, "s1", MARK, "1.payload"), keep(folder, "s1", MARK, "2.part")
    cut.write_bytes(cut.read_bytes()[:-3])
    other = keep(folder, "s2", f"s1 {OTHER}", "3.payload")
    assert forget_session(folder, "s1") == Removed(payloads=2, refusals=0)
    assert not mine.exists() and not cut.exists() and other.exists()
