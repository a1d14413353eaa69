"""``coherence init``: puts the hooks of this package into the settings of a client, and takes them out."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import click

from coherence.cli import init_http
from coherence.cli.target import refuse_windows
from coherence.core.errors import CoherenceError
from coherence.core.readings import one_line
from coherence.integrations.claude_code import settings as claude_code
from coherence.integrations.claude_code.plugin import PLUGIN, installed_plugin
from coherence.integrations.codex import settings as codex
from coherence.integrations.daemon.hook_command import hook_command, state_folder
from coherence.integrations.daemon.http_place import HttpPlace, choose_place
from coherence.integrations.gemini import settings as gemini
from coherence.integrations.hook_plans import plan_change
from coherence.integrations.hook_settings import Change, Group, apply_change
from coherence.integrations.opencode import settings as opencode

HOSTS: dict[str, ModuleType] = {
    "claude-code": claude_code,
    "codex": codex,
    "gemini": gemini,
    "opencode": opencode,
}
"""Name of a client -> the module of its settings.

It has ``SCOPES``; ``settings_path(scope)``; ``hook_groups(command)``; ``disabling_file(paths)`` and ``OFF_SWITCH``, the
setting by which it runs no hooks; and ``NEXT_STEP``, what the user still has to do once the hooks are in, empty for
nothing. How a change is planned, :mod:`~coherence.integrations.hook_plans` knows.
"""


@click.command()
@click.option("--host", type=click.Choice(tuple(HOSTS)), default="claude-code", show_default=True, help="The client.")
@click.option(
    "--scope",
    type=click.Choice(claude_code.SCOPES),
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
    "--http", is_flag=True, help="Have Claude Code post the hooks of each step to a port of this machine: it is faster."
)
@click.option(
    "--plugin",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write the hooks as a plug-in into a folder of its own; no settings change.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
def init(
    host: str,
    scope: str,
    dry_run: bool,
    diff: bool,
    remove: bool,
    observe: bool,
    http: bool,
    plugin: Path | None,
    yes: bool,
) -> None:
    """Put hooks into the settings of a client, so that its sessions are followed.

    What is in the settings stays, and a copy of the file is kept beside it. Exit status: 0 ok, 1 you said no, 2 bad
    usage or a file that cannot be changed.
    """
    refuse_windows()
    settings = HOSTS[host]
    if scope not in settings.SCOPES:
        raise click.UsageError(f"{host} has no --scope {scope}; it has {', '.join(settings.SCOPES)}")
    if http and (host != "claude-code" or plugin is not None or scope == "project"):
        raise click.UsageError("--http is for the user's own settings of Claude Code: --scope user or local")
    if plugin is not None:
        from coherence.cli.init_plugin import write_plugin

        if remove:
            raise click.UsageError(f"--remove is for settings; claude plugin uninstall {PLUGIN} removes the plug-in")
        if scope != claude_code.SCOPES[0]:
            raise click.UsageError(f"--scope is for settings; claude plugin install --scope {scope} {PLUGIN} has it")
        return write_plugin(plugin, observe=observe, dry_run=dry_run, diff=diff, agree=lambda: _agreed(yes=yes))
    path, state = settings.settings_path(scope), state_folder()
    command = hook_command(state, observe=observe, host=None if host == "claude-code" else host)
    groups = settings.hook_groups(command)
    try:
        place = choose_place(state) if http and not remove else None
        if place is not None:
            groups = claude_code.hook_groups(command, place, observe=observe)
        change = plan_change(settings, path, groups, remove=remove)
        if not remove:
            _warn(settings, scope)
        if not change.needed:
            has = "has no hook of this package" if remove else f"has a hook for each of {len(groups)} events already"
            click.echo(one_line(f"{path} {has}: nothing to do"), err=diff)
        elif diff:
            click.echo(change.diff(), nl=False)
        else:
            for line in _removal_in_words(change) if remove else _install_in_words(change, groups, place):
                _say(line)
            if dry_run:
                return _say("nothing was written (--dry-run)")
            _agreed(yes=yes)
            if place is not None:
                init_http.prepare(state, place, path)
            apply_change(change)
            _say(f"done: sessions that start from now on run {'none of them' if remove else 'them'}")
            if host == "claude-code":
                init_http.forget_unused_place(state)
            if settings.NEXT_STEP and not remove:
                _say(f"next:    {settings.NEXT_STEP}")
    except CoherenceError as error:
        raise click.UsageError(one_line(str(error))) from error
    except OSError as error:
        raise click.UsageError(one_line(f"{error.filename or path}: {error.strerror or error}")) from error
    return None


def _agreed(*, yes: bool) -> None:
    """Return once somebody has agreed to write."""
    if not yes:
        if not _has_terminal():
            raise click.UsageError("nothing was written: there is no terminal to ask on; add --yes")
        click.confirm("Write it?", abort=True)


def _install_in_words(change: Change, groups: dict[str, Group], place: HttpPlace | None) -> list[str]:
    new = " (a new file)" if change.before is None else ""
    command = next(iter(groups.values()))["hooks"][0]["command"]
    lines = [
        f"file:    {change.path}{new}",
        f"hooks:   one for each of {len(groups)} events: {', '.join(groups)}",
        f"command: {command}",
    ]
    if place is not None:
        lines.append(f"port:    {place.port} of this machine alone, for the events of each step; the file gets a token")
    return [*lines, f"backup:  {change.backup}"] if change.saves else lines


def _removal_in_words(change: Change) -> list[str]:
    if change.after is None:
        return [f"file:    {change.path} goes; nothing but hooks of this package is in it"]
    if change.restores:
        return [f"file:    {change.path} becomes what it was before them, from {change.backup}, which goes"]
    kept = f"; {change.backup} stays, for other things have changed since" if change.backup.exists() else ""
    return [f"file:    {change.path} loses the hooks of this package, and nothing else{kept}"]


def _warn(settings: ModuleType, scope: str) -> None:
    """Say what keeps the hooks from being run, here or elsewhere."""
    if scope == "project":
        note = "the command names files of this machine"
        if "local" in settings.SCOPES:
            note += "; --scope local keeps it out of what others get"
        click.echo(f"note: {note}", err=True)
    off = settings.disabling_file(settings.settings_path(one) for one in reversed(settings.SCOPES))
    if off is not None:
        click.echo(one_line(f"warning: the hooks will not run: {settings.OFF_SWITCH} is set in {off}"), err=True)
    if settings is not claude_code:
        return
    folder = installed_plugin([claude_code.settings_path(one) for one in reversed(claude_code.SCOPES)])
    if folder is not None:
        note = (
            f"note: the plug-in in {folder} has the hooks, too; one of both is enough: claude plugin uninstall {PLUGIN}"
        )
        click.echo(one_line(note), err=True)


def _has_terminal() -> bool:
    return sys.stdin.isatty()


def _say(text: str) -> None:
    click.echo(one_line(text))
