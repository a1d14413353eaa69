"""Whatever is changed behind the store's back is found, and the row is named."""

from __future__ import annotations

import hashlib
import random
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from property_sizes import examples

from coherence.store.hash_chain import NO_HASH, ChainFault, digest
from coherence.store.rows import DecisionRow, EventRow, ReadingRow
from coherence.store.store import Store
from coherence.store.verify import verify
from store.rows import begin, event, tick


def fill(store: Store) -> None:
    """Write 20 events: ``one`` has ids 1 to 4, 9 to 12 and 17 to 20, ``two`` has ids 5 to 8 and 13 to 16."""
    sessions = [begin(store, name) for name in ("one", "two")]
    for batch in range(5):
        session = sessions[batch % 2]
        with store.transaction() as transaction:
            first = transaction.last_seq(session.id) + 1
            seqs = range(first, first + 4)
            transaction.add_events(session, [event(seq) if seq % 2 else tick(seq) for seq in seqs])


def open_to_tamper(path: Path) -> sqlite3.Connection:
    """Open the file as somebody who knows SQLite: without the rules."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA ignore_check_constraints = ON")
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {name}")
    return connection


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """Yield a filled file without its rules, in memory."""
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


@pytest.fixture
def copy(image: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    yield from copied(image)


def copied(image: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    copy = sqlite3.connect(":memory:", isolation_level=None)
    try:
        image.backup(copy)
        copy.execute("PRAGMA ignore_check_constraints = ON")
        yield copy
    finally:
        copy.close()


def rehash(connection: sqlite3.Connection, number: int) -> None:
    """Give a row the hash that fits its content, as somebody would who has read the source."""
    prev, name, agent, source, seq, ts, kind, data = connection.execute(
        "SELECT prev_hash, session, e.agent, e.source, seq, ts, kind, data FROM events AS e "
        "JOIN sessions AS s ON s.id = session_id WHERE e.id = ?",
        (number,),
    ).fetchone()
    fresh = digest(prev, name, agent, source, EventRow(seq, ts, kind, data), ts)
    connection.execute("UPDATE events SET hash = ? WHERE id = ?", (fresh, number))


def test_digest_the_hash_is_the_documented_one() -> None:
    plain = EventRow(3, 5.0, "goal", '{"text":"ä"}')
    text = '["s","a",3,5.0,"goal","api","{\\"text\\":\\"ä\\"}",null,null]'
    assert digest(NO_HASH, "s", "a", "api", plain, 5.0) == hashlib.sha256(bytes(32) + text.encode()).digest()
    full = EventRow(3, 5.0, "tick", "{}", ReadingRow(0.5, "red", None, "m", "[]"), DecisionRow("block", "1"))
    text = '["s","a",3,5.0,"tick","api","{}",[0.5,"red",null,"m","[]"],["block","1"]]'
    assert digest(NO_HASH, "s", "a", "api", full, 5.0) == hashlib.sha256(bytes(32) + text.encode()).digest()


def exchange(a: int, b: int, columns: str) -> tuple[str, ...]:
    return (
        f"CREATE TEMP TABLE t AS SELECT * FROM events WHERE id IN ({a}, {b})",
        f"UPDATE events SET ({columns}) = (SELECT {columns} FROM t WHERE id = {b}) WHERE id = {a}",
        f"UPDATE events SET ({columns}) = (SELECT {columns} FROM t WHERE id = {a}) WHERE id = {b}",
    )


def swap(a: int, b: int) -> tuple[str, ...]:
    return tuple(f"UPDATE events SET id = {x} WHERE id = {y}" for x, y in ((-1, a), (a, b), (b, -1)))


WRITTEN, AFTER, MISSING, NEWEST = (
    "is not what was written",
    "not written after the event before it",
    "before it",
    "of the newest events are missing",
)
SIDE = "WHERE session_id = 2 AND seq = 4"
ROW = "INSERT INTO events (session_id, agent, seq, ts, kind, source, data, prev_hash, hash) "
NEW = ROW + "SELECT 1, 'a', 13, 0, 'goal', 'api', '{}', "

Tampering = tuple[str | int, ...]
"""Statements; a number is the id of a row that gets a fitting hash."""

CASES: tuple[tuple[Tampering, int | None, str], ...] = (
    # a row is changed
    *(
        ((f"UPDATE events SET {change} WHERE id = 7",), 7, WRITTEN)
        for change in ("data = CAST(x'ff' AS TEXT)", "kind = 'message'", "ts = ts + 0.001", "agent = 'b'",
                       "source = 'test'", "hash = zeroblob(32)", "prev_hash = zeroblob(32)", "seq = 99")
    ),
    (("UPDATE events SET data = data || ' ' WHERE id = 1",), 1, WRITTEN),
    (("UPDATE events SET data = x'00' WHERE id = 20",), 20, WRITTEN),
    (("UPDATE events SET hash = zeroblob(32) WHERE id = 20",), 20, WRITTEN),
    *(
        ((f"UPDATE readings SET {change} {SIDE}",), 8, "")
        for change in ("coherence_index = 1", "coherence_index = 'x'", "band = 'red'", "pressure = NULL", "mode = ''",
                       "data = '{}'", "ts = 0", "source = 'test'")
    ),
    *(((f"UPDATE decisions SET {change} {SIDE}",), 8, "") for change in ("kind = 'continue'", "data = '{}'", "ts = 0")),
    *(((f"DELETE FROM {table} {SIDE}",), 8, WRITTEN) for table in ("readings", "decisions")),
    # a row is changed and gets a fitting hash
    (("UPDATE events SET data = '{}' WHERE id = 3", 3), 4, "one of the two was changed"),
    (
        (*(f"DELETE FROM {table} WHERE session_id = 1 AND seq = 12" for table in ("readings", "decisions")), 20),
        20,
        "not the one that was written last",
    ),
    # rows are removed
    (("DELETE FROM events WHERE id = 1",), 2, f"1 event {MISSING} is missing"),
    (("DELETE FROM events WHERE id IN (7, 8, 9, 14)",), 10, f"3 events {MISSING} are missing"),
    (("DELETE FROM events WHERE id = 20",), 19, f"1 {NEWEST}"),
    (("DELETE FROM events WHERE id >= 18",), 17, f"3 {NEWEST}"),
    (("DELETE FROM events", "DELETE FROM readings", "DELETE FROM decisions"), None, f"20 {NEWEST}"),
    (
        ("DELETE FROM events WHERE id = 6", "UPDATE events SET id = -id WHERE id > 6",
         "UPDATE events SET id = -id - 1 WHERE id < 0"),
        6,
        AFTER,
    ),
    (tuple(f"DELETE FROM {table} WHERE session_id = 2" for table in ("readings", "decisions", "events")), 9, MISSING),
    (("DELETE FROM sessions WHERE id = 2",), 5, ""),
    *(((f"UPDATE sessions SET {change} WHERE id = 2",), 5, "") for change in ("session = 'x'", "source = 'test'")),
    # rows are exchanged; the first one is named
    *((swap(a, b), a, "") for a, b in ((6, 7), (6, 15), (1, 20))),
    *(
        (exchange(6, 15, columns), 6, "")
        for columns in ("ts, kind, data", "data", "hash", "prev_hash, hash", "ts, kind, data, prev_hash, hash")
    ),
    (
        tuple(f"UPDATE readings SET seq = {x} WHERE seq = {y}" for x, y in ((99, 2), (2, 6), (6, 99))),
        2,
        WRITTEN,
    ),
    # rows are added
    *(((f"{NEW} {hashes}",), 21, "") for hashes in ("zeroblob(32), zeroblob(32)", "head, head FROM chain")),
    ((f"{NEW} head, head FROM chain", 21), 21, "1 events were added by hand"),
    (
        ("UPDATE events SET id = -id WHERE id > 6", "UPDATE events SET id = 1 - id WHERE id < 0",
         f"{NEW} hash, randomblob(32) FROM events WHERE id = 6", "UPDATE events SET id = 7 WHERE id = 22"),
        7,
        "",
    ),
    (("INSERT INTO readings VALUES (1, 1, 101, 'api', 1, 'green', 0, 'calm', '{}')",), 1, WRITTEN),
    (("INSERT INTO decisions VALUES (2, 77, 101, 'api', 'continue', '{}')",), None, "is not that of its event"),
    # the account of the chain is changed
    *(
        ((f"UPDATE chain SET {change}",), number, "")
        for change, number in (("count = 19", 20), ("count = 21", 20), ("head = zeroblob(32)", 20),
                               ("first_prev = x'11' || first_prev", 1), ("first_id = 2", 1))
    ),
    (("DELETE FROM chain",), None, "where the chain begins and ends was removed"),
)  # fmt: skip


@pytest.mark.parametrize(("tampering", "number", "why"), CASES, ids=[str(at) for at in range(len(CASES))])
def test_verify_what_was_tampered_with_is_named(
    copy: sqlite3.Connection, tampering: Tampering, number: int | None, why: str
) -> None:
    for step in tampering:
        if isinstance(step, int):
            rehash(copy, step)
        else:
            copy.execute(step)
    (fault,) = verify(copy)
    assert fault.id == number and why in str(fault)


def test_verify_a_store_is_intact_when_nobody_changed_it(copy: sqlite3.Connection) -> None:
    assert verify(copy) == []


def test_verify_a_fault_says_which_event_and_why(copy: sqlite3.Connection) -> None:
    copy.execute("UPDATE events SET data = '{}' WHERE id = 7")
    copy.execute("DELETE FROM events WHERE id = 9")
    why = (
        "event 3 of session 'two' (agent 'a', id 7): its content, its reading or its decision is not what was written; "
        "nothing from here on is vouched for"
    )
    assert verify(copy) == [ChainFault("two", "a", 3, 7, why)]


def test_verify_what_the_store_writes_after_an_added_row_is_named(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with Store(path, synchronous="NORMAL") as store:
        fill(store)
    connection = open_to_tamper(path)
    connection.execute(f"{NEW} head, head FROM chain")
    rehash(connection, 21)
    connection.execute("UPDATE heads SET last_seq = 13 WHERE session_id = 1")
    connection.close()
    with Store(path) as store:
        session = store.session("a", "one")
        assert session is not None
        with store.transaction() as transaction:
            transaction.add_events(session, [tick(14)])
        (fault,) = store.verify()
    assert fault.id == 22 and "added" in fault.message  # it follows what the store wrote last


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


@examples(150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**32),
    changes=st.lists(st.tuples(st.sampled_from(sorted(MUTATIONS)), st.integers(1, 20)), min_size=1, max_size=3),
)
def test_verify_no_random_change_escapes(image: sqlite3.Connection, seed: int, changes: list[tuple[str, int]]) -> None:
    dice = random.Random(seed)
    for copy in copied(image):
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
