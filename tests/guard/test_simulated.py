"""Error rates of the statistics on simulated calls; ``test_guard_lives`` lives the rest through a whole guard."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from coherence.guard.account import Account
from coherence.guard.degradation import CALLS_TO_FALSE_ALARM
from coherence.guard.patch_events import GuardedCall


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


@pytest.mark.slow
def test_trial_keeps_a_harmless_patch(bench: ModuleType) -> None:
    for success in (0.6, 0.9):
        ended = list(bench.trials(1, lambda world: world, success, count=60, all_metrics=True))
        # 5 % of 60 are 3; 8 or more have a probability of 1.3 % then
        assert rolled_back(ended) < 8 / 60
        assert all(end.verdict.kind == "promote" for end in ended if end.verdict.metric is None)


@pytest.mark.parametrize("all_metrics", [False, True])
@pytest.mark.parametrize("calls", [500, 200, 50, 10, 0])
@pytest.mark.parametrize(
    "success",
    [
        pytest.param(each, marks=pytest.mark.slow if each == 0.9 else pytest.mark.torture)
        for each in (0.6, 0.7, 0.8, 0.9, 0.95)
    ],
)
def test_trial_rolls_back_at_most_one_harmless_patch_in_twenty(
    bench: ModuleType, success: float, calls: int, all_metrics: bool
) -> None:
    ended = list(bench.trials(1, lambda world: world, success, calls=calls, all_metrics=all_metrics))
    assert rolled_back(ended) <= 0.05


def test_trial_finds_fifteen_points_less_in_time(bench: ModuleType) -> None:
    ended = list(bench.trials(4, lambda world: world._replace(success=world.success - 0.15), 0.9, count=60))
    assert rolled_back(ended) > 0.9
    assert late(ended, 0.5) <= 60


@pytest.mark.parametrize(
    "fallen",
    [
        pytest.param(0.4, marks=pytest.mark.slow),
        *(pytest.param(each, marks=pytest.mark.torture) for each in (None, 0.2, 0.9)),
    ],
)
def test_trial_blames_no_patch_for_a_bad_hour_of_all_calls(bench: ModuleType, fallen: float | None) -> None:
    assert rolled_back(list(bench.canaries(15, lambda world: world, 0.9, hour=fallen))) <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize("all_metrics", [False, True])
def test_decay_watch_of_a_confirmed_patch_has_one_false_alert_in_10_000_calls(
    bench: ModuleType, all_metrics: bool
) -> None:
    for success in (0.6, 0.9, 0.95):
        assert bench.calls_to_false_alert(11, success, all_metrics=all_metrics) >= 10_000


class Unpatched:
    """An agent under a guard that does nothing but watch, from its first call on."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.account = Account()

    def alerts(self, world: Any, calls: int) -> list[str]:
        """Run so many calls; return the metrics of the alerts."""
        account, found = self.account, []
        for _ in range(calls):
            one = world.call(self.chance)
            account.observe(0.0, GuardedCall(one.success, one.latency_s, one.cost, one.index, epoch=0))
            while (step := account.patching.due("me", 0.0, returns=True)) is not None and step.kind == "decayed":
                account.observe(0.0, step)
                found.append(step.metric or "")
        return found

    def delay(self, world: Any, most: int = 2000) -> int:
        """Return the calls until success is reported to have got worse."""
        return next((call for call in range(1, most) if "success" in self.alerts(world, 1)), most)


# 20,000 calls hold 2 false alerts; 7 or more have a probability of 0.5 % then.
# 300,000 calls hold 30; 43 or more have a probability of 1.5 %.
@pytest.mark.parametrize(
    ("lives", "most", "success", "all_metrics"),
    [
        (10, 6, 0.9, False),
        *(
            pytest.param(
                150, 42, success, all_metrics, marks=pytest.mark.slow if success == 0.9 else pytest.mark.torture
            )
            for success in (0.6, 0.8, 0.9, 0.98, 1.0)
            for all_metrics in (False, True)
        ),
    ],
)
def test_decay_watch_without_a_patch_has_one_false_alert_in_10_000_calls(
    bench: ModuleType, lives: int, most: int, success: float, all_metrics: bool
) -> None:
    assert CALLS_TO_FALSE_ALARM == 10_000
    chance = random.Random(1)
    worlds = (bench.World(success, chance.uniform(0.3, 1.0), all_metrics=all_metrics) for _ in range(lives))
    assert sum(len(Unpatched(chance).alerts(world, 2_000)) for world in worlds) <= most


@pytest.mark.slow
@pytest.mark.parametrize("calls", [150, 600])
@pytest.mark.parametrize(("good", "bad", "median", "late"), [(0.98, 0.3, 5, 9), (0.9, 0.5, 15, 32)])
def test_decay_watch_without_a_patch_reports_a_fall_soon(
    bench: ModuleType, good: float, bad: float, median: int, late: int, calls: int
) -> None:
    chance, found = random.Random(2), list[int]()
    for _ in range(300):
        world, agent = bench.World(good, chance.uniform(0.3, 1.0)), Unpatched(chance)
        agent.alerts(world, calls)
        found.append(agent.delay(world._replace(success=bad)))
    assert sorted(found)[150] <= median
    assert sorted(found)[270] <= late
