"""Work of ``coherence watch``: agents in the terminal, as they run."""

from __future__ import annotations

import gc
import sys
from importlib.util import find_spec
from pathlib import Path

import click


@click.command()
@click.argument("store", type=click.Path(dir_okay=False, path_type=Path), required=False)
@click.option("--ascii", "plain", is_flag=True, help="Draw with ASCII only.")
def watch(store: Path | None, plain: bool) -> None:
    """Watch agents as they run: who is in trouble, why, what it was told, whether that helped.

    STORE is the file that they record into; default: COHERENCE_STORE, else the one that hooks write. It may come later.
    Keys stand in the last line; ? shows all of them. NO_COLOR leaves colours out. Needs the extra tui: pip install
    "coherence-sensor[tui]". Exit status: 0 ok, 2 bad usage.
    """
    if find_spec("textual") is None:
        raise click.UsageError('coherence watch needs textual: pip install "coherence-sensor[tui]"')
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError("coherence watch draws on a terminal; coherence sessions --json is for programs")
    from coherence.cli.store_path import default_store

    # what is loaded now stays: looking for garbage in it would take a tenth of the time until something is seen
    gc.disable()
    path = store or default_store()
    from coherence.tui.first_picture import draw_first, leave

    opened = draw_first(path, sys.stdout, ascii=plain)
    try:
        from coherence.tui.face import WatchFace

        face = WatchFace(path, ascii=plain, opened=opened)
    except BaseException:
        leave()
        raise
    face.run()
