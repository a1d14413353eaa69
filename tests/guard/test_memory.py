from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coherence.guard import Guard
from coherence.guard.memory import MAX_REMEMBERED, PatchMemory
from coherence.guard.trigger import Override
from guard.helpers import BOUNDS, Clock, Proposes, call, kinds
from guard.helpers import Memory as Config

DAY_S = 86_400.0
OFTEN = {"a": Override(failures=2, cooldown_h=0)}


def test_patch_memory_each_time_a_patch_rests_twice_as_long_up_to_180_days() -> None:
    memory, now_s, rests = PatchMemory(), 0.0, []
    for _ in range(7):
        memory.add({"level": 2}, now_s, 1)
        rests.append(next(day for day in range(1, 400) if not memory.refuses({"level": 2}, now_s + day * DAY_S)))
        assert memory.refuses({"level": 2}, now_s + rests[-1] * DAY_S - 1)
        now_s += 1000 * DAY_S
    assert rests == [7, 14, 28, 56, 112, 180, 180]


def test_only_the_newest_patches_are_remembered() -> None:
    memory = PatchMemory()
    for level in range(MAX_REMEMBERED + 1):
        memory.add({"level": level}, 0.0, level)
    memory.add({"level": 1}, 0.0, 99)  # the oldest that is left becomes the newest
    memory.add({"level": -1}, 0.0, 100)
    assert [bool(memory.refuses({"level": level}, 1.0)) for level in (0, 1, 2, 3)] == [False, True, False, True]
    assert len(memory.patches) == MAX_REMEMBERED


def wanted(path: Path, config: Config, **more: Any) -> dict[str, Any]:
    given = {"store": path, "strategy": Proposes({"level": 2}), "config_adapter": config, "bounds": BOUNDS}
    return {**given, "thresholds": OFTEN, "clock": Clock(1.0), **more}


@pytest.mark.parametrize("ends", ["a person", "not applied", "a verdict"])
def test_a_patch_that_was_given_up_is_declined_until_its_rest_is_over(tmp_path: Path, ends: str) -> None:
    config, clock = Config(returns=ends != "not applied"), Clock(1.0)
    with Guard(**wanted(tmp_path / "guard.db", config, clock=clock)) as guard:
        call(guard, 2, fails=True)
        if ends == "a person":
            assert guard.rollback("a")
        call(guard, 10 if ends == "a verdict" else 0, fails=True)
        call(guard, 1 if ends == "a verdict" else 0, fails=False)  # without the patch
        history = kinds(guard.history("a", 1000, slices=True))
        assert history.count("accepted") == 1
        assert ("restored" in history) == (ends != "not applied")
    with Guard(**wanted(tmp_path / "guard.db", config, clock=clock)) as guard:  # what is remembered is in the store
        before = len(config.applied)
        call(guard, 10, fails=True)
        last = [past.decision for past in guard.history("a", 1000, slices=True)][-1]
        assert last.kind == "declined"
        assert last.why.startswith("the same patch was given up once at entry ")
        assert last.why.endswith(": not tried again for 168 h")  # 7 x 24, a few seconds ago
        assert len(config.applied) == before
        clock.now_s += 7 * DAY_S
        call(guard, 2, fails=True)
        assert len(config.applied) == before + 1
