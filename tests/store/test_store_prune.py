"""Retention removes the oldest and leaves a chain that is still whole."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from property_sizes import examples

from coherence.lessons import LessonStore
from coherence.store.rows import EventRow, FiringRow
from coherence.store.store import Store
from store.rows import append, begin


def counts(store: Store) -> list[int]:
    connection = sqlite3.connect(store.path)
    try:
        tables = ("events", "readings", "decisions")
        return [connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables]
    finally:
        connection.close()


def test_prune_the_oldest_leave_by_count_with_readings_and_decisions(store: Store) -> None:
    one, two = begin(store, "one"), begin(store, "two")
    append(store, one, 3)
    append(store, two, 3)
    append(store, one, 3)
    assert store.prune(max_events=9) == 0
    assert store.prune(max_events=4) == 5
    assert counts(store) == [4, 2, 2]
    assert [row.seq for row in store.events(one.id)] == [4, 5, 6]
    assert [row.seq for row in store.events(two.id)] == [3]
    assert store.verify() == []
    append(store, two, 2)
    assert [row.seq for row in store.events(two.id)] == [3, 4, 5]
    assert store.verify() == []


def test_prune_the_oldest_leave_by_age_and_an_old_event_stays_while_a_younger_one_before_it_does(store: Store) -> None:
    session = begin(store)
    append(store, session, 100)  # of the times 101 to 200
    assert store.prune(max_age_s=1000, now=1101.0) == 0
    assert store.prune(max_age_s=60, now=201.0) == 40
    assert next(store.events(session.id)).ts == 141.0
    assert store.prune(max_age_s=60, max_events=10, now=201.0) == 50
    assert store.prune(max_age_s=1) == 10  # by the clock, 1970 is long ago
    append(store, session, ts=500.0)
    append(store, session, ts=1.0)
    assert store.prune(max_age_s=100, now=550.0) == 0
    assert store.prune(max_age_s=100, now=650.0) == 2
    assert store.verify() == []


def test_prune_many_leave_in_batches(store: Store) -> None:
    session = begin(store)
    append(store, session, 3500)
    statements: list[str] = []
    assert store._writer is not None
    store._writer.set_trace_callback(statements.append)
    assert store.prune(max_events=100) == 3400
    store._writer.set_trace_callback(None)
    assert sum(statement.startswith("COMMIT") for statement in statements) == 4
    assert store.count_events() == 100
    assert store.verify() == []


def test_prune_snapshots_leave_unless_the_kept_events_need_them(store: Store) -> None:
    session, done = begin(store), begin(store, "done")
    append(store, done, 5)
    append(store, session, 30)
    with store.transaction() as transaction:
        transaction.add_snapshot(done.id, 5, b"end")
        for seq in (10, 20, 30):
            transaction.add_snapshot(session.id, seq, b"%d" % seq, keep=9)
    store.prune(max_events=5)  # 26 to 30 stay
    assert store.snapshot(done.id) is None
    assert store.snapshot(session.id, until=29) == (20, b"20")  # with events 26 to 30 not the way back, but near it
    assert store.snapshot(session.id, until=19) is None
    assert store.snapshot(session.id) == (30, b"30")
    store.prune(max_events=0)
    assert store.snapshot(session.id) is None


def test_prune_what_is_removed_by_hand_is_found_and_a_door_that_was_left_open_is_closed(store: Store) -> None:
    append(store, begin(store), 20)
    connection = sqlite3.connect(store.path, isolation_level=None)
    connection.execute("INSERT INTO maintenance VALUES (1)")
    assert store.prune(max_events=10) == 10
    assert connection.execute("SELECT count(*) FROM maintenance").fetchone() == (0,)
    connection.execute("INSERT INTO maintenance VALUES (1)")
    connection.execute("DELETE FROM events WHERE id IN (11, 15)")
    connection.close()
    (found,) = store.verify()
    assert found.id == 12 and "1 event before it is missing" in found.message


@examples(25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("append"), st.integers(0, 2), st.integers(1, 5)),
            st.tuples(st.just("prune"), st.integers(0, 12), st.just(0)),
        ),
        max_size=12,
    )
)
def test_count_events_any_mixture_of_writing_and_forgetting_leaves_a_whole_chain(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, int]]
) -> None:
    with Store(tmp_path_factory.mktemp("mixture") / "store.db", synchronous="NORMAL") as store:
        sessions = [begin(store, name) for name in "abc"]
        written = [0, 0, 0]
        total = 0
        for what, number, count in steps:
            if what == "append":
                append(store, sessions[number], count)
                written[number] += count
                total += count
            else:
                assert store.prune(max_events=number) == max(total - number, 0)
                total = min(total, number)
        assert [store.last_seq(session.id) for session in sessions] == written
        assert store.count_events() == total
        assert store.verify() == []


def test_prune_by_age_takes_old_lessons_baselines_and_texts_of_guidance_too(store: Store) -> None:
    session = begin(store)
    with LessonStore(store, embedder=False) as lessons:
        lessons.record(pattern="p", error_text="old error", fix_text="fix", ts=100.0)
        lessons.record(pattern="p", error_text="new error", fix_text="fix", ts=300.0)
        firings = [FiringRow(f"f{ts}", "loop", None, "treatment", "some words") for ts in (100, 300)]
        rows = [
            EventRow(at, ts, "tick", "{}", firing=firing)
            for at, ts, firing in zip((1, 2), (100.0, 300.0), firings, strict=True)
        ]
        with store.transaction() as transaction:
            transaction.add_events(session, rows)
            transaction.set_baselines("old", 100.0, b"x")
            transaction.set_baselines("new", 300.0, b"x")
        assert store.prune(max_age_s=100, now=350.0) == 1
        assert [lesson.error_text for lesson in lessons.lessons()] == ["new error"]
    assert store.fetch("SELECT firing_id, text FROM firings ORDER BY ts") == [("f100", ""), ("f300", "some words")]
    assert (store.baselines("old"), store.baselines("new")) == (None, b"x")
    assert store.verify() == []
