"""A configuration that came without a patch is watched as well."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from coherence.guard import Guard, Notice
from coherence.guard.account import Account
from coherence.guard.classic import Metrics
from coherence.guard.patch_events import Decision, GuardedCall
from coherence.guard.patch_state import UNPATCHED_CALLS
from guard.helpers import Boom, Clock, kinds
from guard.trails import verified

ACCEPTED = Decision("accepted",
    owner="me", patch={"level": 2}, backup={"level": 1}, policy="sequential", share=0.2, slice=10, both=True,
    before=Metrics(),
)  # fmt: skip


def run(guard: Guard, rate: float, times: int, chance: random.Random) -> None:
    for _ in range(times):
        with suppress(Boom):
            guard.run(lambda: fail_at(1 - rate, chance), agent="a")


def fail_at(rate: float, chance: random.Random) -> None:
    if chance.random() < rate:
        raise Boom("no")


def test_a_guard_with_nothing_but_a_notifier_tells_once_that_success_fell(tmp_path: Path) -> None:
    chance, notices = random.Random(1), list[Notice]()
    with Guard(store=tmp_path / "guard.db", notifier=notices.append, clock=Clock(30.0)) as guard:
        run(guard, 0.98, 200, chance)
        assert guard.status("a").trouble == ""
        run(guard, 0.3, 15, chance)
        (notice,) = notices
        assert (notice.kind, notice.patch) == ("decayed", None)
        assert notice.why.startswith("success got worse: ")
        run(guard, 0.3, 100, chance)
        assert [notice.kind for notice in notices] == ["decayed"]
        assert kinds(guard.history("a")) == ["decayed"]
        assert guard.status("a").trouble == "the configuration got worse and has not recovered: success"
        run(guard, 1.0, 200, chance)
        assert guard.status("a").trouble == ""
        assert guard.errors == {}
        guard.flush()
        assert guard.store is not None
        found = verified(guard.store)
        assert (found.faults, found.unknown, found.steps) == ([], 0, 1)


def account(calls: int = 2 * UNPATCHED_CALLS) -> Account:
    found = Account()
    record(found, calls, lambda call: call % 10 != 9)
    return found


def record(account: Account, calls: int, succeeds: Callable[[int], bool]) -> None:
    for call in range(calls):
        account.observe(0.0, GuardedCall(succeeds(call), 1.0, epoch=account.patching.epoch))


def steps(account: Account, *decisions: Decision) -> None:
    for step in decisions:
        account.observe(0.0, step)


def due(account: Account) -> Decision | None:
    return account.patching.due("me", 0.0, returns=True)


def test_guard_unpatched_a_burst_with_which_it_begins_is_not_taken_for_usual() -> None:
    found = Account()
    record(found, UNPATCHED_CALLS, lambda call: call < UNPATCHED_CALLS - 6)
    watching = found.patching.unpatched
    assert watching is not None
    # 94 successes; the burst reaches back to the last of them
    assert (watching.watch.baseline.calls, watching.watch.baseline.successes) == (93, 93)


def test_it_goes_on_while_a_patch_is_on_trial_and_after_it_was_dropped() -> None:
    found = account()
    watching = found.patching.unpatched
    steps(found, Decision("asked", owner="me", failures=0), ACCEPTED)
    record(found, 30, lambda call: False)
    assert (step := due(found)) is not None
    assert (step.kind, step.returns) == ("decayed", False)
    seq = found.seq + 1
    steps(found, due(found))  # type: ignore[arg-type]
    assert due(found) is None
    steps(found, Decision("dropped", why="x"))
    assert found.patching.unpatched is watching
    assert watching is not None
    assert watching.told == seq
    assert watching.watch.worse == ("success",)


def test_a_confirmed_patch_has_a_watch_of_its_own_and_what_comes_back_is_learned_anew() -> None:
    found = account()
    steps(found, Decision("asked", owner="me", failures=0), ACCEPTED)
    for _ in range(60):
        found.observe(0.0, GuardedCall(True, 1.0, epoch=found.patching.epoch, patched=True))
    steps(found, Decision("confirmed", why="x"))
    assert found.patching.unpatched is None
    assert found.patching.watching is found.patching.standing
    steps(found, Decision("ending", owner="me", why="a person asked"), Decision("restored"))
    assert found.patching.watching is None
    record(found, UNPATCHED_CALLS, lambda call: True)
    assert found.patching.watching is not None


def test_guard_unpatched_calls_of_the_patch_on_trial_are_not_watched() -> None:
    found = account()
    steps(found, Decision("asked", owner="me", failures=0), ACCEPTED, Decision("serving"))
    for _ in range(50):
        found.observe(0.0, GuardedCall(False, 1.0, epoch=found.patching.epoch, patched=True))
    assert found.patching.unpatched is not None
    assert found.patching.unpatched.watch.worse == ()
