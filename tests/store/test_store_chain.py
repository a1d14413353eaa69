"""Whatever is changed behind the store's back is found, and the row is named."""

from __future__ import annotations

import hashlib
import random
import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from property_sizes import examples

from coherence.store.hash_chain import NO_HASH, digest
from coherence.store.store import ChainFault, DecisionRow, EventRow, ReadingRow, Store
from coherence.store.verify import verify


def fill(store: Store) -> None:
    """Write 20 events: ``one`` has ids 1 to 4, 9 to 12 and 17 to 20, ``two`` has ids 5 to 8 and 13 to 16."""
    with store.transaction() as transaction:
        sessions = [
            transaction.add_session(session=name, agent="a", parent=None, source="api", started=1.0, config="{}")
            for name in ("one", "two")
        ]
    for batch in range(5):
        session = sessions[batch % 2]
        with store.transaction() as transaction:
            first = transaction.last_seq(session.id) + 1
            transaction.add_events(session, [row(session.session, seq) for seq in range(first, first + 4)])


def row(session: str, seq: int) -> EventRow:
    data = f'{{"session":"{session}","n":{seq}}}'
    if seq % 2:
        return EventRow(seq, 1000.0 + seq, "tool_call", data)
    reading = ReadingRow(1 / seq, "green", seq / 7, "calm", f'{{"r":{seq}}}')
    return EventRow(seq, 1000.0 + seq, "tick", data, reading, DecisionRow("guide", f'{{"d":{seq}}}'))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    with Store(path, synchronous="NORMAL") as store:
        fill(store)
    return path


