"""Firings and their outcomes: written with their events, never changed, read as pairs, kept when events leave."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from coherence.store.errors import StoreError
from coherence.store.firings import read_pairs
from coherence.store.jsonl import export_jsonl, verify_jsonl
from coherence.store.queries import FIRINGS
from coherence.store.rows import DecisionRow, EventRow, FiringOutcomeRow, FiringRow, SessionRow
from coherence.store.store import Store
from store.rows import begin


def add(
    store: Store,
    session: SessionRow,
    firing: FiringRow | None = None,
    delivered: str | None = None,
    *outcomes: FiringOutcomeRow,
) -> None:
    with store.transaction() as transaction:
        seq = transaction.last_seq(session.id) + 1
        decision = None
        if firing is not None:
            pair = "null" if firing.pair is None else firing.pair
            data = f'{{"guidance":{{"id":"{firing.id}","pattern":"loop","arm":"{firing.arm}","pair":{pair}}}}}'
            decision = DecisionRow("guide", data)
        row = EventRow(seq, float(seq), "tick", "{}", None, decision, firing, delivered, outcomes)
        transaction.add_events(session, [row])


def fire(store: Store, session: SessionRow, name: str, pair: int | None, arm: str) -> None:
    add(store, session, FiringRow(name, "loop", pair, arm, "text"))


def come(store: Store, session: SessionRow, name: str, change: float | None, horizon: int = 5) -> None:
    add(store, session, None, None, FiringOutcomeRow(firing=name, horizon=horizon, pressure_change=change))


def whole_pair(store: Store, session: SessionRow, pair: int, told: float, untold: float) -> None:
    fire(store, session, f"t{pair}", pair, "treatment")
    add(store, session, None, f"t{pair}")
    fire(store, session, f"c{pair}", pair, "control")
    come(store, session, f"t{pair}", told)
    come(store, session, f"c{pair}", untold)


def test_read_pairs_complete_pairs_are_read_and_the_others_counted(store: Store) -> None:
    session = begin(store)
    whole_pair(store, session, 0, 0.5, 0.2)
    fire(store, session, "t1", 1, "treatment")  # never delivered
    fire(store, session, "c1", 1, "control")
    come(store, session, "t1", 0.9)
    come(store, session, "c1", 0.1)
    fire(store, session, "c2", 2, "control")  # one outcome unknown, the other not there
    fire(store, session, "t2", 2, "treatment")
    add(store, session, None, "t2")
    come(store, session, "c2", None)
    fire(store, session, "t3", 3, "treatment")  # alone
    fire(store, session, "t4", None, "treatment")  # not drawn
    found = read_pairs(store, "loop")
    assert found.differences == (0.5 - 0.2,)
    assert (found.firings, found.treatments, found.delivered) == (8, 5, 2)
    assert (found.undelivered, found.missing, found.single, found.repeated, found.chosen) == (1, 1, 1, 0, 1)
    assert read_pairs(store, "loop", horizon=1).missing == 2
    assert read_pairs(store, "other").firings == 0
    assert store.patterns() == ["loop"]
    assert store.verify() == []


def test_read_pairs_pairs_come_in_the_order_in_which_they_became_known(store: Store) -> None:
    session = begin(store)
    for pair in range(3):
        fire(store, session, f"c{pair}", pair, "control")
        fire(store, session, f"t{pair}", pair, "treatment")
    for pair, change in ((0, 0.1), (1, 0.2), (2, 0.3)):
        add(store, session, None, f"t{pair}")
        come(store, session, f"t{pair}", change)
    seen: list[tuple[float, ...]] = [read_pairs(store, "loop").differences]
    for pair in (2, 0, 1):  # the other half becomes known late, and in another order
        come(store, session, f"c{pair}", 0.0)
        seen.append(read_pairs(store, "loop").differences)
    assert seen == [(), (0.3,), (0.3, 0.1), (0.3, 0.1, 0.2)]


def test_read_pairs_what_is_told_after_the_outcome_is_no_treatment(store: Store) -> None:
    session = begin(store)
    for name, arm in (("c", "control"), ("t", "treatment")):
        fire(store, session, name, 0, arm)
        come(store, session, name, 0.5)
    add(store, session, None, "t")
    found = read_pairs(store, "loop")
    assert (found.differences, found.undelivered, found.delivered) == ((), 1, 1)


def test_read_pairs_every_measure_has_its_outcome(store: Store) -> None:
    session = begin(store)
    fire(store, session, "t", 0, "treatment")
    add(store, session, None, "t")
    fire(store, session, "c", 0, "control")
    for name, good in (("t", True), ("c", False)):
        known = FiringOutcomeRow(firing=name, horizon=5, error_resolved=good, tool_switched=not good)
        add(store, session, None, None, known, FiringOutcomeRow(firing=name, horizon=0, task_success=good))
    assert read_pairs(store, "loop", measure="error").differences == (1.0,)
    assert read_pairs(store, "loop", measure="switch").differences == (-1.0,)
    assert read_pairs(store, "loop", measure="task", horizon=0).differences == (1.0,)
    assert read_pairs(store, "loop", measure="task").missing == 1
    assert read_pairs(store, "loop").missing == 1
    with pytest.raises(ValueError, match="horizon must be one of"):
        read_pairs(store, "loop", horizon=2)
    with pytest.raises(ValueError, match="measure must be one of"):
        read_pairs(store, "loop", measure="mood")  # type: ignore[arg-type]


def test_read_pairs_what_two_sessions_at_once_draw_alike_counts_once(store: Store) -> None:
    one, other = begin(store, "one"), begin(store, "other")
    whole_pair(store, one, 0, 0.5, 0.0)
    fire(store, other, "again", 0, "treatment")
    add(store, other, None, "again")
    come(store, other, "again", 1.0)
    found = read_pairs(store, "loop")
    assert (found.differences, found.repeated) == ((0.5,), 1)


def test_firing_counts_go_on_over_the_sessions_of_an_agent_and_leave_tests_out(store: Store) -> None:
    one = begin(store, "one")
    assert store.firing_counts("a") == {}
    fire(store, one, "f0", 0, "control")
    fire(store, one, "f1", 0, "treatment")
    fire(store, one, "f2", None, "treatment")
    assert store.firing_counts("a") == {"loop": 2}
    fire(store, begin(store, "two"), "f3", 1, "control")
    fire(store, begin(store, agent="b"), "f4", 0, "control")
    whole_pair(store, begin(store, "test", source="test"), 7, 1.0, 0.0)
    assert (store.firing_counts("a"), store.firing_counts("b")) == ({"loop": 3}, {"loop": 1})
    assert read_pairs(store, "loop").differences == ()


def test_a_repeated_id_is_refused_by_name_and_nothing_of_the_transaction_is_kept(store: Store) -> None:
    session = begin(store)
    fire(store, session, "loop-1", 0, "control")
    with pytest.raises(StoreError, match=r"refuses the firing 'loop-1' \(a firing is never replaced"):
        fire(store, session, "loop-1", 0, "treatment")
    assert store.count_events() == 1 and store.verify() == []
    for wrong in ("", None):
        with pytest.raises(StoreError, match="constraint failed"):
            fire(store, session, wrong, 1, "control")  # type: ignore[arg-type]
    with pytest.raises(StoreError, match="constraint failed"):
        fire(store, session, "loop-2", 1, "both")
    with pytest.raises(StoreError, match="refuses an outcome of 'loop-1'"):
        come(store, session, "loop-1", 1.5)
    with pytest.raises(StoreError, match="refuses an outcome of 'loop-1'"):
        come(store, session, "loop-1", 0.5, horizon=2)
    assert store.count_events() == 1


def test_read_pairs_what_cannot_be_confirmed_or_is_known_already_loses_no_event(store: Store) -> None:
    session = begin(store)
    fire(store, session, "t", 0, "treatment")
    fire(store, session, "c", 0, "control")
    for name in ("nobody", "c", "t", "t", "\0"):
        add(store, session, None, name)
    for name, change in (("t", 0.5), ("t", -1.0), ("nobody", 1.0), ("c", 0.0)):
        come(store, session, name, change)
    assert store.count_events() == 11
    found = read_pairs(store, "loop")
    assert (found.differences, found.delivered) == ((0.5,), 1)


def test_read_pairs_retention_and_export_leave_the_record_of_the_experiment(store: Store, tmp_path: Path) -> None:
    session = begin(store)
    whole_pair(store, session, 0, 0.5, 0.2)
    before = read_pairs(store, "loop")
    export_jsonl(store, tmp_path / "audit")
    assert verify_jsonl(tmp_path / "audit") == []
    assert '"guidance":{"id":"t0"' in (tmp_path / "audit" / "audit.jsonl").read_text()
    assert store.prune(max_events=0) == 5
    assert read_pairs(store, "loop") == before
    whole_pair(store, session, 1, 0.1, 0.2)
    assert len(read_pairs(store, "loop").differences) == 2
    assert store.verify() == []


def test_firing_results_are_read_with_one_indexed_query(store: Store) -> None:
    assert store._writer is not None
    plan = [row[3] for row in store._writer.execute(f"EXPLAIN QUERY PLAN {FIRINGS}", (5, "loop"))]
    assert any("firings_by_pattern (pattern=?)" in step for step in plan)
    assert any("SEARCH o USING PRIMARY KEY" in step for step in plan)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE firings SET arm = 'control', delivered = 0, delivered_id = NULL WHERE firing_id = 't0'",
        "UPDATE firings SET pair = 5 WHERE firing_id = 'c0'",
        "UPDATE firings SET event_id = 99 WHERE firing_id = 'c0'",
        "UPDATE firings SET source = 'test' WHERE firing_id = 'c0'",
    ],
)
def test_verify_a_firing_that_was_altered_behind_the_guards_is_found(store: Store, statement: str) -> None:
    session = begin(store)
    whole_pair(store, session, 0, 0.5, 0.2)
    connection = sqlite3.connect(store.path, isolation_level=None)
    connection.execute("DROP TRIGGER firings_update")
    connection.execute(statement)
    connection.close()
    (fault,) = store.verify()
    assert "a firing is not what its event says" in fault.message


def test_verify_a_decision_that_is_no_json_any_more_is_a_fault_and_no_error(store: Store) -> None:
    session = begin(store)
    whole_pair(store, session, 0, 0.5, 0.2)
    connection = sqlite3.connect(store.path, isolation_level=None)
    connection.execute("DROP TRIGGER decisions_update")
    connection.execute("PRAGMA ignore_check_constraints = ON")
    connection.execute("UPDATE decisions SET data = '{' WHERE seq = 1")
    connection.close()
    assert [fault.seq for fault in store.verify()] == [1]
