"""Work of ``coherence init --plugin``: writes the hooks as a plug-in that Claude Code installs from a folder."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import click

import coherence
from coherence.core.readings import one_line
from coherence.integrations.claude_code.plugin import PLUGIN, plan_plugin, plugin_files
from coherence.integrations.claude_code.settings import SCOPES, hook_groups, settings_path
from coherence.integrations.daemon.hook_command import hook_command, state_folder
from coherence.integrations.hook_settings import Change, SettingsError, apply_change, has_ours, read_settings


def write_plugin(folder: Path, *, observe: bool, dry_run: bool, diff: bool, agree: Callable[[], None]) -> None:
    """Write the plug-in, and say how it is installed.

    Parameters
    ----------
    folder : Path
        A new or empty folder, or one that holds the plug-in.
    observe : bool
        The hooks only look on.
    dry_run, diff : bool
        Say what would be written, or print it as a unified diff; write nothing.
    agree : callable
        Asks whether to write, and ends the command if not.
    """
    place = Path(os.path.abspath(folder))
    state = state_folder()
    command = hook_command(state, observe=observe)
    groups = hook_groups(command)
    try:
        changes = plan_plugin(place, plugin_files(groups, state, coherence.__version__))
        needed = [change for change in changes if change.needed]
        if not needed:
            _say(f"{place} has the plug-in already: nothing to do", err=diff)
        elif diff:
            click.echo("".join(change.diff() for change in needed), nl=False)
        else:
            new = "" if any(change.before is not None for change in changes) else " (a new plug-in)"
            _say(f"folder:  {place}{new}")
            _say(f"files:   {', '.join(str(change.path.relative_to(place)) for change in needed)}")
            _say(f"hooks:   one for each of {len(groups)} events: {', '.join(groups)}")
            _say(f"command: {command}")
            if dry_run:
                return _say("nothing was written (--dry-run)")
            agree()
            for change in needed:
                apply_change(change)
            _say(_next_steps(place, changes))
        return _note_settings()
    except SettingsError as error:
        raise click.UsageError(one_line(str(error))) from error
    except OSError as error:
        raise click.UsageError(one_line(f"{error.filename or place}: {error.strerror or error}")) from error


def _next_steps(place: Path, changes: list[Change]) -> str:
    if all(change.before is not None for change in changes):
        return "done: sessions that start from now on have it, if the plug-in is installed"
    add = f"claude plugin marketplace add {shlex.quote(str(place))}"
    return f"done: keep this folder, and install it from there: {add} && claude plugin install {PLUGIN}"


def _note_settings() -> None:
    """Say if settings have the hooks, too."""
    for scope in SCOPES:
        path = settings_path(scope)
        with suppress(SettingsError, OSError):
            if any(map(has_ours, read_settings(path).get("hooks", {}).values())):
                remove = f"coherence init --scope {scope} --remove"
                _say(f"note: {path} has the hooks, too; one of both is enough: {remove}", err=True)
                return


def _say(text: str, *, err: bool = False) -> None:
    click.echo(one_line(text), err=err)
