"""Store and sessions that a command means."""

from __future__ import annotations

import os
import sqlite3
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from coherence.cli.store_path import default_store
from coherence.core.config import MonitorConfig
from coherence.core.errors import CoherenceError
from coherence.core.readings import one_line
from coherence.core.settings import ConfigError, load_settings
from coherence.store.open import HEADER_BYTES, MAGIC, kind_in_words
from coherence.store.rows import SessionRow
from coherence.store.session_names import sessions_called
from coherence.store.store import Store

GUARD_FILE = "guard.db"
"""File to which a guard writes by default."""

NAMED = 5
"""Sessions that an error names at most."""


def read_config(path: Path | None) -> MonitorConfig:
    """Return the settings of a TOML file, else those of the project and the user; a bad one becomes a usage error."""
    try:
        return load_settings() if path is None else MonitorConfig.load(path)
    except ConfigError as error:
        raise click.UsageError(f"bad settings; coherence config check tells of all\n{error}") from error
    except (TypeError, ValueError) as error:
        raise click.BadParameter(str(error), param_hint="--config") from error


def refuse_windows() -> None:
    """Refuse a command about hooks where they cannot run."""
    if sys.platform == "win32":
        raise click.UsageError("hooks need Unix sockets, which Windows lacks; coherence score reads recorded sessions")


def guard_store(store: Path | None) -> Path:
    """Return the store that a command about guards means: the one named, else ``guard.db`` of the current folder.

    That is where a guard writes unless told otherwise; without one, and where the environment names a store, it is the
    same as for all commands.
    """
    if store is None and not os.environ.get("COHERENCE_STORE") and Path(GUARD_FILE).is_file():
        return Path(GUARD_FILE)
    return store or default_store()


@contextmanager
def opened(path: Path, *, option: bool = True) -> Iterator[Store]:
    """Open a store that must exist; anything wrong with it becomes a usage error, and nothing is changed.

    ``option`` tells whether the command can be told another store by an option or the environment.
    """
    if not path.is_file():
        hint = "; name a store with --store or COHERENCE_STORE" if option else "; STORE is the file of a store"
        raise click.UsageError(f"{path}: no such file{hint}")
    # Before Store(), which would make a store of an empty file.
    with path.open("rb") as file:
        header = file.read(HEADER_BYTES)
    if not header.startswith(MAGIC):
        raise click.UsageError(f"{path}: not a store of this package, but {kind_in_words(header)}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            store = Store(path, recovers=False)
    except (CoherenceError, sqlite3.Error, Warning) as error:
        raise click.UsageError(f"{path}: {error}") from error
    try:
        yield store
    except CoherenceError as error:
        raise click.UsageError(str(error)) from error
    finally:
        store.close()


def split_target(target: str | None, store: Path | None) -> tuple[Path, str | None]:
    """Tell a store's path from the name of a session in the default one."""
    if target is not None and store is None and Path(target).is_file():
        return Path(target), None
    return store or default_store(), target


def find_sessions(store: Store, name: str | None, *, file: bool = True) -> list[SessionRow]:
    """Return the sessions that a name means: AGENT/SESSION, an agent's newest, or a session's; all without a name.

    ``file`` tells whether the name could have been that of a file.
    """
    rows = store.sessions()
    found = rows if name is None else sessions_called(rows, name)
    if found or name is None:
        return found
    known = _names(rows) or "none"
    what = "no file, no agent and no session" if file else "no agent and no session"
    raise click.UsageError(f"{what} is called {name!r}; the newest sessions are: {known}")


def find_session(store: Store, name: str) -> SessionRow:
    """Return the one session that a name means; a session's name that several agents have is a usage error."""
    rows = find_sessions(store, name, file=False)
    if len(rows) > 1:
        raise click.UsageError(f"more than one session is called {name!r}; name one of: {_names(rows)}")
    return rows[0]


def _names(rows: list[SessionRow]) -> str:
    """Name the newest sessions, on one line."""
    return one_line(", ".join(f"{row.agent}/{row.session}" for row in rows[-NAMED:]))
