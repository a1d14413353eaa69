"""Settings files of Gemini CLI, and the hooks that they get."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from coherence.integrations.daemon.hook_command import NEVER_FAILS
from coherence.integrations.hook_settings import Group, SettingsError, read_settings

Scope: TypeAlias = Literal["user", "project"]
"""Whom settings are for: a user, or all who share a project."""

SCOPES: tuple[Scope, ...] = get_args(Scope)

EVENTS: dict[str, str | None] = {
    "SessionStart": None,
    "BeforeAgent": None,
    "BeforeTool": "*",
    "AfterTool": "*",
    "AfterAgent": None,
    "SessionEnd": None,
}
"""Event that gets a hook: its matcher, ``None`` for an event that gets none.

The others are left out: those about the model hand over the whole conversation each time, and the transcript has what
is new in it; ``PreCompress`` comes before each request, whether anything is compressed or not.
"""

TIMEOUT_MS = 5_000
"""Milliseconds after which Gemini CLI gives a hook up."""

OFF_SWITCH = "hooksConfig.enabled = false"
"""Setting by which it runs no hooks."""

NEXT_STEP = ""
"""Step that is left to the user once the hooks are in."""


def settings_path(scope: Scope, project: Path | None = None) -> Path:
    """Return the settings file of a scope; ``project`` is the project's folder, by default the current one.

    Examples
    --------
    >>> settings_path("project", Path("/src/shop")).as_posix()
    '/src/shop/.gemini/settings.json'
    """
    if scope == "user":
        folder = Path(os.path.abspath(os.environ.get("GEMINI_CLI_HOME") or Path.home()))
    else:
        folder = project or Path.cwd()
    return folder / ".gemini" / "settings.json"


def hook_groups(command: str) -> dict[str, Group]:
    """Return the hooks of all :data:`EVENTS`, which run a command.

    Examples
    --------
    >>> hook_groups("hook")["BeforeTool"]
    {'matcher': '*', 'hooks': [{'type': 'command', 'command': 'hook || true', 'timeout': 5000}]}
    """
    # A command that fails, since its Python is gone for instance, would refuse each prompt and each call.
    entry = {"type": "command", "command": command + NEVER_FAILS, "timeout": TIMEOUT_MS}
    return {
        event: {**({} if matcher is None else {"matcher": matcher}), "hooks": [entry]}
        for event, matcher in EVENTS.items()
    }


def disabling_file(paths: Iterable[Path]) -> Path | None:
    """Return the settings file that has Gemini CLI run no hooks at all.

    Parameters
    ----------
    paths : iterable of Path
        Files in the order in which they count: the first that has ``hooksConfig.enabled`` decides. What is missing or
        cannot be read is passed over.
    """
    for path in paths:
        with suppress(SettingsError, OSError):
            switch = read_settings(path).get("hooksConfig")
            value = switch.get("enabled") if isinstance(switch, dict) else None
            if isinstance(value, bool):
                return None if value else path
    return None
