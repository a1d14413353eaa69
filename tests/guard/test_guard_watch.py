from __future__ import annotations

import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from coherence.guard import Guard, Notice
from coherence.guard.trigger import Override
from coherence.monitor.monitor import Monitor
from coherence.providers.hashing import HashingEmbedder
from guard.helpers import BOUNDS, Boom, Memory, Proposes, failing, first, patched


def confirmed(guard: Guard, agent: Any) -> int:
    """Run until the patch is confirmed; return how many calls that took."""
    for number in range(1500):
        run(guard, agent)
        if guard.status("a").phase == "idle" and guard.status("a").patch is not None:
            return number
    raise AssertionError("never confirmed")


def run(guard: Guard, agent: Any) -> None:
    with suppress(Boom):
        guard.run(agent, agent="a")


@pytest.mark.parametrize("returns", [False, True])
def test_status_a_decay_after_400_good_calls_is_told_within_15_calls(tmp_path: Path, returns: bool) -> None:
    memory, notices, healthy = Memory(), list[Notice](), [0.9]
    agent = failing(lambda level: 0.5 if level == 1 else healthy[0], memory, seed=7)
    with patched(
        tmp_path / "guard.db",
        memory,
        notifier=notices.append,
        thresholds={"a": Override(failures=20, cooldown_h=8000)},
        return_on_decay=returns,
    ) as guard:
        confirmed(guard, agent)
        for _ in range(400):
            run(guard, agent)
        assert "decayed" not in [notice.kind for notice in notices]
        healthy[0] = 0.45
        bad = 0
        while "decayed" not in [notice.kind for notice in notices]:
            run(guard, agent)
            bad += 1
        assert bad <= 15
        decayed = first(guard.history("a", 1000, slices=True), "decayed")
        assert (decayed.metric, decayed.returns) == ("success", returns)
        assert memory.config == {"level": 1 if returns else 2}
        assert ("has not recovered: success" in guard.status("a").trouble) is not returns
        for _ in range(0 if returns else 300):
            run(guard, agent)
        assert [notice.kind for notice in notices].count("decayed") == 1  # told once, however long it lasts
        healthy[0] = 1.0
        for _ in range(50):
            run(guard, agent)
        assert guard.status("a").trouble == ""
        assert guard.errors == {}


def test_rollback_a_confirmed_patch_can_be_left_by_a_person_after_a_restart(tmp_path: Path) -> None:
    memory = Memory()
    agent = failing(lambda level: 0.5 if level == 1 else 1.0, memory)
    wanted: dict[str, Any] = {
        "store": tmp_path / "guard.db",
        "strategy": Proposes({"level": 2}),
        "config_adapter": memory,
        "bounds": BOUNDS,
        "thresholds": {"a": Override(failures=5)},
    }
    with Guard(**wanted) as guard:
        confirmed(guard, agent)
    with Guard(**wanted) as guard:
        assert guard.status("a").patch == {"level": 2}
        assert guard.rollback("a")
        assert guard.status("a").patch is None
        assert not guard.rollback("a")
    assert memory.config == {"level": 1}


def test_traces_index_and_band_of_the_run_are_recorded_where_a_monitor_measured_it(tmp_path: Path) -> None:
    with (
        Monitor(goal="make the tests pass", embedder=HashingEmbedder()) as monitor,
        Guard(store=tmp_path / "guard.db", monitor=monitor) as guard,
    ):

        def agent() -> None:
            for _ in range(4):
                monitor.message("assistant", "the tests import a module that is missing")

        guard.run(agent, agent="a")
        guard.run(lambda: None, agent="a")  # tells the monitor nothing
        told, silent = guard.traces("a")
        reading = monitor.latest
        assert reading is not None
        assert (told.index, told.band) == (reading.coherence_index, reading.band)
        assert reading.coverage > 0
        assert (silent.index, silent.band) == (None, None)


def test_what_results_cost_and_whether_they_succeed_is_asked(tmp_path: Path) -> None:
    with Guard(
        store=tmp_path / "guard.db",
        is_success=lambda result: result["status"] != "error",
        cost_of=lambda result: result.get("cost"),
    ) as guard:
        results: list[dict[str, Any]] = [{"status": "ok", "cost": 2}, {"status": "error"}, {"status": "ok", "cost": -1}]
        for result in results:
            guard.run(lambda result=result: result, agent="a")  # type: ignore[misc]
        assert [(trace.success, trace.cost) for trace in guard.traces("a")] == [
            (True, 2.0),
            (False, None),
            (True, None),
        ]
        assert list(guard.errors.values()) == [1]


def test_status_a_strategy_that_hangs_delays_a_call_no_longer_than_asked_and_goes_on(tmp_path: Path) -> None:
    memory, hangs = Memory(), threading.Event()

    class Slow(Proposes):
        def analyze(self, **given: Any) -> Any:
            hangs.wait(60)
            return super().analyze(**given)

    with patched(tmp_path / "guard.db", memory, strategy=Slow({"level": 2}), wait_s=0.01) as guard:
        for _ in range(5):
            run(guard, failing(lambda level: 0.0, memory))
        assert memory.applied == []
        assert guard.status("a").calls == 5
        hangs.set()
        deadline = time.monotonic() + 30
        while guard.status("a").phase != "serving" and time.monotonic() < deadline:
            time.sleep(0.01)
        assert memory.applied == [{"level": 2}]
