"""Settings of Codex, and the hooks that they get."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from coherence.integrations.daemon.hook_command import NEVER_FAILS
from coherence.integrations.hook_settings import Group

Scope: TypeAlias = Literal["user"]
"""Whom settings are for."""

SCOPES: tuple[Scope, ...] = get_args(Scope)

EVENTS: dict[str, str | None] = {
    "SessionStart": None,
    "UserPromptSubmit": None,
    "PreToolUse": "*",
    "PostToolUse": "*",
    "SubagentStart": None,
    "SubagentStop": None,
    "PostCompact": None,
    "Stop": None,
    "SessionEnd": None,
}
"""Event that gets a hook: its matcher, ``None`` for an event that gets none."""

TIMEOUT_S, LAST_TIMEOUT_S = 5, 3
"""Seconds after which Codex gives a hook up, and the most that it allows the one at the end of a session."""

OFF_SWITCH = "hooks = false under [features]"
"""Setting by which it runs no hooks."""

NEXT_STEP = "start codex, enter /hooks and press t: until you have trusted them, it skips hooks without a word"
"""Step that is left to the user."""


def codex_folder() -> Path:
    """Return the folder in which Codex keeps its settings and sessions."""
    return Path(os.path.abspath(os.environ.get("CODEX_HOME") or Path.home() / ".codex"))


def settings_path(scope: Scope = "user", project: Path | None = None) -> Path:
    """Return the file with hooks; there is one for each user, whatever the scope and the project."""
    return codex_folder() / "hooks.json"


def hook_groups(command: str) -> dict[str, Group]:
    """Return the hooks of all :data:`EVENTS`, which run a command.

    Examples
    --------
    >>> hook_groups("hook")["PreToolUse"]
    {'matcher': '*', 'hooks': [{'type': 'command', 'command': 'hook || true', 'timeout': 5}]}
    """
    # A command that fails, since its Python is gone for instance, may refuse the call.
    entry = {"type": "command", "command": command + NEVER_FAILS}
    return {
        event: {
            **({} if matcher is None else {"matcher": matcher}),
            "hooks": [{**entry, "timeout": LAST_TIMEOUT_S if event == "SessionEnd" else TIMEOUT_S}],
        }
        for event, matcher in EVENTS.items()
    }


def disabling_file(paths: Iterable[Path]) -> Path | None:
    """Return the settings file that has Codex run no hooks at all: the ``config.toml`` beside one of some files.

    What is missing or cannot be read is passed over.
    """
    import tomllib  # not for each command

    for path in paths:
        config = path.with_name("config.toml")
        try:
            features = tomllib.loads(config.read_text("utf-8")).get("features")
        except (OSError, ValueError):
            continue
        if isinstance(features, dict) and False in (features.get("hooks"), features.get("codex_hooks")):
            return config
    return None
