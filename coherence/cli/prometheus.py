"""``coherence prometheus``: metrics of a store, for Prometheus to scrape."""

from __future__ import annotations

from pathlib import Path

import click

from coherence.cli.interrupts import interrupted_by_signals
from coherence.cli.options import store_option
from coherence.cli.target import opened, split_target
from coherence.core.errors import CoherenceError, MissingExtraError
from coherence.core.readings import number_of, one_line


@click.command()
@click.argument("file", metavar="[FILE]", required=False)
@store_option
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=9464,
    show_default=True,
    metavar="PORT",
    help="Answer on this port; 0 = any that is free.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on. Whoever reaches it reads names of agents and their figures, and no texts.",
)
@click.option(
    "--max-agents",
    type=click.IntRange(1, 10_000),
    default=100,
    show_default=True,
    metavar="N",
    help="Agents that are exposed at most: those heard from last.",
)
@click.option("--once", is_flag=True, help="Print the metrics instead, and end.")
def prometheus(file: str | None, store: Path | None, port: int, host: str, max_agents: int, once: bool) -> None:
    """Serve the figures of all agents in a store as GET /metrics, for Prometheus.

    FILE is the store. Each event is read once; a scrape reads what is new. Needs the extra prometheus. Ctrl-C ends it.
    Exit status: 0 ok, 2 a port or a store that cannot be used.
    """
    from coherence.integrations.prometheus_server import MetricsServer, StoreMetrics

    path, name = split_target(file, store)
    if name is not None:
        raise click.UsageError(f"{one_line(name)}: no such file; FILE is a store")
    try:
        metrics = StoreMetrics(path, max_agents=max_agents)
        with opened(path) as kept:
            count = kept.count_events()
        if not once:
            click.echo(f"reading {number_of(count, 'event')} of {one_line(str(path))}", err=True)
        text = metrics.exposition()
        if once:
            click.echo(text, nl=False)
            return
        with interrupted_by_signals(), MetricsServer(metrics, port, host) as server:
            click.echo(f"metrics on http://{host}:{server.server_port}/metrics", err=True)
            server.serve_forever()
    except KeyboardInterrupt:
        click.echo("ends", err=True)
    except MissingExtraError as error:
        raise click.UsageError(str(error)) from error
    except OSError as error:
        raise click.UsageError(one_line(f"{host}:{port} cannot be listened on: {error.strerror or error}")) from error
    except CoherenceError as error:
        raise click.UsageError(one_line(str(error))) from error
