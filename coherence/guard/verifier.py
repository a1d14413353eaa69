"""A guard's trail checked: the store's chain, and each step of the guard derived again from the entries before it.

The chain finds what was changed, cut off, or put in. It does not stop someone who writes the whole file anew: against
that, keep the newest hash where they cannot reach it. A trail does not say who asked for a rollback, and what an
adapter really did.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import msgspec

from coherence.guard.account import Account
from coherence.guard.adapter import FAILED
from coherence.guard.patch_events import Decision, GuardedCall
from coherence.guard.patches import Patching
from coherence.guard.traces import guarded_agents, kept_account, read_trail
from coherence.store.hash_chain import ChainFault
from coherence.store.store import Store

MAX_FAULTS = 1_000
"""Faults of an agent that are kept in words; all are counted."""

Derived: TypeAlias = Literal["yes", "no", "unknown", "by hand"]
"""``yes``: the rules yield the step from the entries before. ``by hand``: a person asked for it. ``unknown``: retention
has removed entries that it depends on. ``no``: the entries before do not yield it."""

_BY_RULE = ("approved", "ending", "retrying", "resuming", "confirmed", "dropped", "decayed")


class Rollback(msgspec.Struct, frozen=True):
    """A patch that was ended, and whether the trail says why."""

    patch: int
    """Its number among the patches of the agent, 1 or more."""
    seq: int
    """The entry that ended it."""
    why: str
    metric: str | None
    evidence: float | None
    limit: float | None
    calls: int
    """Calls that it served while on trial."""
    failures: int
    """Those of them that failed."""
    derived: Derived
    why_not: str
    """Reason why it was not derived, or is unknown; else empty."""


class TrailFault(msgspec.Struct, frozen=True):
    """One entry that is wrong."""

    seq: int
    what: str


class VerifiedAgent(msgspec.Struct):
    """The trail of one agent, checked."""

    agent: str
    entries: int = 0
    calls: int = 0
    patches: int = 0
    confirmed: int = 0
    steps: int = 0
    """Steps of the guard that were derived, or asked for by a person."""
    unknown: int = 0
    """Steps that cannot be judged."""
    fault_count: int = 0
    faults: list[TrailFault] = []
    rollbacks: list[Rollback] = []


class VerifiedGuards(msgspec.Struct, frozen=True):
    """Finding of :func:`verify_guards`."""

    verdict: Literal["verified", "unknown", "wrong"]
    """``verified``: the chain is intact, and every step of the guard was derived or asked for by a person."""
    head: str
    """The newest hash of the chain."""
    chain: list[ChainFault]
    """Faults of the chain, whatever room of the package wrote it."""
    agents: list[VerifiedAgent]


def verify_guards(store: Store, agent: str | None = None) -> VerifiedGuards:
    """Check a store's chain, and derive the decisions on all agents, or one, again.

    Raises
    ------
    StoreError
        If the store cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> from coherence.guard import Guard
    >>> with tempfile.TemporaryDirectory() as folder, Guard(store=f"{folder}/guard.db") as guard:
    ...     out = guard.run(lambda: "done", agent="support")
    ...     guard.flush()
    ...     found = verify_guards(guard.store)
    >>> found.verdict, found.agents[0].calls
    ('verified', 1)
    """
    chain = store.verify()
    agents = [verify_agent(store, name) for name in ([agent] if agent is not None else guarded_agents(store))]
    if chain or any(found.fault_count for found in agents):
        verdict: Literal["verified", "unknown", "wrong"] = "wrong"
    else:
        verdict = "unknown" if any(found.unknown for found in agents) else "verified"
    return VerifiedGuards(verdict, store.extent()[2], chain, agents)


def verify_agent(store: Store, agent: str) -> VerifiedAgent:
    """Fold an agent's trail from its first entry, and compare each step with what was due."""
    found = VerifiedAgent(agent)
    account, complete = Account(), True
    try:
        kept = kept_account(store, agent)
        for seq, at, happening in read_trail(store, agent):
            complete = complete and seq == account.seq + 1
            account.seq = seq - 1
            found.entries += 1
            if isinstance(happening, GuardedCall):
                found.calls += 1
            else:
                _compare(found, account, at, happening, complete)
            account.observe(at, happening)
            if seq == kept.seq and complete and kept != account:
                _fault(found, seq, "the account that was kept does not follow from the trail")
    except (msgspec.MsgspecError, TypeError, ValueError, ArithmeticError) as error:
        _fault(found, account.seq + 1, f"it cannot be read: {error}")
        return found
    if kept.seq > account.seq:
        _fault(found, account.seq, f"entries {account.seq + 1} to {kept.seq}, which were counted, are gone")
    return found


def _compare(found: VerifiedAgent, account: Account, at: float, step: Decision, complete: bool) -> None:
    patching = account.patching
    found.patches += step.kind == "accepted"
    found.confirmed += step.kind == "confirmed"
    if step.kind not in _BY_RULE:
        return
    derived, why_not = _derive(account, at, step) if complete else ("unknown", "earlier entries were removed")
    if derived == "no":
        _fault(found, account.seq + 1, why_not)
    found.unknown += derived == "unknown"
    found.steps += derived in ("yes", "by hand")
    if step.kind == "dropped" or (step.kind == "ending" and not step.pause):
        holder, trial = patching.holder, patching.trial
        calls, failures = (0, 0) if trial is None else (trial.after.calls, trial.after.calls - trial.after.successes)
        number = patching.number if holder is None else holder.number
        found.rollbacks.append(
            Rollback(
                number, account.seq + 1, step.why, step.metric, step.evidence, step.limit, calls, failures,
                derived, why_not,
            )
        )  # fmt: skip


def _derive(account: Account, at: float, step: Decision) -> tuple[Derived, str]:
    """Return whether a step is the one that was due, and if not, why not."""
    patching, now_s = account.patching, msgspec.structs.replace(account.clock).read(at)
    # a setting of the guard that wrote it, which only this entry tells
    returns = step.returns if step.kind == "decayed" else True
    due = patching.due(step.owner, now_s, returns=returns)
    differs = _difference(due, step)
    if not differs or _reported_by_owner(patching, step):
        by_hand = patching.wish is not None and patching.phase in ("idle", "serving", "paused")
        return ("by hand" if by_hand else "yes"), ""
    return "no", differs


def _reported_by_owner(patching: Patching, step: Decision) -> bool:
    """Return whether the owner reports that a patch could not be applied: that comes from outside, and from no rule."""
    if patching.phase != "applying" or step.kind != "ending" or step.owner != patching.owner:
        return False
    return step.why.startswith(FAILED) and not step.pause and step.metric is None


def _difference(due: Decision | None, step: Decision) -> str:
    """Return in words how a step differs from the one that was due; rounding on another machine is no difference."""
    if due is None or due.kind != step.kind:
        return f"{'nothing' if due is None else repr(due.kind)} was due, not {step.kind!r}"
    for name in step.__struct_fields__:
        one, other = getattr(step, name), getattr(due, name)
        floats = isinstance(one, float) and isinstance(other, float)
        if not (math.isclose(one, other, rel_tol=1e-9) if floats else one == other):
            return f"{name} is {one!r:.60}, and {other!r:.60} follows from the calls"
    return ""


def _fault(found: VerifiedAgent, seq: int, what: str) -> None:
    found.fault_count += 1
    if len(found.faults) < MAX_FAULTS:
        found.faults.append(TrailFault(seq, what))
