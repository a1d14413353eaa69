"""``coherence daemon``: the resident process that hooks talk to."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import click

from coherence.cli.store_path import default_store
from coherence.cli.target import refuse_windows
from coherence.core.errors import CoherenceError
from coherence.core.readings import one_line

STORE = click.option("--store", type=click.Path(path_type=Path), help="File that keeps everything.")
IDLE = click.option(
    "--idle", type=click.FloatRange(min=1.0), default=1_800.0, help="Seconds without a hook before it ends."
)
STATE = click.option(
    "--state",
    type=click.Path(path_type=Path),
    help="State folder. Default: COHERENCE_STATE, else the system's place for state.",
)


@click.group()
def daemon() -> None:
    """Start and stop the process that hooks talk to, and read its log."""


@daemon.command()
@STATE
@STORE
@IDLE
def run(state: Path | None, store: Path | None, idle: float) -> None:
    """Answer hooks here until there are none for a while. Hooks start it themselves."""
    from coherence.core.files import make_folder
    from coherence.integrations.daemon.folder import enter, only_one
    from coherence.integrations.daemon.hook_command import state_folder
    from coherence.integrations.daemon.server import HookDaemon

    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    path = (store or default_store()).absolute()
    folder = (state or state_folder()).absolute()
    try:
        enter(folder)
        make_folder(path.parent)
        with only_one() as alone:
            if alone:
                HookDaemon(folder, path, idle_s=idle).serve()
            else:
                click.echo("a daemon runs already")
    except CoherenceError as error:
        raise click.ClickException(str(error)) from error


@daemon.command()
@STATE
@STORE
@IDLE
def start(state: Path | None, store: Path | None, idle: float) -> None:
    """Start the daemon in the background, and wait until it answers.

    Hooks start it themselves; this is for a first session that is to be steered from its first call on. Exit status: 0
    ok, also if one runs already, 1 it does not come.
    """
    refuse_windows()
    from coherence.integrations.daemon.folder import start_daemon
    from coherence.integrations.daemon.hook_command import state_folder

    options = ["--idle", f"{idle:g}", *([] if store is None else ["--store", str(store.absolute())])]
    try:
        pid, new = start_daemon((state or state_folder()).absolute(), *options)
    except (CoherenceError, OSError) as error:
        raise click.ClickException(one_line(str(error))) from error
    click.echo(f"daemon {pid} {'runs' if new else 'runs already'}")


@daemon.command()
@STATE
@click.option("-n", "--lines", type=click.IntRange(min=1), default=40, show_default=True, help="Lines at most.")
def logs(state: Path | None, lines: int) -> None:
    """Print the newest lines of the daemon's log, oldest first."""
    from coherence.integrations.daemon.hook import LOG
    from coherence.integrations.daemon.hook_command import state_folder
    from coherence.integrations.daemon.log import newest_lines

    folder = (state or state_folder()).absolute()
    try:
        found = newest_lines(folder, lines)
    except OSError as error:
        raise click.ClickException(one_line(f"{error.filename or folder / LOG}: {error.strerror or error}")) from error
    if found is None:
        click.echo(one_line(f"no log in {folder} yet"), err=True)
    for line in found or ():
        click.echo(one_line(line))


@daemon.command()
@STATE
def stop(state: Path | None) -> None:
    """End the daemon once what it has is written, and wait for it."""
    from coherence.integrations.daemon.folder import stop_daemon
    from coherence.integrations.daemon.hook_command import state_folder

    try:
        found = stop_daemon((state or state_folder()).absolute())
    except CoherenceError as error:
        raise click.ClickException(str(error)) from error
    if found is None:
        click.echo("no daemon runs")
    else:
        click.echo(f"daemon {found[0]} {'has ended' if found[1] else 'still writes what it has, and ends then'}")
