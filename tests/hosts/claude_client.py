"""The real Claude Code, run headless against a stub of its API, away from this machine's own settings."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hosts import npm_client
from hosts.messages_stub import MessagesStub

VERSION = "2.1.330"
PACKAGE = "@anthropic-ai/claude-code"
TOOLS = "Bash,Read,Edit,Write,Agent,Task,TaskCreate,TaskUpdate"


class Finished(NamedTuple):
    """Result of a run of the client.

    Attributes
    ----------
    returncode
        0 after an answer, 1 after an error.
    events
        The lines of ``--output-format stream-json``.
    stderr
        The client's complaints.
    seconds
        How long the process took.
    """

    returncode: int
    events: list[dict[str, Any]]
    stderr: str
    seconds: float

    @property
    def result(self) -> dict[str, Any]:
        """The event that ends a run."""
        return [event for event in self.events if event["type"] == "result"][-1]


def installed(version: str = VERSION) -> Path:
    """Return the client, installed by npm on first use.

    Raises
    ------
    UnavailableError
        It cannot be had here.
    """
    return npm_client.installed(PACKAGE, version, "claude")


def run_claude(
    prompt: str,
    *,
    stub: MessagesStub,
    folder: Path,
    home: Path,
    settings: Mapping[str, object] | Path | None = None,
    extra: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    timeout: float = 120,
    version: str = VERSION,
) -> Finished:
    """Run the client on one prompt, to its end.

    Parameters
    ----------
    prompt
        What the person asks; a marker in it picks the stub's script.
    folder
        The project that the client works in; it may edit and run everything there.
    home
        The client's HOME; it is made if it is missing, and keeps sessions and transcripts.
    settings
        Settings of the run, or the file that holds them.
    extra
        More arguments for the client.
    env
        Variables beside the client's own; of this process it inherits PATH alone.

    Raises
    ------
    UnavailableError
        The client cannot be had here.
    TimeoutError
        It was still running after ``timeout`` seconds, and was ended.
    """
    home = home.absolute()
    home.mkdir(parents=True, exist_ok=True)
    command = [str(installed(version)), "-p", prompt, "--output-format", "stream-json", "--verbose"]
    command += ["--permission-mode", "acceptEdits", "--allowedTools", TOOLS, *extra]
    if settings is not None:
        command += ["--settings", str(_settings_file(settings, home))]
    began = time.monotonic()
    variables = client_environment(stub, home) | dict(env or {})
    done = npm_client.run_client(command, folder=folder, env=variables, timeout=timeout)
    seconds = time.monotonic() - began
    return Finished(done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr, seconds)


def client_environment(stub: MessagesStub, home: Path) -> dict[str, str]:
    """Return the variables of a client: no more of this machine than PATH."""
    return {
        "HOME": str(home),
        "CLAUDE_CODE_TMPDIR": str(home),  # without it, each session leaves a folder in /tmp
        "PATH": os.environ["PATH"],
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "ANTHROPIC_BASE_URL": stub.url,
        "ANTHROPIC_API_KEY": "dummy",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
    }


def _settings_file(settings: Mapping[str, object] | Path, home: Path) -> Path:
    if isinstance(settings, Path):
        return settings.absolute()
    path = home / "settings-of-the-run.json"
    path.write_text(json.dumps(settings))
    return path
