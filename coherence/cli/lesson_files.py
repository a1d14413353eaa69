"""What ``coherence lessons`` opens, reads and writes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import IO, Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from coherence.cli.embedders import make_embedder
from coherence.cli.target import opened, split_target
from coherence.core.errors import CoherenceError
from coherence.lessons.store import LessonStore
from coherence.store.store import Store

MAX_BYTES = 64_000_000
"""Size of an error in a file or on standard input; only its ends are kept."""

LOOKED_AT = 8_000
"""Bytes at the beginning of a file in which a NUL shows that it is no text."""

REFRESH_S = 0.5
"""Seconds between two looks at how far a rebuild is."""


@contextmanager
def opened_lessons(store: Path | None, embedder: str | None, *, make: bool = False) -> Iterator[LessonStore]:
    """Open the lessons of a store; anything wrong with it becomes a usage error.

    Parameters
    ----------
    store : Path, optional
        The file; default: that of all commands.
    embedder : str, optional
        ``NAME`` or ``NAME:ARG,ARG``; ``None`` where nothing is embedded and nothing found by meaning.
    make : bool
        Whether to begin a new file where there is none.
    """
    path = split_target(None, store)[0]
    made = False if embedder is None else make_embedder(embedder)
    if make and not path.exists():
        try:
            Store(path).close()
        except CoherenceError as error:
            raise click.UsageError(str(error)) from error
    with opened(path) as kept, lessons_of(kept, made) as lessons:
        yield lessons


def lessons_of(kept: Store, embedder: Any, *, rebuild: bool = False) -> LessonStore:
    """Return the lessons of an open store; an embedder that cannot be used becomes a usage error."""
    try:
        return LessonStore(kept, embedder=embedder, rebuild=rebuild)
    except (TypeError, ValueError) as error:
        raise click.BadParameter(str(error), param_hint="--embedder") from error


def name_of(source: IO[bytes]) -> str:
    """Return what a message calls a file."""
    return str(getattr(source, "name", "<stdin>"))


def error_text(source: IO[bytes]) -> str:
    """Return what was printed to a file; bytes that are no UTF-8 become U+FFFD."""
    data = source.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise click.UsageError(f"{name_of(source)}: more than {MAX_BYTES:,} bytes; give the last part of it")
    if b"\0" in data[:LOOKED_AT]:
        raise click.UsageError(f"{name_of(source)}: not text (it holds NUL bytes)")
    return data.decode("utf-8", "replace")


def write_out(lines: Iterator[bytes]) -> None:
    """Write to standard output; whoever stops reading ends it quietly, anything else becomes a usage error."""
    try:
        sys.stdout.buffer.writelines(lines)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise click.UsageError(f"standard output: cannot be written: {error.strerror or error}") from error


def write_whole(file: Path, lines: Iterator[bytes]) -> None:
    """Write a file whole or not at all; what stops it becomes a usage error."""
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        if file.exists() and not file.is_file():  # a device or a pipe cannot be replaced
            _write(file, lines)
            return
        try:
            _write(part, lines)
            os.replace(part, file)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise click.UsageError(f"{file}: cannot be written: {error.strerror or error}") from error


def _write(file: Path, lines: Iterator[bytes]) -> None:
    with file.open("wb") as target:
        target.writelines(lines)


def progress_bar() -> Progress:
    """Return a bar for people; where nobody watches it is silent."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, disable=not console.is_terminal, transient=True)


@contextmanager
def watched_vectors(kept: Store) -> Iterator[None]:
    """Show how many lessons have a vector while they get them."""
    total = kept.fetch("SELECT count FROM lesson_state")[0][0]
    done = Event()

    def watch(bar: Progress) -> None:
        task = bar.add_task("embedded", total=total)
        while not done.wait(REFRESH_S):
            bar.update(task, completed=kept.fetch("SELECT count(*) FROM lesson_vectors")[0][0])

    with progress_bar() as bar:
        watcher = Thread(target=watch, args=(bar,), daemon=True)
        if not bar.disable:
            watcher.start()
        try:
            yield
        finally:
            done.set()
            if not bar.disable:
                watcher.join()
