"""State folder of the daemon, and what is asked of a running one."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from coherence.core.errors import CoherenceError
from coherence.core.files import make_folder
from coherence.integrations.daemon import hook
from coherence.integrations.daemon.control import CONTROL, schema_of

LOCK = "daemon.lock"

START_S = 30.0
"""Seconds in which a daemon that was started must answer."""

STOP_S = 10.0
"""Seconds for which a daemon that was told to end is waited for."""

MAX_SESSION = 200
"""Characters of a session's name."""


def enter(folder: Path) -> None:
    """Make the state folder if it is missing, and the current one.

    Raises
    ------
    CoherenceError
        If somebody else may enter it.
    """
    make_folder(folder.parent)
    try:
        hook.enter(str(folder))
    except OSError as error:
        raise CoherenceError(str(error)) from error


@contextmanager
def only_one() -> Iterator[bool]:
    """Hold the lock of the daemon in the current folder; ``False`` if another process has it."""
    import fcntl  # not on Windows

    with open(os.open(LOCK, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600), "wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def control(folder: Path, do: str, *, wait_s: float = hook.ANSWER_S, **options: str | None) -> dict[str, Any] | None:
    """Return what a running daemon says to a command; the state folder becomes the current one.

    Parameters
    ----------
    folder : Path
        State folder.
    do : str
        The command, as :class:`~coherence.integrations.daemon.control.Command` has it.
    wait_s : float
        Seconds to wait for the answer.
    **options
        Its other fields.

    Returns
    -------
    dict or None
        ``None``: no daemon runs.

    Raises
    ------
    CoherenceError
        If the daemon refuses, does not answer in time, or is of another version; or if others may enter the folder.
    """
    if not folder.is_dir():
        return None
    enter(folder)
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(wait_s)
        try:
            line.connect(hook.SOCKET)
        except OSError:
            return None
        answer = b""
        try:
            line.sendall(f"{CONTROL}\n".encode() + msgspec.json.encode({"do": do, **options}))
            line.shutdown(socket.SHUT_WR)
            while part := line.recv(1 << 16):
                answer += part
            found: dict[str, Any] = msgspec.json.decode(answer)
        except (OSError, msgspec.DecodeError) as error:
            raise CoherenceError(f"the daemon did not answer: {error or 'it is ending'}") from error
    if "error" in found:
        raise CoherenceError(found["error"])
    if found.get("schema") != schema_of(do):
        raise CoherenceError("the daemon is of another version; it ends at the next hook")
    return found


def start_daemon(folder: Path, *options: str) -> tuple[int, bool]:
    """Start a daemon in the background, unless one runs; return its process id, and whether it is a new one.

    The state folder becomes the current one.

    Parameters
    ----------
    folder : Path
        State folder, made if it is missing.
    *options
        More options of ``coherence daemon run``.

    Raises
    ------
    CoherenceError
        If it ends, or does not answer in time; the message says where its log is.
    """
    enter(folder)
    process, problem = 0, ""
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        try:
            if (found := control(folder, "status")) is not None:
                return found["pid"], found["pid"] == process
        except CoherenceError as error:  # the one before is ending, or is of another version
            problem = f": {error}"
        ended = _exit_status(process) if process else 0
        if ended == 0:  # so it ends where another one has the lock
            process = hook.spawn(*options)
        elif ended is not None:
            raise CoherenceError(f"the daemon ended with {ended}: coherence daemon logs says why")
        time.sleep(0.05)
    raise CoherenceError(f"the daemon does not answer within {START_S:g} s{problem}: see coherence daemon logs")


def stop_daemon(folder: Path) -> tuple[int, bool] | None:
    """End the daemon; return its process id, and whether it has ended, ``None`` if none runs.

    It ends once what it has is written; one that is starting is waited for first. The state folder becomes the current
    one.

    Parameters
    ----------
    folder : Path
        State folder.

    Raises
    ------
    CoherenceError
        If it does not answer.
    """
    until = time.monotonic() + START_S
    while (found := control(folder, "stop")) is None:
        if time.monotonic() > until or not _starts(folder):
            return None
        time.sleep(0.05)
    until = time.monotonic() + STOP_S
    while time.monotonic() < until:
        with only_one() as alone:
            if alone:
                return found["pid"], True
        time.sleep(0.02)
    return found["pid"], False


def _starts(folder: Path) -> bool:
    """Tell whether a daemon that does not answer is starting: a hook has just called one, or it has the lock."""
    if not folder.is_dir():
        return False
    try:
        if time.time() - os.stat(hook.WAKING).st_mtime < hook.WAKE_AGAIN_S:
            return True
    except OSError:
        pass
    if not os.path.exists(LOCK):
        return False
    with only_one() as alone:
        return not alone


def _exit_status(process: int) -> int | None:
    """Return the exit status of a child, ``None`` while it runs."""
    ended, status = os.waitpid(process, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None
