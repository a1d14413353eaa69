"""Log of the daemon: its newest lines, and its end before it grows without bound."""

from __future__ import annotations

import os
from collections import deque
from contextlib import suppress
from pathlib import Path

from coherence.core.files import open_input
from coherence.integrations.daemon import hook

MAX_LOG = 1_000_000
"""Bytes of a log from which on another one is begun."""

OLD_LOG = f"{hook.LOG}.1"
"""Name of the log before, which is the only one that is kept."""


def rotate_log() -> bool:
    """Begin another log if that in the current folder is long; return whether it was.

    What this process prints goes on in the new one, if it went into the old one.
    """
    try:
        found = os.lstat(hook.LOG)
    except OSError:  # a daemon in a terminal has none
        return False
    if found.st_size <= MAX_LOG:
        return False
    os.replace(hook.LOG, OLD_LOG)
    new = os.open(hook.LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    for output in (1, 2):
        if os.path.samestat(os.fstat(output), found):
            os.dup2(new, output)
    os.close(new)
    return True


def newest_lines(folder: Path, count: int) -> list[str] | None:
    """Return the newest lines that the daemon has logged, oldest first; ``None`` if there is no log.

    Parameters
    ----------
    folder : Path
        State folder.
    count : int
        Lines at most.

    Raises
    ------
    OSError
        If a log cannot be read, or is no file of its own.
    """
    lines: deque[str] | None = None
    for name in (OLD_LOG, hook.LOG):
        try:
            with open_input(folder / name) as file:
                lines = deque(lines or (), count)
                lines.extend(line.decode("utf-8", "replace").rstrip("\n") for line in file)
        except FileNotFoundError:
            continue
    return None if lines is None else list(lines)


def empty_log(folder: Path) -> None:
    """Empty the daemon's log, and delete the one before; a running daemon goes on at the beginning."""
    (folder / OLD_LOG).unlink(missing_ok=True)
    with suppress(FileNotFoundError):
        os.truncate(folder / hook.LOG, 0)
