"""The state router on the calls and measures that a guard hands to a strategy."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from coherence.guard import Guard
from coherence.guard.router.lines import known_measures
from coherence.guard.router.strategy import StateRouter
from guard.helpers import Boom, Memory, Proposes, failing


def test_calls_of_a_guard_that_become_slower_weaken_efficiency_and_their_cost_is_no_budget(tmp_path: Path) -> None:
    asked = Proposes(None)
    with Guard(store=tmp_path / "guard.db", strategy=asked, cost_of=lambda result: 5.0) as guard:
        wait_s = 0.001
        for number in range(20):
            if number == 10:
                wait_s = 0.02
            guard.run(lambda wait_s=wait_s: time.sleep(wait_s), agent="a")  # type: ignore[misc]
        state = StateRouter().diagnose(traces=guard.traces("a"))
        for _ in range(5):
            with pytest.raises(Boom):
                guard.run(failing(lambda level: 0.0, Memory()), agent="a")
    assert state.lines[1].score == 0.25  # twice as slow or slower, as dear as before
    (_, _, metrics) = asked.asked[0]
    assert metrics["total_cost"] == 100.0
    assert set(known_measures(metrics)) == {"success_rate", "consecutive_failures"}
    assert StateRouter().diagnose(traces=[], before_metrics=metrics).lines[5].score is None
