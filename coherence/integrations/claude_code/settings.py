"""Settings files of Claude Code, and the hooks that they get."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from coherence.integrations.daemon.hook_command import NEVER_FAILS
from coherence.integrations.daemon.http_place import HttpPlace
from coherence.integrations.hook_settings import Group, SettingsError, read_settings

Scope: TypeAlias = Literal["user", "project", "local"]
"""Whom settings are for: a user, all who share a project, or a user in one project."""

SCOPES: tuple[Scope, ...] = get_args(Scope)

EVENTS: dict[str, str | None] = {
    "SessionStart": None,
    "UserPromptSubmit": None,
    "PreToolUse": "*",
    "PostToolUse": "Agent|Task",
    "PostToolUseFailure": "*",
    "PostToolBatch": None,
    "PermissionRequest": "*",
    "PermissionDenied": "*",
    "SubagentStart": None,
    "SubagentStop": None,
    "Stop": None,
    "StopFailure": None,
    "PreCompact": None,
    "PostCompact": None,
    "ConfigChange": None,
    "Notification": None,
    "SessionEnd": None,
}
"""Event that gets a hook: its matcher, ``None`` for an event that gets none. Each is known to the oldest version that
was tried: of an unknown one the client warns at each start. PostToolBatch tells the results of all calls of a step, so
PostToolUse is for the start of a subagent alone: each hook delays the step."""

HTTP_EVENTS = ("PreToolUse", "PostToolUse", "PostToolUseFailure", "PostToolBatch")
"""Events of each step, which the client may post itself; the others start the daemon, or must not be lost."""

TIMEOUT_S = 5
"""Seconds after which Claude Code gives a hook up."""

OFF_SWITCH = "disableAllHooks"
"""Setting by which it runs no hooks."""

NEXT_STEP = ""
"""Step that is left to the user once the hooks are in."""


def settings_path(scope: Scope, project: Path | None = None) -> Path:
    """Return the settings file of a scope; ``project`` is the project's folder, by default the current one.

    Examples
    --------
    >>> settings_path("local", Path("/src/shop")).as_posix()
    '/src/shop/.claude/settings.local.json'
    """
    if scope == "user":
        folder = Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")
        return Path(os.path.abspath(folder)) / "settings.json"
    name = "settings.json" if scope == "project" else "settings.local.json"
    return (project or Path.cwd()) / ".claude" / name


def hook_groups(command: str, http: HttpPlace | None = None, *, observe: bool = False) -> dict[str, Group]:
    """Return the hooks of all :data:`EVENTS`, which run a command.

    Parameters
    ----------
    command : str
        From :func:`~coherence.integrations.daemon.hook_command.hook_command`.
    http : HttpPlace, optional
        Where the daemon answers :data:`HTTP_EVENTS`, which the client then posts itself.
    observe : bool
        Only look on, for what is posted.

    Examples
    --------
    >>> hook_groups("hook")["PreToolUse"]
    {'matcher': '*', 'hooks': [{'type': 'command', 'command': 'hook || true', 'timeout': 5}]}
    """
    entry = {"type": "command", "command": command + NEVER_FAILS, "timeout": TIMEOUT_S}
    post = http.hook("claude-code", "observe" if observe else "steer", TIMEOUT_S) if http is not None else entry
    return {
        event: {
            **({} if matcher is None else {"matcher": matcher}),
            "hooks": [post if event in HTTP_EVENTS else entry],
        }
        for event, matcher in EVENTS.items()
    }


def disabling_file(paths: Iterable[Path]) -> Path | None:
    """Return the settings file that has Claude Code run no hooks at all.

    Parameters
    ----------
    paths : iterable of Path
        Files in the order in which they count: the first that has ``disableAllHooks`` decides. What is missing or
        cannot be read is passed over.
    """
    for path in paths:
        with suppress(SettingsError, OSError):
            value = read_settings(path).get("disableAllHooks")
            if isinstance(value, bool):
                return path if value else None
    return None
