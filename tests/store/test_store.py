"""Written rows come back; a failed write leaves nothing behind."""

from __future__ import annotations

import sqlite3
import sys
import threading
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from coherence.store.errors import StoreError
from coherence.store.rows import DecisionRow, EventRow, ReadingRow, SessionRow
from coherence.store.store import Store
from store.rows import append, begin, event, tick


def test_sessions_a_session_comes_back_by_name_and_the_newest_without_one(store: Store) -> None:
    with store.transaction() as transaction:
        first = transaction.add_session(
            session="one", agent="a", parent="mother", source="hook", started=5, config='{"k": [1]}'
        )
    second, other = begin(store, "two"), begin(store, "one", agent="b")
    assert first == SessionRow(1, "one", "a", "mother", "hook", 5.0, '{"k": [1]}')
    assert store.session("a", "one") == first
    assert store.session("a") == second
    assert store.session("b") == other
    assert store.session("c") is None
    assert store.session("a", "three") is None
    assert store.sessions() == [first, second, other]
    assert store.sessions(agent="a") == [first, second]


def test_events_come_back_as_they_were_written_with_reading_and_decision(store: Store, session: SessionRow) -> None:
    unknown = EventRow(4, -0.0, "tick", "{}", ReadingRow(None, None, None, None, "{}"), None)
    written = [event(1, '{ "text": "äöü 🎈 \\u0000" }'), tick(2), event(3), unknown]
    with store.transaction() as transaction:
        transaction.add_events(session, written)
    assert list(store.events(session.id)) == written
    assert store.last_seq(session.id) == 4
    assert store.last_seq(99) == 0
    assert store.verify() == []


def test_events_are_cut_out_by_number_and_limit(store: Store, session: SessionRow) -> None:
    append(store, session, 1300)
    append(store, begin(store, "other"))
    for after, until, limit, expected in [
        (0, None, None, range(1, 1301)),
        (5, None, 3, range(6, 9)),
        (600, 1205, None, range(601, 1206)),
        (0, 1100, 1050, range(1, 1051)),
        (1300, None, None, range(0)),
        (0, None, 0, range(0)),
    ]:
        assert [row.seq for row in store.events(session.id, after=after, until=until, limit=limit)] == list(expected)
    assert store.count_events() == 1301
    assert store.count_events(session.id) == 1300
    assert store.count_events(99) == 0


def test_events_of_a_long_session_take_little_memory_and_hold_nothing_open(store: Store, session: SessionRow) -> None:
    for _ in range(8):
        append(store, session, 1000, data=f'"{"x" * 1000}"')
    tracemalloc.start()
    try:
        rows = store.events(session.id)
        for _ in range(4000):
            next(rows)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3_000_000  # two pages of 500 rows; all 8,000 would take 9 MB
    # A checkpoint succeeds only if nobody reads at that moment.
    with sqlite3.connect(store.path) as connection:
        assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    connection.close()
    assert next(rows).seq == 4001


def test_a_transaction_that_raises_leaves_nothing(store: Store, session: SessionRow) -> None:
    def fail() -> None:
        with store.transaction() as transaction:
            transaction.add_events(session, [tick(1)])
            transaction.add_vectors("f", [(b"h", b"v")])
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert store.last_seq(session.id) == 0
    assert store.vectors("f", [b"h"]) == {}
    with store.transaction() as transaction:
        transaction.add_events(session, [tick(1)])
    assert store.verify() == []


