"""Adapters that take longer than a claim lasts: what they do late is undone, and the trail tells it."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from coherence.guard import Guard
from coherence.guard.patches import LEASE_S
from coherence.store.store import Store
from guard.helpers import BOUNDS, Boom, Clock, Memory, Proposes, call, kinds, until
from guard.trails import verified
from guard.world import THRESHOLDS


def fail() -> None:
    raise Boom("no")


class Slow(Memory):
    """An adapter that takes its time."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go = threading.Event(), threading.Event()
        self.slow = "apply"

    def apply_config(self, *, agent_id: str, config_patch: dict[str, Any]) -> object:
        self._wait("apply")
        return super().apply_config(agent_id=agent_id, config_patch=config_patch)

    def rollback_config(self, *, agent_id: str, backup_config: dict[str, Any]) -> object:
        self._wait("restore")
        return super().rollback_config(agent_id=agent_id, backup_config=backup_config)

    def _wait(self, what: str) -> None:
        if self.slow == what:
            self.slow = ""
            self.begun.set()
            self.go.wait(60)


def test_status_a_patch_that_is_applied_after_it_was_given_up_is_undone(path: Path) -> None:
    slow, clock = Slow(), Clock(1.0)
    given: dict[str, Any] = {
        "store": path, "strategy": Proposes({"level": 2}), "config_adapter": slow, "bounds": BOUNDS,
        "thresholds": THRESHOLDS, "clock": clock,
    }  # fmt: skip
    with Guard(**given, wait_s=0) as late, Guard(**given, wait_s=60) as other:
        call(late, 2, fails=True)
        slow.begun.wait(60)
        clock.now_s += LEASE_S
        other.status("a")
        other.run(lambda: 1, agent="a")
        until(lambda: other.status("a").phase == "idle")
        assert slow.config == {"level": 1}
        slow.go.set()
        until(lambda: kinds(late.history("a"))[-1] == "restored" and len(slow.restored) == 2)
        assert slow.applied == [{"level": 2}]
        assert (slow.config, late.status("a").phase) == ({"level": 1}, "idle")
        assert kinds(late.history("a"))[-5:] == ["ending", "restored", "late", "retrying", "restored"]
        assert verified(Store(path)).faults == []


def test_rollback_a_restore_that_comes_late_ends_the_patch_that_it_took_away(path: Path) -> None:
    slow, clock, strategy = Slow(), Clock(1.0), Proposes({"level": 2})
    slow.slow = "restore"
    given: dict[str, Any] = {
        "store": path, "strategy": strategy, "config_adapter": slow, "bounds": BOUNDS, "policy": "classic",
        "thresholds": THRESHOLDS, "clock": clock, "wait_s": 60,
    }  # fmt: skip
    with Guard(**given) as late, Guard(**given) as other:

        def patched() -> None:
            for _ in range(100):  # one failure says nothing while the step before is under way
                if other.status("a").phase == "serving":
                    return
                with suppress(Boom):
                    other.run(fail, agent="a")
            raise AssertionError("no patch is on trial")

        patched()
        asks = threading.Thread(target=lambda: late.rollback("a"))
        asks.start()
        slow.begun.wait(60)
        clock.now_s += LEASE_S
        until(lambda: other.status("a").phase == "idle")
        assert slow.config == {"level": 1}
        strategy.patch = {"level": 3}
        patched()
        assert slow.config == {"level": 3}
        slow.go.set()
        asks.join()
        until(lambda: other.status("a").phase == "idle")
        assert slow.config == {"level": 1}
        assert kinds(other.history("a"))[-4:] == ["serving", "late", "ending", "restored"]
        assert verified(Store(path)).faults == []
