"""Learning from labelled runs in a store: by version, in order, again and again the same, and kept when they leave."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from coherence.baseline import calibration_store as kept
from coherence.baseline.calibration import Calibration
from coherence.baseline.calibration_store import Calibrator, read_calibrator
from coherence.core.config import AlarmConfig
from coherence.store.rows import RunRow
from coherence.store.runs import count_runs, labelled_runs, read_learned, write_label, write_runs
from coherence.store.store import Store

VERSIONS = {"m": "1", "n": "1"}
WEIGHTS = {"m": 0.25, "n": 0.25}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store.db", synchronous="NORMAL")


def fill(store: Store, count: int, *, seed: int = 1, first: int = 1, version: str = "1", shift: float = 0.0) -> None:
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(first, first + count):
        good = bool(rng.random() < 0.7)
        risks = rng.beta(2, 6, 2) + (0.0 if good else 0.3)
        row = (("m", version, float(min(risks[0] + shift, 1.0))), ("n", version, float(risks[1])))
        rows.append(RunRow(number, row, good))
    with store.transaction() as transaction:
        write_runs(transaction, "a", "s", rows)


def read(store: Store, config: AlarmConfig | None = None) -> Calibrator:
    return read_calibrator(store, "a", config or AlarmConfig(), VERSIONS, WEIGHTS, ["m"])


def test_calibration_good_runs_set_thresholds_and_all_labelled_ones_weights(store: Store) -> None:
    fill(store, 80)
    found = read(store).calibration()
    threshold = found.threshold("m", 0.05)
    good = sorted(run.maxima["m", "1"] for run in labelled_runs(store, "a") if run.good)
    assert threshold.runs == len(good) and 39 <= len(good) < 80
    assert threshold.value == good[-int((len(good) + 1) * 0.05)]
    assert found.combination.runs == 80 and dict(found.combination.start) == WEIGHTS
    assert found.find("n") is None, "n was not asked for"
    assert dict(found.versions) == {"goal_hijack": "3", "m": "1", "n": "1"}


def test_calibration_runs_of_another_version_do_not_count(store: Store) -> None:
    fill(store, 80, version="0")
    fill(store, 10, first=81)
    found = read(store).calibration()
    threshold = found.threshold("m", 0.05)
    assert threshold.how == "none" and threshold.runs <= 10
    assert found.combination.runs == 10


def test_calibration_a_label_that_is_changed_changes_all_that_followed(store: Store) -> None:
    fill(store, 60)
    before = read(store).calibration()
    worst = max(labelled_runs(store, "a"), key=lambda run: run.maxima["m", "1"] if run.good else 0.0)
    with store.transaction() as transaction:
        write_label(transaction, "a", "s", worst.run, False)
    without = read(store).calibration()
    one, other = before.threshold("m"), without.threshold("m")
    assert other.runs == one.runs - 1
    with store.transaction() as transaction:
        write_label(transaction, "a", "s", worst.run, True)
    again = read(store).calibration()
    assert (again.thresholds, again.combination) == (before.thresholds, before.combination)


def test_calibration_runs_that_leave_are_learned_for_good_and_nothing_changes(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store, 140)
    before = read(store)
    monkeypatch.setattr(kept, "MAX_LABELLED", 60)
    monkeypatch.setattr(kept, "SPARE", 10)
    after = read(store)
    assert count_runs(store, "a").good + count_runs(store, "a").bad == 60 and read_learned(store, "a") is not None
    assert after.calibration() == before.calibration() and after.combiner == before.combiner
    assert read(store).calibration() == before.calibration(), "and again"
    fill(store, 50, seed=2, first=141)
    monkeypatch.setattr(kept, "SPARE", 1_000)
    grown = read(store).calibration()
    assert grown.combination.runs == 190


def test_calibration_other_budgets_learn_the_runs_that_have_left_too(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store, 140)
    monkeypatch.setattr(kept, "MAX_LABELLED", 20)
    now = read(store).calibration().threshold("m")
    other = read(store, AlarmConfig(budget=0.2)).calibration().threshold("m", 0.2)
    assert other.how == "own" and other.runs == now.runs
    assert other.value is not None and now.value is not None and other.value < now.value


def test_calibration_what_cannot_be_read_is_left_out(store: Store) -> None:
    fill(store, 5)
    with store.transaction() as transaction:
        transaction.execute("INSERT INTO calibrations VALUES ('a', 0, ?)", (b"\xff\x00 of a later version",))
    assert read(store).calibration().combination.runs == 5


def test_outdated_sessions_change_over_only_when_it_matters(store: Store) -> None:
    fill(store, 40)
    young = read(store).calibration()
    assert not young.outdated(young) and not Calibration().outdated(young), "nothing own yet"
    fill(store, 30, seed=2, first=41)
    own = read(store).calibration()
    assert young.outdated(own) and Calibration().outdated(own)
    fill(store, 3, seed=3, first=71)
    assert not own.outdated(read(store).calibration()), "a threshold that moves a little is not worth new settings"
    fill(store, 40, seed=6, first=74, shift=0.05)
    later = read(store).calibration()
    threshold, before = later.threshold("m"), own.threshold("m")
    assert before is not None and threshold.value != before.value
    assert own.outdated(later)


def test_a_default_calibration_knows_what_is_shipped() -> None:
    shipped = Calibration().threshold("goal_hijack")
    assert shipped.how == "shipped" and shipped.budget == 0.05


def test_a_threshold_that_there_is_not_is_refused_by_name_and_says_which_there_are(store: Store) -> None:
    with pytest.raises(ValueError, match=r"for the metric 'nope'; there are: goal_hijack$"):
        Calibration().threshold("nope")
    found = read(store).calibration()
    with pytest.raises(ValueError, match=r"for the metric 'nope'; there are: goal_hijack, m$"):
        found.threshold("nope")
    with pytest.raises(ValueError, match=r"metric 'm' has no threshold for the budget 0.3; there are: 0.05$"):
        found.threshold("m", 0.3)
    assert found.find("nope") is None and found.threshold("m").how == "none"
