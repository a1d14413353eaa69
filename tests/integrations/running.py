"""A daemon as a process of its own, and what hooks tell it, for the tests."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from coherence.integrations.daemon import hook
from coherence.integrations.daemon.folder import control

NUMBERS = itertools.count()
"""Numbers of calls: the client gives each call a name of its own."""


@contextmanager
def running(folder: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a daemon until the end of the block; its state folder is the current one from now on."""
    folder.mkdir(mode=0o700, exist_ok=True)
    os.chdir(folder)
    (folder / hook.WAKING).touch()  # no hook starts another one
    command = ["daemon", "run", "--state", str(folder), "--store", str(folder / "store.db"), *options]
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen([sys.executable, "-m", "coherence", *command], stdout=log, stderr=log)
    try:
        until = time.monotonic() + 30
        while control(folder, "status") is None:
            assert time.monotonic() < until and process.poll() is None, (folder / "log").read_text()
            time.sleep(0.05)
        yield process
        if process.poll() is None:
            control(folder, "stop")
        assert process.wait(30) == 0, (folder / "log").read_text()
    finally:
        process.kill()
        process.wait()


def tell(event: str, session: str, **payload: Any) -> dict[str, Any]:
    """Hand the daemon of the current folder an event as a hook does, and return its answer."""
    said = {"hook_event_name": event, "session_id": session, **payload}
    answer = hook.ask(json.dumps(said).encode(), observe=False)
    assert answer is not None, "no daemon runs"
    found: dict[str, Any] = json.loads(answer) if answer else {}
    return found


def call(session: str, command: str, **payload: Any) -> bool:
    """Ask whether a command may run."""
    return not tell("PreToolUse", session, tool_name="Bash", tool_input={"command": command}, **payload)


def fail(session: str, times: int, **payload: Any) -> None:
    """Let the same command fail so many times."""
    for _ in range(times):
        told: dict[str, Any] = {"tool_name": "Bash", "tool_use_id": f"{session} {next(NUMBERS)}"}
        told |= {"tool_input": {"command": "python3 missing.py"}, **payload}
        tell("PreToolUse", session, **told)
        tell("PostToolUseFailure", session, error="No such file: missing.py", **told)
        tell("PostToolBatch", session, **payload)