def open_to_tamper(path: Path) -> sqlite3.Connection:
    """Open the file as somebody who knows SQLite: without the rules."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA ignore_check_constraints = ON")
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {name}")
    return connection


def tamper(path: Path, *statements: str) -> None:
    connection = open_to_tamper(path)
    try:
        for statement in statements:
            connection.execute(statement)
    finally:
        connection.close()


def check(path: Path) -> list[ChainFault]:
    with Store(path) as store:
        assert store.recovered_from is None
        return store.verify()


def broken(path: Path) -> tuple[int | None, str]:
    """Return id and reason of the one break that is named."""
    (fault,) = check(path)
    return fault.id, str(fault)


def rehash(connection: sqlite3.Connection, number: int) -> bytes:
    """Give a row the hash that fits its content, as somebody would who has read the source."""
    prev, name, agent, source, seq, ts, kind, data = connection.execute(
        "SELECT prev_hash, session, e.agent, e.source, seq, ts, kind, data FROM events AS e "
        "JOIN sessions AS s ON s.id = session_id WHERE e.id = ?",
        (number,),
    ).fetchone()
    fresh = digest(prev, name, agent, source, EventRow(seq, ts, kind, data), ts)
    connection.execute("UPDATE events SET hash = ? WHERE id = ?", (fresh, number))
    return fresh


EXCHANGE = (
    "CREATE TEMP TABLE t AS SELECT * FROM {table} WHERE id IN ({a}, {b})",
    "UPDATE {table} SET ({columns}) = (SELECT {columns} FROM t WHERE id = {b}) WHERE id = {a}",
    "UPDATE {table} SET ({columns}) = (SELECT {columns} FROM t WHERE id = {a}) WHERE id = {b}",
)


def exchange(a: int, b: int, columns: str) -> list[str]:
    return [line.format(table="events", a=a, b=b, columns=columns) for line in EXCHANGE]


def swap_ids(a: int, b: int) -> list[str]:
    return [f"UPDATE events SET id = {x} WHERE id = {y}" for x, y in ((-1, a), (a, b), (b, -1))]


def test_verify_a_store_is_intact_when_nobody_touched_it(path: Path) -> None:
    tamper(path)  # without the triggers
    assert check(path) == []


def test_store_chain_the_hash_is_the_documented_one() -> None:
    plain = EventRow(3, 5.0, "goal", '{"text":"ä"}')
    text = '["s","a",3,5.0,"goal","api","{\\"text\\":\\"ä\\"}",null,null]'
    assert digest(NO_HASH, "s", "a", "api", plain, 5.0) == hashlib.sha256(bytes(32) + text.encode()).digest()
    full = EventRow(3, 5.0, "tick", "{}", ReadingRow(0.5, "red", None, "m", "[]"), DecisionRow("block", "1"))
    text = '["s","a",3,5.0,"tick","api","{}",[0.5,"red",null,"m","[]"],["block","1"]]'
    assert digest(NO_HASH, "s", "a", "api", full, 5.0) == hashlib.sha256(bytes(32) + text.encode()).digest()


@pytest.mark.parametrize(
    ("statement", "session", "seq", "number"),
    [
        ("UPDATE events SET data = '{}' WHERE id = 7", "two", 3, 7),
        ("UPDATE events SET data = data || ' ' WHERE id = 1", "one", 1, 1),
        ("UPDATE events SET data = x'00' WHERE id = 20", "one", 12, 20),
        ("UPDATE events SET data = CAST(x'ff' AS TEXT) WHERE id = 7", "two", 3, 7),
        ("UPDATE events SET kind = 'message' WHERE id = 7", "two", 3, 7),
        ("UPDATE events SET ts = ts + 0.001 WHERE id = 7", "two", 3, 7),
        ("UPDATE events SET agent = 'b' WHERE id = 7", "two", 3, 7),
        ("UPDATE events SET source = 'test' WHERE id = 7", "two", 3, 7),
        ("UPDATE events SET hash = zeroblob(32) WHERE id = 7", "two", 3, 7),
        ("UPDATE events SET hash = zeroblob(32) WHERE id = 20", "one", 12, 20),
        ("UPDATE events SET prev_hash = zeroblob(32) WHERE id = 7", "two", 3, 7),
        ("UPDATE events SET prev_hash = hash WHERE id = 1", "one", 1, 1),
        ("UPDATE events SET seq = 99 WHERE id = 15", "two", 99, 15),
        ("UPDATE events SET id = 21 WHERE id = 20", "one", 12, 21),
        ("UPDATE readings SET coherence_index = 1 WHERE session_id = 2 AND seq = 4", "two", 4, 8),
        ("UPDATE readings SET coherence_index = 'x' WHERE session_id = 2 AND seq = 4", "two", 4, 8),
        ("UPDATE readings SET band = 'red' WHERE session_id = 2 AND seq = 4", "two", 4, 8),
        ("UPDATE readings SET pressure = NULL WHERE session_id = 2 AND seq = 4", "two", 4, 8),
        ("UPDATE readings SET mode = '' WHERE session_id = 2 AND seq = 4", "two", 4, 8),
        ("UPDATE readings SET data = '{}' WHERE session_id = 2 AND seq = 4", "two", 4, 8),
        ("UPDATE readings SET ts = 0 WHERE session_id = 2 AND seq = 4", "two", 4, 8),
        ("UPDATE readings SET source = 'test' WHERE session_id = 2 AND seq = 4", "two", 4, 8),
        ("UPDATE decisions SET kind = 'continue' WHERE session_id = 2 AND seq = 4", "two", 4, 8),
        ("UPDATE decisions SET data = '{}' WHERE session_id = 2 AND seq = 4", "two", 4, 8),
        ("UPDATE decisions SET ts = 0 WHERE session_id = 2 AND seq = 4", "two", 4, 8),
        ("DELETE FROM readings WHERE session_id = 2 AND seq = 4", "two", 4, 8),
        ("DELETE FROM decisions WHERE session_id = 2 AND seq = 4", "two", 4, 8),
    ],
)
def test_verify_an_altered_row_is_named(path: Path, statement: str, session: str, seq: int, number: int) -> None:
    tamper(path, statement)
    (fault,) = check(path)
    assert (fault.session, fault.seq, fault.id) == (session, seq, number)


def test_verify_an_altered_row_with_a_fitting_hash_breaks_the_chain_at_the_next_one(path: Path) -> None:
    for number in (3, 5):
        connection = open_to_tamper(path)
        connection.execute("UPDATE events SET data = '{}' WHERE id = ?", (number,))
        rehash(connection, number)
        connection.close()
        found, why = broken(path)
        assert found == 4 and "one of the two was changed" in why


def test_verify_an_altered_newest_row_with_a_fitting_hash_is_named(path: Path) -> None:
    connection = open_to_tamper(path)
    connection.execute("DELETE FROM decisions WHERE session_id = 1 AND seq = 12")
    connection.execute("DELETE FROM readings WHERE session_id = 1 AND seq = 12")
    rehash(connection, 20)
    connection.close()
    found, why = broken(path)
    assert found == 20 and "not the one that was written last" in why


@pytest.mark.parametrize(
    ("numbers", "first", "why"),
    [
        ([1], 2, "1 event before it is missing"),
        ([6], 7, "1 event before it is missing"),
        ([7, 8, 9], 10, "3 events before it are missing"),
        ([2, 7, 14], 3, "1 event before it is missing"),
        ([20], 19, "1 of the newest events are missing"),
        ([18, 19, 20], 17, "3 of the newest events are missing"),
    ],
)
def test_verify_the_first_gap_is_named_with_its_size(path: Path, numbers: list[int], first: int, why: str) -> None:
    tamper(path, f"DELETE FROM events WHERE id IN ({', '.join(map(str, numbers))})")
    found, said = broken(path)
    assert found == first and why in said


def test_verify_a_row_is_missed_even_if_the_gap_was_closed(path: Path) -> None:
    tamper(
        path,
        "DELETE FROM events WHERE id = 6",
        "UPDATE events SET id = -id WHERE id > 6",
        "UPDATE events SET id = -id - 1 WHERE id < 0",
    )
    found, why = broken(path)
    assert found == 6 and "not written after the event before it" in why


@pytest.mark.parametrize("session_too", [False, True])
def test_verify_a_removed_session_is_missed(path: Path, session_too: bool) -> None:
    both = ("readings", "decisions", "events", "snapshots")
    tamper(
        path,
        *(f"DELETE FROM {table} WHERE session_id = 2" for table in both),
        *(["DELETE FROM sessions WHERE id = 2", "DELETE FROM heads WHERE session_id = 2"] if session_too else []),
    )
    found, why = broken(path)
    assert found == 9 and "4 events before it are missing" in why


def test_verify_all_rows_removed_are_missed(path: Path) -> None:
    tamper(path, "DELETE FROM events", "DELETE FROM readings", "DELETE FROM decisions")
    assert "20 of the newest events are missing" in broken(path)[1]


def test_verify_a_session_row_that_is_gone_is_missed(path: Path) -> None:
    tamper(path, "DELETE FROM sessions WHERE id = 2")
    assert broken(path)[0] == 5  # its first event


@pytest.mark.parametrize("column", ["session = 'x'", "agent = 'x'", "source = 'test'"])
def test_verify_a_session_of_another_name_is_found(path: Path, column: str) -> None:
    tamper(path, f"UPDATE sessions SET {column} WHERE id = 2")
    assert check(path)


@pytest.mark.parametrize(
    "statements",
    [
        pytest.param(swap_ids(6, 7), id="neighbouring ids"),
        pytest.param(swap_ids(6, 15), id="ids far apart"),
        pytest.param(swap_ids(1, 20), id="first and last"),
        pytest.param(exchange(6, 15, "ts, kind, data"), id="content"),
        pytest.param(exchange(6, 15, "data"), id="data"),
        pytest.param(exchange(6, 15, "hash"), id="hash"),
        pytest.param(exchange(6, 15, "prev_hash, hash"), id="both hashes"),
        pytest.param(exchange(6, 15, "ts, kind, data, prev_hash, hash"), id="all but names"),
        pytest.param(exchange(5, 6, "data"), id="data of neighbours"),
    ],
)
def test_verify_the_first_of_exchanged_rows_is_named(path: Path, statements: list[str]) -> None:
    numbers = [int(number) for number in re.findall(r"id = (\d+)", " ".join(statements))]
    tamper(path, *statements)
    assert broken(path)[0] == min(numbers)


def test_verify_exchanged_numbers_and_readings_are_found(path: Path) -> None:
    tamper(
        path,
        *(f"UPDATE events SET seq = {x} WHERE session_id = 1 AND seq = {y}" for x, y in ((99, 1), (1, 3), (3, 99))),
    )
    assert broken(path)[0] == 1
    steps = ((99, 2), (2, 6), (6, 99))
    tamper(path, *(f"UPDATE readings SET seq = {x} WHERE session_id = 1 AND seq = {y}" for x, y in steps))
    assert broken(path)[0] == 1


ROW = "INSERT INTO events (session_id, agent, seq, ts, kind, source, data, prev_hash, hash) "


@pytest.mark.parametrize("hashes", ["(SELECT head FROM chain), zeroblob(32)", "zeroblob(32), zeroblob(32)"])
def test_verify_a_row_added_at_the_end_is_named(path: Path, hashes: str) -> None:
    tamper(path, f"{ROW} SELECT 1, 'a', max(seq) + 1, 0, 'goal', 'api', '{{}}', {hashes} FROM events")
    assert broken(path)[0] == 21


def test_transaction_a_row_added_with_a_fitting_hash_is_named(path: Path) -> None:
    tamper(path, f"{ROW} SELECT 1, 'a', 13, 0, 'goal', 'api', '{{}}', head, head FROM chain")
    connection = open_to_tamper(path)
    rehash(connection, 21)
    connection.execute("UPDATE heads SET last_seq = 13 WHERE session_id = 1")
    connection.close()
    found, why = broken(path)
    assert found == 21 and "1 events were added by hand" in why
    with Store(path) as store, store.transaction() as transaction:
        session = store.session("a", "one")
        assert session is not None
        transaction.add_events(session, [row("one", 14)])
    found, why = broken(path)  # the next one follows what the store wrote last
    assert found == 22 and "added" in why


def test_verify_a_row_added_in_the_middle_is_named(path: Path) -> None:
    tamper(
        path,
        "UPDATE events SET id = -id WHERE id > 6",
        "UPDATE events SET id = 1 - id WHERE id < 0",
        f"{ROW.replace('(session', '(id, session')} "
        "SELECT 7, 1, 'a', 13, 0, 'goal', 'api', '{}', hash, randomblob(32) FROM events WHERE id = 6",
    )
    assert broken(path)[0] == 7


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("INSERT INTO readings VALUES (1, 1, 1001, 'api', 1, 'green', 0, 'calm', '{}')", 1),
        ("INSERT INTO decisions VALUES (2, 1, 1001, 'api', 'continue', '{}')", 5),
        ("INSERT INTO decisions VALUES (2, 77, 1001, 'api', 'continue', '{}')", None),
    ],
)
def test_verify_a_reading_or_decision_added_later_is_named(path: Path, statement: str, number: int | None) -> None:
    tamper(path, statement)
    assert broken(path)[0] == number


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE chain SET count = 19",
        "UPDATE chain SET count = 21",
        "UPDATE chain SET head = zeroblob(32)",
        "UPDATE chain SET first_prev = x'11' || first_prev",
        "UPDATE chain SET first_id = 2",
        "DELETE FROM chain",
    ],
)
def test_verify_a_changed_account_of_the_chain_is_found(path: Path, statement: str) -> None:
    tamper(path, statement)
    assert check(path)


def test_verify_a_fault_says_which_event_and_why(path: Path) -> None:
    tamper(path, "UPDATE events SET data = '{}' WHERE id = 7", "DELETE FROM events WHERE id = 9")
    assert broken(path)[1] == (
        "event 3 of session 'two' (agent 'a', id 7): its content, its reading or its decision is not what was written; "
        "nothing from here on is vouched for"
    )


Mutation = Callable[[random.Random, sqlite3.Connection, int], object]


def _set(column: str, value: Callable[[random.Random], object]) -> Mutation:
    def mutate(dice: random.Random, connection: sqlite3.Connection, number: int) -> object:
        fresh = value(dice)
        before = connection.execute(f"SELECT {column} FROM events WHERE id = ?", (number,)).fetchone()[0]
        connection.execute(f"UPDATE OR REPLACE events SET {column} = ? WHERE id = ?", (fresh, number))
        return before != fresh

    return mutate


def _side(table: str, change: str) -> Mutation:
    def mutate(dice: random.Random, connection: sqlite3.Connection, number: int) -> object:
        where = "WHERE (session_id, seq) = (SELECT session_id, seq FROM events WHERE id = ?)"
        return connection.execute(f"{change.format(table=table)} {where}", (number,)).rowcount

    return mutate


MUTATIONS: dict[str, Mutation] = {
    "data": _set("data", lambda dice: f'{{"n":{dice.random()}}}'),
    "ts": _set("ts", lambda dice: dice.uniform(0, 1e9)),
    "kind": _set("kind", lambda dice: dice.choice("xyz")),
    "seq": _set("seq", lambda dice: dice.randrange(1, 10**9)),
    "agent": _set("agent", lambda dice: dice.choice("bcd")),
    "source": _set("source", lambda dice: dice.choice(["hook", "test"])),
    "session": _set("session_id", lambda dice: dice.choice([1, 2, 3])),
    "hash": _set("hash", lambda dice: dice.randbytes(32)),
    "prev": _set("prev_hash", lambda dice: dice.randbytes(32)),
    "id": _set("id", lambda dice: dice.randrange(21, 100)),
    "delete": lambda _, connection, number: connection.execute("DELETE FROM events WHERE id = ?", (number,)).rowcount,
    "no reading": _side("readings", "DELETE FROM {table}"),
    "no decision": _side("decisions", "DELETE FROM {table}"),
    "reading": _side("readings", "UPDATE {table} SET coherence_index = 0.123"),
    "decision": _side("decisions", "UPDATE {table} SET kind = 'block'"),
    "moved reading": _side("readings", "UPDATE OR REPLACE {table} SET seq = seq + 1"),
}


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """A filled file without its rules, in memory."""
    path = tmp_path_factory.mktemp("image") / "store.db"
    with Store(path, synchronous="NORMAL") as store:
        fill(store)
    connection = open_to_tamper(path)
    connection.execute("PRAGMA journal_mode = DELETE")
    image = sqlite3.connect(":memory:")
    connection.backup(image)
    connection.close()
    yield image
    image.close()


@examples(150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**32),
    changes=st.lists(st.tuples(st.sampled_from(sorted(MUTATIONS)), st.integers(1, 20)), min_size=1, max_size=3),
)
def test_verify_no_random_change_escapes(image: sqlite3.Connection, seed: int, changes: list[tuple[str, int]]) -> None:
    dice = random.Random(seed)
    copy = sqlite3.connect(":memory:", isolation_level=None)
    try:
        image.backup(copy)
        copy.execute("PRAGMA ignore_check_constraints = ON")
        done = False
        touched: set[int] = set()
        for kind, number in changes:
            if number in touched or not copy.execute("SELECT 1 FROM events WHERE id = ?", (number,)).fetchone():
                continue
            if MUTATIONS[kind](dice, copy, number):
                done = True
                touched.add(number)
        faults = verify(copy)
        assert bool(faults) == done
        # An event moved onto another's place replaces it: the gap comes first then.
        in_place = changes[0][0] not in ("id", "session", "seq", "moved reading", "delete")
        if len(changes) == 1 and done and in_place:
            assert changes[0][1] == faults[0].id
    finally:
        copy.close()
