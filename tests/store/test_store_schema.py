"""The schema: every version leads to the newest, and the database itself refuses what must not be."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from coherence.store import schema
from coherence.store.errors import StoreError
from coherence.store.store import DecisionRow, EventRow, ReadingRow, SessionRow, Store

HASH = "zeroblob(32)"


def open_plainly(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None)


def schema_text(path: Path) -> list[tuple[str, ...]]:
    connection = open_plainly(path)
    try:
        return connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name").fetchall()
    finally:
        connection.close()


def make_version(path: Path, version: int, *statements: str) -> None:
    connection = open_plainly(path)
    try:
        for number in range(1, version + 1):
            schema.migrate(connection, number)
        for statement in statements:
            connection.execute(statement)
        assert schema.version(connection) == version
    finally:
        connection.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with a session ``s`` of three events; the second is a tick."""
    path = tmp_path / "store.db"
    with Store(path) as store, store.transaction() as transaction:
        session = transaction.add_session(session="s", agent="a", parent=None, source="api", started=1, config="{}")
        tick = EventRow(2, 2.0, "tick", "{}", ReadingRow(1.0, "green", 0.0, "calm", "{}"), DecisionRow("guide", "{}"))
        transaction.add_events(session, [EventRow(1, 1.0, "goal", "{}"), tick, EventRow(3, 3.0, "tick", "{}")])
    return path


def test_newest_version_migrations_are_numbered_without_a_gap_and_set_version_and_owner(path: Path) -> None:
    assert schema.newest_version() == 3
    connection = open_plainly(path)
    assert connection.execute("PRAGMA user_version").fetchone() == (3,)
    assert connection.execute("PRAGMA application_id").fetchone() == (0x436F6865,)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


def test_migrations_an_older_version_leads_to_the_newest_with_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, fresh = tmp_path / "old.db", tmp_path / "fresh.db"
    make_version(old, 1, "INSERT INTO sessions VALUES (7, 's', 'a', NULL, 'hook', 1.0, '{}')")
    added = "CREATE TABLE added (x);\nALTER TABLE trust ADD COLUMN note TEXT;\n"
    texts = (*schema.migrations(), added, "CREATE INDEX added_by_x ON added (x);\n")
    monkeypatch.setattr(schema, "migrations", lambda: texts)
    Store(fresh).close()
    assert schema_text(old) != schema_text(fresh)
    with Store(old) as store:
        assert store.sessions() == [SessionRow(7, "s", "a", None, "hook", 1.0, "{}")]
        with store.transaction() as transaction:
            transaction.add_events(store.sessions()[0], [EventRow(1, 1.0, "goal", "{}")])
            transaction.add_snapshot(7, 1, b"state")
        assert store.verify() == []
    assert schema_text(old) == schema_text(fresh)


def test_transaction_an_empty_file_is_used(tmp_path: Path) -> None:
    path, fresh = tmp_path / "empty.db", tmp_path / "fresh.db"
    path.touch()
    Store(path).close()
    Store(fresh).close()
    assert schema_text(path) == schema_text(fresh)


def test_migrations_a_migration_that_fails_leaves_the_version_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store.db"
    make_version(path, 1)
    before = schema_text(path)
    texts = (schema.migrations()[0], "CREATE TABLE extra (x);\nCREATE TABLE sessions (x);\n")
    monkeypatch.setattr(schema, "migrations", lambda: texts)
    with pytest.raises(StoreError, match="table sessions already exists"):
        Store(path)
    assert schema_text(path) == before
    monkeypatch.undo()
    with Store(path) as store:
        assert store.verify() == []


def test_statements_a_script_that_does_not_end_is_refused() -> None:
    assert list(schema.statements("-- a note\nSELECT 1;\n\nSELECT\n  2;\n")) == ["SELECT 1;", "SELECT\n  2;"]
    with pytest.raises(ValueError, match="does not end: SELECT 3"):
        list(schema.statements("SELECT 2;\nSELECT 3"))


