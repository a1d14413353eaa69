"""What the guard promises of simulated patches; the bench prints more of it, and the slow tests ask for all of it."""

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    path = Path(__file__).parent.parent / "bench/guard_verdicts.py"
    spec = importlib.util.spec_from_file_location("guard_verdicts", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rolled_back(ended: list[Any]) -> float:
    return sum(1 for end in ended if end.verdict.kind == "roll_back") / len(ended)


def late(ended: list[Any], part: float) -> int:
    """The patched calls after which a part of the trials has rolled back; 301 = they have not."""
    calls = sorted(end.calls if end.verdict.kind == "roll_back" else 301 for end in ended)
    return int(calls[int(part * len(calls))])


def test_simulated_a_harmless_patch_stays(bench: ModuleType) -> None:
    for success in (0.6, 0.9):
        ended = list(bench.trials(1, lambda world: world, success, count=60, all_metrics=True))
        # 5 % of 60 are 3; 8 or more have a probability of 1.3 % then
        assert rolled_back(ended) < 8 / 60
        assert all(end.verdict.kind == "promote" for end in ended if end.verdict.metric is None)


def test_simulated_fifteen_points_less_are_found(bench: ModuleType) -> None:
    ended = list(bench.trials(4, lambda world: world._replace(success=world.success - 0.15), 0.9, count=60))
    assert rolled_back(ended) > 0.9
    assert late(ended, 0.5) <= 60


def test_simulated_a_decay_is_found_and_nothing_else(bench: ModuleType) -> None:
    delays, early = bench.decay(10, 0.9, 0.5, 60)
    assert sorted(delays)[30] <= 18
    assert early <= 6  # 60 x 300 calls hold 1.8 false alarms at 10,000 calls each


@pytest.mark.slow
@pytest.mark.parametrize("all_metrics", [False, True])
@pytest.mark.parametrize("calls", [500, 200, 50, 10, 0])
@pytest.mark.parametrize("success", [0.6, 0.7, 0.8, 0.9, 0.95])
def test_simulated_at_most_one_harmless_patch_in_twenty_is_rolled_back(
    bench: ModuleType, success: float, calls: int, all_metrics: bool
) -> None:
    ended = list(bench.trials(1, lambda world: world, success, calls=calls, all_metrics=all_metrics))
    assert rolled_back(ended) <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize("all_metrics", [False, True])
def test_simulated_fifteen_points_less_are_found_in_time(bench: ModuleType, all_metrics: bool) -> None:
    def worse(world: Any) -> Any:
        return world._replace(success=world.success - 0.15)

    ended = list(bench.trials(4, worse, 0.9, all_metrics=all_metrics))
    assert late(ended, 0.5) <= 60
    assert late(ended, 0.9) <= 150
    beside = list(bench.canaries(14, worse, 0.9))
    assert late(beside, 0.5) <= 60
    assert late(beside, 0.9) <= 150


@pytest.mark.slow
@pytest.mark.parametrize("fallen", [None, 0.2, 0.4, 0.9])
def test_simulated_a_bad_hour_of_everybody_rolls_nothing_back(bench: ModuleType, fallen: float | None) -> None:
    assert rolled_back(list(bench.canaries(15, lambda world: world, 0.9, hour=fallen))) <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize("success", [0.6, 0.7, 0.8, 0.9, 0.95])
def test_simulated_a_total_failure_takes_five_calls(bench: ModuleType, success: float) -> None:
    ended = list(bench.trials(6, lambda world: world._replace(success=0.0), success))
    assert late(ended, 0.95) <= 5
    assert max(end.calls for end in ended) <= 6


@pytest.mark.slow
@pytest.mark.parametrize("all_metrics", [False, True])
def test_simulated_false_alerts_are_as_rare_as_promised(bench: ModuleType, all_metrics: bool) -> None:
    for success in (0.6, 0.9, 0.95):
        assert bench.calls_to_false_alert(11, success, all_metrics=all_metrics) >= 10_000


@pytest.mark.slow
def test_the_classic_rules_roll_back_most_harmless_patches(bench: ModuleType) -> None:
    assert bench.classic(3, 0.6) > 0.8
    assert bench.classic(3, 0.9) > 0.4
