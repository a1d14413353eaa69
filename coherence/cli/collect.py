"""``coherence collect``: record and score agents that export telemetry, as they work."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import click

from coherence.cli.inputs import make_embedder
from coherence.cli.options import config_option, embedder_option, store_option
from coherence.cli.target import default_store, read_config
from coherence.core.errors import CoherenceError
from coherence.core.files import make_folder
from coherence.core.readings import Reading, one_line
from coherence.store.store import Store


@click.command()
@click.option(
    "--otlp",
    "port",
    type=click.IntRange(0, 65_535),
    required=True,
    metavar="PORT",
    help="Take OTLP by HTTP on this port, in JSON or protobuf; 0 = any that is free. The usual one is 4318.",
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
def collect(port: int, host: str, store: Path | None, embedder: str, config: Path | None) -> None:
    """Record agents that export OpenTelemetry spans, score them live, and print each change of their light.

    Each conversation of an agent is a session of the store. Ctrl-C ends it once everything is written. Exit status: 0
    ok, 2 a port or a store that cannot be used.
    """
    from coherence.integrations.otlp_collector import OtlpCollector
    from coherence.integrations.otlp_receiver import OtlpReceiver
    from coherence.sensor.embedding_cache import EmbeddingCache

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
        with Store(path) as kept:
            collector = OtlpCollector(kept, config=settings, embedder=cache, on_reading=tell)
            try:
                with OtlpReceiver(collector.take, port, host) as receiver:
                    for each in (signal.SIGTERM, signal.SIGINT):  # a shell has jobs in the background ignore the latter
                        signal.signal(each, _interrupt)
                    click.echo(
                        f"OTLP on http://{host}:{receiver.server_port}, recorded in {one_line(str(path))}", err=True
                    )
                    receiver.serve_forever()
            except KeyboardInterrupt:
                click.echo("ends", err=True)
            finally:
                collector.close()
    except OSError as error:
        raise click.UsageError(one_line(f"{host}:{port} cannot be listened on: {error.strerror or error}")) from error
    except CoherenceError as error:
        raise click.UsageError(one_line(str(error))) from error
    for (agent, session), reading in newest.items():
        click.echo(one_line(f"{agent}/{session}: {reading.short()} at the end"))


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt
