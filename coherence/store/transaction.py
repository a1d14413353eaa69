"""Writing: everything between BEGIN and COMMIT."""

from __future__ import annotations

import math
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from coherence.store.connections import explain
from coherence.store.errors import StoreError
from coherence.store.hash_chain import digest
from coherence.store.rows import GUARD_SESSION, PURGE_AGENT, EventRow, SessionRow
from coherence.store.tallies import forget_before, keep_tally

INSERT_EVENT = (
    "INSERT INTO events (session_id, agent, seq, ts, kind, source, data, prev_hash, hash) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
INSERT_READING = "INSERT INTO readings VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
INSERT_DECISION = "INSERT INTO decisions VALUES (?, ?, ?, ?, ?, ?)"
FORGET_SNAPSHOTS = """
WITH kept (first) AS (SELECT min(seq) FROM events WHERE session_id = :session)
DELETE FROM snapshots WHERE session_id = :session AND (
  (SELECT first FROM kept) IS NULL
  OR seq < (SELECT max(seq) FROM snapshots WHERE session_id = :session AND seq < (SELECT first FROM kept)))
"""
"""The newest snapshot before the kept events stays: with them it gives the state now."""
FORGET_OLD = (
    "UPDATE firings SET text = '' WHERE ts < :ts AND text <> ''",
    "DELETE FROM lessons WHERE seen < :ts",
    "DELETE FROM baselines WHERE ts < :ts",
)
ANY_OLD = (
    "SELECT 1 FROM firings WHERE ts < :ts AND text <> '' UNION ALL SELECT 1 FROM lessons WHERE seen < :ts "
    "UNION ALL SELECT 1 FROM baselines WHERE ts < :ts LIMIT 1"
)
SESSION_COLUMNS = "id, session, agent, parent, source, started, config"


class Transaction:
    """Writes that are made in one go; made by :meth:`Store.transaction`.

    After an error nothing more can be written and nothing of it is kept, even if the error is caught.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        self._pid = os.getpid()
        # Sessions are never changed, so what was looked up once stays true.
        self._names: dict[int, tuple[str, str, str]] = {}
        self._head: bytes | None = None
        self._state = "open"

    def session(self, agent: str, session: str) -> SessionRow | None:
        """Return a session by name, as this transaction sees it."""
        with self._guarded():
            row = self._connection.execute(
                f"SELECT {SESSION_COLUMNS} FROM sessions WHERE agent = ? AND session = ?",  # noqa: S608
                (agent, session),
            ).fetchone()
        return None if row is None else SessionRow(*row)

    def add_session(
        self, *, session: str, agent: str, parent: str | None, source: str, started: float, config: str, after: int = 0
    ) -> SessionRow:
        """Begin a session.

        With ``after`` its first event has the number after that one: those before it were in a file that is gone.

        Raises
        ------
        StoreError
            The agent has a session of that name already, the source is unknown, or ``config`` is no JSON text.
        """
        started = _finite("started", started)
        with self._guarded():
            cursor = self._connection.execute(
                "INSERT INTO sessions (session, agent, parent, source, started, config) VALUES (?, ?, ?, ?, ?, ?)",
                (session, agent, parent, source, started, config),
            )
            if after:
                with self.maintaining():
                    self._connection.execute(
                        "UPDATE heads SET last_seq = ? WHERE session_id = ?", (after, cursor.lastrowid)
                    )
        assert cursor.lastrowid is not None
        return SessionRow(cursor.lastrowid, session, agent, parent, source, started, config)

    def last_seq(self, session_id: int) -> int:
        """Return the number of the newest event of a session, 0 if it has none; the next one is one higher."""
        with self._guarded():
            return last_seq(self._connection, session_id)

    def execute(self, sql: str, values: tuple[object, ...] | dict[str, object] = ()) -> list[tuple[Any, ...]]:
        """Run one statement, return its rows; for the rooms of this package that have tables of their own."""
        with self._guarded():
            return self._connection.execute(sql, values).fetchall()

    def execute_many(self, sql: str, rows: Iterable[tuple[object, ...]]) -> None:
        """Run one statement for each row of values."""
        with self._guarded():
            self._connection.executemany(sql, rows)

    def add_events(self, session: SessionRow, rows: Sequence[EventRow]) -> None:
        """Append events to a session and to the chain.

        Raises
        ------
        ValueError
            A number is not finite.
        StoreError
            ``seq`` is not the last one plus one, ``data`` is no JSON text, the id of a firing is there already, or the
            file cannot be written.
        """
        if not rows:
            return
        events, readings, decisions = [], [], []
        with self._guarded():
            # From the table, not from the row given: the hash must cover what a reader will find.
            name, agent, source = self._named(session.id)
            head = self._chain_head()
            for row in rows:
                # Hashed as it will be read back: an int or -0.0 would never verify.
                ts = _finite("ts", row.ts)
                row_hash = digest(head, name, agent, source, row, ts)
                events.append((session.id, agent, row.seq, ts, row.kind, source, row.data, head, row_hash))
                head = row_hash
                if (read := row.reading) is not None:
                    index = _finite_or_none("coherence_index", read.coherence_index)
                    pressure = _finite_or_none("pressure", read.pressure)
                    readings.append((session.id, row.seq, ts, source, index, read.band, pressure, read.mode, read.data))
                if (decided := row.decision) is not None:
                    decisions.append((session.id, row.seq, ts, source, decided.kind, decided.data))
            self._connection.executemany(INSERT_EVENT, events)
            if readings:
                self._connection.executemany(INSERT_READING, readings)
            if decisions:
                self._connection.executemany(INSERT_DECISION, decisions)
            # After the events, from which a firing takes its agent and time: without them none would be written.
            add_firings(self._connection, self._path, session.id, rows)
            self._connection.execute("UPDATE chain SET count = count + ?, head = ?", (len(rows), head))
            if name not in (GUARD_SESSION, PURGE_AGENT):
                keep_tally(self._connection, session.id, rows)
        self._head = head

    def add_snapshot(self, session_id: int, seq: int, data: bytes, keep: int = 2) -> None:
        """Keep the state after event ``seq``; of this session only the newest ``keep`` snapshots stay."""
        if keep < 1:
            raise ValueError(f"keep must be 1 or more, not {keep}")
        with self._guarded():
            self._connection.execute("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?)", (session_id, seq, data))
            self._connection.execute(
                "DELETE FROM snapshots WHERE session_id = :id AND seq NOT IN "
                "(SELECT seq FROM snapshots WHERE session_id = :id ORDER BY seq DESC LIMIT :keep)",
                {"id": session_id, "keep": keep},
            )

    def add_vectors(self, fingerprint: str, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        """Keep (hash of a text, its vector) of one embedder; a hash that is there already keeps its vector."""
        rows = ((fingerprint, key, vector) for key, vector in pairs)
        with self._guarded():
            self._connection.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?, ?)", rows)

    def set_trust(self, ts: float, data: str) -> None:
        """Keep who relies on whom, as JSON, in place of what was kept."""
        with self._guarded():
            self._connection.execute("INSERT OR REPLACE INTO trust VALUES (1, ?, ?)", (_finite("ts", ts), data))

    def set_baselines(self, agent: str, ts: float, data: bytes) -> None:
        """Keep what is normal for an agent, in place of what was kept before."""
        with self._guarded():
            self._connection.execute(
                "INSERT OR REPLACE INTO baselines VALUES (?, ?, ?)", (agent, _finite("ts", ts), data)
            )

    def forget(self, max_events: int | None, oldest_ts: float | None, limit: int) -> int:
        """Remove up to ``limit`` of the oldest events; for :meth:`Store.prune` only. Returns how many."""
        execute = self._connection.execute
        with self._guarded():
            # The chain's own count: count(*) would read a whole index for every batch.
            count = execute("SELECT count FROM chain").fetchone()[0]
            rows = execute("SELECT id, ts, hash FROM events ORDER BY id LIMIT ?", (limit,)).fetchall()
            surplus = max(count - max_events, 0) if max_events is not None else 0
            gone = 0
            for _, ts, _ in rows:
                if gone >= surplus and (oldest_ts is None or ts >= oldest_ts):
                    break
                gone += 1
            if gone:
                last_id, _, last_hash = rows[gone - 1]
                with self.maintaining():
                    # Before the events, which their foreign keys point to.
                    for table in ("readings", "decisions"):
                        execute(
                            f"DELETE FROM {table} WHERE (session_id, seq) IN "  # noqa: S608 - two constants
                            "(SELECT session_id, seq FROM events WHERE id <= ?)",
                            (last_id,),
                        )
                    sessions = execute("SELECT DISTINCT session_id FROM events WHERE id <= ?", (last_id,)).fetchall()
                    execute("DELETE FROM events WHERE id <= ?", (last_id,))
                    for (session_id,) in sessions:
                        execute(FORGET_SNAPSHOTS, {"session": session_id})
                        forget_before(self._connection, session_id)
                    # verify() begins its walk here: the first event kept follows the hash of the last one removed.
                    execute(
                        "UPDATE chain SET count = count - ?, first_id = ?, first_prev = ?",
                        (gone, last_id + 1, last_hash),
                    )
        return gone

    def forget_old(self, oldest_ts: float) -> None:
        """Remove old traces of events in other tables; for :meth:`Store.prune` only."""
        with self._guarded(), self.maintaining():
            for statement in FORGET_OLD:
                self._connection.execute(statement, {"ts": oldest_ts})

    @contextmanager
    def maintaining(self) -> Iterator[None]:
        """Let changes pass for a while that the triggers of the tables refuse; after an error nothing is kept."""
        self._connection.execute("INSERT OR IGNORE INTO maintenance VALUES (1)")
        yield
        self._connection.execute("DELETE FROM maintenance")

    def commit(self) -> None:
        """Keep all of it; for :meth:`Store.transaction` only."""
        with self._guarded():
            self._connection.execute("COMMIT")
            self._state = "committed"

    def end(self) -> None:
        """Roll back what was not committed; for :meth:`Store.transaction` only."""
        if self._pid != os.getpid():
            return  # a child that was forked in here must not touch the parent's connection
        if self._connection.in_transaction:
            with suppress(sqlite3.Error):  # the error that led here says more
                self._connection.execute("ROLLBACK")
        self._state = "rolled back" if self._state == "open" else self._state

    def _named(self, session_id: int) -> tuple[str, str, str]:
        if session_id not in self._names:
            row = self._connection.execute(
                "SELECT session, agent, source FROM sessions WHERE id = ?", (session_id,)
            ).fetchone()
            if row is None:
                raise StoreError(self._path, f"there is no session with id {session_id}")
            self._names[session_id] = row
        return self._names[session_id]

    def _chain_head(self) -> bytes:
        if self._head is None:
            self._head = self._connection.execute("SELECT head FROM chain").fetchone()[0]
        assert self._head is not None
        return self._head

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        if self._pid != os.getpid():
            raise StoreError(self._path, "this transaction belongs to the parent process")
        if self._state != "open":
            raise StoreError(self._path, f"this transaction is {self._state}")
        try:
            yield
        except BaseException as error:
            # What came before the error must not be committed alone, and SQLite may have rolled back by itself.
            self._state = "rolled back"
            if isinstance(error, sqlite3.Error):
                raise explain(self._path, error) from error
            if isinstance(error, UnicodeEncodeError):
                raise StoreError(self._path, f"a text cannot be written as UTF-8 ({error.reason})") from error
            raise


def last_seq(connection: sqlite3.Connection, session_id: int) -> int:
    """Return the last number given out in a session, 0 if none."""
    row = connection.execute("SELECT last_seq FROM heads WHERE session_id = ?", (session_id,)).fetchone()
    return 0 if row is None else int(row[0])


def _finite(name: str, value: float) -> float:
    """Return a number as SQLite gives it back: a float, and no negative zero."""
    if not math.isfinite(value):
        raise ValueError(f"{name} must be finite, not {value}")
    return float(value) + 0.0


def _finite_or_none(name: str, value: float | None) -> float | None:
    return None if value is None else _finite(name, value)


_EVENT = "SELECT id FROM events WHERE session_id = :session AND seq = :seq"
INSERT_FIRING = (
    "INSERT INTO firings (firing_id, session_id, seq, event_id, agent, pattern, pair, arm, text, ts, source) "
    "SELECT :id, session_id, seq, id, agent, :pattern, :pair, :arm, :text, ts, source FROM events "
    "WHERE session_id = :session AND seq = :seq"
)
CONFIRM = (
    f"UPDATE firings SET delivered = 1, delivered_id = ({_EVENT}) "  # noqa: S608 - only constants
    "WHERE firing_id = :id AND arm = 'treatment' AND delivered = 0"
)
"""Changes nothing for an unknown id, a control or a second time: that is no reason to lose the event."""
INSERT_OUTCOME = (
    f"INSERT INTO firing_outcomes SELECT :firing, :horizon, ({_EVENT}), "  # noqa: S608 - only constants
    ":pressure_change, :error_resolved, :tool_switched, :task_success "
    "WHERE EXISTS (SELECT 1 FROM firings WHERE firing_id = :firing) "
    "AND NOT EXISTS (SELECT 1 FROM firing_outcomes WHERE firing_id = :firing AND horizon = :horizon)"
)
"""The first one counts: two processes that go on with one session both see what comes of a firing."""


def add_firings(connection: sqlite3.Connection, path: Path, session_id: int, rows: Sequence[EventRow]) -> None:
    """Keep what rows tell about firings; their events must be written already.

    Raises
    ------
    StoreError
        The id of a firing is there already, or the database refuses something else about it.
    """
    about = ""
    try:
        for row in rows:
            event = {"session": session_id, "seq": row.seq}
            if row.firing is not None:
                about = f"the firing {row.firing.id!r}"
                connection.execute(INSERT_FIRING, {**event, **msgspec.structs.asdict(row.firing)})
            if row.delivered is not None:
                about = f"the delivery of {row.delivered!r}"
                connection.execute(CONFIRM, {**event, "id": row.delivered})
            for outcome in row.outcomes:
                about = f"an outcome of {outcome.firing!r}"
                connection.execute(INSERT_OUTCOME, {**event, **msgspec.structs.asdict(outcome)})
    except sqlite3.IntegrityError as error:
        raise StoreError(path, f"the store refuses {about} ({error})") from error


BATCH = 1000
"""Events removed in one transaction, so that writers wait for a moment only."""


def prune(
    begin: Callable[[], AbstractContextManager[Transaction]], max_events: int | None, oldest_ts: float | None
) -> int:
    """Remove the oldest events until at most ``max_events`` are left and the first is not older than ``oldest_ts``.

    Returns
    -------
    int
        How many events were removed.
    """
    removed = 0
    while True:
        with begin() as transaction:
            batch = transaction.forget(max_events, oldest_ts, BATCH)
        removed += batch
        if batch < BATCH:
            return removed
