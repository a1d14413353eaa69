"""Files that a command writes: none of them may be one that it reads, a store, or another that it writes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import click

from coherence.store.open import is_sqlite

_BESIDE = ("-wal", "-shm", "-journal")
"""Endings that SQLite adds to a store's name for the files that belong to it."""


def check_outputs(
    outputs: Mapping[str, Path | None], inputs: Iterable[Path | None], *, store: Path | None = None
) -> None:
    """Refuse to write where something would be lost: over an input, over a store, or over another output.

    Any other file is written over. Names are compared as the system does, so that a link is what it points at.

    Parameters
    ----------
    outputs : mapping
        What is written, as a person calls it (``--html``) -> its file; ``None`` = not asked for.
    inputs : iterable of Path
        What is read; ``None`` is passed over.
    store : Path, optional
        The store that is written too; it need not exist.

    Raises
    ------
    click.UsageError
        It names both.
    """
    read = [path for path in inputs if path is not None]
    written: dict[str, Path] = {"--store": store} if store is not None else {}
    for path in read:
        if store is not None and _same(store, path):
            raise click.UsageError(f"--store {store} is the file {path}, which is read; choose another name")
    for name, output in outputs.items():
        if output is None:
            continue
        for path in read:
            if _same(output, path):
                raise click.UsageError(
                    f"{name} {output} would write over the input {path}; nothing was written, choose another name"
                )
        for other, path in written.items():
            if _same(output, path):
                raise click.UsageError(
                    f"{name} {output} and {other} {path} are one file; nothing was written, choose another name"
                )
        if _of_a_store(output):
            raise click.UsageError(
                f"{name} {output} would write over a SQLite store; nothing was written, choose another name"
            )
        written[name] = output


def check_folders(outputs: Iterable[Path | None]) -> None:
    """Refuse to begin where a file could not be written at the end; ``None`` is passed over."""
    for path in outputs:
        if path is not None and not os.access(path.resolve().parent, os.W_OK):
            raise click.UsageError(f"cannot write {path}: its folder does not exist or is not writable")


def write_output(what: str, path: Path, write: Callable[[Path], object]) -> bool:
    """Write a file and say so; report what prevents it."""
    try:
        write(path)
    except OSError as error:
        click.echo(f"error: {path}: cannot be written: {error.strerror or error}", err=True)
        return False
    click.echo(f"{what}: {path}", err=True)
    return True


def _same(first: Path, second: Path) -> bool:
    one, other = os.path.realpath(first), os.path.realpath(second)
    try:
        return one == other or os.path.samefile(one, other)
    except (OSError, ValueError):  # one of them is not there, or has no possible name
        return False


def _of_a_store(path: Path) -> bool:
    real = os.path.realpath(path)
    # The log of a store is part of it: writing over it loses what was committed last.
    names = {real, *(real.removesuffix(ending) for ending in _BESIDE)}
    return any(is_sqlite(name) for name in sorted(names))
