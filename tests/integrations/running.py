"""A daemon as a process of its own, and what hooks tell it, for the tests."""

from __future__ import annotations

import atexit
import itertools
import json
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from coherence.cli.entry import run
from coherence.integrations.daemon import hook
from coherence.integrations.daemon.folder import control

NUMBERS = itertools.count()
"""Numbers of calls: the client gives each call a name of its own."""


FORKS = multiprocessing.get_context("forkserver")
"""Begins a daemon as a fork of a process that has loaded the modules: to load them takes two thirds of a short test."""
FORKS.set_forkserver_preload(
    ["coherence.cli.main", "coherence.cli.daemon", "coherence.integrations.daemon.server", "onnxruntime", "tokenizers"]
)


class Daemon:
    """A daemon's process, to be handled like one of :mod:`subprocess`."""

    def __init__(self, folder: Path, arguments: list[str]) -> None:
        self._process = FORKS.Process(target=_be_a_daemon, args=(folder, arguments, dict(os.environ)))
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        """Status of a process that has ended, negative = the signal that ended it."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """Return the status, ``None`` = it runs."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return the status as soon as it ends."""
        self._process.join(timeout)
        assert self.returncode is not None, "it goes on"
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()


def _be_a_daemon(folder: Path, arguments: list[str], environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    sys.argv = ["coherence", *arguments]
    try:
        run()
    finally:
        atexit._run_exitfuncs()  # as at the end of an interpreter, which this process does not come to


@contextmanager
def running(folder: Path, *options: str) -> Iterator[Daemon]:
    """Run a daemon until the end of the block; its state folder is the current one from now on."""
    folder.mkdir(mode=0o700, exist_ok=True)
    os.chdir(folder)
    (folder / hook.WAKING).touch()  # no hook starts another one
    process = Daemon(folder, ["daemon", "run", "--state", str(folder), "--store", str(folder / "store.db"), *options])
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
