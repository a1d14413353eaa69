"""Changes of the files in which clients have their hooks, planned as the form of each client's file needs it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from coherence.integrations.hook_settings import Change, Group, plan_install, plan_removal
from coherence.integrations.opencode import settings as opencode


def plan_change(settings: ModuleType, path: Path, groups: Mapping[str, Group], *, remove: bool = False) -> Change:
    """Plan that a client's file has the hooks of this package, or loses them; nothing is written.

    Parameters
    ----------
    settings : module
        Of the client's settings.
    path : Path
        One of its files.
    groups : mapping
        As the module's ``hook_groups`` returns them.
    remove : bool
        The hooks go.

    Raises
    ------
    SettingsError
        The file cannot be changed without a loss.
    OSError
        It cannot be read.
    """
    if settings is opencode:
        return opencode.plan_plugin(path, groups, remove=remove)
    return plan_removal(path, groups) if remove else plan_install(path, groups)
