"""``coherence daemon``: the resident process that hooks talk to."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import click

from coherence.cli.target import default_store
from coherence.core.errors import CoherenceError

STATE = click.option(
    "--state",
    type=click.Path(path_type=Path),
    help="State folder. Default: COHERENCE_STATE, else the system's place for state.",
)


@click.group()
def daemon() -> None:
    """Run and stop the process that hooks talk to."""


@daemon.command()
@STATE
@click.option("--store", type=click.Path(path_type=Path), help="File that keeps everything.")
@click.option("--idle", type=click.FloatRange(min=1.0), default=1_800.0, help="Seconds without a hook before it ends.")
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
def stop(state: Path | None) -> None:
    """End the daemon once what it has is written."""
    from coherence.integrations.daemon.folder import control
    from coherence.integrations.daemon.hook_command import state_folder

    try:
        found = control((state or state_folder()).absolute(), "stop")
    except CoherenceError as error:
        raise click.ClickException(str(error)) from error
    click.echo("no daemon runs" if found is None else f"daemon {found['pid']} ends")
