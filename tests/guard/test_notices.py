"""Notices name the step, its patch and its reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coherence.guard import Notice
from coherence.guard.trigger import Override
from guard.helpers import Memory
from guard.trails import Both, Stuck, at, trail

THRESHOLDS = {"a": Override(failures=2, cooldown_h=0)}


def told(folder: Path, memory: Memory, rate: float, **options: Any) -> list[Notice]:
    """Return the notices of a life in which patch 1 is promoted and later ones succeed at a rate."""
    notices: list[Notice] = []
    seen: list[int] = []

    def rate_of(level: int) -> float:
        seen.append(level)
        return (0.6, 1.0 if seen.count(2) < 400 else 0.9)[level - 1] if level < 3 else rate

    rows = trail(
        folder, memory, rate_of, calls=900, canary_share=0.5, thresholds=THRESHOLDS, notifier=notices.append, **options
    )
    assert at(rows, "confirmed") < at(rows, "accepted", patch={"level": 3})
    return notices


@pytest.mark.parametrize("memory", [Stuck(), Both()], ids=["restore fails twice", "hash"])
def test_each_notice_names_the_patch_that_it_is_about(tmp_path: Path, memory: Memory) -> None:
    """While patch 1 is confirmed, patch 2 is rolled back: that is what is told, and why."""
    notices = told(tmp_path, memory, 0.0)
    start = next(place for place, one in enumerate(notices) if one.kind == "accepted" and one.patch == {"level": 3})
    end = next(
        place for place, one in enumerate(notices) if place > start and one.kind in ("restored", "dropped")
    )  # fmt: skip
    assert [one.patch for one in notices[start : end + 1]] == [{"level": 3}] * (end + 1 - start)
    kinds = [one.kind for one in notices[start : end + 1]]
    serving = [] if isinstance(memory, Both) else ["serving"]
    assert ("restore_failed" in kinds) == isinstance(memory, Stuck)
    kinds = [kind for kind in kinds if kind != "restore_failed"]
    # rolled back at once, or held first and then given up while it is not in force
    assert kinds in (["accepted", *serving, "dropped"], ["accepted", *serving, "ending", "restored"])
    ended = next(one for one in notices[start:] if one.kind in ("ending", "dropped"))
    assert notices[end].why == ended.why and "fell" in ended.why
