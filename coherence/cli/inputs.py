"""Inputs of a command: recorded runs, and the embedder to embed them with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coherence.core.errors import CoherenceError, TranscriptError
from coherence.core.readings import excerpt, number_of, one_line
from coherence.core.registry import lookup
from coherence.store.open import is_sqlite

if TYPE_CHECKING:
    from coherence.providers.transcript import Transcript


def read_inputs(paths: Sequence[Path], form: str | None) -> tuple[list[Transcript], list[TranscriptError]]:
    """Read every file, transcripts or a store; a bad one is reported and passed over."""
    from coherence.providers.readers import read_transcripts
    from coherence.report.recorded import read_recorded  # which a command that only embeds does not need

    transcripts: list[Transcript] = []
    errors: list[TranscriptError] = []
    for path in paths:
        try:
            found = read_recorded(path) if form is None and is_sqlite(path) else read_transcripts(path, form)
        except TranscriptError as error:
            errors.append(error)
            click.echo(f"error: {one_line(str(error))}", err=True)
            continue
        tell_warnings(path, found)
        transcripts += found
    return transcripts, errors


def tell_warnings(path: str | Path, transcripts: Iterable[Transcript]) -> None:
    """Print each warning of a file's runs once, with the first run that has it and how many others have."""
    runs: dict[str, list[str]] = {}
    for transcript in transcripts:
        for warning in transcript.warnings:
            runs.setdefault(warning, []).append(transcript.id)
    for warning, (first, *others) in runs.items():
        more = f" and {number_of(len(others), 'other')}" if others else ""
        click.echo(f"warning: {one_line(f'{path}: {warning} (run {excerpt(first)}{more})')}", err=True)


def make_embedder(spec: str) -> Any:
    """Make an embedder from ``NAME`` or ``NAME:ARG,ARG``, and see that it works: later its failures are silent."""
    name, _, arguments = spec.partition(":")
    try:
        embedder = lookup("embedders", name)(*(arguments.split(",") if arguments else ()))
        # Many load their model, or reach their server, only now.
        embedder.embed("a first text")
    except Exception as error:
        reason = str(error) if isinstance(error, CoherenceError) else f"{type(error).__name__}: {error}"
        raise click.BadParameter(one_line(reason), param_hint="--embedder") from error
    return embedder


@contextmanager
def progress_bar(total: int) -> Iterator[Callable[[int], None]]:
    """Show how many steps of ``total`` are done, on a terminal; yields what is told of each few more."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task("steps", total=total)
        yield lambda steps: progress.advance(task, steps)
