"""Plug-in of this package in the folder from which OpenCode loads plug-ins."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from coherence.integrations.daemon.hook_command import is_hook_command
from coherence.integrations.hook_settings import Change, Group, SettingsError, check_place, read_file

Scope: TypeAlias = Literal["user", "project"]
"""Whom a plug-in is for: a user, or all who share a project."""

SCOPES: tuple[Scope, ...] = get_args(Scope)

EVENTS: tuple[str, ...] = (
    "chat.message",
    "tool.execute.before",
    "tool.execute.after",
    "tool.failed",
    "session.idle",
)
"""Events that the plug-in hands over; what needs no answer goes with the next one of them."""

OFF_SWITCH = "OPENCODE_PURE"
"""Setting by which it loads no plug-ins."""

NEXT_STEP = ""
"""Step that is left to the user once the plug-in is in."""

PLUGIN = Path(__file__).with_name("plugin.js")
"""The plug-in, with a place for the command that it runs."""

_PLACE = '["COMMAND"]'


def settings_path(scope: Scope, project: Path | None = None) -> Path:
    """Return the plug-in's file for a scope; ``project`` is the project's folder, by default the current one.

    Examples
    --------
    >>> settings_path("project", Path("/src/shop")).as_posix()
    '/src/shop/.opencode/plugins/coherence.js'
    """
    if scope == "user":
        folder = Path(os.path.abspath(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")) / "opencode"
    else:
        folder = (project or Path.cwd()) / ".opencode"
    return folder / "plugins" / "coherence.js"


def hook_groups(command: str) -> dict[str, Group]:
    """Return the events that the plug-in hands to a command, in the form of the settings of other clients.

    Examples
    --------
    >>> hook_groups("hook")["session.idle"]
    {'hooks': [{'type': 'command', 'command': 'hook'}]}
    """
    return {event: {"hooks": [{"type": "command", "command": command}]} for event in EVENTS}


def plugin_text(command: str) -> str:
    """Return the plug-in for the command that it runs.

    Examples
    --------
    >>> "hook.py" in plugin_text("python -I -S /package/hook.py /state --host opencode")
    True
    """
    return PLUGIN.read_text(encoding="utf-8").replace(_PLACE, json.dumps(shlex.split(command)), 1)


def plan_plugin(path: Path, groups: Mapping[str, Group], *, remove: bool = False) -> Change:
    """Plan that the plug-in lies in its file, or that the file goes; nothing is written.

    Parameters
    ----------
    path : Path
        The file.
    groups : mapping
        As :func:`hook_groups` returns them.
    remove : bool
        The file goes.

    Raises
    ------
    SettingsError
        Another plug-in has this name, or nothing may be written there.
    OSError
        It cannot be read.
    """
    check_place(path)
    before = read_file(path)
    if before is not None and not is_hook_command(before.decode(errors="replace")):
        raise SettingsError(path, "this is a plug-in of somebody else; move it away, or give it another name")
    command = groups[EVENTS[0]]["hooks"][0]["command"]
    return Change(path, before, None if remove else plugin_text(command).encode())


def disabling_file(paths: Iterable[Path]) -> Path | None:
    """Return ``None``: no file has OpenCode load no plug-ins, only its command line and environment do."""
    return None
