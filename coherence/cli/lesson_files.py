"""The stores and files that ``coherence lessons`` opens, reads and writes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import click
from rich.console import Console
from rich.progress import Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from coherence.cli.inputs import make_embedder
from coherence.cli.outputs import check_outputs
from coherence.cli.target import opened, split_target
from coherence.core.errors import CoherenceError
from coherence.core.readings import one_line
from coherence.lessons.exchange import RefusedEntry, export_lessons
from coherence.lessons.store import LessonStore
from coherence.report.files import write_atomically
from coherence.store.store import Store

MAX_BYTES = 64_000_000
"""Size of an error in a file or on standard input; only its ends are kept."""

LOOKED_AT = 8_000
"""Bytes at the beginning of a file in which a NUL shows that it is no text."""


@contextmanager
def opened_lessons(
    store: Path | None, embedder: str | None, *, make: bool = False, rebuild: bool = False
) -> Iterator[LessonStore]:
    """Open the lessons of a store; anything wrong with it becomes a usage error.

    Parameters
    ----------
    store : Path, optional
        The file; default: that of all commands.
    embedder : str, optional
        ``NAME`` or ``NAME:ARG,ARG``; ``None`` where nothing is embedded and nothing found by meaning.
    make : bool
        Whether to begin a new file where there is none.
    rebuild : bool
        Whether to embed what this model has not embedded.
    """
    path = split_target(None, store)[0]
    made: Any = False if embedder is None else make_embedder(embedder)
    # opened() refuses a store that is not there.
    if make and not path.exists():
        try:
            Store(path).close()
        except CoherenceError as error:
            raise click.UsageError(str(error)) from error
    with opened(path) as kept:
        try:
            lessons = LessonStore(kept, embedder=made, rebuild=rebuild)
        except (TypeError, ValueError) as error:
            raise click.BadParameter(str(error), param_hint="--embedder") from error
        with lessons:
            yield lessons


def error_text(source: IO[bytes]) -> str:
    """Return what was printed to a file; bytes that are no UTF-8 become U+FFFD."""
    name = name_of(source)
    data = source.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise click.UsageError(f"{name}: more than {MAX_BYTES:,} bytes; give the last part of it")
    if b"\0" in data[:LOOKED_AT]:
        raise click.UsageError(f"{name}: not text (it holds NUL bytes)")
    return data.decode("utf-8", "replace")


def name_of(source: IO[bytes]) -> str:
    """Return the name of a file in messages."""
    return str(getattr(source, "name", "<stdin>"))


def report_refused(source: IO[bytes], refusals: Sequence[RefusedEntry], count: int) -> int:
    """Name on standard error the lines that were refused, and why; return the exit status."""
    for refusal in refusals:
        click.echo(one_line(f"error: {name_of(source)}:{refusal.line}: {refusal.why}"), err=True)
    if count > len(refusals):
        click.echo(one_line(f"error: {name_of(source)}: {count - len(refusals)} more lines were refused"), err=True)
    return int(count > 0)


def write_export(lessons: LessonStore, file: Path | None) -> None:
    """Write all lessons to a file, whole or not at all, or to standard output.

    Whoever stops reading ends it quietly, anything else becomes a usage error.
    """
    check_outputs({"FILE": file}, [], store=lessons.store.path)
    try:
        if file is None:
            sys.stdout.buffer.writelines(export_lessons(lessons))
            sys.stdout.buffer.flush()
        else:
            write_atomically(file, b"".join(export_lessons(lessons)).decode())
            click.echo(f"lessons: {file}", err=True)
    # An OSError as well, but whoever stops reading has seen enough.
    except BrokenPipeError:
        raise
    except OSError as error:
        name = "standard output" if file is None else str(file)
        raise click.UsageError(f"{name}: cannot be written: {error.strerror or error}") from error


class _Count(ProgressColumn):
    """A number that is asked for each time it is shown."""

    def __init__(self, count: Callable[[], int]) -> None:
        super().__init__()
        self.count = count

    def render(self, task: Task) -> Text:
        return Text(f"{self.count():,}")


@contextmanager
def progress(what: str, count: Callable[[], int]) -> Iterator[None]:
    """Show a growing count for as long as something runs; where nobody watches it is silent."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), _Count(count))
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        bar.add_task(what)
        yield
