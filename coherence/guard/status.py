"""The status of an agent under guard, from its account."""

from __future__ import annotations

from typing import Any

import msgspec

from coherence.core.readings import span, times
from coherence.guard.account import Account
from coherence.guard.patch_state import Waiting
from coherence.guard.patches import Patching
from coherence.guard.rolling import Summary

SLOW_S = 10.0
"""A claim or a wish that is older is reported."""


class Status(msgspec.Struct, frozen=True):
    """Status of an agent."""

    agent: str
    calls: int
    failures: int
    newest: Summary
    """The newest 100 calls."""
    phase: str
    patch: dict[str, Any] | None
    """The patch on trial, or the confirmed one."""
    patched_calls: int
    """Calls that the patch on trial has served and that are judged; 0 without one."""
    waiting: dict[str, Any] | None
    """The proposal that waits for a person: its ``patch``, ``why`` it is not applied, the entry that proposed it
    (``seq``), and why a person has ``approved`` it, or None."""
    trouble: str
    """What does not go on as it should, in words: a restore that fails, a process that has not answered for
    10 s or longer, a request that nobody has taken up, a configuration that got worse and has not recovered. Empty =
    nothing."""


def status_of(agent: str, account: Account, at: float) -> Status:
    """Return how an agent stands at a wall time, Unix seconds."""
    patching, rolling = account.patching, account.rolling
    trial, holder, waiting = patching.trial, patching.holder, patching.waiting
    return Status(
        agent=agent,
        calls=rolling.calls,
        failures=rolling.failures,
        newest=rolling.over_newest(),
        phase=patching.phase,
        patch=None if holder is None else dict(holder.patch),
        patched_calls=0 if trial is None else trial.after.calls,
        waiting=None if waiting is None else shown_waiting(waiting),
        trouble=trouble_of(patching, msgspec.structs.replace(account.clock).read(at)) or _decay(patching),
    )


def _decay(patching: Patching) -> str:
    worse = () if patching.watching is None else patching.watching.watch.worse
    what = "the configuration" if patching.standing is None else "the confirmed patch"
    return f"{what} got worse and has not recovered: {', '.join(worse)}" if worse else ""


def shown_waiting(waiting: Waiting) -> dict[str, Any]:
    """Return a proposal that waits as a status shows it."""
    return {"patch": dict(waiting.patch), "why": waiting.why, "seq": waiting.seq, "approved": waiting.approved}


def trouble_of(patching: Patching, now_s: float) -> str:
    """Return in words what does not go on as it should, or an empty text."""
    if patching.phase == "restoring" and not patching.owner:
        failed, left_s = f"restore failed {times(patching.attempts)}", patching.retry_s - now_s
        if left_s > -SLOW_S:
            return f"{failed}, the next attempt is due {'in ' + span(left_s) if left_s >= 1 else 'now'}"
        return f"{failed}, the next attempt was due {span(-left_s)} ago: nobody has begun it"
    if patching.owner and (since := now_s - patching.claimed_s) >= SLOW_S:
        doing = {"asking": "asks for a patch", "reviewing": "reviews a patch", "applying": "applies a patch"}
        return f"the process that {doing.get(patching.phase, 'restores')} has not answered for {span(since)}"
    if patching.wish is not None and (since := now_s - patching.wish.at_s) >= SLOW_S:
        return f"a rollback was asked for {span(since)} ago, and nobody has begun it"
    waiting = patching.waiting
    if patching.phase != "idle" or waiting is None or waiting.approved is None:
        return ""
    since = now_s - waiting.approved_s
    return f"a patch was approved {span(since)} ago, and nobody has taken it up" if since >= SLOW_S else ""