EVENT = "INSERT INTO events (session_id, agent, seq, ts, kind, source, data, prev_hash, hash) VALUES "


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("UPDATE events SET data = '{}'", "an event is never changed"),
        ("UPDATE readings SET band = 'red'", "a reading is never changed"),
        ("UPDATE decisions SET kind = 'block'", "a decision is never changed"),
        ("UPDATE sessions SET agent = 'b'", "a session is never changed"),
        ("DELETE FROM events WHERE id = 3", "by retention only"),
        ("DELETE FROM readings", "by retention only"),
        ("DELETE FROM decisions", "by retention only"),
        ("DELETE FROM sessions", "never deleted"),
        ("DELETE FROM heads", "never deleted"),
        ("DELETE FROM chain", "never deleted"),
        ("UPDATE heads SET last_seq = 7", "only grows by one"),
        ("REPLACE INTO heads VALUES (1, 0)", "never replaced"),
        ("REPLACE INTO chain VALUES (1, 0, zeroblob(32), 1, zeroblob(32))", "never replaced"),
        ("INSERT INTO chain VALUES (2, 0, zeroblob(32), 1, zeroblob(32))", "never replaced"),
        ("UPDATE chain SET id = 2", "CHECK constraint failed"),
        ("UPDATE chain SET count = -1", "CHECK constraint failed"),
        ("UPDATE chain SET head = x'00'", "CHECK constraint failed"),
        ("REPLACE INTO sessions VALUES (1, 's', 'a', NULL, 'api', 1, '{}')", "never replaced"),
        ("REPLACE INTO sessions VALUES (9, 's', 'a', NULL, 'api', 1, '{}')", "never replaced"),
        ("INSERT INTO sessions VALUES (9, 't', 'a', NULL, 'web', 1, '{}')", "CHECK constraint failed"),
        ("INSERT INTO sessions VALUES (9, 't', 'a', NULL, 'api', 9e999, '{}')", "CHECK constraint failed"),
        ("INSERT INTO sessions VALUES (9, 't', 'a', NULL, 'api', 1, '{')", "CHECK constraint failed"),
        ("INSERT INTO sessions VALUES (9, '', 'a', NULL, 'api', 1, '{}')", "CHECK constraint failed"),
        ("INSERT INTO sessions VALUES (9, NULL, 'a', NULL, 'api', 1, '{}')", "NOT NULL constraint failed"),
        (f"{EVENT} (1, 'a', 5, 1, 'goal', 'api', '{{}}', {HASH}, {HASH})", "plus one"),
        (f"{EVENT} (1, 'a', 3, 1, 'goal', 'api', '{{}}', {HASH}, {HASH})", "plus one"),
        (f"{EVENT} (9, 'a', 1, 1, 'goal', 'api', '{{}}', {HASH}, {HASH})", "plus one"),
        (f"{EVENT} (1, 'a', 4, 1, 'goal', 'test', '{{}}', {HASH}, {HASH})", "must be those of its session"),
        (f"{EVENT} (1, 'b', 4, 1, 'goal', 'api', '{{}}', {HASH}, {HASH})", "must be those of its session"),
        (f"{EVENT} (1, 'a', 4, 9e999, 'goal', 'api', '{{}}', {HASH}, {HASH})", "CHECK constraint failed"),
        (f"{EVENT} (1, 'a', 4, -9e999, 'goal', 'api', '{{}}', {HASH}, {HASH})", "CHECK constraint failed"),
        (f"{EVENT} (1, 'a', 4, NULL, 'goal', 'api', '{{}}', {HASH}, {HASH})", "NOT NULL constraint failed"),
        (f"{EVENT} (1, 'a', 4, 'x', 'goal', 'api', '{{}}', {HASH}, {HASH})", "CHECK constraint failed"),
        (f"{EVENT} (1, 'a', 4, 1, 'goal', 'api', '{{', {HASH}, {HASH})", "CHECK constraint failed"),
        (f"{EVENT} (1, 'a', 4, 1, 'goal', 'api', 'NaN', {HASH}, {HASH})", "CHECK constraint failed"),
        (f"{EVENT} (1, 'a', 4, 1, 'goal', 'api', x'7b7d', {HASH}, {HASH})", "CHECK constraint failed"),
        (f"{EVENT} (1, 'a', 4, 1, 'goal', 'api', '{{}}', x'00', {HASH})", "CHECK constraint failed"),
        (f"{EVENT} (1, 'a', 4, 1, 'goal', 'api', '{{}}', {HASH}, NULL)", "NOT NULL constraint failed"),
        (
            "REPLACE INTO events (id, session_id, agent, seq, ts, kind, source, data, prev_hash, hash) "
            f"VALUES (2, 1, 'a', 4, 1, 'goal', 'api', '{{}}', {HASH}, {HASH})",
            "an event is never replaced",
        ),
        ("INSERT INTO readings VALUES (1, 9, 3, 'api', 1, '', 0, '', '{}')", "those of its event"),
        ("INSERT INTO readings VALUES (1, 3, 4, 'api', 1, '', 0, '', '{}')", "those of its event"),
        ("INSERT INTO readings VALUES (1, 3, 3, 'test', 1, '', 0, '', '{}')", "those of its event"),
        ("INSERT INTO readings VALUES (1, 3, 3, 'api', 1.1, '', 0, '', '{}')", "CHECK constraint failed"),
        ("INSERT INTO readings VALUES (1, 3, 3, 'api', 1, '', 9e999, '', '{}')", "CHECK constraint failed"),
        ("INSERT INTO readings VALUES (1, 3, 3, 'api', 1, '', 0, '', '}')", "CHECK constraint failed"),
        ("REPLACE INTO readings VALUES (1, 2, 2, 'api', 1, '', 0, '', '{}')", "a reading is never replaced"),
        ("INSERT INTO decisions VALUES (1, 9, 3, 'api', 'guide', '{}')", "those of its event"),
        ("INSERT INTO decisions VALUES (1, 3, 3, 'api', 'maybe', '{}')", "CHECK constraint failed"),
        ("INSERT INTO decisions VALUES (1, 3, 3, 'api', 'guide', '')", "CHECK constraint failed"),
        ("REPLACE INTO decisions VALUES (1, 2, 2, 'api', 'guide', '{}')", "a decision is never replaced"),
        ("INSERT INTO snapshots VALUES (1, 1, 'text')", "CHECK constraint failed"),
        ("INSERT INTO vectors VALUES ('', x'00', x'00')", "CHECK constraint failed"),
        ("INSERT INTO baselines VALUES ('a', 9e999, x'00')", "CHECK constraint failed"),
    ],
)
def test_verify_the_database_itself_refuses(path: Path, statement: str, reason: str) -> None:
    connection = open_plainly(path)
    try:
        before = list(connection.iterdump())
        with pytest.raises(sqlite3.IntegrityError, match=reason):
            connection.execute(statement)
        assert list(connection.iterdump()) == before
    finally:
        connection.close()
    with Store(path) as store:
        assert store.verify() == []


def test_transaction_foreign_keys_are_on_in_the_store(path: Path) -> None:
    with Store(path) as store:
        with pytest.raises(StoreError, match="FOREIGN KEY"), store.transaction() as transaction:
            transaction.add_snapshot(9, 1, b"state")
        with store.transaction() as transaction:
            assert transaction._connection.execute("PRAGMA foreign_keys").fetchone() == (1,)
