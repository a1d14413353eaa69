"""The real client, whose daemon is killed in the middle: the record is what scoring the transcript gives."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest
from integrations.claude_code.played import told

from coherence.integrations.daemon import hook
from coherence.integrations.daemon.folder import control
from coherence.providers.readers import read_transcripts
from coherence.report.score import score_transcript
from coherence.store.store import Store
from hosts.claude_client import run_claude
from hosts.messages_stub import MessagesStub, Scripts, Text, Tool

pytestmark = pytest.mark.hosts


def scripts(between: str) -> Scripts:
    """Return a run with words, failures and a subagent; ``between`` is a command in its middle."""
    asked = {"description": "count", "prompt": "[[script:child]] Count the files.", "subagent_type": "general-purpose"}
    missing = Tool("Bash", {"command": "python3 missing.py"})
    return {
        "main": [
            [Text("I look first."), Tool("Bash", {"command": "ls"})],
            [Text("Twice the same."), missing, Tool("Bash", {"command": "cat notes.txt"})],
            [Tool("Bash", {"command": between})],
            [missing],
            [Text("Again."), missing],
            [Tool("Agent", {**asked, "run_in_background": False})],
            [missing],
            [Text("It does not work.")],
        ],
        "child": [[Text("I count."), Tool("Bash", {"command": "ls | wc -l"})], [Text("There is 1 file.")]],
    }


@pytest.fixture
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/tmp") as name, chdir(name):
        yield Path(name)


@pytest.mark.parametrize("killed", [False, True])
def test_score_transcript_decides_as_the_daemon_did_for_the_real_client(
    place: Path, version: str, killed: bool
) -> None:
    home, project, state = place / "home", place / "project", place / "s"
    home.mkdir()
    project.mkdir()
    (project / "notes.txt").write_text("nothing to see")
    env = {"COHERENCE_STATE": str(state), "COHERENCE_STORE": str(place / "store.db")}
    env |= {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}

    def coherence(*arguments: str) -> None:
        command = [sys.executable, "-m", "coherence", *arguments]
        subprocess.run(command, env={**os.environ, **env, "HOME": str(home)}, cwd=project, check=True)

    def daemon() -> int:
        """Start the daemon as a session's first event does, and return its process."""
        begin = b'{"hook_event_name": "SessionStart", "session_id": "warm", "source": "startup"}'
        command = [sys.executable, "-I", "-S", hook.__file__, str(state)]
        subprocess.run(command, input=begin, env={**os.environ, **env}, check=True)
        until = time.monotonic() + 60
        while True:
            with chdir(place):
                answer = control(state, "status")
            if answer is not None and not list((state / hook.SPOOL).glob("*.payload")):
                return int(answer["pid"])
            assert time.monotonic() < until, (state / hook.LOG).read_text()
            time.sleep(0.05)

    coherence("init", "--yes")
    try:
        pid = daemon()
        with MessagesStub(scripts(f"kill -9 {pid}" if killed else "true")) as stub:
            done = run_claude(
                "[[script:main]] Run missing.py.", stub=stub, folder=project, home=home, env=env, version=version
            )
        assert done.returncode == 0
        assert (daemon() != pid) == killed
    finally:
        coherence("daemon", "stop")
    until = time.monotonic() + 30
    while (state / hook.SOCKET).exists():
        assert time.monotonic() < until
        time.sleep(0.05)
    session = done.result["session_id"]
    (main,) = home.glob(f".claude/projects/*/{session}.jsonl")
    (child,) = home.glob(f".claude/projects/*/{session}/subagents/*.jsonl")
    with Store(place / "store.db") as store, Store(place / "scored.db") as scores:
        rows = [row for row in store.sessions() if row.session == session]
        for path, row in zip((main, child), rows, strict=True):
            (transcript,) = read_transcripts(path)
            score_transcript(transcript, store=scores)
            assert list(told(store, row)) == list(told(scores, scores.sessions()[-1])), row.agent
