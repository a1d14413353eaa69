"""Processes that end, or are too slow, in each phase of a patch."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from coherence.guard.patch_events import Decision
from coherence.guard.patches import LEASE_S
from coherence.guard.traces import read_account
from coherence.store.store import Store
from guard.helpers import kinds, request_approval, request_rollback
from guard.world import World, agrees, by_hand, call, check_history, look


class Killed(BaseException):
    """The process ends here: nothing more of this step is written."""


@pytest.mark.parametrize("phase", ["asking", "reviewing", "applying", "restoring"])
@pytest.mark.parametrize("request_of", ["none", "rollback", "approval"])
def test_guard_a_process_that_goes_in_any_phase_leaves_all_to_the_next(
    tmp_path: Path, phase: str, request_of: str
) -> None:
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
                    view.decide(world.clock, lambda *_: Decision("asked", owner="gone", failures=1))
                else:
                    look(first)
            assert read_account(store, "a").patching.phase == phase
            assert world.config == {"level": 2 if phase == "applying" else 0}
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
        assert "has not answered for 2 min" in second.status("a").trouble
        look(second)
        assert second.status("a").trouble == ""
        history = second.history("a", 1000, slices=True)
        check_history(history)
        agrees(second)
        if phase == "reviewing" or (phase == "asking" and request_of == "approval"):
            assert (second.status("a").phase, world.config) == ("serving", {"level": 2})
        elif phase in ("applying", "restoring"):
            assert (second.status("a").phase, world.config) == ("idle", {"level": 0})
        second.close()
        first.close()


def hang(actor: Any, phase: str) -> None:
    """Let a guard's process go once it has done what a phase is about, and before it writes so."""
    follow = actor._do

    def do(view: Any, owner: str, step: Any) -> Any:
        last, result = view.account.patching.phase == phase, follow(view, owner, step)
        if last:
            raise Killed
        return result

    actor._do = do


def test_guard_a_process_that_was_too_slow_does_not_answer_for_the_one_that_took_over(tmp_path: Path) -> None:
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


def test_approve_a_rollback_asked_for_while_an_approved_patch_is_reviewed_comes_first(tmp_path: Path) -> None:
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
