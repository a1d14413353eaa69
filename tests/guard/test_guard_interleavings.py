"""Random lives of an agent: several guards on one store, adapters that fail, persons who ask, processes that end."""

from __future__ import annotations

import random
import threading
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_sizes import examples

from coherence.guard import Guard
from coherence.guard.patches import LEASE_S
from guard import helpers
from guard.helpers import request_approval, request_decline, request_proposal, request_rollback
from guard.world import World, agrees, by_hand, call, check_history, look

ASKED_FOR = ("rollback", "approve", "decline", "ask_rollback", "ask_approval", "ask_decline", "propose", "ask_proposal")
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
    elif kind == "propose":
        with suppress(ValueError):  # it changes nothing
            guards[which].propose("a", {"level": 1 + more % 12})
    elif kind == "ask_proposal":
        store = guards[which].store
        assert store is not None
        request_proposal(store, "a", {"level": 1 + more % 12}, kind)
    else:
        getattr(guards[which], kind)("a")


@pytest.mark.slow
@examples(25)
@given(st.lists(STEPS, min_size=10, max_size=40))
def test_guard_whatever_happens_processes_agree_and_nothing_is_lost_or_done_twice(
    steps: list[tuple[str, int, int]],
) -> None:
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
        check_history(guards[0].history("a", 10_000, slices=True))
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


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_guard_threads_and_guards_that_all_act_at_once(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, world = tmp_path / "guard.db", World()
    world.levels = 10**6
    monkeypatch.setattr(helpers, "now", world.clock)
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
    history = guards[0].history("a", 100_000, slices=True)
    for guard in guards:
        agrees(guard)
        assert guard.errors == {}
        guard.close()
    check_history(history)
    assert any(past.decision.kind == "rollback_wanted" for past in history)
    assert any(past.decision.kind == "approved" for past in history)
