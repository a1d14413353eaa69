"""``coherence mcp``: the server by which an agent reads itself, and the proxy that gates the tools of another one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

import coherence
from coherence.cli.options import config_option, store_option
from coherence.cli.store_path import default_store
from coherence.cli.target import read_config
from coherence.core.errors import CoherenceError
from coherence.core.readings import one_line

if TYPE_CHECKING:
    from coherence.core.config import MonitorConfig
    from coherence.monitor.monitor import Monitor

AGENT = "mcp"
"""Name of the agent behind a proxy."""

NOT_FOUND = 127
"""Exit status of a shell for a command that cannot be started."""


@click.command(context_settings={"allow_interspersed_args": False})
@click.option("--http", "port", metavar="PORT", type=click.IntRange(1, 65_535), help="Serve http://127.0.0.1:PORT/mcp.")
@click.option("--proxy", is_flag=True, help="Start the server that COMMAND names, and gate its tools.")
@click.option("--agent", metavar="NAME", help="Agent. Default: the one used last; of a proxy: mcp.")
@click.option("--session", metavar="S", help="Session. Default: the one used last; of a proxy: a new one.")
@click.option("--goal", metavar="TEXT", help="With --proxy: what the agent is asked to do.")
@config_option("With --proxy: TOML file with settings, such as budgets and forbidden calls.")
@store_option
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def mcp(
    port: int | None,
    proxy: bool,
    agent: str | None,
    session: str | None,
    goal: str | None,
    config: Path | None,
    store: Path | None,
    command: tuple[str, ...],
) -> None:
    """Serve an agent, by MCP, what is known of itself: status, reasons, lessons, readings.

    With --proxy, COMMAND with its arguments starts another MCP server. Everything passes both ways unchanged, but calls
    of its tools are recorded, and those that a monitor blocks are answered with the reason. Exit status: that of the
    server, 127 if it cannot be started, 2 bad usage.
    """
    path = (store or default_store()).absolute()
    if proxy != bool(command):
        raise click.UsageError("name the server: --proxy COMMAND [ARGS]..." if proxy else "COMMAND needs --proxy")
    if proxy and port is not None:
        raise click.UsageError("a proxy speaks on its standard input and output: leave out --http")
    if not proxy and (goal is not None or config is not None):
        raise click.UsageError("--goal and --config are for --proxy")
    if proxy:
        raise SystemExit(_run_proxy(command, path, agent or AGENT, session, goal, read_config(config)))
    from coherence.integrations.mcp.own_state import OwnState
    from coherence.integrations.mcp.server import serve

    own = OwnState(path, agent, session)
    try:
        serve(own, port, version=coherence.__version__)
    except CoherenceError as error:
        raise click.ClickException(str(error)) from error
    finally:
        own.close()


def _run_proxy(
    command: tuple[str, ...], path: Path, agent: str, session: str | None, goal: str | None, config: MonitorConfig
) -> int:
    from coherence.integrations.mcp.proxy import Proxy

    # what a library prints must not come between the messages
    client = os.dup(1)
    os.dup2(2, 1)
    try:
        monitor = _make_monitor(path, agent, session, goal, config)
    except (TypeError, ValueError) as error:
        raise click.UsageError(one_line(str(error))) from error
    with monitor:
        try:
            return Proxy(command, monitor, stdout=client).run()
        except OSError as error:
            click.echo(one_line(f"error: {command[0]}: cannot be started: {error.strerror or error}"), err=True)
            return NOT_FOUND


def _make_monitor(path: Path, agent: str, session: str | None, goal: str | None, config: MonitorConfig) -> Monitor:
    """Return a monitor; where the store cannot be used, one that judges and keeps nothing."""
    from coherence.core.files import make_folder
    from coherence.monitor.monitor import Monitor
    from coherence.store.errors import StoreError

    try:
        make_folder(path.parent)
        return Monitor(agent=agent, goal=goal, store=path, session=session, config=config, source="wrap")
    except (StoreError, OSError) as error:
        click.echo(one_line(f"warning: nothing is recorded: {error}"), err=True)
        return Monitor(agent=agent, goal=goal, session=session, config=config, source="wrap")
