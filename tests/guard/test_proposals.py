"""A person's own change goes on trial."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from coherence.guard import Guard, Notice, current_patch
from coherence.guard.bounds import Bound, Bounds
from coherence.guard.ledger import ledger
from coherence.guard.traces import read_decisions
from coherence.guard.trigger import Override
from coherence.store.store import Store
from guard.helpers import Boom, Both, Clock, Memory, Proposes, call, failing, first, kinds, request_proposal, until
from guard.trails import verified

NARROW = Bounds({"level": Bound(least=0, most=9, step=2)}, auto_apply=False)


def checked(guard: Guard) -> None:
    """All that was done follows from the trail, and nothing failed."""
    guard.flush()
    assert guard.store is not None
    found = verified(guard.store)
    assert (found.faults, found.unknown) == ([], 0)
    assert guard.errors == {}


def test_proposals_without_strategy_and_bounds_a_person_s_word_is_enough(path: Path) -> None:
    memory, notices = Memory(), list[Notice]()
    with Guard(store=path, config_adapter=memory, notifier=notices.append) as guard:
        call(guard, 20)
        assert guard.propose("a", {"level": 2}, "fewer surprises")
        status = guard.status("a")
        assert (memory.config, status.phase, status.patch) == ({"level": 2}, "serving", {"level": 2})
        assert kinds(guard.history("a")) == ["trial_wanted", "approved", "accepted", "serving"]
        assert [notice.kind for notice in notices] == ["approved", "accepted", "serving"]
        assert (notices[0].why, notices[0].patch) == ("fewer surprises", {"level": 2})
        assert not guard.propose("a", {"level": 3})
        assert memory.config == {"level": 2}
        checked(guard)


@pytest.mark.parametrize(("good", "ends"), [(1.0, {"level": 2}), (0.2, {"level": 1})])
@pytest.mark.parametrize("both", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_proposals_it_is_judged_as_any_patch(path: Path, good: float, ends: dict[str, int], both: bool) -> None:
    memory, served = Both() if both else Memory(), Memory()
    agent = failing(lambda level: 0.95 if level == 1 else good, served, seed=3)

    def run() -> str:
        served.config = {**memory.config, **(current_patch() or {})}
        return agent()

    with Guard(store=path, config_adapter=memory, clock=Clock(1.0), wait_s=60) as guard:
        for _ in range(100):
            attempt(guard, run)
        assert guard.propose("a", {"level": 2})
        for _ in range(1500):
            attempt(guard, run)
        assert memory.config == ends
        assert ("confirmed" in kinds(guard.history("a", 10_000))) is (good == 1.0)
        checked(guard)


def attempt(guard: Guard, agent: Any) -> None:
    with suppress(Boom):
        guard.run(agent, agent="a")


@pytest.mark.parametrize("adapter", [True, False])
def test_proposals_a_patch_that_the_bounds_refuse_is_refused_at_once(path: Path, adapter: bool) -> None:
    with Guard(store=path, config_adapter=Memory() if adapter else None, bounds=NARROW) as guard:
        with pytest.raises(ValueError, match="patch: level = 12 is refused by range: must be in"):
            guard.propose("a", {"level": 12})
        with pytest.raises(ValueError, match="model = 'b' is refused by key"):
            guard.propose("a", {"model": "b"})
        assert guard.history("a") == []


@pytest.mark.slow
def test_proposals_a_step_that_is_too_long_is_refused_where_it_can_be_measured(path: Path) -> None:
    with Guard(store=path, bounds=NARROW) as guard:
        assert guard.propose("a", {"level": 5})
    with Guard(store=path, config_adapter=Memory(), bounds=NARROW) as guard:
        with pytest.raises(ValueError, match="level = 6 is refused by step"):
            Guard.propose(guard, "b", {"level": 6})
        guard.status("a")
        until(lambda: "withheld" in kinds(guard.history("a")))
        assert "is refused by step" in guard.history("a")[-1].why
        assert guard.status("a").waiting is None


def test_proposals_neither_auto_apply_nor_memory_stand_in_its_way(path: Path) -> None:
    memory = Memory()
    memory.config["auto_apply"] = False
    with Guard(store=path, config_adapter=memory, bounds=NARROW) as guard:
        call(guard, 20)
        assert guard.propose("a", {"level": 2, "auto_apply": False})
        assert guard.status("a").patch == {"level": 2}
        assert guard.rollback("a")
        assert guard.propose("a", {"level": 2}, "once more")
        assert memory.config["level"] == 2
        checked(guard)


@pytest.mark.parametrize(
    ("patch", "error", "why"),
    [
        ([("level", 2)], TypeError, "patch must be a mapping"),
        ({}, ValueError, "is empty"),
        ({"auto_apply": True}, ValueError, "is empty"),
        ({"level": {1}}, ValueError, "plain JSON"),
        ({"level": float("nan")}, ValueError, "plain JSON"),
        ({1: 2}, ValueError, "plain JSON"),
        ({"\ud800": 2}, ValueError, "plain JSON"),
        ({"text": "x" * 70_000}, ValueError, "65,536 bytes"),
    ],
)
def test_proposals_what_is_no_patch_is_named(path: Path, patch: Any, error: type[Exception], why: str) -> None:
    with Guard(store=path, config_adapter=Memory()) as guard:
        with pytest.raises(error, match=why):
            guard.propose("a", patch)
        assert guard.history("a") == []


def test_proposals_an_adapter_that_cannot_is_told_apart(path: Path) -> None:
    memory = Memory(returns=False)
    with Guard(store=path, config_adapter=memory) as guard:
        call(guard, 20)
        assert not guard.propose("a", {"level": 2})
        assert kinds(guard.history("a"))[-1] == "not_applied"

        def get_config(*, agent_id: str) -> dict[str, Any]:
            raise OSError("no disk")

        memory.get_config = get_config  # type: ignore[method-assign]
        assert not guard.propose("a", {"level": 3})
        assert guard.history("a")[-1].why == "the configuration could not be read: OSError"


def test_it_takes_the_place_of_a_patch_that_waits_and_the_ledger_says_so(path: Path) -> None:
    memory = Memory()
    thresholds = {"a": Override(failures=2, cooldown_h=0)}
    with Guard(
        store=path, strategy=Proposes({"level": 5}), config_adapter=memory, bounds=None, thresholds=thresholds
    ) as guard:
        call(guard, 2, fails=True)
        waiting = guard.status("a").waiting
        assert waiting is not None
        assert waiting["patch"] == {"level": 5}
        assert guard.propose("a", {"level": 2}, "mine")
        assert guard.status("a").waiting is None
        assert guard.store is not None
        records = ledger(read_decisions(guard.store, "a", -1))
        assert [(record.patch, record.outcome) for record in records] == [
            ({"level": 5}, "replaced"),
            ({"level": 2}, "on trial"),
        ]
        assert records[1].failures is None
        assert records[1].approved_at is not None
        checked(guard)


def test_a_strategy_that_is_being_asked_meanwhile_gives_way(path: Path) -> None:
    memory = Memory()

    class Asks(Proposes):
        def analyze(self, **given: Any) -> Any:
            with Store(path) as store:
                assert request_proposal(store, "a", {"level": 2}, "mine")
            return super().analyze(**given)

    thresholds = {"a": Override(failures=2, cooldown_h=0)}
    bounds = Bounds({"level": Bound(least=0, most=9)})
    with Guard(
        store=path, strategy=Asks({"level": 5}), config_adapter=memory, bounds=bounds, thresholds=thresholds
    ) as guard:
        call(guard, 2, fails=True)
        told = guard.history("a")
        assert kinds(told) == ["asked", "trial_wanted", "declined", "approved", "accepted", "serving"]
        assert (first(told, "approved").why, memory.applied) == ("mine", [{"level": 2}])
        checked(guard)