def test_what_a_transaction_wrote_is_read_only_after_it(store: Store, session: SessionRow) -> None:
    with store.transaction() as transaction:
        transaction.add_events(session, [event(1)])
        assert store.last_seq(session.id) == 0
        assert transaction.last_seq(session.id) == 1
        transaction.add_events(session, [event(2), tick(3)])
        assert transaction.session("a", "s") == session
        assert transaction.session("a", "t") is None
    assert store.last_seq(session.id) == 3
    assert store.verify() == []


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([event(2)], "seq must be the last seq of its session plus one"),
        ([event(1), event(1)], "seq must be the last seq of its session plus one"),
        ([event(1), event(2, "{no json")], "json_valid"),
        ([event(1), event(2, '{"x": "\ud800"}')], "UTF-8"),
        ([EventRow(1, 0.0, "", "{}")], "kind"),
        ([EventRow(1, 0.0, "tick", "{}", None, DecisionRow("maybe", "{}"))], "kind IN"),
        ([EventRow(1, 0.0, "tick", "{}", ReadingRow(1.5, None, None, None, "{}"))], "coherence_index"),
        ([EventRow(1, 0.0, "tick", "{}", ReadingRow(None, None, None, None, "[1,"))], "json_valid"),
        ([EventRow(1, 1e18, "tick", "{}")], "ts"),
        ([EventRow(1, float("nan"), "k", "{}")], "ts must be finite"),
        ([EventRow(1, 0.0, "k", "{}", ReadingRow(None, None, float("inf"), None, "{}"))], "pressure must be finite"),
    ],
)
def test_add_events_a_wrong_row_is_refused_with_all_that_came_with_it(
    store: Store, session: SessionRow, rows: list[EventRow], reason: str
) -> None:
    with pytest.raises((StoreError, ValueError), match=reason) as raised, store.transaction() as transaction:
        transaction.add_events(session, rows)
    assert type(raised.value) is ValueError or str(store.path) in str(raised.value)
    assert store.count_events() == 0
    assert store.verify() == []


def test_add_events_numbers_of_other_types_come_back_as_floats(store: Store, session: SessionRow) -> None:
    with store.transaction() as transaction:
        reading = ReadingRow(np.float64(0.1), None, True, None, "{}")
        transaction.add_events(session, [EventRow(1, np.float64(3), "tick", "{}", reading)])
    (row,) = store.events(session.id)
    assert (row.ts, row.reading) == (3.0, ReadingRow(0.1, None, 1.0, None, "{}"))
    assert store.verify() == []


def test_an_error_that_the_caller_swallows_still_ends_the_transaction(store: Store, session: SessionRow) -> None:
    def swallow() -> None:
        with store.transaction() as transaction:
            transaction.add_events(session, [event(1)])
            with pytest.raises(StoreError, match="plus one"):
                transaction.add_events(session, [event(2), event(4)])
            with pytest.raises(StoreError, match="this transaction is rolled back"):
                transaction.add_events(session, [event(2)])

    with pytest.raises(StoreError, match="this transaction is rolled back"):
        swallow()
    assert store.count_events() == 0


def test_transaction_what_cannot_be_written_is_refused(store: Store, session: SessionRow) -> None:
    with store.transaction() as transaction:
        pass
    with pytest.raises(StoreError, match="this transaction is committed"):
        transaction.add_events(session, [event(1)])
    with pytest.raises(StoreError, match="never replaced"):
        begin(store)
    with pytest.raises(StoreError, match="CHECK constraint failed: source"):
        begin(store, "t", source="other")
    with pytest.raises(StoreError, match="no session with id 7"):
        append(store, SessionRow(7, "s", "a", None, "api", 1.0, "{}"))


def test_transaction_the_newest_snapshots_are_kept(store: Store, session: SessionRow) -> None:
    assert store.snapshot(session.id) is None
    for seq in (10, 20, 30):
        with store.transaction() as transaction:
            transaction.add_snapshot(session.id, seq, b"state %d" % seq)
    with store.transaction() as transaction:
        transaction.add_snapshot(session.id, 30, b"again")
    assert store.snapshot(session.id) == (30, b"again")
    assert store.snapshot(session.id, until=29) == (20, b"state 20")
    assert store.snapshot(session.id, until=20) == (20, b"state 20")
    assert store.snapshot(session.id, until=19) is None
    with store.transaction() as transaction:
        transaction.add_snapshot(session.id, 40, b"x", keep=1)
    assert store.snapshot(session.id, until=39) is None
    with pytest.raises(ValueError, match="keep must be 1 or more"), store.transaction() as transaction:
        transaction.add_snapshot(session.id, 41, b"x", keep=0)


def test_vectors_are_kept_by_embedder_and_text_and_never_change(store: Store) -> None:
    keys = [b"%04d" % number for number in range(1200)]
    with store.transaction() as transaction:
        transaction.add_vectors("f", ((key, key * 2) for key in keys))
        transaction.add_vectors("f", [(keys[0], b"other")])
        transaction.add_vectors("g", [(keys[0], b"third")])
    assert store.vectors("f", [*keys, b"unknown"]) == {key: key * 2 for key in keys}
    assert store.vectors("g", keys) == {keys[0]: b"third"}
    assert store.vectors("h", keys) == {}
    assert store.vectors("f", []) == {}


