"""The schema: numbered SQL files, applied in order, one transaction each, never edited once released."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

APPLICATION_ID = 0x436F6865
"""``Cohe``: marks a SQLite file as a store of ours. Never changes."""

GUARD_EVENTS = 2
"""The migration by which a guard's trail becomes part of the chain."""


@cache
def migrations() -> tuple[str, ...]:
    """Return the text of each migration; the first leads from an empty file to version 1."""
    folder = files(__package__).joinpath("migrations")
    found = sorted((entry.name, entry) for entry in folder.iterdir() if entry.name.endswith(".sql"))
    numbers = [int(name[:4]) for name, _ in found]
    if not numbers or numbers != list(range(1, len(numbers) + 1)):
        raise RuntimeError(f"migrations must be numbered 1, 2, 3, …; found {[name for name, _ in found]}")
    return tuple(entry.read_text(encoding="utf-8") for _, entry in found)


def newest_version() -> int:
    """Return the version of the schema that this package writes."""
    return len(migrations())


def version(connection: sqlite3.Connection) -> int:
    """Return the version of an open file's schema; 0 = empty."""
    number: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return number


def migrate(connection: sqlite3.Connection, number: int) -> None:
    """Apply migration ``number``, unless another process has done so meanwhile.

    All of it happens or nothing: SQLite rolls the schema, the version and the application id back together.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        if version(connection) == number - 1:
            for statement in _split(migrations()[number - 1]):
                connection.execute(statement)
            if number == GUARD_EVENTS:
                from coherence.store.guard_trail import move_guard_trail  # hashes are not computed by SQL

                move_guard_trail(connection)
            connection.execute(f"PRAGMA user_version = {number}")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@cache
def _split(script: str) -> tuple[str, ...]:
    return tuple(statements(script))


def statements(script: str) -> Iterator[str]:
    """Yield the statements of a script; ``executescript`` would commit between them."""
    statement = ""
    for line in script.splitlines(keepends=True):
        # A comment after the last statement would otherwise count as one that does not end.
        if not statement and (not line.strip() or line.startswith("--")):
            continue
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement.strip()
            statement = ""
    if statement.strip():
        raise ValueError(f"a statement does not end: {statement.strip()[:80]}")
