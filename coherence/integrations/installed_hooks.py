"""Diagnosis of hooks in a client: whether they are as ``coherence init`` would put them in now."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from coherence.core.errors import CoherenceError
from coherence.integrations.claude_code.diagnosis import Check
from coherence.integrations.daemon.hook_command import hook_command
from coherence.integrations.hook_plans import plan_change


def diagnose_hooks(host: str, settings: ModuleType, state: Path) -> list[Check]:
    """Check the hooks in a client, one check for each file that has hooks of this package.

    Parameters
    ----------
    host : str
        The client's name.
    settings : module
        Of its settings.
    state : Path
        The folder of :func:`~coherence.integrations.daemon.hook_command.state_folder`.
    """
    return [check for scope in settings.SCOPES for check in _of_scope(host, settings, scope, state)]


def _of_scope(host: str, settings: ModuleType, scope: str, state: Path) -> Iterator[Check]:
    path = settings.settings_path(scope)
    try:
        removal = plan_change(settings, path, settings.hook_groups(hook_command(state, host=host)), remove=True)
        if removal.before is None or not removal.needed:
            return
        observes = b"--observe" in removal.before
        groups = settings.hook_groups(hook_command(state, observe=observes, host=host))
        change = plan_change(settings, path, groups)
        off = settings.disabling_file([path])
    except (CoherenceError, OSError) as error:
        yield Check(host, "WARN", str(error))
        return
    again = f"coherence init --host {host} --scope {scope}{' --observe' if observes else ''} --yes"
    if off is not None:
        yield Check(host, "FAIL", f"no hook runs: {settings.OFF_SWITCH} is set in {off}", f"take it out of {off}")
    elif change.needed:
        found = f"{path}: hooks are missing, or of another version, installation or state folder"
        yield Check(host, "FAIL", found, again)
    else:
        yield Check(host, "OK", f"{path}: {'only looks on' if observes else 'all hooks are there'}")
