"""Command that a client runs at each event, and the folder in which it meets the daemon."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

HOOK_FILE = Path(__file__).with_name("hook.py")
"""Script that each hook runs."""

NEVER_FAILS = " || true"
"""Ending of each hook's command: if this package is deinstalled, Python's exit status 2 would refuse every call."""

MARK = "coherence/integrations/daemon/hook.py"
"""Part of a command by which a hook is known as one of this package, whatever Python and folder it was made for."""


def state_folder() -> Path:
    """Return the folder in which hooks meet the daemon, as ``coherence daemon`` has it by default."""
    from platformdirs import user_state_path

    return Path(os.environ.get("COHERENCE_STATE") or user_state_path("coherence")).absolute()


def hook_command(state: Path, *, observe: bool = False, host: str | None = None) -> str:
    """Return the shell command that each hook runs.

    Parameters
    ----------
    state : Path
        The folder of :func:`state_folder`.
    observe : bool
        Only look on: the agent is told nothing, and nothing is refused.
    host : str, optional
        Client that runs it. Default: Claude Code.

    Examples
    --------
    >>> hook_command(Path("/my state"), observe=True).endswith("hook.py '/my state' --observe")
    True
    """
    # -I and -S: neither the folder that an agent works in nor site-packages decide what a hook loads.
    parts = [sys.executable, "-I", "-S", str(HOOK_FILE), str(state)]
    return shlex.join([*parts, *(["--observe"] if observe else []), *(["--host", host] if host else [])])


def is_hook_command(command: object) -> bool:
    """Tell whether a command is that of a hook of this package, of any version.

    Examples
    --------
    >>> is_hook_command("python /old/coherence/integrations/daemon/hook.py /state"), is_hook_command("make lint")
    (True, False)
    """
    return isinstance(command, str) and MARK in command.replace("\\", "/")
