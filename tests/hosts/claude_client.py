"""The real Claude Code, run headless against a stub of its API, away from this machine's own settings."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from filelock import FileLock

from hosts.messages_stub import MessagesStub

VERSION = "2.1.330"
PACKAGE = "@anthropic-ai/claude-code"
TOOLS = "Bash,Read,Edit,Write,Agent,Task,TaskCreate,TaskUpdate"


class UnavailableError(Exception):
    """Tells why the client cannot be had here."""


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
    """Return the client's binary, installed by npm on first use into a folder outside the repository.

    ``COHERENCE_HOSTS_CACHE`` names that folder; each version has a folder of its own in it.

    Raises
    ------
    UnavailableError
        There is no npm, or it could not install the package.
    """
    cache = Path(os.environ.get("COHERENCE_HOSTS_CACHE") or "~/.cache/coherence-hosts").expanduser()
    folder = cache / f"claude-{version}"
    binary = folder / "node_modules" / ".bin" / "claude"
    if not binary.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with FileLock(cache / f"claude-{version}.lock"):
            if not binary.exists():
                _install(version, folder)
    return binary


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
    # Into files: what a hook leaves running would keep a pipe open, and reading it would never end.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        began = time.monotonic()
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=client_environment(stub, home) | dict(env or {}),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        try:
            returncode = process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"{command} still ran after {timeout} s: {_read(out)[-2000:]}{_read(err)}") from None
        finally:
            _end(process)
        seconds = time.monotonic() - began
        events = [json.loads(line) for line in _read(out).splitlines()]
        return Finished(returncode, events, _read(err), seconds)


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


def _install(version: str, folder: Path) -> None:
    """Install into a folder beside, and rename it when it is whole: an install that was cut short is never used."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise UnavailableError(f"Claude Code {version} is not installed, and node and npm are not both here")
    with tempfile.TemporaryDirectory(prefix=f"{folder.name}-", dir=folder.parent) as beside:
        whole = Path(beside, "whole")
        whole.mkdir()
        install = [npm, "install", "--prefix", str(whole), "--no-audit", "--no-fund", "--fetch-retry-mintimeout=1000"]
        install += ["--fetch-retry-maxtimeout=2000", f"{PACKAGE}@{version}"]  # offline: 7 s in place of 70
        ask = [str(whole / "node_modules" / ".bin" / "claude"), "--version"]
        try:
            _output_of(install, dict(os.environ))
            said = _output_of(ask, {"HOME": beside, "PATH": os.environ["PATH"]})
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UnavailableError(f"{PACKAGE}@{version} cannot be installed: {error}") from error
        if said.split()[:1] != [version]:
            raise UnavailableError(f"{PACKAGE}@{version} was installed, and calls itself {said.strip()!r}")
        shutil.rmtree(folder, ignore_errors=True)
        whole.rename(folder)


def _output_of(command: list[str], environment: Mapping[str, str]) -> str:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)
    if done.returncode:
        raise UnavailableError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()[:500]}")
    return done.stdout


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a client that still runs: asked to, it ends its tools too, which have process groups of their own."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
