"""Kept state of learning: the same as if all had been learned anew, whatever changes, and whichever settings come."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from coherence.baseline import calibration_store as kept
from coherence.baseline.calibration_store import FRESH, Calibrator, read_calibrator
from coherence.core.config import AlarmConfig
from coherence.store.rows import RunRow
from coherence.store.runs import (
    forget_runs,
    labelled_runs,
    newest_relabel,
    read_cache,
    relabelled,
    replace_runs,
    write_label,
    write_runs,
)
from coherence.store.store import Store

VERSIONS = {"m": "1", "n": "1"}
EVEN, UNEVEN = {"m": 0.25, "n": 0.25}, {"m": 0.9, "n": 0.1}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store.db", synchronous="NORMAL")


def fill(store: Store, count: int, *, first: int = 1, version: str = "1") -> None:
    rng = np.random.default_rng(first)
    rows = []
    for number in range(first, first + count):
        good = bool(rng.random() < 0.7)
        risks = rng.beta(2, 6, 2) + (0.0 if good else 0.3)
        row = tuple((name, version, float(min(risk, 1.0))) for name, risk in zip("mn", risks, strict=True))
        rows.append(RunRow(number, row, good))
    with store.transaction() as transaction:
        write_runs(transaction, "a", "s", rows)


def read(store: Store, weights: dict[str, float] | None = None, **more: object) -> Calibrator:
    return read_calibrator(store, "a", AlarmConfig(), VERSIONS, weights or EVEN, ["m"], **more)  # type: ignore[arg-type]


def anew(store: Store, weights: dict[str, float] | None = None) -> Calibrator:
    """Learn every run that is here from nothing."""
    calibrator = Calibrator(AlarmConfig(), VERSIONS, weights or EVEN, ["m"])
    for run in labelled_runs(store, "a"):
        calibrator.observe("a", run)
    calibrator.relabels = newest_relabel(store)
    return calibrator


def cached(store: Store) -> int | None:
    found = read_cache(store, "a", read(store, settle=False).key)
    return None if found is None else found[0]


def learned_by(monkeypatch: pytest.MonkeyPatch, store: Store) -> tuple[Calibrator, int]:
    """Return what is read, and how many runs were learned for it."""
    taken: list[int] = []
    take = Calibrator.observe

    def counting(self: Calibrator, agent: str, run: object) -> None:
        taken.append(1)
        take(self, agent, run)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(Calibrator, "observe", counting)
        found = read(store)
    return found, len(taken)


def test_combiner_a_second_reading_learns_only_the_newest_runs_and_says_the_same(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store, 200)
    first, all_of_them = learned_by(monkeypatch, store)
    second, few = learned_by(monkeypatch, store)
    assert (all_of_them, few) == (200, FRESH)
    assert first.calibration() == second.calibration() == anew(store).calibration()
    assert first.combiner == second.combiner
    fill(store, 20, first=201)
    third, more = learned_by(monkeypatch, store)
    assert more == FRESH + 20 and third.calibration() == anew(store).calibration()
    fill(store, 20, first=221)
    assert learned_by(monkeypatch, store)[1] == FRESH + 40 and cached(store) == 240 - FRESH, "so many: kept anew"
    assert learned_by(monkeypatch, store)[1] == FRESH


def test_calibrator_few_runs_are_not_kept_twice(store: Store) -> None:
    fill(store, 2 * FRESH)
    read(store)
    assert cached(store) is None
    fill(store, 1, first=2 * FRESH + 1)
    read(store, settle=False)
    assert cached(store) is None, "it only looked"
    read(store)
    assert cached(store) == FRESH + 1


@pytest.mark.parametrize("change", ["label", "taken back", "outcome", "risk", "metric", "mixed", "gone", "reset"])
def test_calibration_a_change_of_an_old_run_is_learned_whatever_it_is(store: Store, change: str) -> None:
    fill(store, 200)
    read(store)
    assert cached(store) == 200 - FRESH
    run = next(run for run in labelled_runs(store, "a")[20:] if run.good)
    with store.transaction() as transaction:
        if change == "label":
            write_label(transaction, "a", "s", run.run, False)
        elif change == "taken back":
            transaction.execute("UPDATE runs SET outcome = NULL WHERE run = ?", (run.run,))
        elif change == "outcome":
            write_runs(transaction, "a", "s", [RunRow(run.run, success=False)])
        elif change == "risk":
            write_runs(transaction, "a", "s", [RunRow(run.run, (("m", "1", 1.0),))])
        elif change == "metric":
            write_runs(transaction, "a", "s", [RunRow(run.run, (("goal_hijack", "3", 1.0),))])
        elif change == "mixed":
            write_runs(transaction, "a", "s", [RunRow(run.run, mixed=True)])
        elif change == "gone":
            transaction.execute("DELETE FROM runs WHERE run = ?", (run.run,))
        else:
            forget_runs(transaction, "a")
    assert cached(store) is None
    assert read(store).calibration() == anew(store).calibration()


def test_calibration_what_changes_nothing_and_what_is_new_leave_it_kept(store: Store) -> None:
    fill(store, 200)
    read(store)
    run = next(run for run in labelled_runs(store, "a") if run.good)
    newest = labelled_runs(store, "a")[-1]
    with store.transaction() as transaction:
        write_label(transaction, "a", "s", run.run, True)  # which it is already
        write_runs(transaction, "a", "s", [RunRow(run.run, (("m", "1", 0.0),), True)])
        write_label(transaction, "a", "s", newest.run, not newest.good)
        write_label(transaction, "b", "s", 1, False)
    assert cached(store) == 200 - FRESH and read(store).calibration() == anew(store).calibration()


def test_in_use_a_run_that_changes_while_it_is_learned_is_not_kept_as_it_was(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store, 200)
    run = next(run for run in labelled_runs(store, "a") if run.good)
    in_use = Calibrator.in_use

    def meanwhile(self: Calibrator) -> object:
        with store.transaction() as transaction:
            write_label(transaction, "a", "s", run.run, False)
        return in_use(self)

    with monkeypatch.context() as patch:
        patch.setattr(Calibrator, "in_use", meanwhile)
        read(store)
    assert cached(store) is None and read(store).calibration() == anew(store).calibration()


def test_calibration_what_cannot_be_read_is_learned_again(store: Store) -> None:
    fill(store, 200)
    read(store)
    with store.transaction() as transaction:
        transaction.execute("UPDATE calibration_caches SET data = ?", (b"\xff\x00 of a later version",))
    assert read(store).calibration() == anew(store).calibration()


def test_calibration_other_settings_are_kept_beside_and_only_so_many(store: Store) -> None:
    fill(store, 100)
    for weight in range(1, 8):
        weights = {"m": float(weight), "n": 1.0}
        assert read(store, weights).calibration() == anew(store, weights).calibration()
        assert read(store, weights).calibration() == anew(store, weights).calibration()
    assert store.fetch("SELECT count(*) FROM calibration_caches") == [(4,)]


def test_calibration_what_left_under_other_weights_is_found_again_with_the_first_ones(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs leave three times: under the first weights, under others, and under weights with another embedder."""
    fill(store, 140)
    before = anew(store)
    monkeypatch.setattr(kept, "MAX_LABELLED", 60)
    monkeypatch.setattr(kept, "SPARE", 10)
    assert read(store).calibration() == before.calibration()
    assert read(store, UNEVEN).calibration().combination.runs == 60, "what left had not been learned with these"
    fill(store, 40, first=141)
    assert read(store, UNEVEN).calibration().combination.runs == 100
    fill(store, 40, first=181)
    elsewhere = read_calibrator(store, "a", AlarmConfig(), {"m": "1 other", "n": "1"}, EVEN, ["m"]).calibration()
    assert len(labelled_runs(store, "a")) == 60 and elsewhere.threshold("m").runs == 0
    assert read(store).calibration().combination.runs == 220, "all of them, whichever weights there were meanwhile"
    assert read(store, UNEVEN).calibration().combination.runs == 140
    threshold = read(store).calibration().threshold("m")
    assert threshold.how == "own" and threshold.runs > before.calibration().threshold("m").runs


