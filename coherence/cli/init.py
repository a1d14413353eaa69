"""``coherence init``: puts the hooks of this package into the settings of Claude Code, and takes them out."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from coherence.cli.target import refuse_windows
from coherence.core.readings import one_line
from coherence.integrations.claude_code.plugin import PLUGIN, installed_plugin
from coherence.integrations.claude_code.settings import (
    EVENTS,
    SCOPES,
    Scope,
    disabling_file,
    hook_groups,
    settings_path,
)
from coherence.integrations.daemon.hook_command import hook_command, state_folder
from coherence.integrations.hook_settings import Change, SettingsError, apply_change, plan_install, plan_removal


@click.command()
@click.option(
    "--scope",
    type=click.Choice(SCOPES),
    default="user",
    show_default=True,
    help="Settings of the user, of the project in this folder, or of the user in this project.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be written; write nothing.")
@click.option("--diff", is_flag=True, help="Print the change as a unified diff; write nothing.")
@click.option("--remove", is_flag=True, help="Take the hooks out again.")
@click.option(
    "--observe", is_flag=True, help="Have the hooks only look on: nothing is said to the agent, nothing refused."
)
@click.option(
    "--plugin",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write the hooks as a plug-in into a folder of its own; no settings change.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
def init(scope: Scope, dry_run: bool, diff: bool, remove: bool, observe: bool, plugin: Path | None, yes: bool) -> None:
    """Put hooks into the settings of Claude Code, so that its sessions are followed.

    What is in the settings stays, and a copy of the file is kept beside it. Exit status: 0 ok, 1 you said no, 2 bad
    usage or a file that cannot be changed.
    """
    refuse_windows()
    if plugin is not None:
        from coherence.cli.init_plugin import write_plugin

        if remove:
            raise click.UsageError(f"--remove is for settings; claude plugin uninstall {PLUGIN} removes the plug-in")
        if scope != SCOPES[0]:
            raise click.UsageError(f"--scope is for settings; claude plugin install --scope {scope} {PLUGIN} has it")
        return write_plugin(plugin, observe=observe, dry_run=dry_run, diff=diff, agree=lambda: _agreed(yes=yes))
    path = settings_path(scope)
    command = hook_command(state_folder(), observe=observe)
    groups = hook_groups(command)
    try:
        change = plan_removal(path, groups) if remove else plan_install(path, groups)
        if not remove:
            _warn(scope)
        if not change.needed:
            state = "has no hook of this package" if remove else f"has a hook for each of {len(EVENTS)} events already"
            click.echo(one_line(f"{path} {state}: nothing to do"), err=diff)
        elif diff:
            click.echo(change.diff(), nl=False)
        else:
            _change(change, command, remove=remove, dry_run=dry_run, yes=yes)
    except SettingsError as error:
        raise click.UsageError(one_line(str(error))) from error
    except OSError as error:
        raise click.UsageError(one_line(f"{error.filename or path}: {error.strerror or error}")) from error
    return None


def _change(change: Change, command: str, *, remove: bool, dry_run: bool, yes: bool) -> None:
    """Say what a change does, ask, and make it."""
    for line in _removal_in_words(change) if remove else _install_in_words(change, command):
        _say(line)
    if dry_run:
        return _say("nothing was written (--dry-run)")
    _agreed(yes=yes)
    apply_change(change)
    return _say(f"done: sessions that start from now on run {'none of them' if remove else 'them'}")


def _agreed(*, yes: bool) -> None:
    """Return once somebody has agreed to write."""
    if not yes:
        if not _has_terminal():
            raise click.UsageError("nothing was written: there is no terminal to ask on; add --yes")
        click.confirm("Write it?", abort=True)


def _install_in_words(change: Change, command: str) -> list[str]:
    new = " (a new file)" if change.before is None else ""
    lines = [
        f"file:    {change.path}{new}",
        f"hooks:   one for each of {len(EVENTS)} events: {', '.join(EVENTS)}",
        f"command: {command}",
    ]
    return [*lines, f"backup:  {change.backup}"] if change.saves else lines


def _removal_in_words(change: Change) -> list[str]:
    if change.after is None:
        return [f"file:    {change.path} goes; nothing but hooks of this package is in it"]
    if change.restores:
        return [f"file:    {change.path} becomes what it was before them, from {change.backup}, which goes"]
    kept = f"; {change.backup} stays, for other things have changed since" if change.backup.exists() else ""
    return [f"file:    {change.path} loses the hooks of this package, and nothing else{kept}"]


def _warn(scope: Scope) -> None:
    """Say what keeps the hooks from being run, here or elsewhere."""
    if scope == "project":
        note = "the command names files of this machine; --scope local keeps it out of what others get"
        click.echo(f"note: {note}", err=True)
    off = disabling_file(settings_path(one) for one in reversed(SCOPES))
    if off is not None:
        click.echo(one_line(f"warning: the hooks will not run: disableAllHooks is set in {off}"), err=True)
    if (folder := installed_plugin([settings_path(one) for one in reversed(SCOPES)])) is not None:
        note = (
            f"note: the plug-in in {folder} has the hooks, too; one of both is enough: claude plugin uninstall {PLUGIN}"
        )
        click.echo(one_line(note), err=True)


def _has_terminal() -> bool:
    return sys.stdin.isatty()


def _say(text: str) -> None:
    click.echo(one_line(text))
