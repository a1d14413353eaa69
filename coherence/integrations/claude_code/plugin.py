"""Plug-in for Claude Code, in a folder that is a marketplace of its own: the client installs it without a network."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from coherence.integrations.claude_code.prompts import STATUS, UNBLOCK
from coherence.integrations.hook_settings import (
    Change,
    Group,
    SettingsError,
    check_place,
    read_settings,
    render_settings,
    with_hooks,
)

NAME = "coherence"
"""Name of the marketplace, and of the plug-in in it."""

PLUGIN = f"{NAME}@{NAME}"
"""Name of the plug-in for the client's commands."""

MARKETPLACE = ".claude-plugin/marketplace.json"
"""File by which a folder is known as a marketplace."""

HOOKS = f"{NAME}/hooks/hooks.json"
"""File with the hooks of the plug-in, as settings have them."""

_ABOUT = "Records what agents do, refuses harmful calls, and tells an agent what goes wrong."

_README = f"""# {NAME}

{_ABOUT} This folder was written by `coherence init --plugin`, and names files of this machine. Claude Code reads the
plug-in from here at each start, so keep the folder. To install it:

    claude plugin marketplace add FOLDER
    claude plugin install {PLUGIN}
"""

_STATUS = """---
description: Show how the agents stand that coherence follows
allowed-tools: {allowed}
disable-model-invocation: true
---
Show me this table as it stands, in a code block, and add nothing:

!`{command}`
"""

_UNBLOCK = """---
description: End what coherence blocks, and let the call run that it refused last
argument-hint: "[reason]"
disable-model-invocation: true
---
I end what coherence blocks. My reason, if I have given one: $ARGUMENTS

If coherence says here that the block is ended, go on with my task, and try the refused call again only if the task
still needs it. If it says nothing, tell me that no block was ended, and that `coherence unblock` in a terminal ends it.
"""


def plugin_files(groups: Mapping[str, Group], state: Path, version: str) -> dict[str, str]:
    """Return the files of the plug-in and its marketplace: place in the folder -> text.

    Parameters
    ----------
    groups : mapping
        Hooks, as :func:`~coherence.integrations.claude_code.settings.hook_groups` returns them.
    state : Path
        State folder of the daemon.
    version : str
        Of this package.

    Raises
    ------
    SettingsError
        If a path cannot stand in a command of the client.

    Examples
    --------
    >>> list(plugin_files({}, Path("/state"), "0.1.0"))[:3]
    ['.claude-plugin/marketplace.json', 'coherence/.claude-plugin/plugin.json', 'coherence/hooks/hooks.json']
    """
    # -P: the folder that the agent works in may have a folder of the package's name.
    command = shlex.join([sys.executable, "-P", "-m", "coherence", "status", "--state", str(state)])
    if any(sign in command for sign in "`$\n"):
        raise SettingsError(state, "a command of the client cannot hold `, $ or a new line; set COHERENCE_STATE")
    marketplace = {
        "name": NAME,
        "description": _ABOUT,
        "owner": {"name": NAME},
        "plugins": [{"name": NAME, "source": f"./{NAME}", "description": _ABOUT}],
    }
    plugin = {
        "name": NAME,
        "version": version,
        "description": _ABOUT,
        "author": {"name": NAME},
        "license": "MIT",
    }
    allowed = '["' + f"Bash({command})".replace("\\", "\\\\").replace('"', '\\"') + '"]'
    return {
        MARKETPLACE: render_settings(marketplace),
        f"{NAME}/.claude-plugin/plugin.json": render_settings(plugin),
        HOOKS: render_settings(with_hooks({}, groups)),
        f"{NAME}/commands/{STATUS}.md": _STATUS.format(allowed=allowed, command=command),
        f"{NAME}/commands/{UNBLOCK}.md": _UNBLOCK,
        "README.md": _README,
    }


def plan_plugin(folder: Path, files: Mapping[str, str]) -> list[Change]:
    """Plan that a folder holds the plug-in; nothing is written.

    Parameters
    ----------
    folder : Path
        One that is not there, is empty, or was written by an earlier plan. Other files in it stay.
    files : mapping
        As :func:`plugin_files` returns them.

    Raises
    ------
    SettingsError
        If something else is in the folder, or a symbolic link in its place.
    OSError
        If it cannot be read.
    """
    marketplace = folder / MARKETPLACE
    if folder.is_symlink() or (os.path.lexists(folder) and not folder.is_dir()):
        raise SettingsError(folder, "this is no folder; name a new one")
    if folder.is_dir() and os.listdir(folder) and not _is_ours(marketplace):
        raise SettingsError(folder, "other things are in this folder; name a new or an empty one")
    changes = []
    for name, text in files.items():
        path = folder / name
        for above in path.parents[: len(Path(name).parts) - 1]:
            check_place(above)
        check_place(path)
        before = path.read_bytes() if path.exists() else None
        changes.append(Change(path, before, text.encode()))
    return changes


def _is_ours(marketplace: Path) -> bool:
    return marketplace.is_file() and read_settings(marketplace).get("name") == NAME


def installed_plugin(settings: Sequence[Path]) -> Path | None:
    """Return the folder of the plug-in that the client runs; ``None``: it is not installed, or switched off.

    Parameters
    ----------
    settings : sequence of Path
        Settings files in the order in which they count; the first that names the plug-in decides. The last one is the
        user's, beside which the client notes where plug-ins are.
    """
    enabled = (_part(path, "enabledPlugins").get(PLUGIN) for path in settings)
    if next((value for value in enabled if isinstance(value, bool)), False):
        place = _part(settings[-1].with_name("plugins") / "known_marketplaces.json", NAME).get("installLocation")
        return Path(place) if isinstance(place, str) else None
    return None


def _part(path: Path, name: str) -> Mapping[str, object]:
    """Return an object in a JSON file, an empty one where it cannot be had."""
    with suppress(SettingsError, OSError):
        found = read_settings(path).get(name)
        return found if isinstance(found, dict) else {}
    return {}
