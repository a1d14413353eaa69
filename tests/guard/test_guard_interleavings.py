"""Random lives of an agent: several guards on one store, adapters that fail, persons who ask, processes that end."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coherence.guard import Guard, flushing, requests
from coherence.guard.bound import Bound
from coherence.guard.bounds import Bounds
from coherence.guard.frequency import AdaptiveThresholds, Override
from coherence.guard.happenings import (
    Accepted,
    ApprovalWanted,
    Approved,
    Asked,
    Confirmed,
    Dropped,
    Ending,
    NotApplied,
    Refused,
    Restored,
    RollbackWanted,
    Serving,
    Withheld,
)
from coherence.guard.patching import LEASE_S
from coherence.guard.requests import request_approval, request_decline, request_rollback
from coherence.guard.traces import Past, encode_account, read_account
from coherence.store.store import Store
from guard.helpers import Boom, kinds

BOUNDS = {auto: Bounds({"level": Bound(least=0, most=10**6)}, auto_apply=auto) for auto in (False, True)}
THRESHOLDS = AdaptiveThresholds({"a": Override(failures=2, cooldown_h=0)})


class Killed(BaseException):
    """The process ends here: nothing more of this step is written."""


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
        patched.setattr(requests, "time", SimpleNamespace(time=world.clock))
        yield


def look(guard: Guard) -> None:
    """Do what the thread of a guard does once a second, here and now."""
    view = guard._runner.view("a")
    actor = guard._actor
    assert actor is not None
    actor.catch_up([view])
    actor._steps(view, False, set())


def agrees(guard: Guard) -> None:
    """What a process has in memory is what the trail alone gives."""
    view = guard._runner.view("a")
    view.refresh()
    assert guard.store is not None
    assert encode_account(read_account(guard.store, "a")) == encode_account(view.account)
    with suppress(Boom), guard.store.transaction() as transaction:
        transaction.execute("UPDATE guard_agents SET kept = 0, data = NULL")
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
        if isinstance(step, Accepted):
            assert not on_trial
            number, on_trial, in_force = number + 1, True, False
            backups[number] = step.backup
        elif isinstance(step, Serving):
            assert on_trial
            assert not in_force  # never applied twice without a restore between
            in_force = True
        elif isinstance(step, Restored):
            in_force = False
        elif isinstance(step, Confirmed | NotApplied):
            assert on_trial
            on_trial = False
        if isinstance(step, RollbackWanted):
            assert asked.get(step.number) is None  # asked for once, until it is done
            asked[step.number] = past.seq
        elif isinstance(step, Dropped) or (isinstance(step, Ending) and not step.pause):
            holder = number if on_trial else max((n for n in backups if n not in ended), default=0)
            assert holder not in ended  # never carried out twice
            if isinstance(step, Dropped) or on_trial:
                on_trial = False
            ended.add(holder)
        elif isinstance(step, ApprovalWanted):
            approved_by_person += 1
        elif isinstance(step, Refused):
            approved_by_person = 0
        elif isinstance(step, Approved):
            assert approved_by_person == 1
        elif isinstance(step, Withheld | Accepted):
            approved_by_person = 0


ASKED_FOR = ("rollback", "approve", "decline", "ask_rollback", "ask_approval", "ask_decline")
STEPS = st.tuples(
    st.sampled_from(["bad"] * 6 + ["good"] * 4 + ["fails"] * 2 + ["wait"] * 3 + ["look", "restart"] + [*ASKED_FOR] * 2),
    st.integers(0, 2),
    st.integers(0, 99),
)
WAITS_S = (1, 30, 130, 4000, 8 * 86_400)
REQUESTS = {"ask_rollback": request_rollback, "ask_approval": request_approval, "ask_decline": request_decline}


def live(world: World, guards: list[Guard], path: Path, step: tuple[str, int, int]) -> None:
    kind, which, more = step
    if kind in ("bad", "good"):
        for _ in range(1 + more % (4 if kind == "bad" else 40)):
            call(guards[which], kind == "good")
    elif kind == "fails":
        world.fails = {("get", "apply", "restore", "")[more % 4]} - {""}
    elif kind == "wait":
        world.now_s += WAITS_S[more % 5]
    elif kind == "restart":
        guards[which].close()
        guards[which] = world.guard(path, which)
    elif kind == "look":
        look(guards[which])
    elif kind in REQUESTS:
        store = guards[which].store
        assert store is not None
        REQUESTS[kind](store, "a", kind)
    else:
        getattr(guards[which], kind)("a")


@settings(max_examples=25, deadline=None)
@given(st.lists(STEPS, min_size=10, max_size=40))
def test_whatever_happens_processes_agree_and_nothing_is_lost_or_done_twice(steps: list[tuple[str, int, int]]) -> None:
    world = World()
    with by_hand(world), TemporaryDirectory() as folder:
        path = Path(folder) / "guard.db"
        guards = [world.guard(path, number) for number in range(3)]
        for step in steps:
            live(world, guards, path, step)
        for guard in guards:
            agrees(guard)
        settle(world, guards[0])
        for guard in guards:
            agrees(guard)
        check_history(guards[0].history("a", 10_000))
        for guard in guards:
            guard.close()


def settle(world: World, guard: Guard) -> None:
    """Let all go well again: then nothing that a person asked for is left."""
    world.fails = set()
    for _ in range(12):
        world.now_s += LEASE_S + 3600
        look(guard)
    patching = guard._runner.view("a").account.patching
    assert patching.wish is None
    assert patching.owner == ""
    for _ in range(400):  # an approval waits until the patch on trial has its verdict
        if guard.status("a").phase == "idle":
            break
        world.now_s += 1
        call(guard, True)
    look(guard)
    waiting = guard._runner.view("a").account.patching.waiting
    assert waiting is None or waiting.approved is None
    trial = guard._runner.view("a").account.patching.trial
    standing = guard._runner.view("a").account.patching.standing
    held = standing if trial is None else trial
    if trial is None:
        assert world.config == ({"level": 0} if held is None else {**held.backup, **held.patch})


PHASES = {"asking": "analyze", "reviewing": "get_config", "applying": "apply_config", "restoring": "rollback_config"}


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("request_of", ["none", "rollback", "approval"])
def test_a_process_that_goes_in_any_phase_leaves_all_to_the_next(tmp_path: Path, phase: str, request_of: str) -> None:
    path, world = tmp_path / "guard.db", World()
    with by_hand(world):
        first = world.guard(path, 1)  # asks a person
        call(first, False)
        call(first, False)
        with Store(path) as store:
            if phase == "restoring":
                assert first.approve("a")
                assert first.status("a").phase == "serving"
                request_rollback(store, "a", "x")
            elif phase != "asking":
                request_approval(store, "a", "x")
            actor = first._actor
            assert actor is not None
            hang(actor, phase)
            with suppress(Killed):
                if phase == "asking":
                    view = first._runner.view("a")
                    view.write(lambda account: (world.now_s, Asked(owner="gone", failures=1)))
                else:
                    look(first)
            assert read_account(store, "a").patching.phase == phase
            if request_of == "rollback":
                request_rollback(store, "a", "stop")
            elif request_of == "approval":
                request_approval(store, "a", "go")
        second = world.guard(path, 1)  # it knows what is in the store, and no more
        before = second.status("a")
        look(second)
        assert second.status("a").phase == phase  # a claim is left alone for a while
        assert before.trouble == ""
        world.now_s += LEASE_S
        assert "has not answered for 120 s" in second.status("a").trouble
        look(second)
        assert second.status("a").trouble == ""
        history = second.history("a", 1000)
        check_history(history)
        agrees(second)
        if phase == "reviewing" or (phase == "asking" and request_of == "approval"):
            assert (second.status("a").phase, world.config) == ("serving", {"level": 2})
        elif phase in ("applying", "restoring"):
            assert (second.status("a").phase, world.config) == ("idle", {"level": 0})
        second.close()
        first.close()


def hang(actor: Any, phase: str) -> None:
    """Let a guard's process go in the middle of what a phase is about."""

    def gone(*_: Any) -> Any:
        raise Killed

    follow = actor._do

    def do(view: Any, owner: str, step: Any) -> Any:
        return gone() if view.account.patching.phase == phase else follow(view, owner, step)

    actor._do = do


