"""The tables of tallies: what each session comes to, kept up within the transaction that writes its events."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from coherence.store.rows import EventRow
from coherence.store.tally import MarkRow, PointRow, Tally, pack

if TYPE_CHECKING:
    from coherence.store.transaction import Transaction

_DECODER = msgspec.json.Decoder(Tally)
_ENCODER = msgspec.json.Encoder()

_READ = "SELECT data FROM tallies WHERE session_id = ?"
PENDING = 16
"""Ticks that wait in a tally, so that not each transaction writes to the table of points."""

_KEEP = (
    "INSERT INTO tallies VALUES (:session, (SELECT max(id) FROM events), :data) "
    "ON CONFLICT (session_id) DO UPDATE SET event_id = excluded.event_id, data = excluded.data"
)
_POINTS = "INSERT OR REPLACE INTO points VALUES (?, ?, ?)"
_MARK = "INSERT OR IGNORE INTO marks VALUES (?, ?, ?, ?, ?)"


def decode_tally(data: str) -> Tally | None:
    """Return a tally, ``None`` if it cannot be read."""
    try:
        return _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeError):
        return None


def keep_tally(connection: sqlite3.Connection, session_id: int, rows: Sequence[EventRow]) -> None:
    """Count events that were just written, which are the newest of their session."""
    kept = connection.execute(_READ, (session_id,)).fetchone()
    tally = (None if kept is None else decode_tally(kept[0])) or Tally()
    points, marks = tally.fold(rows)
    tally.pending += points
    if len(tally.pending) >= PENDING:
        connection.execute(_POINTS, (session_id, tally.pending[-1].seq, b"".join(map(pack, tally.pending))))
        tally.pending.clear()
    if marks:
        connection.executemany(_MARK, [(session_id, *mark) for mark in marks])
    connection.execute(_KEEP, {"session": session_id, "data": _ENCODER.encode(tally).decode()})


def insert_tally(
    transaction: Transaction, session_id: int, tally: Tally, points: Sequence[PointRow], marks: Sequence[MarkRow]
) -> None:
    """Write all that a session comes to, of which the tables hold nothing."""
    for at in range(0, len(points), PENDING):
        part = points[at : at + PENDING]
        transaction.execute(_POINTS, (session_id, part[-1].seq, b"".join(map(pack, part))))
    transaction.execute_many(_MARK, [(session_id, *mark) for mark in marks])
    transaction.execute(_KEEP, {"session": session_id, "data": _ENCODER.encode(tally).decode()})


def forget_before(connection: sqlite3.Connection, session_id: int) -> None:
    """Remove the points and marks of events of a session that are gone; its sums stay."""
    (first,) = connection.execute("SELECT min(seq) FROM events WHERE session_id = ?", (session_id,)).fetchone()
    first = 2**62 if first is None else first
    for table in ("points", "marks"):
        connection.execute(f"DELETE FROM {table} WHERE session_id = ? AND seq < ?", (session_id, first))  # noqa: S608
    kept = connection.execute(_READ, (session_id,)).fetchone()
    tally = None if kept is None else decode_tally(kept[0])
    if tally is not None and tally.pending and tally.pending[0].seq < first:
        tally.pending = [point for point in tally.pending if point.seq >= first]
        data = _ENCODER.encode(tally).decode()
        connection.execute("UPDATE tallies SET data = ? WHERE session_id = ?", (data, session_id))
