"""``coherence report``: the page of recorded sessions, from what their monitors have measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from coherence.cli.moments import since_option
from coherence.cli.options import file_option

if TYPE_CHECKING:
    from coherence.report.runs import Runs

MAX_NAMED = 5
"""Files that a report names."""
NAME_LENGTH = 120


@click.command()
@click.argument("paths", metavar="[FILE]...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--session", metavar="NAME", help="Only this one: AGENT/SESSION, an agent's newest, or a session's name.")
@since_option("Only sessions with an event since then, in stores.")
@file_option("--output", "File of the report.", short="-o", default=Path("report.html"), show_default=True)
def report(paths: tuple[Path, ...], session: str | None, since: float | None, output: Path) -> None:
    """Write one HTML page about recorded sessions, the worst first; it opens from disk and loads nothing.

    FILE is a store, of which nothing is measured again, or anything else that coherence score reads, which is scored
    now. Default: $COHERENCE_STORE, else the store in the user's data folder. Of a large store the worst sessions are
    shown, and of a long session the newest events; the page says what is left out. An older report is replaced, a store
    is not. Exit status: 0 ok, 2 bad usage or an unreadable file.
    """
    write_report(paths, session=session, since=since, output=output)


def write_report(paths: Sequence[Path], *, session: str | None, since: float | None, output: Path) -> None:
    """Write the report of some stores and transcripts."""
    from coherence.cli.outputs import check_folders, check_outputs, write_output
    from coherence.cli.store_path import default_store
    from coherence.core.readings import number_of
    from coherence.report.html import write_html
    from coherence.report.left_out import together
    from coherence.report.runs import Runs

    read = paths or (default_store(),)
    check_outputs({"--output": output}, read)
    check_folders([output])
    parts = [_runs(path, session, since) for path in read]
    runs = Runs((run for part in parts for run in part), rest=together(part.rest for part in parts)).worst_first()
    told = []
    if runs.left_out:
        told.append(
            f"The {number_of(len(runs), 'worst session')} of {len(runs) + runs.left_out:,} are shown. Name one with "
            "--session, or narrow them with --since."
        )
    told += [f"{reason}." for reason in runs.rest.reasons()] if runs else [runs.rest.nothing()]
    for line in told:
        click.echo(line, err=True)
    note = " ".join([_made_of(read, session, since), *told])
    title = f"coherence report: {read[0].name}" if len(read) == 1 else "coherence report"
    if not write_output("report", output, lambda path: write_html(path, runs, title=title, note=note)):
        raise SystemExit(2)


def _made_of(read: Sequence[Path], session: str | None, since: float | None) -> str:
    """Say of which files a report was made, and what was asked for."""
    from coherence.core.cards import moment
    from coherence.core.readings import excerpt

    files = ", ".join(path.name for path in read[:MAX_NAMED])
    more = f" and {len(read) - MAX_NAMED:,} more" if len(read) > MAX_NAMED else ""
    asked = [f"--session {excerpt(session, NAME_LENGTH)}"] if session is not None else []
    asked += [f"--since {moment(since)}"] if since is not None else []
    chosen = f", asked for with {' and '.join(asked)}" if asked else ""
    return f"Made of {files}{more}{chosen}."


def _runs(path: Path, session: str | None, since: float | None) -> Runs:
    """Return the runs of a store or of transcripts."""
    from functools import partial

    from coherence.cli.inputs import make_embedder, tell_warnings
    from coherence.cli.score import score_each, scoring_progress
    from coherence.cli.target import opened, read_config
    from coherence.core.errors import CoherenceError
    from coherence.providers.readers import read_transcripts
    from coherence.report.runs import Runs, stored_runs
    from coherence.report.score import score_transcript
    from coherence.sensor.embedding_cache import EmbeddingCache
    from coherence.store.open import is_sqlite

    try:
        if is_sqlite(path) or not path.exists():
            with opened(path, option=False) as store:
                return stored_runs(store, session=session, since=since)
        if since is not None:
            raise click.UsageError(f"--since is for stores; {path} is a transcript, which is read whole")
        transcripts = [each for each in read_transcripts(path) if session in (None, each.id)]
    except CoherenceError as error:
        raise click.UsageError(str(error)) from error
    if not transcripts:
        raise click.UsageError(f"{path}: no run is called {session!r}")
    tell_warnings(path, transcripts)
    cache = EmbeddingCache(make_embedder("minilm"))
    with scoring_progress(transcripts) as advance:
        score = partial(score_transcript, config=read_config(None))
        return Runs(score_each(transcripts, score, cache, "minilm", 1, advance))
