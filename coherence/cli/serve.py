"""``coherence serve``: the store in a browser."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import click

import coherence
from coherence.cli.interrupts import interrupted_by_signals
from coherence.cli.options import store_option
from coherence.cli.store_path import default_store
from coherence.core.errors import CoherenceError, MissingExtraError
from coherence.core.readings import one_line


@click.command()
@click.argument("file", metavar="[FILE]", required=False)
@store_option
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    metavar="PORT",
    help="Answer on this port; 0 = any that is free. Default: 7788, or any that is free if that one is taken.",
)
@click.option("--write", is_flag=True, help="Let pages label, unblock, edit lessons and roll patches back.")
@click.option(
    "--host-name",
    "host_names",
    metavar="NAME",
    multiple=True,
    help="Take requests for this name, too, of a tunnel or a proxy before the server; NAME:PORT if its port differs.",
)
@click.option("--open/--no-open", "opens", default=False, help="Open the page in the browser. Default: --no-open.")
def serve(
    file: str | None, store: Path | None, port: int | None, write: bool, host_names: tuple[str, ...], opens: bool
) -> None:
    """Show the agents of a store in a browser, live: lights, reasons, steps, guidance and its effect, lessons.

    FILE is the store. The server listens on 127.0.0.1 only, and prints the address, with a token that lets a browser
    in. Needs the extra web. Ctrl-C ends it. Exit status: 0 ok, 2 a port or a store that cannot be used.
    """
    if file is not None and store is not None:
        raise click.UsageError(one_line(f"two stores are named: {file} and --store {store}"))
    path = Path(file) if file is not None else store or default_store()
    for each in host_names:
        if not each or set(each) & set("/@ \t#?"):
            raise click.BadParameter(f"{one_line(each)!r} is no host name", param_hint="--host-name")
    try:
        from coherence.web.browser import open_page
        from coherence.web.server import WebServer

        version = coherence.__version__
        with (
            interrupted_by_signals(),
            WebServer(path, port=port, writes=write, host_names=host_names, version=version) as server,
        ):
            click.echo(f"{one_line(str(path))} is shown on {server.url}", err=True)
            click.echo("Ctrl-C ends it" if write else "read-only; --write lets pages label. Ctrl-C ends it", err=True)
            with open_page(server.url) if opens else nullcontext():
                server.serve_forever()
    except KeyboardInterrupt:
        click.echo("ends", err=True)
    except OSError as error:
        raise click.UsageError(one_line(f"port {port} cannot be listened on: {error.strerror or error}")) from error
    except MissingExtraError as error:
        raise click.UsageError(str(error)) from error
    except CoherenceError as error:
        raise click.UsageError(one_line(str(error))) from error
