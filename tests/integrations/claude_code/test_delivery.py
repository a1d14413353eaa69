"""A canary: told to one session, looked for in its transcript, and what is said in each case."""

from __future__ import annotations

import json
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from integrations.running import running, tell

from coherence.cli.main import main
from coherence.integrations.claude_code.delivery import check_delivery
from coherence.integrations.daemon import hook
from coherence.integrations.daemon.canary import plant, read_canary, take_canary

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the daemon needs Unix sockets")

ANSWERED = {"type": "assistant", "message": {"id": "m", "content": [{"type": "text", "text": "Hello."}]}}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the state folder, which is not there yet."""
    monkeypatch.chdir(tmp_path)  # back again at the end
    monkeypatch.setenv("COHERENCE_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    path = tmp_path / "s1.jsonl"
    path.write_text(json.dumps(ANSWERED) + "\n")
    return path


def shown(text: str, ts: float) -> dict[str, Any]:
    """Return the line by which a transcript shows what a hook has added."""
    attachment = {"type": "hook_additional_context", "content": [text]}
    return {"type": "attachment", "attachment": attachment, "timestamp": datetime.fromtimestamp(ts, UTC).isoformat()}


def append(path: Path, line: dict[str, Any]) -> None:
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")


def context_of(answer: dict[str, Any]) -> str:
    text: str = answer.get("hookSpecificOutput", {}).get("additionalContext", "")
    return text


def test_check_delivery_plants_and_says_what_to_do(folder: Path) -> None:
    status, found, mend = check_delivery(folder)
    assert (status, found) == ("WARN", "planted now, and no session has taken it since: begin one and look again")
    assert mend == "coherence doctor --delivery" and folder.stat().st_mode & 0o777 == 0o700
    first = read_canary(folder)
    assert check_delivery(folder)[1].endswith(" s ago, and no session has taken it since: begin one and look again")
    assert read_canary(folder) == first


def test_check_delivery_finds_what_a_session_was_told(folder: Path, transcript: Path) -> None:
    check_delivery(folder)
    with running(folder):
        line = context_of(tell("SessionStart", "s1", transcript_path=str(transcript)))
        assert "nothing needs to be done" in line
        assert not tell("SessionStart", "s2") and not tell("PostToolBatch", "s1"), "one session is told, once"
    found = read_canary(folder)
    assert found is not None and found.told is not None and found.session == "s1"
    status, said, _ = check_delivery(folder)
    assert status == "WARN" and said.startswith("session s1 was told ") and said.endswith(" has not gone on since")
    append(transcript, shown(line, found.told + 1.5))
    append(transcript, ANSWERED)
    assert check_delivery(folder) == ("OK", "delivered in session s1 after 1.5 s", "")
    assert read_canary(folder) is None


def test_check_delivery_fails_where_the_session_went_on_without_it(folder: Path, transcript: Path) -> None:
    folder.mkdir(mode=0o700)
    plant(folder)
    line = take_canary(folder, "s1", str(transcript))
    append(transcript, {"type": "user", "message": {"role": "user", "content": line}})  # quoted by somebody
    append(transcript, ANSWERED)
    status, found, _ = check_delivery(folder)
    assert status == "FAIL" and found.endswith(f"and its transcript does not show it: {transcript}")
    assert read_canary(folder) is None


def test_check_delivery_of_a_session_without_a_transcript_fails(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    plant(folder)
    assert take_canary(folder, "s1", "")
    assert check_delivery(folder)[0] == "FAIL"


def test_check_delivery_waits_for_the_session(folder: Path, transcript: Path) -> None:
    folder.mkdir(mode=0o700)
    plant(folder)

    def live() -> None:
        append(transcript, shown(take_canary(folder, "s1", str(transcript)), 2e9))

    timer = threading.Timer(0.3, live)
    timer.start()
    assert check_delivery(folder, 30.0)[0] == "OK"
    timer.join()


def test_take_canary_is_left_for_an_answer_that_is_heard(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    plant(folder)
    with running(folder):
        said = {"hook_event_name": "SessionStart", "session_id": "s0"}
        (folder / hook.SPOOL).mkdir(exist_ok=True)
        kept = folder / hook.SPOOL / "1.payload"
        kept.write_bytes(hook.request(json.dumps(said).encode(), observe=False))
        tell("UserPromptSubmit", "s1", prompt="Hello")
        assert not kept.exists()
        tell("PostToolBatch", "s1", agent_id="a1", agent_type="Explore")
        assert hook.ask(json.dumps(said).encode(), observe=True) == b""
        assert read_canary(folder) is not None and read_canary(folder).told is None  # type: ignore[union-attr]
        for at in range(2):
            asked = {"tool_name": "Bash", "tool_use_id": f"{at}", "tool_input": {"command": "python3 missing.py"}}
            tell("PreToolUse", "s1", **asked)
            tell("PostToolUseFailure", "s1", error="No such file: missing.py", **asked)
        assert "missing.py" in context_of(tell("PostToolBatch", "s1")), "guidance stands alone"
        assert "hooks are heard" in context_of(tell("PostToolBatch", "s1"))
        found = read_canary(folder)
        assert found is not None and found.session == "s1"


def test_doctor_delivery_is_a_row(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("CLAUDE_CONFIG_DIR", "claude"), ("COHERENCE_STORE", "store.db")):
        monkeypatch.setenv(name, str(tmp_path / value))
    monkeypatch.setenv("PATH", "/nowhere")
    lines = CliRunner().invoke(main, ["doctor", "--delivery"]).stdout.splitlines()
    assert lines[-3:-1] == [
        "WARN   delivery    planted now, and no session has taken it since: begin one and look again",
        "                   > coherence doctor --delivery",
    ]
    rows = sum(line.startswith(("OK ", "WARN ", "FAIL ")) for line in lines)
    assert lines[-1].startswith(f"{rows} checks: ")
    assert CliRunner().invoke(main, ["doctor", "--wait", "3"]).exit_code == 2
    assert not any(
        "canary" in line or "  delivery  " in line for line in CliRunner().invoke(main, ["doctor"]).stdout.splitlines()
    )
