"""The schema: every version leads to the newest, and the database itself refuses what must not be."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coherence.store import schema
from coherence.store.errors import StoreError
from coherence.store.rows import EventRow, FiringOutcomeRow, FiringRow, SessionRow
from coherence.store.runs import forget_runs, newest_relabel
from coherence.store.store import Store
from store.rows import begin, event, tick


def open_plainly(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None)


def schema_text(path: Path) -> list[tuple[str, ...]]:
    connection = open_plainly(path)
    try:
        return connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name").fetchall()
    finally:
        connection.close()


def make_version(number: int, path: Path, *statements: str) -> None:
    connection = open_plainly(path)
    try:
        for each in range(1, number + 1):
            schema.migrate(connection, each)
        for statement in statements:
            connection.execute(statement)
        assert schema.version(connection) == number
    finally:
        connection.close()


def test_newest_version_migrations_are_numbered_without_a_gap_and_set_version_and_owner(tmp_path: Path) -> None:
    assert schema.newest_version() == 6
    Store(tmp_path / "store.db").close()
    connection = open_plainly(tmp_path / "store.db")
    found = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("user_version", "application_id")]
    assert found == [6, 0x436F6865]
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


def test_migrations_an_older_version_or_an_empty_file_leads_to_the_newest_with_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, empty, fresh = tmp_path / "old.db", tmp_path / "empty.db", tmp_path / "fresh.db"
    empty.touch()
    make_version(1, old, "INSERT INTO sessions VALUES (7, 's', 'a', NULL, 'hook', 1.0, '{}')")
    added = "CREATE TABLE added (x);\nALTER TABLE trust ADD COLUMN note TEXT;\n"
    texts = (*schema.migrations(), added, "CREATE INDEX added_by_x ON added (x);\n")
    monkeypatch.setattr(schema, "migrations", lambda: texts)
    Store(fresh).close()
    Store(empty).close()
    assert schema_text(old) != schema_text(fresh) == schema_text(empty)
    with Store(old) as store:
        assert store.sessions() == [SessionRow(7, "s", "a", None, "hook", 1.0, "{}")]
        with store.transaction() as transaction:
            transaction.add_events(store.sessions()[0], [event(1)])
            transaction.add_snapshot(7, 1, b"state")
        assert store.verify() == []
    assert schema_text(old) == schema_text(fresh)


def test_migrations_a_migration_that_fails_leaves_the_version_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store.db"
    make_version(1, path)
    before = schema_text(path)
    texts = (schema.migrations()[0], "CREATE TABLE extra (x);\nCREATE TABLE sessions (x);\n")
    monkeypatch.setattr(schema, "migrations", lambda: texts)
    with pytest.raises(StoreError, match="table sessions already exists"):
        Store(path)
    assert schema_text(path) == before
    monkeypatch.undo()
    with Store(path) as store:
        assert store.verify() == []


def test_migrations_version_4_drops_the_caches_of_calibration_and_goes_on_noting_changed_labels(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    make_version(
        3,
        path,
        "INSERT INTO runs (agent, session, run, outcome, known) VALUES ('a', 's', 1, 1, 1), ('a', 's', 2, 0, 2)",
        "INSERT INTO run_maxima VALUES (1, 'loop', '1', 0.5)",
        "INSERT INTO calibration_caches (agent, key, through, data) VALUES ('a', 'k', 2, x'00')",
    )
    with Store(path) as store:
        assert store.fetch("SELECT name FROM sqlite_master WHERE sql LIKE '%calibration_caches%'") == []
        with store.transaction() as transaction:
            transaction.execute("UPDATE run_maxima SET risk = 0.75 WHERE run_id = 1")
            transaction.execute("UPDATE runs SET label = 1 WHERE run = 1")  # as its outcome: nothing has changed
        assert newest_relabel(store) == 0
        with store.transaction() as transaction:
            transaction.execute("UPDATE runs SET label = 0 WHERE run = 1")
        assert newest_relabel(store) == 1
        with store.transaction() as transaction:
            assert forget_runs(transaction, "a") == 2
        assert store.verify() == []


def test_statements_a_script_that_does_not_end_is_refused() -> None:
    assert list(schema.statements("-- a note\nSELECT 1;\n\nSELECT\n  2;\n")) == ["SELECT 1;", "SELECT\n  2;"]
    with pytest.raises(ValueError, match="does not end: SELECT 3"):
        list(schema.statements("SELECT 2;\nSELECT 3"))


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """Yield a plain connection to a store of two ticks and the firings ``t``, ``c``, and ``d``, which was delivered."""
    path = tmp_path_factory.mktemp("schema") / "store.db"
    with Store(path) as store:
        session = begin(store)
        fired = [
            EventRow(3, 3.0, "tick", "{}", firing=FiringRow("t", "loop", 0, "treatment", "text")),
            EventRow(4, 4.0, "tick", "{}", firing=FiringRow("c", "loop", 0, "control", "text")),
            EventRow(5, 5.0, "tick", "{}", firing=FiringRow("d", "loop", 1, "treatment", "text")),
            EventRow(6, 6.0, "tick", "{}", delivered="d"),
            EventRow(7, 7.0, "tick", "{}", outcomes=(FiringOutcomeRow(firing="d", horizon=5, pressure_change=0.25),)),
        ]
        with store.transaction() as transaction:
            transaction.add_events(session, [tick(1), tick(2), *fired])
    connection = open_plainly(path)
    yield connection
    connection.close()
    with Store(path) as store:
        assert store.verify() == []


def refused(database: sqlite3.Connection, reason: str, statement: str, values: tuple[object, ...] = ()) -> None:
    changes = database.total_changes
    with pytest.raises(sqlite3.IntegrityError, match=reason):
        database.execute(statement, values)
    assert database.total_changes == changes


@pytest.mark.parametrize("table", ["sessions", "events", "readings", "decisions", "firings", "firing_outcomes"])
def test_schema_a_row_is_never_changed_replaced_or_deleted(database: sqlite3.Connection, table: str) -> None:
    for _, column, *_ in database.execute(f"PRAGMA table_info({table})").fetchall():
        for verb in ("UPDATE", "UPDATE OR REPLACE"):
            refused(database, "never changed", f"{verb} {table} SET {column} = {column}")
    refused(database, "never replaced|plus one|undelivered", f"REPLACE INTO {table} SELECT * FROM {table}")
    refused(database, "never deleted|by retention only", f"DELETE FROM {table}")


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("DELETE FROM heads", "never deleted"),
        ("UPDATE heads SET last_seq = 9", "only grows by one"),
        ("REPLACE INTO heads VALUES (1, 0)", "never replaced"),
        ("DELETE FROM chain", "never deleted"),
        ("REPLACE INTO chain VALUES (1, 0, zeroblob(32), 1, zeroblob(32))", "never replaced"),
        ("INSERT INTO chain VALUES (2, 0, zeroblob(32), 1, zeroblob(32))", "never replaced"),
        ("UPDATE chain SET id = 2", "CHECK constraint failed"),
        ("UPDATE chain SET count = -1", "CHECK constraint failed"),
        ("UPDATE chain SET head = x'00'", "CHECK constraint failed"),
        ("REPLACE INTO sessions VALUES (9, 's', 'a', NULL, 'api', 1, '{}')", "never replaced"),
        ("UPDATE firings SET delivered = 1, delivered_id = 6, pair = 9 WHERE firing_id = 't'", "never changed"),
        ("UPDATE firings SET delivered = 0, delivered_id = NULL WHERE firing_id = 'd'", "never changed"),
        ("UPDATE firings SET delivered_id = 7 WHERE firing_id = 'd'", "never changed"),
        ("UPDATE firings SET delivered = 1 WHERE firing_id = 't'", "confirmed by an event after"),
        ("UPDATE firings SET delivered = 1, delivered_id = 3 WHERE firing_id = 't'", "confirmed by an event after"),
        ("UPDATE firings SET delivered = 1, delivered_id = 6 WHERE firing_id = 'c'", "CHECK constraint failed"),
        ("INSERT INTO snapshots VALUES (1, 1, 'text')", "CHECK constraint failed"),
        ("INSERT INTO vectors VALUES ('', x'00', x'00')", "CHECK constraint failed"),
        ("INSERT INTO baselines VALUES ('a', 9e999, x'00')", "CHECK constraint failed"),
    ],
)
def test_schema_the_database_itself_refuses(database: sqlite3.Connection, statement: str, reason: str) -> None:
    refused(database, reason, statement)


EMPTY_HASH = bytes(32)
GOOD: dict[str, dict[str, object]] = {
    "sessions": {"id": 9, "session": "t", "agent": "a", "source": "api", "started": 1.0, "config": "{}"},
    "events": {
        "session_id": 1, "agent": "a", "seq": 8, "ts": 1.0, "kind": "goal", "source": "api", "data": "{}",
        "prev_hash": EMPTY_HASH, "hash": EMPTY_HASH,
    },
    "readings": {"session_id": 1, "seq": 7, "ts": 7.0, "source": "api", "coherence_index": 1.0, "data": "{}"},
    "decisions": {"session_id": 1, "seq": 7, "ts": 7.0, "source": "api", "kind": "guide", "data": "{}"},
    "firings": {
        "firing_id": "n", "session_id": 1, "seq": 7, "event_id": 7, "agent": "a", "pattern": "loop", "pair": 1,
        "arm": "control", "text": "", "ts": 7.0, "source": "api",
    },
    "firing_outcomes": {"firing_id": "t", "horizon": 5, "event_id": 7, "pressure_change": 0.5, "error_resolved": 0},
}  # fmt: skip
"""A row of each table that the database takes."""

CHECKED, MISSING, OF_EVENT = "CHECK constraint failed", "NOT NULL constraint failed", "must be those of its event"
WRONG: tuple[tuple[str, dict[str, Any], str], ...] = (
    *(("sessions", wrong, CHECKED) for wrong in ({"source": "web"}, {"started": 9e999}, {"config": "{"})),
    *(("sessions", wrong, reason) for wrong, reason in (({"session": ""}, CHECKED), ({"session": None}, MISSING))),
    *(("events", {"seq": seq}, "plus one") for seq in (7, 9)),
    ("events", {"session_id": 9}, "plus one"),
    *(("events", wrong, "must be those of its session") for wrong in ({"source": "test"}, {"agent": "b"})),
    ("events", {"id": 2}, "an event is never replaced"),
    *(("events", {"ts": ts}, CHECKED) for ts in (9e999, -9e999, "x")),
    *(("events", {"data": data}, CHECKED) for data in ("{", "NaN", b"{}")),
    *(("events", wrong, reason) for wrong, reason in (({"ts": None}, MISSING), ({"prev_hash": b"\0"}, CHECKED))),
    ("events", {"hash": None}, MISSING),
    *(("readings", wrong, OF_EVENT) for wrong in ({"seq": 9}, {"ts": 8.0}, {"source": "test"})),
    *(("readings", wrong, CHECKED) for wrong in ({"coherence_index": 1.1}, {"pressure": 9e999}, {"data": "}"})),
    ("readings", {"seq": 2, "ts": 102.0}, "a reading is never replaced"),
    ("decisions", {"seq": 9}, OF_EVENT),
    *(("decisions", wrong, CHECKED) for wrong in ({"kind": "maybe"}, {"data": ""})),
    ("decisions", {"seq": 2, "ts": 102.0}, "a decision is never replaced"),
    *(("firings", {"firing_id": name}, reason) for name, reason in ((None, MISSING), ("", CHECKED), (b"1", CHECKED))),
    ("firings", {"firing_id": "t"}, "never replaced"),
    ("firings", {"delivered": 1, "delivered_id": 7}, "begins undelivered"),
    *(("firings", wrong, "its event") for wrong in ({"seq": 9, "event_id": 9}, {"agent": "b"})),
    ("firings", {"seq": 3, "event_id": 3, "ts": 3.0}, "never replaced"),
    *(("firings", wrong, CHECKED) for wrong in ({"arm": "both"}, {"pair": -1})),
    ("firing_outcomes", {"firing_id": "d"}, "an outcome is never replaced|known by an event after"),
    *(("firing_outcomes", wrong, "known by an event after") for wrong in ({"event_id": 3}, {"firing_id": "nobody"})),
    *(
        ("firing_outcomes", wrong, CHECKED)
        for wrong in ({"horizon": 3}, {"pressure_change": 9e999}, {"error_resolved": 2})
    ),
)


@pytest.mark.parametrize(("table", "wrong", "reason"), [*WRONG, *((table, {}, "") for table in GOOD)])
@pytest.mark.parametrize("verb", ["INSERT", "REPLACE"])
def test_schema_a_row_with_a_wrong_value_is_refused_and_without_one_it_is_taken(
    database: sqlite3.Connection, verb: str, table: str, wrong: dict[str, Any], reason: str
) -> None:
    row = GOOD[table] | wrong
    statement = f"{verb} INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})"
    if reason:
        refused(database, reason, statement, tuple(row.values()))
        return
    database.execute("BEGIN")
    database.execute(statement, tuple(row.values()))
    database.execute("ROLLBACK")


def test_transaction_foreign_keys_are_on_in_the_store(store: Store) -> None:
    with pytest.raises(StoreError, match="FOREIGN KEY"), store.transaction() as transaction:
        transaction.add_snapshot(9, 1, b"state")
