"""Thresholds of an agent's labelled runs in a store: by version, in order, and the same however often they are read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from coherence.baseline.calibration import Calibration
from coherence.baseline.calibration_store import read_calibration
from coherence.core.config import AlarmConfig
from coherence.store.rows import RunRow
from coherence.store.runs import forget_runs, labelled_runs, relabelled, write_label, write_runs
from coherence.store.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store.db", synchronous="NORMAL")


def fill(store: Store, count: int, *, seed: int = 1, first: int = 1, version: str = "1", shift: float = 0.0) -> None:
    """Write runs of the metric ``m``, of which 70 % are good and the others 0.3 higher."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(first, first + count):
        good = bool(rng.random() < 0.7)
        risk = min(float(rng.beta(2, 6)) + shift + (0.0 if good else 0.3), 1.0)
        rows.append(RunRow(number, (("m", version, risk), ("n", version, 0.5)), good))
    with store.transaction() as transaction:
        write_runs(transaction, "a", "s", rows)


def read(store: Store, config: AlarmConfig | None = None) -> Calibration:
    return read_calibration(store, "a", config or AlarmConfig(), {"m": "1", "n": "1"}, ["m"])


def label(store: Store, run: int, *, good: bool) -> None:
    with store.transaction() as transaction:
        write_label(transaction, "a", "s", run, good)


def worst_good_run(store: Store) -> int:
    return max((run for run in labelled_runs(store, "a") if run.good), key=lambda run: run.maxima["m", "1"]).run


def test_read_calibration_good_runs_set_the_threshold_of_each_budget_and_metric_that_was_asked_for(
    store: Store,
) -> None:
    fill(store, 80)
    found = read(store)
    good = sorted(run.maxima["m", "1"] for run in labelled_runs(store, "a") if run.good)
    assert found.threshold("m", 0.05).runs == len(good) and 39 <= len(good) < 80
    assert found.threshold("m", 0.05).value == good[-int((len(good) + 1) * 0.05)]
    wider = read(store, AlarmConfig(budget=0.2)).threshold("m", 0.2)
    assert wider.how == "own" and wider.value == good[-int((len(good) + 1) * 0.2)]
    assert found.find("n") is None, "n was not asked for"
    assert dict(found.versions) == {"goal_hijack": "3", "m": "1"}


def test_read_calibration_runs_of_another_version_do_not_count(store: Store) -> None:
    fill(store, 80, version="0")
    fill(store, 10, first=81)
    threshold = read(store).threshold("m", 0.05)
    assert threshold.how == "none" and threshold.runs <= 10


def test_read_calibration_a_label_that_is_changed_changes_all_that_followed_and_can_be_taken_back(store: Store) -> None:
    fill(store, 60)
    before, worst = read(store).thresholds, worst_good_run(store)
    label(store, worst, good=False)
    assert read(store).threshold("m").runs == before[-1].runs - 1
    label(store, worst, good=True)
    assert read(store).thresholds == before
    with store.transaction() as transaction:
        forget_runs(transaction, "a")
    assert read(store).threshold("m").runs == 0


def test_outdated_a_label_that_changes_is_reported_to_sessions_that_learned_the_run_and_to_no_other(
    store: Store,
) -> None:
    fill(store, 90)
    then = read(store)
    assert not relabelled(store, "a", then.through, then.relabels)
    fill(store, 1, first=91)
    label(store, 91, good=not labelled_runs(store, "a")[-1].good)
    assert not relabelled(store, "a", then.through, then.relabels), "a new run, that session did not learn it"
    label(store, worst_good_run(store), good=False)
    assert relabelled(store, "a", then.through, then.relabels)
    now = read(store)
    assert then.outdated(now, relabelled=True) and not then.outdated(now), "a threshold moved a little"
    assert not relabelled(store, "a", now.through, now.relabels) and not now.outdated(now, relabelled=True)


def test_outdated_sessions_change_over_only_when_it_matters(store: Store) -> None:
    fill(store, 40)
    young = read(store)
    assert not young.outdated(young) and not Calibration().outdated(young), "nothing own yet"
    fill(store, 30, seed=2, first=41)
    own = read(store)
    assert young.outdated(own) and Calibration().outdated(own)
    fill(store, 3, seed=3, first=71)
    assert not own.outdated(read(store)), "a threshold that moves a little is not worth new settings"
    fill(store, 40, seed=6, first=74, shift=0.05)
    assert own.threshold("m").value != read(store).threshold("m").value and own.outdated(read(store))


def test_threshold_one_that_there_is_not_is_refused_by_name_and_says_which_there_are(store: Store) -> None:
    with pytest.raises(ValueError, match=r"for the metric 'nope'; there are: goal_hijack$"):
        Calibration().threshold("nope")
    found = read(store)
    with pytest.raises(ValueError, match=r"for the metric 'nope'; there are: goal_hijack, m$"):
        found.threshold("nope")
    with pytest.raises(ValueError, match=r"metric 'm' has no threshold for the budget 0.3; there are: 0.05$"):
        found.threshold("m", 0.3)
    assert found.find("nope") is None and found.threshold("m").how == "none"
    assert Calibration().threshold("goal_hijack").how == "shipped"
