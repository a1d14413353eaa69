"""Connections that only read, shared by threads."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from coherence.store.connections import connect, explain, patiently
from coherence.store.errors import StoreError
from coherence.store.fork import refuse_unusable

T = TypeVar("T")


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
        if connection.in_transaction:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
        with self._changed:
            self._busy.discard(connection)
            if self._paused or self._closed:
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