@pytest.mark.parametrize("seed", range(3))
def test_threads_and_guards_that_all_act_at_once(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    path, world = tmp_path / "guard.db", World()
    world.levels = 10**6
    monkeypatch.setattr(requests, "time", SimpleNamespace(time=world.clock))
    guards = [world.guard(path, number) for number in range(3)]
    errors: list[BaseException] = []

    def work(number: int) -> None:
        drawn = random.Random(100 * seed + number)
        try:
            for _ in range(150):
                guard = guards[drawn.randrange(3)]
                action = drawn.choice(["call"] * 12 + ["rollback", "approve", "decline", *REQUESTS])
                if action == "call":
                    call(guard, drawn.random() < 0.7)
                elif action in REQUESTS:
                    assert guard.store is not None
                    REQUESTS[action](guard.store, "a", action)
                else:
                    getattr(guard, action)("a")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    with by_hand(world):
        settle(world, guards[0])
    history = guards[0].history("a", 100_000)
    for guard in guards:
        agrees(guard)
        assert guard.errors == {}
        guard.close()
    check_history(history)
    assert any(isinstance(past.decision, RollbackWanted) for past in history)
    assert any(isinstance(past.decision, Approved) for past in history)


def test_a_process_that_was_too_slow_does_not_answer_for_the_one_that_took_over(tmp_path: Path) -> None:
    path, world = tmp_path / "guard.db", World()
    with by_hand(world):
        slow, quick = world.guard(path, 1), world.guard(path, 1)
        call(slow, False)
        call(slow, False)
        read, started = world.get_config, list[int]()

        def get_config(*, agent_id: str) -> dict[str, Any]:
            if not started:
                started.append(1)
                world.now_s += LEASE_S
                look(quick)
            return read(agent_id=agent_id)

        world.get_config = get_config  # type: ignore[method-assign]
        assert slow.approve("a")
        kinds_of = kinds(slow.history("a"))
        assert kinds_of == ["asked", "proposed", "approval_wanted", "approved", "approved", "accepted", "serving"]
        assert world.log == [("apply", {"level": 2})]
        slow.close()
        quick.close()


def test_a_rollback_asked_for_while_an_approved_patch_is_reviewed_comes_first(tmp_path: Path) -> None:
    path, world = tmp_path / "guard.db", World()
    with by_hand(world), world.guard(path, 1) as guard:
        call(guard, False)
        call(guard, False)
        assert guard.approve("a")
        while guard.status("a").phase != "idle":
            call(guard, True)
        while guard.status("a").waiting is None:
            call(guard, False)
        read = world.get_config

        def get_config(*, agent_id: str) -> dict[str, Any]:
            assert guard.store is not None
            assert request_rollback(guard.store, "a", "meanwhile")
            return read(agent_id=agent_id)

        world.get_config = get_config  # type: ignore[method-assign]
        assert guard.approve("a")
        assert kinds(guard.history("a"))[-5:] == ["approved", "rollback_wanted", "withheld", "ending", "restored"]
        status = guard.status("a")
        assert (world.config, status.patch) == ({"level": 0}, None)
        assert status.waiting is not None  # it can be approved again
        assert status.waiting["approved"] is None
