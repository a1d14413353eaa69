"""The tables of runs: idempotent, bounded, in one order, for many processes."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import pytest

from coherence.store import runs as table
from coherence.store.rows import RunRow
from coherence.store.runs import (
    RunCounts,
    StoredRun,
    count_runs,
    forget_runs,
    labelled_runs,
    life_of,
    newest_run,
    run_agents,
    session_label,
    write_label,
    write_runs,
)
from coherence.store.store import Store
from store.rows import run_at_once


def write(store: Store, *rows: RunRow, agent: str = "a", session: str = "s") -> None:
    with store.transaction() as transaction:
        write_runs(transaction, agent, session, rows)


def put_label(store: Store, run: int, good: bool | None, *, agent: str = "a", session: str = "s") -> None:
    with store.transaction() as transaction:
        write_label(transaction, agent, session, run, good)


def test_stored_run_maxima_only_rise_and_writing_again_changes_nothing(store: Store) -> None:
    row = RunRow(1, (("m", "1", 0.4),), True)
    write(store, row)
    write(store, row, RunRow(1, (("m", "1", 0.3), ("m", "2", 0.1), ("n", "1", 1.0))))
    expected = StoredRun(1, "s", 1, True, {("m", "1"): 0.4, ("m", "2"): 0.1, ("n", "1"): 1.0})
    assert labelled_runs(store, "a") == [expected]
    write(store, row)
    assert labelled_runs(store, "a") == [expected] and count_runs(store, "a") == RunCounts(1, 0, 0)


def test_life_of_labelled_or_not_the_newest_runs_with_calls_count_but_for_bad_and_mixed_ones(store: Store) -> None:
    def called(run: int, tool: str, score: float, success: bool | None = None, *, mixed: bool = False) -> RunRow:
        return RunRow(run, (("m", "3", 0.9), (f"call {tool}", "3", score)), success, mixed)

    write(store, called(1, "a", 0.1), called(1, "b", 0.2), called(2, "a", 0.3, False), called(3, "a", 0.4))
    write(store, RunRow(4, (("m", "3", 0.9),)), called(5, "a", 0.5, mixed=True), RunRow(6, (("call a", "2", 0.6),)))
    write(store, called(1, "a", 0.7), agent="other")
    put_label(store, 3, False)
    assert life_of(store, "a", "3", 9) == [{"a": 0.3}, {"a": 0.1, "b": 0.2}]
    assert life_of(store, "a", "3", 1) == [{"a": 0.3}]
    assert labelled_runs(store, "a")[0].maxima == {("m", "3"): 0.9}, "no metric is told of a call"


def test_a_run_counts_when_both_its_label_and_its_maxima_are_known_in_that_order(store: Store) -> None:
    write(store, RunRow(1, (("m", "1", 0.1),)), RunRow(2, (("m", "1", 0.2),)), RunRow(3, (), True))
    put_label(store, 4, False)
    assert labelled_runs(store, "a") == [] and count_runs(store, "a") == RunCounts(1, 1, 2)
    put_label(store, 2, True)
    write(store, RunRow(4, (("m", "1", 0.4),)))
    put_label(store, 1, True)
    assert [(run.run, run.known, run.good) for run in labelled_runs(store, "a")] == [
        (2, 1, True),
        (4, 2, False),
        (1, 3, True),
    ]


def test_write_label_a_label_replaces_another_and_an_outcome_and_can_be_taken_back(store: Store) -> None:
    write(store, RunRow(1, (("m", "1", 0.1),), True), RunRow(2, (("m", "1", 0.2),), True))

    def good() -> list[bool]:
        return [run.good for run in labelled_runs(store, "a")]

    put_label(store, 1, False)
    put_label(store, 1, False)
    assert good() == [False, True], "its place stays"
    write(store, RunRow(1, (), True))
    assert good() == [False, True], "an outcome does not undo a label"
    put_label(store, 1, None)
    assert good() == [True, True]
    write(store, RunRow(1, (), False))
    assert good() == [False, True], "the newest outcome counts"


def test_newest_run_agents_and_sessions_are_apart_and_can_be_forgotten(store: Store) -> None:
    for agent, session in (("a", "s"), ("a", "t"), ("b", "s")):
        write(store, RunRow(1, (("m", "1", 0.1),), True), agent=agent, session=session)
    write(store, RunRow(7), agent="a", session="t")
    assert run_agents(store) == ["a", "b"]
    assert newest_run(store, "a", "t") == 7 and newest_run(store, "a", "s") == 1 and newest_run(store, "c", "s") is None
    with store.transaction() as transaction:
        assert forget_runs(transaction, "a") == 3
    assert run_agents(store) == ["b"] and store.fetch("SELECT count(*) FROM run_maxima") == [(1,)]


def test_labelled_runs_the_newest_are_kept_and_unlabelled_ones_push_none_out(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "MAX_RUNS", 5)
    write(store, *(RunRow(number, (("m", "1", 0.1),), True) for number in range(1, 9)))
    write(store, RunRow(1, (("m", "1", 0.1),), True), agent="b")
    assert [run.run for run in labelled_runs(store, "a")] == [4, 5, 6, 7, 8]
    assert len(labelled_runs(store, "b")) == 1
    write(store, *(RunRow(number, (("m", "1", 0.1),)) for number in range(9, 20)))
    assert len(labelled_runs(store, "a")) == 5
    assert count_runs(store, "a") == RunCounts(5, 0, 5), "of those without a label the newest five"


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_write_runs_processes_that_write_at_once_lose_nothing_and_agree_on_one_order(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    Store(path).close()

    def work(name: str) -> None:
        with Store(path, synchronous="NORMAL") as store:
            for number in range(1, 41):
                with store.transaction() as transaction:
                    write_runs(transaction, "a", "shared", [RunRow(number, (("m", "1", number / 100),), True)])
                    write_runs(transaction, "a", name, [RunRow(number, (("m", "1", 0.5),))])
                put_label(store, number, number % 2 == 0, session=name)

    run_at_once(*(partial(work, name) for name in ("one", "two", "three")))
    with Store(path) as store:
        found = labelled_runs(store, "a")
        assert count_runs(store, "a") == RunCounts(40 + 3 * 20, 3 * 20, 0)
    assert [run.known for run in found] == list(range(1, 161)), "each place once"
    assert all(run.maxima == {("m", "1"): run.run / 100} for run in found if run.session == "shared")


def test_session_label_a_session_is_as_good_as_its_worst_labelled_run(store: Store) -> None:
    write(store, RunRow(1, (), True), RunRow(2, (), False))
    assert session_label(store, "a", "s") is None, "outcomes are no labels"
    put_label(store, 1, True)
    assert session_label(store, "a", "s") is True
    put_label(store, 2, False)
    assert session_label(store, "a", "s") is False and session_label(store, "a", "other") is None
