from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from coherence.guard import Guard, Notice
from coherence.guard.bounds import Bound, Bounds
from coherence.guard.trigger import Override
from coherence.store.store import Store
from guard.helpers import (
    BOUNDS,
    Clock,
    Memory,
    Proposes,
    call,
    first,
    kinds,
    request_approval,
    request_decline,
    request_rollback,
    until,
)

ASKS = Bounds({"level": Bound(least=0, most=9, step=2)}, auto_apply=False)
OFTEN = {"a": Override(failures=2, cooldown_h=0)}


def wanted(path: Path, memory: Memory | None, **more: Any) -> dict[str, Any]:
    given = {"store": path, "strategy": Proposes({"level": 2}), "config_adapter": memory, "bounds": ASKS}
    return {**given, "thresholds": OFTEN, **more}


def test_requests_a_proposal_waits_and_a_person_puts_it_on_trial(path: Path) -> None:
    memory, notices = Memory(), list[Notice]()
    with Guard(**wanted(path, memory, notifier=notices.append)) as guard:
        assert guard.approve("a") is False
        call(guard, 2, fails=True)
        assert memory.applied == []
        waiting = {"patch": {"level": 2}, "why": "the bounds ask for a person", "seq": 4, "approved": None}
        assert guard.status("a").waiting == waiting
        assert guard.approve("a", "looks right") is True
        assert memory.config == {"level": 2}
        status = guard.status("a")
        assert (status.phase, status.waiting, status.patch) == ("serving", None, {"level": 2})
        assert guard.approve("a") is False
    assert [notice.kind for notice in notices] == ["proposed", "approved", "accepted", "serving"]
    assert (notices[1].why, notices[1].patch) == ("looks right", {"level": 2})


def test_request_decline_the_same_proposal_tells_nobody_again_and_a_newer_one_takes_its_place(path: Path) -> None:
    strategy, notices = Proposes({"level": 2}), list[Notice]()
    with Guard(**wanted(path, Memory(), strategy=strategy, notifier=notices.append)) as guard:
        call(guard, 4, fails=True)
        assert [notice.kind for notice in notices] == ["proposed"]
        assert kinds(guard.history("a")) == ["asked", "proposed", "asked", "declined"]
        strategy.patch = {"level": 3}
        call(guard, 2, fails=True)
        waiting = guard.status("a").waiting
        assert waiting is not None
        assert waiting["patch"] == {"level": 3}
        assert [notice.kind for notice in notices] == ["proposed", "proposed"]
        assert guard.store is not None
        assert request_approval(guard.store, "a", "seen", seq=4) is False  # not what waits any more
        assert request_decline(guard.store, "a", "seen", seq=4) is False
        assert request_decline(guard.store, "a", "seen", seq=waiting["seq"]) is True


def test_requests_a_person_declines_and_the_same_is_not_proposed_again_soon(path: Path) -> None:
    memory, notices = Memory(), list[Notice]()
    with Guard(**wanted(path, memory, notifier=notices.append)) as guard:
        assert guard.decline("a") is False
        call(guard, 2, fails=True)
        assert guard.decline("a", "too slow") is True
        assert guard.decline("a") is False
        assert guard.approve("a") is False
        assert guard.status("a").waiting is None
        call(guard, 2, fails=True)
        assert kinds(guard.history("a"))[-2:] == ["asked", "declined"]
    assert [(notice.kind, notice.why, notice.patch) for notice in notices[1:]] == [
        ("refused", "too slow", {"level": 2})
    ]
    assert memory.applied == []


def test_requests_the_bounds_judge_an_approved_patch_by_the_configuration_of_now(path: Path) -> None:
    memory, notices = Memory(), list[Notice]()
    with Guard(**wanted(path, memory, notifier=notices.append)) as guard:
        call(guard, 2, fails=True)
        memory.config["level"] = 5  # 5 -> 2 is more than the step of 2
        assert guard.approve("a") is True
        status = guard.status("a")
        assert (status.phase, status.waiting) == ("idle", None)
        assert "refused by step" in first(guard.history("a"), "withheld").why
    assert [notice.kind for notice in notices] == ["proposed", "approved", "withheld"]
    assert memory.applied == []


def test_requests_without_bounds_an_approval_is_enough_and_what_would_be_applied_is_exact(path: Path) -> None:
    memory, strategy = Memory(), Proposes({"level": 77, "auto_apply": True})
    with Guard(**wanted(path, memory, bounds=None, strategy=strategy)) as guard:
        call(guard, 2, fails=True)
        assert guard.status("a").waiting is not None
        assert guard.approve("a")
        assert memory.applied == [{"level": 77}]
        assert guard.rollback("a")
        for patch in ({"level": object()}, {"level": (1, 2)}, 7, {"level": "x" * 70_000}, {"auto_apply": False}):
            strategy.patch = patch
            call(guard, 2, fails=True)
            assert guard.status("a").waiting is None
            assert kinds(guard.history("a"))[-1] == "declined"
        memory.config["level"] = 88
        strategy.patch = {"level": 88}
        call(guard, 2, fails=True)
        assert guard.approve("a")
        assert kinds(guard.history("a"))[-1] == "withheld"  # it changes nothing


