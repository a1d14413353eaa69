"""The store: one SQLite file (WAL) for all evidence, for many threads and processes at once."""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from coherence.store.connections import (
    ATTEMPTS,
    FORK_WAIT_S,
    Readers,
    Synchronous,
    connect_writer,
    explained,
    give_up,
    is_damage,
    patiently,
    refuse_unusable,
    watch_forks,
)
from coherence.store.errors import StoreError, StoreWarning
from coherence.store.hash_chain import ChainFault, recomputed
from coherence.store.open import file_id, open_again, open_files, open_store
from coherence.store.queries import AUDIT, EVENTS, FIRING_COUNTS, FIRINGS, audit_row, event_row
from coherence.store.rows import (
    GUARD_SESSION,
    PURGE_AGENT,
    PURGED_SESSION,
    AuditRow,
    EventRow,
    FiringResult,
    SessionRow,
)
from coherence.store.transaction import ANY_OLD, SESSION_COLUMNS, Transaction, last_seq, prune

__all__ = ["Store", "Transaction"]

if TYPE_CHECKING:
    from coherence.store.purge import PurgeReport

LOG = logging.getLogger("coherence")

T = TypeVar("T")

PAGE = 500
"""Rows read at once while streaming."""


class Store:
    """One file of evidence.

    Reads never block the writer. What a transaction wrote can be read once it is committed.

    Each transaction sees whether the file is still at its path. If it was deleted, renamed or replaced, or if reading
    or writing has found it damaged, the next transaction goes to what is there now or to a new file, logs that, and
    counts :attr:`generation` up. A file that is found damaged is opened anew, and moved aside the second time.

    Parameters
    ----------
    path : str or Path
        The file; it and its folder are made if missing, an older schema is migrated. A damaged file is moved aside
        (:class:`~coherence.store.errors.StoreWarning`, :attr:`recovered_from`) and a new one is begun.
    timeout_s : float
        How long to wait for other threads and processes, in seconds.
    synchronous : {"FULL", "NORMAL"}
        ``FULL``: what was committed survives a power failure. ``NORMAL``: it survives a crash of the process only.
    recovers : bool
        ``False``: a damaged file stays where it is, and is an error.

    Raises
    ------
    StoreError
        The path cannot be used: another program's file of whatever kind, a newer schema, a folder, no permission.
    """

    recovered_from: Path | None
    """New place of a damaged file, ``None`` if it was not damaged."""

    def __init__(
        self, path: str | Path, *, timeout_s: float = 10.0, synchronous: Synchronous = "FULL", recovers: bool = True
    ) -> None:
        if synchronous not in ("NORMAL", "FULL"):
            raise ValueError(f"synchronous must be 'NORMAL' or 'FULL', not {synchronous!r}")
        if not 0 <= timeout_s <= threading.TIMEOUT_MAX:
            raise ValueError(f"timeout_s must be 0 or more seconds, not {timeout_s}")
        # The program may change its working directory, and connections are opened again later.
        self.path = Path(os.path.abspath(path))
        self.timeout_s = timeout_s
        self._synchronous: Synchronous = synchronous
        self._writer: sqlite3.Connection | None
        self._recovers = recovers
        self._writer, recovery = open_store(self.path, timeout_s, synchronous, recovers=recovers)
        self.recovered_from = recovery.moved_to if recovery else None
        self.generation = 0
        """Number of times that another file has taken the place of the one that was open."""
        self.begun_anew = ""
        """Event that began the present file, in words."""
        self._files = open_files(self.path)
        self._damage: Exception | None = None
        self._was_doubted = False
        """``True`` if the present file was found damaged before, and opened anew."""
        self._lock = threading.RLock()  # a finalizer may write in the moment before this thread begins
        self._owner: int | None = None
        self._forker: int | None = None
        self._readers = Readers(self.path, timeout_s)
        self.closed = False
        # Only once lock and readers are there: from here on a fork in another thread calls this store.
        watch_forks(self)
        if recovery:
            try:
                warnings.warn(recovery.message, StoreWarning, stacklevel=2)
            except StoreWarning:  # the user wants warnings to be errors
                self.close()
                raise

    @contextmanager
    def transaction(self, *, timeout_s: float | None = None) -> Iterator[Transaction]:
        """Write: all of it is kept, or, on any exception, none of it.

        Parameters
        ----------
        timeout_s : float, optional
            Seconds to wait for other threads and processes; default: the store's.

        Raises
        ------
        StoreError
            Others wrote for longer than ``timeout_s``, or the file cannot be written.
        RuntimeError
            This thread is in a transaction already.
        """
        wait = self.timeout_s if timeout_s is None else timeout_s
        deadline = time.monotonic() + wait
        if self.in_transaction:
            raise RuntimeError("this thread is in a transaction already; use that one")
        with self._alone(wait):
            pid = os.getpid()
            with self._noting_damage(), explained(self.path):
                connection = self._write_connection()
                remaining = max(deadline - time.monotonic(), 0)
                # IMMEDIATE: a lock that is asked for only at the first write may fail in a way that no waiting cures.
                patiently(self.path, remaining, lambda: connection.execute("BEGIN IMMEDIATE"))
            transaction = Transaction(connection, self.path)
            try:
                with self._noting_damage():
                    yield transaction
                    transaction.commit()
                if not self._is_there():  # nobody will ever find what was just committed
                    raise StoreError(self.path, "the file was deleted or renamed while it was written; nothing is kept")
            finally:
                transaction.end()
                if pid == os.getpid() and connection.in_transaction:  # not even the rollback worked
                    self._close_writer()

    @property
    def in_transaction(self) -> bool:
        """``True`` if the calling thread is in a transaction."""
        return self._owner == threading.get_ident()

    @property
    def lost(self) -> bool:
        """``True`` if the open file is no longer at its path, or is damaged: the next transaction begins anew."""
        return self._damage is not None or not self._is_there()

    def secured(self, action: Callable[[], T]) -> T:
        """Do something with this store; if its file turns out to be lost, do it again with a new one.

        Raises
        ------
        StoreError
            The file cannot be used, and no new one can be begun.
        """
        for _ in range(ATTEMPTS - 1):
            try:
                return action()
            except StoreError:
                if self.closed or not self.lost:
                    raise
            with self.transaction():  # begins anew
                pass
        return action()

    def refuse_altered(self, session_id: int, seq: int, error: Exception) -> None:
        """Take the file for damaged if an event that cannot be decoded is not what was written.

        Raises
        ------
        StoreError
            If it is not.
        """
        ids = self.fetch("SELECT id FROM events WHERE session_id = ? AND seq = ?", (session_id, seq))
        row = next(self.audit_rows(after=ids[0][0] - 1), None) if ids else None
        if row is not None and recomputed(row) != row.hash:
            self._damage = error
            raise StoreError(self.path, f"the file is damaged: event {seq} of session {row.session!r}: {error}")

    def _is_there(self) -> bool:
        return file_id(self.path) == self._files.main

    @contextmanager
    def _noting_damage(self) -> Iterator[None]:
        try:
            yield
        except (StoreError, sqlite3.Error) as error:
            if is_damage(error):
                cause = error.__cause__ if isinstance(error, StoreError) else error
                assert isinstance(cause, sqlite3.Error)
                self._damage = cause
            raise

    def _begin_anew(self) -> None:
        """Go on with what is at the path now, or with a new file."""
        if self._damage is not None and not self._recovers:
            raise StoreError(self.path, f"the file is damaged ({self._damage})") from self._damage
        if self._writer is not None and self._damage is None:
            with suppress(sqlite3.Error):  # so that a file that was renamed is complete without its log
                self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)")
        self._close_writer()
        self._readers.renew()
        # SQLite calls a file malformed after one read that failed, too: only one that is so twice is damaged.
        if self._damage is not None and not self._was_doubted and self._is_there():
            LOG.warning("coherence: %s: reading failed (%s); the file is opened anew", self.path, self._damage)
            self._writer, recovery = open_store(self.path, self.timeout_s, self._synchronous)
            if recovery is None:
                self._files, self._damage, self._was_doubted = open_files(self.path), None, True
                return
            self.begun_anew = recovery.message
        else:
            self._writer, recovery, self.begun_anew = open_again(
                self.path, self.timeout_s, self._synchronous, self._files, self._damage
            )
        self._was_doubted = False
        self.recovered_from = recovery.moved_to if recovery else self.recovered_from
        self._files, self._damage = open_files(self.path), None
        self.generation += 1
        LOG.warning("coherence: %s", self.begun_anew)

    @contextmanager
    def _alone(self, wait: float) -> Iterator[None]:
        """Keep the other threads of this process from writing."""
        pid, lock = os.getpid(), self._lock
        if not lock.acquire(timeout=wait):
            raise StoreError(self.path, f"another thread kept the store locked for {wait:g} s")
        try:
            self._owner = threading.get_ident()
            yield
        finally:
            if pid == os.getpid():  # a child forked in here has a lock of its own
                self._owner = None
                lock.release()

    def session(self, agent: str, session: str | None = None) -> SessionRow | None:
        """Return a session by name; without a name this agent's newest run."""
        wanted = "agent = :agent AND coalesce(session = :name, session <> :not AND config <> :purged)"
        sql = f"SELECT {SESSION_COLUMNS} FROM sessions WHERE {wanted} ORDER BY id DESC LIMIT 1"  # noqa: S608
        rows = self.fetch(sql, {"agent": agent, "name": session, "not": GUARD_SESSION, "purged": PURGED_SESSION})
        return SessionRow(*rows[0]) if rows else None

    def sessions(self, *, agent: str | None = None) -> list[SessionRow]:
        """Return all sessions (of one agent), oldest first, without what guards have recorded and what was purged."""
        sql = (
            f"SELECT {SESSION_COLUMNS} FROM sessions WHERE coalesce(agent = :agent, agent <> :purge) "  # noqa: S608
            "AND session <> :not AND config <> :purged ORDER BY id"
        )
        values: dict[str, object] = {
            "agent": agent,
            "not": GUARD_SESSION,
            "purge": PURGE_AGENT,
            "purged": PURGED_SESSION,
        }
        return [SessionRow(*row) for row in self.fetch(sql, values)]

    def events(
        self, session_id: int, *, after: int = 0, until: int | None = None, limit: int | None = None
    ) -> Iterator[EventRow]:
        """Yield the events of a session in order, with their readings and decisions.

        They are read page by page; nothing is held open in between, so a slow reader is in nobody's way.

        Parameters
        ----------
        session_id : int
            The session.
        after, until : int, optional
            Only events numbered above ``after``, and up to and including ``until``.
        limit : int, optional
            At most so many.
        """
        left = 2**63 - 1 if limit is None else limit
        last = 2**63 - 1 if until is None else until
        while left > 0:
            rows = self.fetch(EVENTS, (session_id, after, last, min(left, PAGE)))
            yield from map(event_row, rows)
            if len(rows) < min(left, PAGE):
                return
            after, left = rows[-1][0], left - len(rows)

    def audit_rows(self, *, after: int = 0) -> Iterator[AuditRow]:
        """Yield the events of all sessions in the order of the chain, from the one after id ``after`` on."""
        while True:
            rows = self.fetch(AUDIT, (after, PAGE))
            yield from map(audit_row, rows)
            if len(rows) < PAGE:
                return
            after = rows[-1][0]

    def last_seq(self, session_id: int) -> int:
        """Return the number of the newest event of a session, 0 if it has none."""
        return self._readers.read(lambda c: last_seq(c, session_id))

    def count_events(self, session_id: int | None = None) -> int:
        """Return how many events are kept, of one session or of all."""
        if session_id is None:
            return int(self.fetch("SELECT count(*) FROM events", ())[0][0])
        return int(self.fetch("SELECT count(*) FROM events WHERE session_id = ?", (session_id,))[0][0])

    def snapshot(self, session_id: int, *, until: int | None = None) -> tuple[int, bytes] | None:
        """Return the newest (seq, state) of a session at or below ``until``."""
        sql = (
            "SELECT seq, data FROM snapshots WHERE session_id = :id AND (:until IS NULL OR seq <= :until) "
            "ORDER BY seq DESC LIMIT 1"
        )
        rows = self.fetch(sql, {"id": session_id, "until": until})
        return (rows[0][0], rows[0][1]) if rows else None

    def vectors(self, fingerprint: str, hashes: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return hash -> vector, of those that are kept for this embedder."""
        found: dict[bytes, bytes] = {}
        # in parts: a statement may have only so many parameters
        for start in range(0, len(hashes), PAGE):
            part = tuple(hashes[start : start + PAGE])
            marks = ", ".join("?" * len(part))
            sql = f"SELECT hash, vector FROM vectors WHERE fingerprint = ? AND hash IN ({marks})"  # noqa: S608
            found.update(self.fetch(sql, (fingerprint, *part)))
        return found

    def trust(self) -> str | None:
        """Return who relies on whom, as JSON; ``None`` if nothing is kept."""
        rows = self.fetch("SELECT data FROM trust", ())
        return str(rows[0][0]) if rows else None

    def baselines(self, agent: str) -> bytes | None:
        """Return what is normal for an agent, as last kept."""
        rows = self.fetch("SELECT data FROM baselines WHERE agent = ?", (agent,))
        return bytes(rows[0][0]) if rows else None

    def patterns(self) -> list[str]:
        """Return the patterns that have fired, by name; sessions of the source ``test`` do not count."""
        return [name for (name,) in self.fetch("SELECT DISTINCT pattern FROM statistics_firings ORDER BY pattern", ())]

    def firing_results(self, pattern: str, horizon: int) -> list[FiringResult]:
        """Return the firings of a pattern in order, with what came of them at a horizon; without tests."""
        return [FiringResult(*row) for row in self.fetch(FIRINGS, (horizon, pattern))]

    def firing_counts(self, agent: str) -> dict[str, int]:
        """Return pattern -> number of the agent's next firing, counted over all its sessions, without tests."""
        return dict(self.fetch(FIRING_COUNTS, {"agent": agent}))

    def extent(self) -> tuple[int, int, str]:
        """Return how many events the chain holds, the id of its first one, and the newest hash; kept by the store."""
        rows = self.fetch("SELECT count, first_id, head FROM chain", ())
        return (int(rows[0][0]), int(rows[0][1]), bytes(rows[0][2]).hex()) if rows else (0, 0, "")

    def verify(self) -> list[ChainFault]:
        """Check every hash and the file itself; an empty list = intact. Takes about 10 s per million events."""
        from coherence.store.verify import verify  # which nothing else that a running agent does needs

        return self._readers.read(verify)

    def prune(self, *, max_events: int | None = None, max_age_s: float | None = None, now: float | None = None) -> int:
        """Remove the oldest events of the whole store, and the readings, decisions and snapshots that belong to them.

        The chain has one beginning, so events go strictly in the order they were written: an event that is old enough
        stays while one written before it is not. With ``max_age_s``, texts of guidance, and lessons and baselines that
        nothing has renewed, go at that age too.

        Parameters
        ----------
        max_events : int, optional
            Keep at most so many.
        max_age_s : float, optional
            Keep none older than this, in seconds before ``now``.
        now : float, optional
            Unix time in seconds; by default the clock's.

        Returns
        -------
        int
            How many events were removed.
        """
        if max_events is not None and max_events < 0:
            raise ValueError(f"max_events must be 0 or more, not {max_events}")
        oldest = None if max_age_s is None else (time.time() if now is None else now) - max_age_s
        removed = prune(self.transaction, max_events, oldest)
        if oldest is not None and self.fetch(ANY_OLD, {"ts": oldest}):
            with self.transaction() as transaction:
                transaction.forget_old(oldest)
        return removed

    def last_purge(self) -> float:
        """Return when something was purged last, in Unix seconds; 0 if nothing ever was."""
        row = self.session(PURGE_AGENT, PURGE_AGENT)
        newest = None if row is None else next(self.events(row.id, after=self.last_seq(row.id) - 1), None)
        return 0.0 if newest is None else newest.ts

    def count_purged(self) -> int:
        """Return how many events of the chain have no content, because they were purged."""
        return int(self.fetch("SELECT count(*) FROM events WHERE kind = 'purged'")[0][0])

    def purge(self, agent: str | None = None, session: str | None = None) -> PurgeReport:
        """Wipe what is kept of an agent or of one session, with its lessons, so that nothing is left in this file.

        End the agent's monitors and guards first: what they hold in memory would be written again. The names of the
        agent and its sessions stay, and so do positions, times and hashes of events: :meth:`verify` still works. All
        vectors of the store go, and with them exact replays of sessions that began before. Copies are not touched:
        exports, reports, backups, and files that were moved aside because they were damaged.

        Parameters
        ----------
        agent : str, optional
            Its name; default: all agents of the session.
        session : str, optional
            One session, with those that went on from it (``NAME~2``); default: all, and the agent's guarded calls.

        Raises
        ------
        ValueError
            Neither is named.
        StoreError
            The file cannot be written, or other processes read it so that it cannot be rewritten: purge again.
        """
        from coherence.store.purge import purge  # which nothing else that a running agent does needs

        if agent is None and session is None:
            raise ValueError("name an agent, a session or both")
        with self._alone(self.timeout_s), explained(self.path):
            connection = self._write_connection()
            connection.execute("PRAGMA secure_delete = ON")
        with self.transaction() as transaction:
            report = purge(transaction, agent, session)
        with self._alone(self.timeout_s), explained(self.path):
            connection = self._write_connection()
            # Content of pages that were freed earlier, and of the log, is still there.
            patiently(self.path, self.timeout_s, lambda: connection.execute("VACUUM"))
            busy = patiently(
                self.path, self.timeout_s, lambda: connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            )
        for name in ("index", "index.new"):
            Path(f"{self.path}.lessons", name).unlink(missing_ok=True)
        if busy:
            raise StoreError(self.path, "others read the file, so its log still holds what was purged; purge again")
        return report

    def close(self) -> None:
        """Close the file; calling it again does nothing. It waits for the transactions of other threads."""
        if self._owner == threading.get_ident():
            raise RuntimeError("this thread is in a transaction; end it before closing the store")
        with self._lock:
            if self.closed:
                return
            self.closed = True
            self._readers.close()
            self._close_writer()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def fetch(self, sql: str, values: tuple[object, ...] | dict[str, object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query; for the rooms of this package that have tables of their own."""
        with self._noting_damage():
            return self._readers.read(lambda connection: connection.execute(sql, values).fetchall())

    def _write_connection(self) -> sqlite3.Connection:
        if self.closed:
            raise StoreError(self.path, "this Store is closed")
        refuse_unusable(self.path)
        if self.lost:
            self._begin_anew()
        if self._writer is None:  # after a fork
            self._writer = connect_writer(self.path, self.timeout_s, self._synchronous)
            self._files = open_files(self.path)
        return self._writer

    def _close_writer(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()

    def before_fork(self) -> None:
        """Close the connections for the moment of a fork; see :mod:`coherence.store.connections`."""
        # Inside its own transaction, or too late for another's, the connection stays open: the child gives the file up.
        if self._owner == threading.get_ident() or not self._lock.acquire(timeout=FORK_WAIT_S):
            return
        self._forker = threading.get_ident()
        self._close_writer()
        self._readers.pause(FORK_WAIT_S)

    def after_fork_in_parent(self) -> None:
        """Go on; connections are opened at the next use."""
        # A fork that did not get the lock must not release it.
        if self._forker == threading.get_ident():
            self._forker = None
            self._readers.resume()
            self._lock.release()

    def after_fork_in_child(self) -> None:
        """Begin anew: the parent's locks, and what it could not close, are not ours."""
        left = self._readers.left_open() + ([self._writer] if self._writer is not None else [])
        if left:
            give_up(self.path, left)
        self._writer = self._forker = self._owner = None
        self._lock, self._readers = threading.RLock(), Readers(self.path, self.timeout_s)
        if self.closed:
            self._readers.close()