def test_transaction_statistics_leave_tests_out_and_the_log_reads_well(store: Store) -> None:
    real, test = begin(store), begin(store, "t", source="test")
    with store.transaction() as transaction:
        transaction.add_events(real, [event(1, '{"gen_ai.tool.name":"Bash"}'), tick(2)])
        transaction.add_events(test, [tick(1)])
    connection = sqlite3.connect(store.path)
    try:
        for table, count in [("events", 2), ("readings", 1), ("decisions", 1)]:
            assert connection.execute(f"SELECT count(*) FROM statistics_{table}").fetchone() == (count,)
        rows = connection.execute("SELECT * FROM log").fetchall()
    finally:
        connection.close()
    assert rows == [
        ("1970-01-01T00:01:41.000Z", "a", "s", 1, "tool_call", "Bash", None, None, None, None, None),
        ("1970-01-01T00:01:42.000Z", "a", "s", 2, "tick", None, 0.75, "yellow", 1.5, "alert", "warn"),
        ("1970-01-01T00:01:41.000Z", "a", "t", 1, "tick", None, 0.75, "yellow", 1.5, "alert", "warn"),
    ]


def test_transaction_a_reader_does_not_wait_for_a_writer_nor_a_writer_for_a_reader(
    store: Store, session: SessionRow
) -> None:
    append(store, session, 1000)
    rows = store.events(session.id)
    next(rows)
    started = time.monotonic()
    with store.transaction() as transaction:
        transaction.add_events(session, [event(1001)])
        assert store.count_events() == 1000
    assert time.monotonic() - started < store.timeout_s / 2
    assert len(list(rows)) == 1000


def test_transaction_a_writer_waits_for_another_program_up_to_the_limit(tmp_path: Path) -> None:
    with Store(tmp_path / "store.db", timeout_s=0.2) as store:
        other = sqlite3.connect(store.path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match=r"another process kept the file locked for 0\.2"), store.transaction():
            pass
        other.execute("COMMIT")
        other.close()
        begin(store)


def test_transaction_a_thread_cannot_begin_twice_nor_close_the_store_inside(store: Store, session: SessionRow) -> None:
    with store.transaction() as transaction:
        with pytest.raises(RuntimeError, match="in a transaction already"), store.transaction():
            pass
        with pytest.raises(RuntimeError, match="end it before closing"):
            store.close()
        transaction.add_events(session, [event(1)])
    assert store.last_seq(session.id) == 1


def test_transaction_a_thread_waits_for_another_up_to_the_limit(tmp_path: Path) -> None:
    with Store(tmp_path / "store.db", timeout_s=0.1) as store:
        errors: list[BaseException] = []

        def write() -> None:
            try:
                with store.transaction():
                    pass
            except StoreError as error:
                errors.append(error)

        with store.transaction():
            thread = threading.Thread(target=write)
            thread.start()
            thread.join()
        assert "another thread kept the store locked for 0.1 s" in str(errors[0])


def test_a_closed_store_says_so_and_closes_twice(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "store.db"))
    store.close()
    store.close()
    with pytest.raises(StoreError, match="this Store is closed"):
        store.last_seq(1)
    with pytest.raises(StoreError, match="this Store is closed"), store.transaction():
        pass


def test_prune_wrong_arguments_are_refused(tmp_path: Path, store: Store) -> None:
    with pytest.raises(ValueError, match="synchronous must be"):
        Store(tmp_path / "x.db", synchronous="OFF")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="timeout_s must be"):
        Store(tmp_path / "x.db", timeout_s=float("nan"))
    with pytest.raises(ValueError, match="max_events must be 0 or more"):
        store.prune(max_events=-1)


def test_transaction_many_threads_write_and_read_one_store(store: Store, session: SessionRow) -> None:
    threads, each = 8, 40
    together = threading.Barrier(threads)
    errors: list[BaseException] = []

    def work() -> None:
        together.wait()
        try:
            for _ in range(each):
                append(store, session)
                seqs = [row.seq for row in store.events(session.id)]
                assert seqs == list(range(1, len(seqs) + 1))
        except BaseException as error:
            errors.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        workers = [threading.Thread(target=work) for _ in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        sys.setswitchinterval(before)
    assert errors == []
    assert store.last_seq(session.id) == threads * each
    assert store.verify() == []
