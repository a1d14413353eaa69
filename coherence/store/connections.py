"""Connections to the file: how they are opened, how long they wait for others, and what their errors mean."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

from coherence.store.errors import StoreError

T = TypeVar("T")

Synchronous: TypeAlias = Literal["NORMAL", "FULL"]
"""``FULL``: what was acknowledged survives a power failure. ``NORMAL``: it survives a crash of the process only."""

BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
REASONS = {
    sqlite3.SQLITE_FULL: "the disk is full; nothing was written",
    sqlite3.SQLITE_IOERR: "reading or writing failed (disk full, file size limit, network drive?); nothing was written",
    sqlite3.SQLITE_READONLY: "the file or its folder is read-only",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened (no permission, or its folder is read-only or missing)",
    sqlite3.SQLITE_CONSTRAINT: "the store refuses this",
}
LONGEST_PAUSE_S = 0.02
WAL_LIMIT_BYTES = 16 * 2**20


def code(error: sqlite3.Error) -> int:
    """Return SQLite's primary result code; 0 = the error is Python's own."""
    return (getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF


def explain(path: Path, error: sqlite3.Error) -> StoreError:
    """Return the error that callers see."""
    kind = code(error)
    if kind in DAMAGED:
        return StoreError(path, f"the file is damaged ({error}); `coherence audit verify` names what is affected")
    if kind in BUSY:
        return StoreError(path, f"another process keeps the file locked ({error})")
    return StoreError(path, f"{REASONS[kind]} ({error})" if kind in REASONS else str(error))


def patiently(path: Path, timeout_s: float, action: Callable[[], T]) -> T:
    """Do something, again and again while other processes are in the way, for up to ``timeout_s`` seconds.

    SQLite's own waiting does not cover every lock (recovery, a change to WAL), so connections do not wait themselves.
    """
    deadline = time.monotonic() + timeout_s
    pause = 0.0005
    while True:
        try:
            return action()
        except sqlite3.Error as error:
            if code(error) not in BUSY:
                raise
            if time.monotonic() >= deadline:
                raise StoreError(
                    path, f"another process kept the file locked for {timeout_s:.1f} s ({error})"
                ) from error
        time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - so that waiting processes do not move in step
        pause = min(2 * pause, LONGEST_PAUSE_S)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into :class:`StoreError`."""
    try:
        yield
    except sqlite3.Error as error:
        raise explain(path, error) from error


def connect(path: Path, mode: Literal["ro", "ro&immutable=1", "rw", "rwc"]) -> sqlite3.Connection:
    """Open the file without waiting, without implicit transactions, for use by any thread."""
    return sqlite3.connect(
        f"{path.as_uri()}?mode={mode}", uri=True, isolation_level=None, timeout=0, check_same_thread=False
    )


def connect_writer(path: Path, timeout_s: float, synchronous: Synchronous) -> sqlite3.Connection:
    """Open the connection that writes; the file is made and put into WAL mode if need be."""
    connection = connect(path, "rwc")
    try:
        connection.execute("PRAGMA foreign_keys = ON")
        mode = patiently(path, timeout_s, lambda: connection.execute("PRAGMA journal_mode = WAL").fetchone()[0])
        if mode != "wal":
            raise StoreError(path, f"SQLite cannot use a write-ahead log here (mode {mode}); is it a network drive?")
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.execute(f"PRAGMA journal_size_limit = {WAL_LIMIT_BYTES}")
    except BaseException:
        connection.close()
        raise
    return connection