def test_combiner_weights_that_were_in_use_before_anything_left_are_taught_what_leaves_under_others(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store, 30)
    expected = read(store).combiner
    monkeypatch.setattr(kept, "MAX_LABELLED", 20)
    monkeypatch.setattr(kept, "SPARE", 0)
    assert read(store, UNEVEN).combiner.runs == 30
    assert len(labelled_runs(store, "a")) == 20 and read(store).combiner == expected
    for first in (31, 61, 91):
        fill(store, 30, first=first)
        read(store, UNEVEN if first == 61 else EVEN)
    assert (read(store).combiner.runs, read(store, UNEVEN).combiner.runs) == (120, 120)


def test_outdated_a_label_that_changes_is_told_to_sessions_that_learned_the_run_and_to_no_other(store: Store) -> None:
    fill(store, 90)
    then = read(store).calibration()
    assert not relabelled(store, "a", then.through, then.relabels)
    fill(store, 1, first=91)
    with store.transaction() as transaction:
        write_label(transaction, "a", "s", 91, not labelled_runs(store, "a")[-1].good)
    assert not relabelled(store, "a", then.through, then.relabels), "a new run, that session did not learn it"
    worst = max((run for run in labelled_runs(store, "a") if run.good), key=lambda run: run.maxima["m", "1"])
    with store.transaction() as transaction:
        write_label(transaction, "a", "s", worst.run, False)
    assert relabelled(store, "a", then.through, then.relabels)
    now = read(store).calibration()
    assert then.outdated(now, relabelled=True) and not then.outdated(now), "a threshold moved a little"
    assert not relabelled(store, "a", now.through, now.relabels) and not now.outdated(now, relabelled=True)
    with store.transaction() as transaction:
        replace_runs(transaction, "a", 91, b"")
    assert store.fetch("SELECT count(*) FROM relabels") == [(0,)], "they leave with their runs"
