"""The promises of the guard, lived through a whole ``Guard``; the bench prints more of it."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from coherence.guard.baseline import CallOutcome, Recent
from coherence.guard.classic import Metrics
from coherence.guard.patch_state import OnTrial
from coherence.guard.verdict import Trial

BENCH = Path(__file__).parent.parent / "bench"
LIVES = 200


@pytest.fixture(scope="module")
def lives() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCH)
        yield importlib.import_module("guard_lives")
        for name in ("guard_lives", "guard_days", "guard_life", "guard_cost", "guard_verdicts", "showing"):
            sys.modules.pop(name, None)


@pytest.mark.slow
@pytest.mark.parametrize("canary", ["hash", "slices"])
def test_guard_lives_a_clock_that_is_set_back_two_hours_changes_no_decision(lives: ModuleType, canary: Any) -> None:
    straight = lives.decisions(3, 1500, None, canary)
    kinds = {decision["kind"] for _, decision in straight}
    assert {"accepted", "confirmed"} <= kinds
    assert kinds & {"dropped", "ending"}
    for back_at in (80, 250, 670):
        assert lives.decisions(3, 1500, back_at, canary) == straight


@pytest.mark.parametrize("canary", ["hash", "slices"])
def test_a_guard_decides_what_the_statistics_alone_decide_on_its_traces(lives: ModuleType, canary: Any) -> None:
    for life, chance in lives.each(5, 4, canary):
        world = lives.World(0.9, chance.uniform(0.3, 1.0), all_metrics=True)
        life.until_patch(world, 100)
        lived = life.trial(world, world._replace(success=0.6))
        traces = life.guard.traces(life.name, 10_000)
        outcomes = [CallOutcome(trace.success, trace.duration_s, trace.cost, trace.index) for trace in traces]
        recent = Recent()
        for outcome in outcomes[: -lived.calls]:
            recent.observe(outcome)
        begun = Trial.begin(recent.freeze(importlib.import_module("guard_life").BURST))
        trial = OnTrial(1, {}, {}, "sequential", 0.2, 10, True, "", begun, Metrics())
        for trace, outcome in zip(traces[-lived.calls :], outcomes[-lived.calls :], strict=True):
            assert trial.verdict().kind == "keep_looking"
            trial.observe(outcome, trace.patched)
        assert trial.verdict().kind == ("roll_back" if lived.how == "rolled back" else "promote")
        assert trial.trial.calls == lived.patched


@pytest.mark.slow
def test_guard_lives_what_costs_is_measured_and_a_steep_harm_is_rolled_back(lives: ModuleType) -> None:
    for change in (lives.dear, lives.low, lives.slow):
        found = lives.trials(7, 0.9, change, lives=2, all_metrics=True, sigma=0.3)
        assert [lived.how for lived in found] == ["rolled back"] * 2
        assert max(lived.patched for lived in found) < 100


@pytest.mark.slow
def test_guard_lives_every_second_call_fails_after_400_good_ones_and_four_calls_tell_it(lives: ModuleType) -> None:
    assert lives.decays(10, 1.0, None, lives=3).delays[-1] <= 15


@pytest.mark.slow
@pytest.mark.parametrize("canary", ["hash", "slices"])
def test_guard_lives_a_patch_that_cures_is_promoted_in_the_outage(lives: ModuleType, canary: Any) -> None:
    bench = importlib.import_module("guard_days")
    for before in (0, 500):
        found = bench.days(3, 0.9, "cure", 300.0, canary, bench.Outage(0.0, 240, before), 3)
        assert [day.how for day in found] == ["promoted"] * 3
        assert max(day.patched for day in found) <= 60  # 300 where nothing but the margin counts
        assert max(day.days for day in found) < 2


@pytest.mark.torture
@pytest.mark.parametrize(("canary", "most"), [("hash", 25), ("slices", 28)])
def test_guard_lives_an_outage_that_goes_on_does_not_end_most_harmless_trials(
    lives: ModuleType, canary: Any, most: int
) -> None:
    bench = importlib.import_module("guard_days")
    # about 10 and 12 % of 100; without unpatched calls that vouch for the baseline 69 and 95 %
    found = bench.days(3, 0.9, "harmless", 300.0, canary, bench.Outage(0.3, 24, 500), 100)
    assert sum(day.how == "rolled back" for day in found) < most
    # all calls fail: no patch is rolled back for that
    found = bench.days(3, 0.9, "harmless", 300.0, canary, bench.Outage(0.0, 24, 500), 100)
    assert sum(day.how == "rolled back" for day in found) < most


@pytest.mark.torture
def test_guard_lives_an_agent_that_begins_with_its_guard_keeps_harmless_patches_and_loses_dead_ones(
    lives: ModuleType,
) -> None:
    bench = importlib.import_module("guard_days")
    found = bench.days(1, 0.9, "total failure", 300.0, "hash", None, 100)
    assert all(day.how == "rolled back" for day in found)
    assert sorted(day.patched for day in found)[90] <= 5
    found = bench.days(1, 0.9, "harmless", 300.0, "hash", None, 100)
    assert sum(day.how == "rolled back" for day in found) <= 11  # 5 % of 100 are 5; more have a probability of 1.1 %
    assert sorted(day.baseline for day in found)[50] > 30  # and not the calls before the first failure alone


@pytest.mark.torture
@pytest.mark.parametrize(("success", "canary"), [(0.6, "hash"), (0.9, "hash"), (0.95, "hash"), (0.9, "slices")])
def test_guard_lives_one_harmless_patch_in_twenty_is_rolled_back_at_most_and_all_trials_end(
    lives: ModuleType, success: float, canary: Any
) -> None:
    found = lives.trials(1, success, lives=LIVES, canary=canary)
    # 5 % of 200 are 10; 19 or more have a probability of 0.7 % then
    assert lives.rate(found) * LIVES / 100 < 19
    assert all(lived.how != "open" for lived in found)
    assert max(lived.calls for lived in found) <= 1.3 * 300 / lives.SHARE  # 300 patched ones are this share of all
