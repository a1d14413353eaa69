"""A file of 1,000,000 lessons, made of one of 100,000 by copying rows: recording them would take ten times as long."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import numpy as np
from lesson_vectors import D

COPIED_AT_ONCE = 5_000
KEPT_ONCE = 1_000
"""Lessons, the first ones, that are not copied: those that are asked about."""


def copied(path: Path, large: Path, wanted: int = 1_000_000) -> None:
    """Copy lessons, with other ids, shapes, names and vectors, until there are so many."""
    shutil.copy(path, large)
    rng = np.random.default_rng(1)
    connection = sqlite3.connect(large, isolation_level=None)
    for setting in ("journal_mode = WAL", "synchronous = OFF", "cache_size = -200000"):
        connection.execute(f"PRAGMA {setting}")
    first, last, missing = connection.execute(
        "SELECT min(id), max(id), :wanted - count(*) FROM lessons", {"wanted": wanted}
    ).fetchone()
    step = last + 1 - first
    for shift in range(step, wanted, step):
        for at in range(first + KEPT_ONCE, last + 1, COPIED_AT_ONCE):
            n = min(COPIED_AT_ONCE, missing, last + 1 - at)
            if n > 0:
                copy_rows(connection, at, n, shift, rng)
            missing -= n
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def copy_rows(connection: sqlite3.Connection, at: int, n: int, step: int, rng: np.random.Generator) -> None:
    """Copy the lessons with ids from ``at`` on to ids that are ``step`` higher."""
    bounds = {"at": at, "end": at + n, "step": step, "other": step * 1_000_003}
    connection.execute("BEGIN")
    connection.execute(
        "INSERT INTO lessons (id, identity, signature, slots, error_text, fix_text, names, pattern, tool, shape, form, "
        "count, helped, failed, retired, created, seen, used) "
        "SELECT id + :step, randomblob(16), (signature + :other) & 0x7fffffffffffffff, "
        "(slots + :other) & 0x7fffffffffffffff, error_text || ' ' || :step, fix_text || ' ' || :step, names, pattern, "
        "tool, shape, form, count, helped, failed, retired, created, seen, used FROM lessons "
        "WHERE id >= :at AND id < :end",
        bounds,
    )
    connection.execute(
        "INSERT INTO lesson_slots (signature, value, lesson_id) SELECT (signature + :other) & 0x7fffffffffffffff, "
        "(value + :other) & 0x7fffffffffffffff, lesson_id + :step FROM lesson_slots "
        "WHERE lesson_id >= :at AND lesson_id < :end",
        bounds,
    )
    rows = connection.execute(
        "SELECT lesson_id, vector FROM lesson_vectors WHERE lesson_id >= :at AND lesson_id < :end", bounds
    ).fetchall()
    vectors = np.frombuffer(b"".join(vector for _, vector in rows), "<f2").reshape(len(rows), D).astype(np.float32)
    vectors += 0.3 * np.abs(vectors).mean() * rng.standard_normal(vectors.shape, np.float32)
    connection.executemany(
        "INSERT INTO lesson_vectors (lesson_id, vector) VALUES (?, ?)",
        [(id + step, vector.astype("<f2").tobytes()) for (id, _), vector in zip(rows, vectors, strict=True)],
    )
    connection.execute("COMMIT")
