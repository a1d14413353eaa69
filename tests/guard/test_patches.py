from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.guard.account import Account
from coherence.guard.classic import Metrics
from coherence.guard.patch_events import Decision, GuardedCall
from coherence.guard.patch_state import in_share, in_slice
from coherence.guard.patches import LEASE_S, notice_of


def serving(both: bool = False) -> Account:
    account = Account()
    for _ in range(20):
        account.observe(0.0, GuardedCall(True, 1.0, epoch=0))
    account.observe(0.0, Decision("asked", owner="me", failures=0))
    account.observe(
        0.0,
        Decision("accepted",
            owner="me", patch={"level": 2}, backup={"level": 1}, policy="sequential", share=1.0, slice=10, both=both,
            before=Metrics(),
        ),
    )  # fmt: skip
    account.observe(0.0, Decision("serving"))
    return account


def test_patches_a_call_that_began_before_the_configuration_changed_is_counted_but_not_judged() -> None:
    account = serving()
    trial = account.patching.trial
    assert trial is not None
    account.observe(0.0, GuardedCall(False, 1.0, epoch=account.patching.epoch - 1))
    assert (trial.calls, trial.trial.calls, account.rolling.failures) == (1, 0, 1)
    account.observe(0.0, GuardedCall(False, 1.0, epoch=account.patching.epoch, patched=True))
    assert (trial.calls, trial.trial.calls, account.rolling.failures) == (2, 1, 2)


def test_notice_of_a_step_names_the_patch_on_trial_and_why_it_went_and_nothing_twice() -> None:
    account = serving()
    account.observe(0.0, Decision("confirmed", why="x"))
    account.observe(0.0, Decision("asked", owner="me", failures=2))
    told = []
    for step in (
        Decision("accepted", owner="me", patch={"level": 3}, backup={"level": 2}, share=0.5, slice=10),
        Decision("serving"),
        Decision("ending", owner="me", pause=True, why="slice"),
        Decision("restored"),
        Decision("resuming", owner="me"),
        Decision("serving"),
        Decision("ending", owner="me", why="success fell"),
        Decision("restore_failed", why="disk full"),
        Decision("retrying", owner="me"),
        Decision("restore_failed", why="disk full"),
        Decision("retrying", owner="me"),
        Decision("restored"),
    ):
        if (notice := notice_of("a", account.patching, step)) is not None:
            told.append((notice.kind, notice.why, notice.patch))
        account.observe(0.0, step)
    assert told == [
        ("accepted", "", {"level": 3}),
        ("serving", "", {"level": 3}),
        ("ending", "success fell", {"level": 3}),
        ("restore_failed", "disk full", {"level": 3}),
        ("restored", "success fell", {"level": 3}),
    ]


def due_kind(account: Account, now_s: float) -> str:
    step = account.patching.due("me", now_s, returns=False)
    return "" if step is None else step.kind


def test_patches_claims_are_left_to_their_owner_until_the_lease_ends() -> None:
    account = Account()
    account.observe(0.0, Decision("asked", owner="other", failures=1))
    assert account.patching.due("me", LEASE_S - 1, returns=False) is None
    assert due_kind(account, LEASE_S) == "declined"


def test_patches_restores_that_fail_wait_twice_as_long_each_time() -> None:
    account = serving()
    account.observe(0.0, Decision("ending", owner="me", why="x"))
    waits = []
    for _ in range(14):
        account.observe(account.now_s, Decision("restore_failed", why="x"))
        waits.append(account.patching.retry_s - account.now_s)
        assert account.patching.due("me", account.patching.retry_s - 0.5, returns=False) is None
        assert due_kind(account, account.patching.retry_s) == "retrying"
        account.observe(account.patching.retry_s, Decision("retrying", owner="me"))
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600]


@pytest.mark.parametrize("returns", [False, True])
def test_after_a_return_from_a_decayed_configuration_its_calls_are_no_baseline(returns: bool) -> None:
    account = serving()
    for _ in range(30):
        account.observe(0.0, GuardedCall(True, 1.0, epoch=account.patching.epoch, patched=True))
    account.observe(0.0, Decision("confirmed", why="x"))
    assert len(account.recent.newest) == 30  # those of the patch, in place of the 20 before it
    account.observe(0.0, Decision("decayed", metric="success", why="x", returns=returns))
    step = account.patching.due("me", 0.0, returns=returns)
    assert (step is not None and step.kind == "ending") == returns
    if step is not None:
        account.observe(0.0, step)
        account.observe(0.0, Decision("restored"))
        assert (account.recent.newest, account.patching.standing, account.patching.phase) == ([], None, "idle")


SHARES = st.floats(0, 1)
SALTS = st.text(max_size=20)


@given(SHARES, SALTS)
def test_in_share_takes_the_share_of_calls_that_is_asked_for(share: float, salt: str) -> None:
    count = sum(in_share(share, salt, f"call-{number}") for number in range(1000))
    # binomial: six standard deviations, and four calls for the skew of small shares; a fair hash fails once in 1e9
    assert abs(count - 1000 * share) <= 6 * math.sqrt(1000 * share * (1 - share)) + 4


@given(st.text(), SALTS, SHARES, SHARES)
def test_in_share_a_larger_share_keeps_the_calls_of_a_smaller_one(
    call_id: str, salt: str, one: Any, other: Any
) -> None:
    small, large = sorted((one, other))
    assert in_share(small, salt, call_id) <= in_share(large, salt, call_id)
    assert (in_share(0, salt, call_id), in_share(1, salt, call_id)) == (False, True)


def test_in_share_and_in_slice_every_process_draws_the_same() -> None:
    program = (
        "from coherence.guard.patch_state import in_share, in_slice\n"
        "print(''.join('01'[in_share(0.3, 'p\\u00e4h', f'c{n}')] + '01'[in_slice(0.3, 'p', 5, n)] for n in range(60)))"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    ]
    here = "".join("01"[in_share(0.3, "päh", f"c{n}")] + "01"[in_slice(0.3, "p", 5, n)] for n in range(60))
    assert runs == [here, here]


@given(SHARES, SALTS, st.integers(1, 20), st.integers(0, 500), st.integers(1, 200))
def test_in_slice_any_run_of_slices_holds_its_share_but_for_one(
    share: float, salt: str, length: Any, first: Any, count: Any
) -> None:
    patched = sum(in_slice(share, salt, length, number * length) for number in range(first, first + count))
    assert abs(patched - count * share) < 1 + 1e-9
