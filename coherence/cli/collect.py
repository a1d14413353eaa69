"""``coherence collect``: record and score agents that other programs tell of, as they work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

import click

from coherence.cli.inputs import make_embedder
from coherence.cli.interrupts import interrupted_by_signals
from coherence.cli.options import config_option, embedder_option, store_option
from coherence.cli.store_path import default_store
from coherence.cli.target import read_config
from coherence.core.errors import CoherenceError
from coherence.core.files import make_folder
from coherence.core.readings import Reading, one_line
from coherence.store.store import Store

if TYPE_CHECKING:
    from coherence.integrations.bounded_server import BoundedServer
    from coherence.integrations.live_monitors import LiveMonitors


@click.command()
@click.option(
    "--otlp",
    "otlp_port",
    type=click.IntRange(0, 65_535),
    metavar="PORT",
    help="Take OTLP by HTTP on this port, in JSON or protobuf; 0 = any that is free. The usual one is 4318.",
)
@click.option(
    "--http",
    "http_port",
    type=click.IntRange(0, 65_535),
    metavar="PORT",
    help="Take events as plain JSON on this port, POST /v1/events, and answer with the newest decision; 0 = any.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on. Whoever reaches another one than this may write to the store.",
)
@store_option
@embedder_option("Embedder of the texts.")
@config_option("Settings of the monitors, a TOML file.")
def collect(
    otlp_port: int | None, http_port: int | None, host: str, store: Path | None, embedder: str, config: Path | None
) -> None:
    """Record agents that other programs tell of, score them live, and print each change of their light.

    They tell by OpenTelemetry (--otlp), by plain JSON (--http), or both. Each conversation of an agent is a session of
    the store. Ctrl-C ends it once everything is written. Exit status: 0 ok, 2 a port or a store that cannot be used.
    """
    from coherence.integrations.live_monitors import LiveMonitors
    from coherence.sensor.embedding_cache import EmbeddingCache

    if otlp_port is None and http_port is None:
        raise click.UsageError("nothing to take: give --otlp PORT, --http PORT or both")
    newest: dict[tuple[str, str], Reading] = {}

    def tell(agent: str, session: str, reading: Reading) -> None:
        before = newest.get((agent, session))
        newest[agent, session] = reading
        if before is None or before.band != reading.band:
            click.echo(one_line(f"{agent}/{session}: {reading.short()}"))

    settings = read_config(config)
    path = (store or default_store()).absolute()
    cache = EmbeddingCache(make_embedder(embedder))
    try:
        make_folder(path.parent)
        with interrupted_by_signals(), Store(path) as kept:
            monitors = LiveMonitors(kept, config=settings, embedder=cache, on_reading=tell)
            try:
                with ExitStack() as ends:
                    for server, told in _servers(monitors, otlp_port, http_port, host):
                        ends.enter_context(server)
                        Thread(target=server.serve_forever, daemon=True).start()
                        ends.callback(server.shutdown)
                        click.echo(f"{told}, recorded in {one_line(str(path))}", err=True)
                    Event().wait()
            except KeyboardInterrupt:
                click.echo("ends", err=True)
            finally:
                monitors.close()
    except CoherenceError as error:
        raise click.UsageError(one_line(str(error))) from error
    for (agent, session), reading in newest.items():
        click.echo(one_line(f"{agent}/{session}: {reading.short()} at the end"))


def _servers(
    monitors: LiveMonitors, otlp_port: int | None, http_port: int | None, host: str
) -> Iterator[tuple[BoundedServer, str]]:
    """Yield each server that is wanted, and what it takes where."""
    from coherence.integrations.event_receiver import EVENTS, EventReceiver
    from coherence.integrations.otlp_collector import OtlpCollector
    from coherence.integrations.otlp_receiver import OtlpReceiver

    port = otlp_port
    try:
        if port is not None:
            otlp = OtlpReceiver(OtlpCollector(monitors).take, port, host)
            yield otlp, f"OTLP on http://{host}:{otlp.server_port}"
        if (port := http_port) is not None:
            http = EventReceiver(monitors, port, host)
            yield http, f"events on http://{host}:{http.server_port}{EVENTS}"
    except OSError as error:
        raise click.UsageError(one_line(f"{host}:{port} cannot be listened on: {error.strerror or error}")) from error
