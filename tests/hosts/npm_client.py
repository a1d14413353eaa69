"""Clients that npm installs, run to their end on one prompt, away from this machine's own settings."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

from filelock import FileLock


class UnavailableError(Exception):
    """Tells why a client cannot be had here."""


class Done(NamedTuple):
    """Result of a run."""

    returncode: int
    stdout: str
    stderr: str


def installed(package: str, version: str, binary: str) -> Path:
    """Return the program of a package, installed by npm on first use into a folder outside the repository.

    ``COHERENCE_HOSTS_CACHE`` names that folder; each version has a folder of its own in it.

    Parameters
    ----------
    package
        Its name in the registry.
    version
        The one to install.
    binary
        Name of the program, which ``--version`` asks for its version.

    Raises
    ------
    UnavailableError
        There is no npm, or it could not install the package.
    """
    cache = Path(os.environ.get("COHERENCE_HOSTS_CACHE") or "~/.cache/coherence-hosts").expanduser()
    folder = cache / f"{binary}-{version}"
    program = folder / "node_modules" / ".bin" / binary
    if not program.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with FileLock(cache / f"{folder.name}.lock"):
            if not program.exists():
                _install(f"{package}@{version}", version, binary, folder)
    return program


def _install(wanted: str, version: str, binary: str, folder: Path) -> None:
    """Install into a folder beside, and rename it when it is whole: an install that was cut short is never used."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise UnavailableError(f"{wanted} is not installed, and node and npm are not both here")
    with tempfile.TemporaryDirectory(prefix=f"{folder.name}-", dir=folder.parent) as beside:
        whole = Path(beside, "whole")
        whole.mkdir()
        install = [npm, "install", "--prefix", str(whole), "--no-audit", "--no-fund", "--fetch-retry-mintimeout=1000"]
        install += ["--fetch-retry-maxtimeout=2000", wanted]  # offline: 7 s in place of 70
        ask = [str(whole / "node_modules" / ".bin" / binary), "--version"]
        try:
            _output_of(install, dict(os.environ))
            said = _output_of(ask, {"HOME": beside, "PATH": os.environ["PATH"]})
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UnavailableError(f"{wanted} cannot be installed: {error}") from error
        if version not in said.split():
            raise UnavailableError(f"{wanted} was installed, and calls itself {said.strip()!r}")
        shutil.rmtree(folder, ignore_errors=True)
        whole.rename(folder)


def _output_of(command: Sequence[str], environment: Mapping[str, str]) -> str:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)
    if done.returncode:
        raise UnavailableError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()[:500]}")
    return done.stdout


def run_client(command: Sequence[str], *, folder: Path, env: Mapping[str, str], timeout: float = 120) -> Done:
    """Run a client in a project, to its end.

    Parameters
    ----------
    command
        The program and its arguments.
    folder
        The project.
    env
        All that the client's environment has.
    timeout
        Seconds.

    Raises
    ------
    TimeoutError
        It was still running then, and was ended.
    """
    # Into files: what a hook leaves running would keep a pipe open, and reading it would never end.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
        )
        try:
            returncode = process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"{command} still ran after {timeout} s: {_read(out)[-2000:]}{_read(err)}") from None
        finally:
            _end(process)
        return Done(returncode, _read(out), _read(err))


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a client that still runs: asked to, it ends its tools too, which may have process groups of their own."""
    if process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
