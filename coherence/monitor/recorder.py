"""From memory to the store: records in batches, in order, beside other processes; vectors and runs with them.

One agent's life may be told by several processes, one event each if need be. But where another one tells a goal or an
outcome in the midst of the task that is told here, there are two tasks in one run, and nobody can say whose outcome it
is: such a run teaches nothing.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Mapping, Sequence
from threading import Lock, RLock

import msgspec

from coherence.core.events import UNCOUNTED, Goal, Message, Outcome, ToolCall, ToolResult, make_fault
from coherence.monitor.codec import encode_record
from coherence.monitor.inbox import size_of
from coherence.monitor.no_text import NoText
from coherence.monitor.session_header import CONTINUED, began_as
from coherence.monitor.tick_result import Record
from coherence.sensor.embedding_cache import EmbeddingCache
from coherence.store.connections import ATTEMPTS, is_refusal
from coherence.store.errors import StoreError
from coherence.store.rows import EventRow, RunRow, SessionRow
from coherence.store.runs import CALL, MAX_RUNS, write_label, write_runs
from coherence.store.store import Store
from coherence.store.transaction import Transaction

LOG = logging.getLogger("coherence")

READ_AT_ONCE = 500


class _UndoneError(Exception):
    """Takes back a transaction that was only an attempt."""


class StoreBook:
    """A store's vectors, for an embedding cache; what is new waits until it is written with its events.

    Parameters
    ----------
    store : Store
        Where they are kept.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = Lock()
        self._new: dict[str, dict[bytes, bytes]] = {}

    def read(self, fingerprint: str, digests: Sequence[bytes]) -> Mapping[bytes, bytes]:
        """Return the vectors that are known."""
        found: dict[bytes, bytes] = {}
        with self._lock:
            new = self._new.get(fingerprint, {})
            found.update((digest, new[digest]) for digest in digests if digest in new)
        rest = [digest for digest in digests if digest not in found]
        for at in range(0, len(rest), READ_AT_ONCE):
            found.update(self._store.vectors(fingerprint, rest[at : at + READ_AT_ONCE]))
        return found

    def write(self, fingerprint: str, digest: bytes, vector: bytes) -> None:
        """Note a new vector."""
        with self._lock:
            self._new.setdefault(fingerprint, {})[digest] = vector

    def unwritten(self) -> dict[str, dict[bytes, bytes]]:
        """Return what is new; :meth:`written` forgets it once it is safe."""
        with self._lock:
            # copies: other threads go on embedding while these are written
            return {fingerprint: dict(vectors) for fingerprint, vectors in self._new.items()}

    def after_fork(self) -> None:
        """Begin anew in a child; what is new may be written by both."""
        self._lock = Lock()

    def written(self, taken: Mapping[str, Mapping[bytes, bytes]]) -> None:
        """Forget what has been written."""
        with self._lock:
            for fingerprint, vectors in taken.items():
                for digest in vectors:
                    self._new[fingerprint].pop(digest, None)


_OTHERS_TASK = (
    "SELECT 1 FROM events WHERE session_id = ? AND seq > ? AND seq <= ? AND kind IN ('goal', 'outcome') LIMIT 1"
)

_TASK = (Goal, Message, ToolCall, ToolResult, Outcome)


