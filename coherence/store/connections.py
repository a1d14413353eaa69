"""Connections to the file: the one that writes, those that read, and what a fork leaves of them."""

from __future__ import annotations

import ctypes
import os
import random
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, TypeVar

from coherence.store.errors import StoreError

T = TypeVar("T")

Synchronous: TypeAlias = Literal["NORMAL", "FULL"]
"""``FULL``: what was acknowledged survives a power failure. ``NORMAL``: it survives a crash of the process only."""

# PROTOCOL: SQLite gave up a race for the log's locks.
BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
REASONS = {
    sqlite3.SQLITE_FULL: "the disk is full; nothing was written",
    sqlite3.SQLITE_IOERR: "reading or writing failed (disk full, file size limit, network drive?); nothing was written",
    sqlite3.SQLITE_READONLY: "the file or its folder is read-only",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened (no permission, or its folder is read-only or missing)",
    sqlite3.SQLITE_CONSTRAINT: "the store refuses this",
}
ATTEMPTS = 3
"""Times that something is tried on a store: one whose file seems damaged is opened anew, and then moved aside."""
MAX_PAUSE_S = 0.02
MAX_WAL_BYTES = 16 * 2**20


def code(error: sqlite3.Error) -> int:
    """Return SQLite's primary result code; 0 = the error is Python's own."""
    return (getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF


def is_damage(error: BaseException | None) -> bool:
    """Tell whether an error, or the one that it comes from, means that the file is damaged."""
    if isinstance(error, StoreError):
        error = error.__cause__
    # Only valid UTF-8 is ever written, so a text that is none was overwritten.
    return isinstance(error, sqlite3.Error) and (code(error) in DAMAGED or "decode to UTF-8" in str(error))


def is_refusal(error: BaseException) -> bool:
    """Tell whether an error means that no store can hold what was to be written: trying again would not help."""
    cause = error.__cause__ if isinstance(error, StoreError) else error
    return isinstance(cause, sqlite3.IntegrityError | sqlite3.DataError | ValueError | OverflowError)


def explain(path: Path, error: sqlite3.Error) -> StoreError:
    """Return the error that callers see."""
    kind = code(error)
    if is_damage(error):
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
        pause = min(2 * pause, MAX_PAUSE_S)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into :class:`StoreError`."""
    try:
        yield
    except sqlite3.Error as error:
        raise explain(path, error) from error


def connect(path: Path, mode: Literal["ro", "ro&immutable=1", "rw"]) -> sqlite3.Connection:
    """Open the file without waiting, without implicit transactions, for use by any thread."""
    return sqlite3.connect(
        f"{path.as_uri()}?mode={mode}", uri=True, isolation_level=None, timeout=0, check_same_thread=False
    )


def connect_writer(path: Path, timeout_s: float, synchronous: Synchronous) -> sqlite3.Connection:
    """Open the connection that writes; the file, which is there, is put into WAL mode if need be."""
    connection = connect(path, "rw")
    try:
        # SQLite has them off on every new connection.
        connection.execute("PRAGMA foreign_keys = ON")
        mode = patiently(path, timeout_s, lambda: connection.execute("PRAGMA journal_mode = WAL").fetchone()[0])
        if mode != "wal":
            raise StoreError(path, f"SQLite cannot use a write-ahead log here (mode {mode}); is it a network drive?")
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        # Without it the log file keeps the size of its largest moment.
        connection.execute(f"PRAGMA journal_size_limit = {MAX_WAL_BYTES}")
    except BaseException:
        connection.close()
        raise
    return connection


FORK_WAIT_S = 2.0
"""Longest wait of a fork for transactions and reads of other threads, in seconds."""

_unusable: set[str] = set()


class Forkable(Protocol):
    """Behaviour of a store around a fork."""

    path: Path
    closed: bool

    def before_fork(self) -> None: ...
    def after_fork_in_parent(self) -> None: ...
    def after_fork_in_child(self) -> None: ...


_stores: weakref.WeakSet[Forkable] = weakref.WeakSet()


def watch_forks(store: Forkable) -> None:
    """Tell a store about forks for as long as it lives."""
    _stores.add(store)


def in_use(path: Path) -> bool:
    """Return whether an open store of this process uses the file."""
    return any(store.path == path and not store.closed for store in list(_stores))


def give_up(path: Path, connections: list[sqlite3.Connection]) -> None:
    """In a child: never use this file again, and never close or collect what the parent left open."""
    _unusable.add(str(path))
    for connection in connections:
        # One reference too many, so that they are never collected: closing them is forbidden in a forked child.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


def refuse_unusable(path: Path) -> None:
    """Raise if this process was forked in the middle of a transaction on the file."""
    if str(path) in _unusable:
        raise StoreError(
            path, "this process was forked while its parent was writing to the file, so it cannot be used here"
        )


def _tell(method: Callable[[Forkable], None]) -> None:
    for store in list(_stores):
        method(store)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: _tell(lambda store: store.before_fork()),
        after_in_parent=lambda: _tell(lambda store: store.after_fork_in_parent()),
        after_in_child=lambda: _tell(lambda store: store.after_fork_in_child()),
    )


class Readers:
    """As many connections as there were readers at once, handed out again and again.

    Parameters
    ----------
    path : Path
        The file.
    timeout_s : float
        How long a read waits for other processes, in seconds.
    """

    def __init__(self, path: Path, timeout_s: float) -> None:
        self._path = path
        self._timeout_s = timeout_s
        self._changed = threading.Condition()
        self._idle: list[sqlite3.Connection] = []
        self._busy: set[sqlite3.Connection] = set()
        self._outdated: set[sqlite3.Connection] = set()
        """Those in use that are of a file that is no longer at the path."""
        self._paused = self._closed = False

    def read(self, action: Callable[[sqlite3.Connection], T]) -> T:
        """Run ``action`` on a connection of its own; it must fetch what it needs before it returns."""
        try:
            connection = self._take()
            try:
                return patiently(self._path, self._timeout_s, lambda: self._attempt(connection, action))
            finally:
                self._give_back(connection)
        except sqlite3.Error as error:
            raise explain(self._path, error) from error

    @staticmethod
    def _attempt(connection: sqlite3.Connection, action: Callable[[sqlite3.Connection], T]) -> T:
        if connection.in_transaction:  # left by an attempt that others were in the way of
            connection.execute("ROLLBACK")
        return action(connection)

    def _take(self) -> sqlite3.Connection:
        refuse_unusable(self._path)
        with self._changed:
            while self._paused:
                self._changed.wait()
            if self._closed:
                raise StoreError(self._path, "this Store is closed")
            connection = self._idle.pop() if self._idle else self._open()
            self._busy.add(connection)
        return connection

    def _open(self) -> sqlite3.Connection:
        # Once for each connection: SQLite prepares every statement anew after a pragma.
        connection = connect(self._path, "rw")
        try:
            connection.execute("PRAGMA query_only = ON")
        except BaseException:
            connection.close()
            raise
        return connection

    def _give_back(self, connection: sqlite3.Connection) -> None:
        # verify() leaves its BEGIN to this; an old snapshot would keep the log from being emptied.
        if connection.in_transaction:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
        with self._changed:
            self._busy.discard(connection)
            if self._paused or self._closed or connection in self._outdated:
                self._outdated.discard(connection)
                connection.close()
                self._changed.notify_all()
            else:  # nobody waits
                self._idle.append(connection)

    def pause(self, timeout_s: float) -> None:
        """Close every connection, let nobody read until :meth:`resume`, and wait for those who do."""
        with self._changed:
            self._paused = True
            self._close_idle()
            self._changed.wait_for(lambda: not self._busy, timeout_s)

    def renew(self) -> None:
        """Open new connections from now on: another file is at the path."""
        with self._changed:
            self._outdated |= self._busy
            self._close_idle()

    def resume(self) -> None:
        """Let readers in again."""
        with self._changed:
            self._paused = False
            self._changed.notify_all()

    def close(self) -> None:
        """Close what is idle now, and the rest as it comes back."""
        with self._changed:
            self._closed = True
            self._close_idle()

    def left_open(self) -> list[sqlite3.Connection]:
        """Return the connections that are open; for a forked child, which must not touch them."""
        return [*self._idle, *self._busy]

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()
