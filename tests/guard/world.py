"""A small world for guards: one configuration, one clock, and the rules that every trail keeps."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from coherence.guard import Guard
from coherence.guard import runner as flushing
from coherence.guard.bounds import Bound, Bounds
from coherence.guard.traces import Past, encode_account, read_account
from coherence.guard.trigger import Override
from guard import helpers
from guard.helpers import Boom

BOUNDS = {auto: Bounds({"level": Bound(least=0, most=10**6)}, auto_apply=auto) for auto in (False, True)}
THRESHOLDS = {"a": Override(failures=2, cooldown_h=0)}


class World:
    """One configuration, one clock, and what an adapter did; each process has an adapter of its own."""

    def __init__(self) -> None:
        self.now_s = 1_700_000_000.0
        self.config: dict[str, Any] = {"level": 0}
        self.fails: set[str] = set()
        self.log: list[tuple[str, dict[str, Any]]] = []
        self.lock = threading.Lock()
        self.level, self.levels = 0, 9  # so many patches are proposed in turn

    def clock(self) -> float:
        return self.now_s

    def analyze(self, **given: Any) -> dict[str, Any]:
        self.level = (self.level + 1) % self.levels
        return {"level": 1 + self.level}

    def get_config(self, *, agent_id: str) -> dict[str, Any]:
        if "get" in self.fails:
            raise OSError("get")
        return dict(self.config)

    def apply_config(self, *, agent_id: str, config_patch: dict[str, Any]) -> bool:
        if "apply" in self.fails:
            raise OSError("apply")
        with self.lock:
            self.log.append(("apply", config_patch))
            self.config.update(config_patch)
        return True

    def rollback_config(self, *, agent_id: str, backup_config: dict[str, Any]) -> None:
        if "restore" in self.fails:
            raise OSError("restore")
        with self.lock:
            self.log.append(("restore", backup_config))
            self.config = dict(backup_config)

    def guard(self, store: Path, number: int) -> Guard:
        adapter = None if number == 2 else self
        return Guard(
            store=store, strategy=self, config_adapter=adapter, bounds=BOUNDS[number == 0], thresholds=THRESHOLDS,
            durability="full", canary_slice=3, clock=self.clock, return_on_decay=number == 0,
        )  # fmt: skip


def call(guard: Guard, succeeds: bool) -> None:
    def agent() -> None:
        if not succeeds:
            raise Boom("no")

    with suppress(Boom):
        guard.run(agent, agent="a")


@contextmanager
def by_hand(world: World) -> Iterator[None]:
    """Nothing happens in the background, and all have one clock: the order of steps is the drawn one."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(flushing, "LOOK_S", 3600.0)
        patched.setattr(helpers, "now", world.clock)
        yield


def look(guard: Guard) -> None:
    """Do what the thread of a guard does once a second, here and now."""
    view = guard._runner.view("a")
    actor = guard._actor
    assert actor is not None
    views = guard._runner._views
    assert views is not None
    actor.catch_up(views)
    actor._steps(view, False, set())


def agrees(guard: Guard) -> None:
    """Assert that the trail alone gives the account that a process has in memory."""
    view = guard._runner.view("a")
    view.refresh()
    assert guard.store is not None
    assert encode_account(read_account(guard.store, "a")) == encode_account(view.account)
    with suppress(Boom), guard.store.transaction() as transaction:
        transaction.execute("UPDATE guard_accounts SET kept = 0, data = NULL")
        assert encode_account(read_account(transaction, "a")) == encode_account(view.account)
        raise Boom("undo")


def check_history(history: list[Past]) -> None:
    """Follow a trail: one patch at a time, each request answered once."""
    in_force = on_trial = False
    number, ended = 0, set[int]()
    backups, asked = dict[int, dict[str, Any]](), dict[int, int]()
    approved_by_person = 0
    for past in history:
        step = past.decision
        if step.kind == "accepted":
            assert not on_trial
            number, on_trial, in_force = number + 1, True, False
            backups[number] = step.backup
        elif step.kind == "serving":
            assert on_trial
            assert not in_force  # never applied twice without a restore between
            in_force = True
        elif step.kind == "restored":
            in_force = False
        elif step.kind in ("confirmed", "not_applied"):
            assert on_trial
            on_trial = False
        if step.kind == "rollback_wanted":
            assert asked.get(step.number) is None  # asked for once, until it is done
            asked[step.number] = past.seq
        elif step.kind == "dropped" or (step.kind == "ending" and not step.pause):
            holder = number if on_trial else max((n for n in backups if n not in ended), default=0)
            assert holder not in ended  # never carried out twice
            if step.kind == "dropped" or on_trial:
                on_trial = False
            ended.add(holder)
        elif step.kind in ("approval_wanted", "trial_wanted"):
            approved_by_person += 1
        elif step.kind == "refused":
            approved_by_person = 0
        elif step.kind == "approved":
            assert approved_by_person == 1
        elif step.kind in ("withheld", "accepted"):
            approved_by_person = 0