class Telling:
    """Part of a session that one process has recorded.

    Parameters
    ----------
    session : SessionRow
        The session.
    seen : int
        Number of the newest event that was in the store when this process read it.
    """

    def __init__(self, session: SessionRow, seen: int) -> None:
        self._session = session
        self._seen = seen
        self._run = 0
        """The run at the newest event that was written here, 0 = none was."""
        self._midst = False
        """``True`` if a part of a task was recorded here, and not yet its outcome."""
        self._left: int | None = None
        """The run that was under way when another process went on under the next name."""
        self._shared = False
        """``True`` if a part of that run was recorded here."""
        self._next_name = ""
        """Under which another process goes on if the settings change."""
        self.mixed = False
        """``True`` if another process has recorded a goal or an outcome since."""

    def go_on(self, session: SessionRow, seen: int) -> None:
        """Go on in another file."""
        self._session, self._seen = session, seen

    def look(self, transaction: Transaction, last: int) -> None:
        """Look at what others have written up to event number ``last``."""
        if self._midst and last > self._seen:
            self.mixed |= bool(transaction.execute(_OTHERS_TASK, (self._session.id, self._seen, last)))

    def marked(self, rows: Sequence[RunRow], run: int) -> list[RunRow]:
        """Return rows of runs as they are to be written; ``run``: the number of the present one.

        If another process came between, all runs since then are marked.
        """
        if not self.mixed:
            return list(rows)
        marked = [msgspec.structs.replace(row, mixed=True) for row in rows]
        return [*marked, *(RunRow(number, mixed=True) for number in range(self._run or run, run + 1))]

    def wrote(self, records: Sequence[Record], last: int, run: int, *, told: bool) -> None:
        """Take in what was written here, up to event number ``last``, in the run of that number.

        ``told``: how runs stand as well. What was mixed stays so until an outcome is told here.
        """
        self._seen = last
        for record in records:
            if type(record.event) is Outcome:
                self._midst = False
            elif type(record.event) in _TASK:
                self._midst = True
        if told or (records and not self.mixed):
            self._run = run
        if told:
            self.mixed = self.mixed and self._midst

    def left_behind(
        self, transaction: Transaction, rows: Sequence[RunRow], records: Sequence[Record]
    ) -> list[RunRow] | None:
        """Return what is to be written of runs where another process goes on with the session under the next name.

        ``None`` if nobody does. Runs have their numbers there: of the one that was under way only how far its metrics
        rose is told, and whether it is told here as well.
        """
        agent, name = self._session.agent, self._session.session
        if not self._next_name:
            base = began_as(transaction, agent, name)
            number = 1 if base == name else int(name[len(base) + len(CONTINUED) :])
            self._next_name = f"{base}{CONTINUED}{number + 1}"
        if transaction.session(agent, self._next_name) is None:
            return None
        if self._left is None:
            self._left, self._shared = self._run, self._midst
        found = [RunRow(row.run, row.maxima) for row in rows if row.run == self._left]
        if self._shared and any(type(record.event) in _TASK for record in records):
            found.append(RunRow(self._left, mixed=True))
        return found


def _run_up_to(last: int, held: Sequence[Record], *, above: int) -> list[Record]:
    """Return the longest run of records without a gap that ends with a number and lies above another."""
    found: list[Record] = []
    for record in reversed(held):
        if above < record.seq == last - len(found):
            found.append(record)
    return found[::-1]


def _without_calls(row: RunRow) -> tuple[tuple[str, str, float], ...]:
    """Return the maxima of a run but for those that name a tool."""
    return tuple(each for each in row.maxima if not each[0].startswith(CALL))


BATCH = 50
"""Events that are written at once, as soon as there are so many."""

WAIT_S = 0.5
"""Seconds that an event waits at most to be written, if there are fewer."""

MAX_STUCK, MAX_STUCK_BYTES = 10_000, 16_000_000
"""Events, and their bytes, that wait while the store cannot be written; beyond them the oldest are lost and counted."""


