"""Files from which Claude Code may have hooks of this package: its settings, and the plug-in."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from coherence.integrations.claude_code.plugin import HOOKS, PLUGIN, installed_plugin
from coherence.integrations.claude_code.settings import SCOPES, Scope


class HookSource(NamedTuple):
    """One of these files, and the commands that put hooks into it and take them out."""

    path: Path
    init: str
    remove: str
    is_plugin: bool = False


def hook_sources(files: Mapping[Scope, Path]) -> list[HookSource]:
    """Return the settings files, each once, and the file of the plug-in if the client runs it.

    Parameters
    ----------
    files : mapping
        Scope -> settings file.

    Examples
    --------
    >>> [source.init for source in hook_sources({"user": Path("/a"), "project": Path("/a"), "local": Path("/b")})]
    ['coherence init', 'coherence init --scope local']
    """
    found: dict[Path, HookSource] = {}
    for scope, path in files.items():  # in the home folder, the settings of the project are those of the user
        init = "coherence init" if scope == "user" else f"coherence init --scope {scope}"
        found.setdefault(path, HookSource(path, init, f"{init} --remove --yes"))
    folder = installed_plugin([files[scope] for scope in reversed(SCOPES)])
    if folder is not None:
        init = f"coherence init --plugin {shlex.quote(str(folder))}"
        found[folder / HOOKS] = HookSource(folder / HOOKS, init, f"claude plugin uninstall {PLUGIN}", True)
    return list(found.values())