def test_requests_an_approval_from_a_process_without_adapter_is_carried_out_by_one_that_has_it(path: Path) -> None:
    memory, notices = Memory(), list[Notice]()
    with Guard(**wanted(path, memory, notifier=notices.append)) as live:
        call(live, 2, fails=True)
        with Guard(**wanted(path, None)) as other:
            assert other.approve("a", "from afar") is True
        until(lambda: memory.config == {"level": 2})  # no call is made
        until(lambda: live.status("a").phase == "serving")
        until(lambda: len(notices) == 4)
    assert [notice.kind for notice in notices] == ["proposed", "approved", "accepted", "serving"]


def test_request_rollback_a_rollback_asked_for_elsewhere_is_carried_out_without_a_call(path: Path) -> None:
    memory = Memory()
    with Guard(**wanted(path, memory, bounds=BOUNDS)) as live, Store(path) as store:
        assert request_rollback(store, "a", "nothing to do yet") is False
        assert request_rollback(store, "unknown", "x") is False
        assert store.fetch("SELECT agent FROM guard_accounts") == []  # asking about an agent does not make one
        call(live, 2, fails=True)
        assert memory.config == {"level": 2}
        assert request_rollback(store, "a", "wrong answers") is True
        until(lambda: memory.config == {"level": 1})
        until(lambda: live.status("a").phase == "idle")
        ending = first(live.history("a"), "ending")
        assert (ending.why, ending.pause) == ("wrong answers", False)
        assert request_rollback(store, "a", "again") is False


def test_a_process_that_starts_later_takes_requests_up_at_its_first_call(path: Path) -> None:
    memory = Memory()
    with Guard(**wanted(path, memory, bounds=BOUNDS)) as guard:
        call(guard, 2, fails=True)
    with Store(path) as store:
        assert request_rollback(store, "a", "night shift") is True
        assert request_rollback(store, "a", "twice") is True  # it is asked for
    with Guard(**wanted(path, None)) as watching:  # has no adapter: claims nothing
        call(watching, 3, fails=True)
        assert watching.rollback("a") is False
        assert memory.config == {"level": 2}
    with Guard(**wanted(path, memory, bounds=BOUNDS)) as guard:
        assert guard.run(lambda: 1, agent="a").rolled_back
        assert memory.config == {"level": 1}
        assert kinds(guard.history("a")).count("rollback_wanted") == 1
        assert kinds(guard.history("a")).count("ending") == 1


def test_request_rollback_a_rollback_asked_for_while_a_strategy_is_asked_comes_first(path: Path) -> None:
    memory, store = Memory(), Store(path)

    class Interrupted(Proposes):
        def analyze(self, **given: Any) -> Any:
            if memory.config["level"] == 2:
                assert request_rollback(store, "a", "meanwhile")
                return {"level": 3}
            return {"level": 2}

    given = wanted(path, memory, bounds=BOUNDS, strategy=Interrupted(None), clock=Clock(1.0), canary_share=1.0)
    with Guard(**given) as guard:
        call(guard, 2, fails=True)
        call(guard, 400)
        assert (guard.status("a").phase, memory.config) == ("idle", {"level": 2})
        while memory.config == {"level": 2}:
            call(guard, 1, fails=True)
        assert memory.applied == [{"level": 2}]
        assert kinds(guard.history("a"))[-5:] == ["asked", "rollback_wanted", "declined", "ending", "restored"]
    store.close()


def test_requests_troubles_are_said_in_words(path: Path) -> None:
    clock, memory = Clock(0.0), Memory()

    def broken(*, agent_id: str, backup_config: dict[str, Any]) -> object:
        return False

    restore, memory.rollback_config = memory.rollback_config, broken  # type: ignore[method-assign]
    given = {"bounds": BOUNDS, "clock": clock, "canary_share": 1.0}
    with Guard(**wanted(path, memory, **given)) as guard:
        call(guard, 2, fails=True)
        call(guard, 3)
        assert (guard.status("a").trouble, guard.status("a").patched_calls) == ("", 3)
        with Guard(**wanted(path, None, clock=clock)) as other:
            assert other.rollback("a") is False
        assert guard.rollback("a") is False
        clock.now_s += 0.5
        assert guard.status("a").trouble == "restore failed once, the next attempt is due now"  # in 1 s - 0.5 s
        memory.rollback_config = restore  # type: ignore[method-assign]
        clock.now_s += 0.5
        until(lambda: memory.config == {"level": 1})


def test_requests_that_nobody_takes_up_are_troubles(path: Path) -> None:
    clock = Clock(0.0)
    clock.now_s = time.time()
    with Guard(**wanted(path, None, clock=clock)) as guard:
        call(guard, 2, fails=True)
        assert guard.approve("a")
        assert guard.status("a").trouble == ""
        clock.now_s += 30
        assert guard.status("a").trouble == "a patch was approved 30 s ago, and nobody has taken it up"
    memory = Memory()
    with Guard(**wanted(path, memory, clock=clock)) as guard:
        call(guard, 1)
        assert memory.config == {"level": 2}
    with Guard(**wanted(path, None, clock=clock)) as guard:
        assert guard.rollback("a") is False
        clock.now_s += 30
        assert guard.status("a").trouble == "a rollback was asked for 30 s ago, and nobody has begun it"