class Recorder:
    """Write one session's records.

    Numbers are given when an event is folded, before anybody knows whether another process has written to the same
    session meanwhile. If one has, these records move up behind its, and :attr:`moved` tells that what was folded here
    does not know of them.

    Parameters
    ----------
    store : Store
        Where to write.
    session : SessionRow
        The session.
    book : StoreBook
        New vectors.
    saved : int
        Number of the newest event that was in the store when this process read it.
    cache : EmbeddingCache, optional
        Holds vectors of the book.
    no_text : NoText, optional
        Leaves texts out of what is written; names of tools are left out of runs too.
    """

    def __init__(
        self,
        store: Store,
        session: SessionRow,
        book: StoreBook,
        saved: int,
        cache: EmbeddingCache | None = None,
        no_text: NoText | None = None,
    ) -> None:
        self.store = store
        self.session = session
        self.book = book
        self.saved = saved
        """Number of the newest event of the session that this process knows to be in the store."""
        self.lost = 0
        self.moved = 0
        """By how much records had to move up since the state was last read from the store."""
        self._fork = 0
        """The newest event that was known before they had to."""
        self._is_altered = False
        """``True`` if something waits in another form than it was folded."""
        self.behind = False
        """``True`` if runs could not be written, because the state they were made from lacks some events."""
        self.run = 1
        """Number of the run in which the newest record is."""
        self._began_as: str | None = None
        self._telling = Telling(session, saved)
        self._pending: deque[Record] = deque()
        self.pending_bytes = 0
        """Bytes of records that are not in the store yet."""
        self._since = 0.0
        self._snapshots: list[tuple[int, bytes]] = []
        self._runs: list[RunRow] = []
        self._queue = Lock()
        self.writing = RLock()
        """Held while writing."""
        self.snapshot_seq = 0
        """Number of the newest snapshot that was taken here."""
        self._cache = cache
        self._no_text = no_text
        self._generation = store.generation
        self._alone_since = saved
        """Number of the newest event up to which other processes may have written some that are not held here."""

    @property
    def pending(self) -> int:
        """Records that are not in the store yet."""
        return len(self._pending)

    @property
    def due_in(self) -> float | None:
        """Seconds until the records should be written, ``None`` if there are none."""
        pending = len(self._pending)
        if not pending:
            return None
        return 0.0 if pending >= BATCH else max(self._since + WAIT_S - time.monotonic(), 0.0)

    def add(self, record: Record) -> None:
        """Take a record that was just folded."""
        with self._queue:
            if not self._pending:
                self._since = time.monotonic()
            foreign = self.moved or self._is_altered
            self._pending.append(record.moved(self.moved, self._fork) if foreign else record)
            self.pending_bytes += size_of(record.event)
            while len(self._pending) > MAX_STUCK or (self.pending_bytes > MAX_STUCK_BYTES and len(self._pending) > 1):
                self._drop_first()
                self.lost += 1

    def _drop_first(self) -> None:
        self.pending_bytes -= size_of(self._pending.popleft().event)

    def add_snapshot(self, seq: int, data: bytes) -> None:
        """Take the state after a record that was just added."""
        with self._queue:
            self._snapshots.append((seq, data))
            self.snapshot_seq = seq

    def add_runs(self, rows: Sequence[RunRow]) -> None:
        """Take how runs stand, but for those of tests and of recorded runs, and such of which nothing is known."""
        if self._no_text is not None:
            rows = [msgspec.structs.replace(row, maxima=_without_calls(row)) for row in rows]
        if self.session.source not in UNCOUNTED:
            with self._queue:
                self._runs.extend(row for row in rows if row.maxima or row.success is not None)
                # while the store is down no more wait than it would keep
                del self._runs[:-MAX_RUNS]

    def label_run(self, run: int, good: bool | None) -> None:
        """Write whether a run was good; ``None`` takes a label back.

        Raises
        ------
        StoreError
            If it cannot be written.
        """
        if self.session.source not in UNCOUNTED:
            with self.store.transaction() as transaction:
                write_label(transaction, self.session.agent, self._first_name(transaction), run, good)

    def save(self, baselines: bytes | None = None, *, wait_s: float = -1.0) -> bool:
        """Write everything that waits, in one transaction; on an error it goes on waiting.

        Parameters
        ----------
        baselines : bytes, optional
            The agent's, to be kept with it.
        wait_s : float
            Seconds to wait for other threads and processes that are writing; below 0: as long as it takes for this
            process's, and the store's own time for others.

        Returns
        -------
        bool
            False if another thread was writing all that time.

        Raises
        ------
        StoreError
            If it cannot be written.
            The store has gone on in another file (:attr:`is_outdated`): call :meth:`begin_again` first.
        """
        until = time.monotonic() + wait_s
        if not self.writing.acquire(timeout=wait_s):
            return False
        try:
            left = ATTEMPTS
            while True:
                left -= 1
                try:
                    self._save(
                        baselines,
                        self.store.timeout_s
                        if wait_s < 0.0
                        else min(max(until - time.monotonic(), 0.0), self.store.timeout_s),
                    )
                    break
                except Exception as error:
                    if self.store.lost and left > 0:
                        continue
                    if not (is_refusal(error) and self._put_right(error)):
                        raise
        finally:
            self.writing.release()
        return True

    def _save(self, baselines: bytes | None, wait_s: float) -> None:
        with self._queue:
            records, snapshots, runs = list(self._pending), list(self._snapshots), list(self._runs)
            run = self.run
        vectors = self.book.unwritten()
        # New vectors alone are no reason: they can be made again, and go with the next events.
        if not (records or baselines or snapshots or runs or self.store.lost):
            return
        with self.store.transaction(timeout_s=wait_s) as transaction:
            if self.is_outdated:
                raise StoreError(self.store.path, "the store has gone on in another file")
            # Asked inside the transaction: until the commit no other process can give a number.
            last = transaction.last_seq(self.session.id)
            expected = records[0].seq - 1 if records else last
            newest = records[-1].seq if records else 0
            by = last - expected
            stale = by != 0 or self.moved != 0 or last != self.saved or self._is_altered
            self._telling.look(transaction, last)
            if by:
                records = [record.moved(by, expected) for record in records]
            transaction.add_events(self.session, [self._encode(record) for record in records])
            for fingerprint, new in vectors.items():
                transaction.add_vectors(fingerprint, new.items())
            for seq, data in snapshots:
                # A state from after the point where others came between lacks their events.
                if not (by or self.moved) or seq <= min(last, expected, self._fork if self.moved else expected):
                    transaction.add_snapshot(self.session.id, seq, data)
            tells = not stale and self.session.source not in UNCOUNTED
            told = self._told(transaction, runs, run, records) if tells else []
            if told:
                agent = self.session.agent
                write_runs(transaction, agent, self._first_name(transaction), told)
            if baselines is not None:
                transaction.set_baselines(self.session.agent, time.time(), baselines)
        # Only after the commit: on an error all of it goes on waiting.
        self.book.written(vectors)
        with self._queue:
            given_up = len(records)  # some of them, while they were being written: they are not lost
            while self._pending and self._pending[0].seq <= newest:
                self._drop_first()
                given_up -= 1
            self.lost -= given_up
            del self._snapshots[: len(snapshots)]
            # by identity: an equal row may have been added while these were written
            self._runs = [row for row in self._runs if not any(row is each for each in runs)]
            self._since = time.monotonic()
            if by:
                # What was folded since these records were taken has numbers that are too low as well.
                self._pending = deque(record.moved(by, expected) for record in self._pending)
                self._fork = self._fork if self.moved else expected
                self.moved += by
            self.behind = stale
            self._is_altered = self._is_altered and self._no_text is None  # else until the session is read anew
        self._telling.wrote(records, last + len(records), run, told=tells)
        self.saved = last + len(records)

    def _put_right(self, error: Exception) -> bool:
        """Put a fault in the place of the first record that no store can hold; return whether there is one.

        What was folded is then no longer what the store holds: the session is read anew.
        """
        with self._queue:
            records = list(self._pending)
        # records[:taken] can be written, records[:refused] cannot
        taken, refused = 0, len(records)
        if not records or self._can_hold(records):
            return False
        while refused - taken > 1:
            middle = (taken + refused) // 2
            if self._can_hold(records[:middle]):
                taken = middle
            else:
                refused = middle
        bad = records[taken]
        event = make_fault("store", error)
        fault = Record(bad.seq, bad.ts, event)
        if not self._can_hold([*records[:taken], fault]):
            return False
        LOG.warning("coherence: event %d cannot be stored: %s", bad.seq, event.message)
        with self._queue:
            # what was folded behind it cannot be computed again
            self._pending = deque(
                fault if record is bad else record.moved(0, 0) if record.seq > bad.seq else record
                for record in self._pending
            )
            self.pending_bytes += size_of(event) - size_of(bad.event)
            self._is_altered = True
        return True

    def _can_hold(self, records: Sequence[Record]) -> bool:
        """Return whether the store takes records; nothing is written."""
        try:
            with self.store.transaction() as transaction:
                last, expected = transaction.last_seq(self.session.id), records[0].seq - 1
                moved = [record.moved(last - expected, expected) for record in records]
                transaction.add_events(self.session, [self._encode(record) for record in moved])
                raise _UndoneError
        except _UndoneError:
            return True
        except Exception as error:
            if not is_refusal(error):
                raise
            return False

    def _encode(self, record: Record) -> EventRow:
        return encode_record(record) if self._no_text is None else self._no_text.row(record)

    @property
    def is_outdated(self) -> bool:
        """Return whether the store has gone on in another file, which knows nothing of what was written here."""
        return self.store.generation != self._generation

    def begin_again(self, held: Sequence[Record], snapshot: tuple[int, bytes] | None) -> None:
        """Begin the session in the file that has taken the place of the one that is gone, with what is still held.

        Numbers go on. Where the session is there already, from another process or a copy, what is held goes after it.

        Parameters
        ----------
        held : sequence of Record
            The newest records, in order, those that wait among them.
        snapshot : (int, bytes), optional
            The state after a record.

        Raises
        ------
        StoreError
            If it cannot be written.
        """
        agent, name = self.session.agent, self.session.session
        if self._cache is not None:
            self._cache.note_again()
        with self.writing, self._queue:
            pending, vectors = list(self._pending), self.book.unwritten()
            last = pending[0].seq - 1 if pending else self.saved
            records = [] if self.moved else _run_up_to(last, held, above=self._alone_since)
            with self.store.transaction() as transaction:
                row, generation = transaction.session(agent, name), self.store.generation
                if row is None:
                    records += pending
                    row = transaction.add_session(
                        session=name,
                        agent=agent,
                        parent=self.session.parent,
                        source=self.session.source,
                        started=self.session.started,
                        config=self.session.config,
                        after=records[0].seq - 1 if records else last,
                    )
                    pending.clear()
                    if snapshot is not None and not self.moved:
                        transaction.add_snapshot(row.id, *snapshot)
                else:
                    records = self._continuing(transaction, row, records)
                transaction.add_events(row, [self._encode(record) for record in records])
                for fingerprint, new in vectors.items():
                    transaction.add_vectors(fingerprint, new.items())
                self.saved = transaction.last_seq(row.id)
            self.book.written(vectors)
            self._pending = deque(pending)
            self.pending_bytes = sum(size_of(record.event) for record in pending)
            self._snapshots.clear()
            self.session, self._generation = row, generation
            self._telling.go_on(row, self.saved)

    def _continuing(self, transaction: Transaction, row: SessionRow, held: Sequence[Record]) -> list[Record]:
        """Return the held records that follow the newest event of a session that is there, if that is one of them."""
        last = transaction.last_seq(row.id)
        found = transaction.execute("SELECT ts, data FROM events WHERE session_id = ? AND seq = ?", (row.id, last))
        same = [record for record in held if record.seq == last]
        if last and not (found and same and found[0] == (same[0].ts, self._encode(same[0]).data)):
            return []
        return _run_up_to(held[-1].seq, held, above=last) if held else []

    def _first_name(self, transaction: Transaction) -> str:
        """Return the name under which the session's runs are kept: that with which its line of sessions began."""
        if self._began_as is None:
            self._began_as = began_as(transaction, self.session.agent, self.session.session)
        return self._began_as

    def _told(
        self, transaction: Transaction, runs: Sequence[RunRow], run: int, records: Sequence[Record]
    ) -> list[RunRow]:
        """Return what is to be written of runs."""
        left_behind = self._telling.left_behind(transaction, runs, records)
        return left_behind if left_behind is not None else self._telling.marked(runs, run)

    def rejoin(self, seq: int) -> list[Record]:
        """Return what waits, in its new numbers; from now on what is added is numbered with the others' in mind.

        The caller has read the state anew from the store, up to event number ``seq``, and holds the lock under which
        records are folded.
        """
        with self._queue:
            self.moved, self.behind, self.saved, self._is_altered = 0, False, seq, False
            self._snapshots.clear()
            self._alone_since = self._pending[-1].seq if self._pending else seq
            return list(self._pending)

    def forget(self) -> None:
        """Drop what waits: after a fork the parent writes it."""
        self._queue, self.writing = Lock(), RLock()
        self._pending.clear()
        self.pending_bytes = 0
        self._snapshots.clear()
        self._runs.clear()
        self.book.after_fork()
