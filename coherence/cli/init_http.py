"""Part of ``coherence init``: hooks that the client posts to a port of this machine."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from coherence.core.files import make_folder
from coherence.integrations.claude_code.settings import SCOPES, settings_path
from coherence.integrations.daemon.http_place import FILE, HttpPlace, is_http_hook, keep_place
from coherence.integrations.hook_settings import read_settings


def prepare(state: Path, place: HttpPlace, path: Path) -> None:
    """Keep port and token, and take a settings file that is going to hold the token away from other users."""
    make_folder(state)
    keep_place(state, place)
    if path.is_file() and path.stat().st_mode & 0o077:
        os.chmod(path, stat.S_IMODE(path.stat().st_mode) & 0o700)


def forget_unused_place(state: Path) -> None:
    """Delete port and token if no settings that are in force here have such hooks; the daemon then closes the port."""
    for scope in SCOPES:
        groups = read_settings(settings_path(scope)).get("hooks", {}).values()
        if any(is_http_hook(each) for event in groups for group in event for each in group["hooks"]):
            return
    (state / FILE).unlink(missing_ok=True)
