"""Agents, adapters and strategies for tests: real ones, small."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from math import exp, lgamma, log
from pathlib import Path
from typing import Any

from coherence.guard import Guard
from coherence.guard.bounds import Bound, Bounds
from coherence.guard.patch_events import Decision
from coherence.guard.sequential import WORSE
from coherence.guard.traces import Past, Trace
from coherence.store.store import Store

BOUNDS = Bounds({"level": Bound(least=0, most=9)})


class Clock:
    """A wall clock that moves on by so many seconds each time it is read, and can be set."""

    def __init__(self, step_s: float = 30.0) -> None:
        self.now_s, self.step_s = 1_700_000_000.0, step_s

    def __call__(self) -> float:
        self.now_s += self.step_s
        return self.now_s


class Memory:
    """A configuration in memory."""

    def __init__(self, *, returns: object = True) -> None:
        self.config: dict[str, Any] = {"level": 1}
        self.returns = returns
        self.applied: list[dict[str, Any]] = []
        self.restored: list[dict[str, Any]] = []

    def get_config(self, *, agent_id: str) -> Mapping[str, Any]:
        return dict(self.config)

    def apply_config(self, *, agent_id: str, config_patch: dict[str, Any]) -> object:
        self.applied.append(config_patch)
        if isinstance(self.returns, BaseException):
            raise self.returns
        if self.returns:
            self.config.update(config_patch)
        return self.returns

    def rollback_config(self, *, agent_id: str, backup_config: dict[str, Any]) -> object:
        self.restored.append(backup_config)
        self.config = dict(backup_config)
        return None


class Both(Memory):
    """Serves both configurations at once."""

    serves_both = True


class Proposes:
    """Proposes the same each time."""

    def __init__(self, patch: Any) -> None:
        self.patch = patch
        self.asked: list[tuple[str, int, dict[str, float | None]]] = []

    def analyze(
        self, *, agent_id: str, traces: Sequence[Trace], before_metrics: Mapping[str, float | None]
    ) -> Mapping[str, Any] | None:
        self.asked.append((agent_id, len(traces), dict(before_metrics)))
        if isinstance(self.patch, BaseException):
            raise self.patch
        found: Mapping[str, Any] | None = self.patch
        return found


def patched(store: Path, adapter: Any, **more: Any) -> Guard:
    """Return a guard whose strategy proposes level 2, within bounds; a second passes whenever its clock is read."""
    usual = {"strategy": Proposes({"level": 2}), "config_adapter": adapter, "bounds": BOUNDS, "clock": Clock(1.0)}
    return Guard(store=store, **(usual | more))


class Boom(Exception):
    """Exception that an agent raises."""


def failing(rate_of: Callable[[int], float], config: Memory, seed: int = 1) -> Callable[[], str]:
    """Return an agent whose rate of success follows from its level."""
    drawn = random.Random(seed)

    def agent() -> str:
        if drawn.random() >= rate_of(config.config["level"]):
            raise Boom("no")
        return "done"

    return agent


def call(guard: Guard, times: int, *, fails: bool = False, agent: str = "a") -> None:
    """Run so many calls of an agent, which all succeed or all fail."""

    def work() -> None:
        if fails:
            raise Boom("no")

    for _ in range(times):
        with suppress(Boom):
            guard.run(work, agent=agent)


def until(found: Callable[[], object]) -> None:
    """Wait for what must come; a test that waits for ever has failed."""
    for _ in range(6_000):
        if found():
            return
        time.sleep(0.01)
    raise AssertionError("it did not come")


def kinds(history: Sequence[Past]) -> list[str]:
    return [past.decision.kind for past in history]


def first(history: Sequence[Past], kind: str) -> Decision:
    return next(past.decision for past in history if past.decision.kind == kind)


def log_beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)


def mixture(
    rates: Sequence[tuple[float, float]], null: tuple[float, float], seen_beyond: int, seen_within: int
) -> float:
    """The capital of bets on fixed rates, each with its stake, at the odds of a beta distribution."""
    odds = log_beta(null[0] + seen_beyond, null[1] + seen_within) - log_beta(*null)
    return sum(stake * exp(seen_beyond * log(r) + seen_within * log(1 - r) - odds) for r, stake in rates)


@cache
def capital(beyond: int, within: int, seen_beyond: int, seen_within: int) -> float:
    """The closed form of the evidence of harm: the beta-binomial law of the calls, in any order."""
    a, b = beyond + 1.0, float(within)
    rates = [(a / (a + b) + moved * b / (a + b), stake) for moved, stake in WORSE]
    return mixture(rates, (a, b), seen_beyond, seen_within)


now = time.time
"""Clock of those who ask from elsewhere."""


def elsewhere(store: Store) -> Guard:
    """Return a guard of a process that has no adapter."""
    return Guard(store=store, clock=lambda: now())


def request_rollback(store: Store, agent: str, why: str) -> bool:
    """Ask for a rollback as a command does; return whether it is asked for now or was before."""
    with elsewhere(store) as guard:
        guard.rollback(agent, why)
        return guard._view(agent).account.patching.wish is not None


def request_approval(store: Store, agent: str, why: str, seq: int | None = None) -> bool:
    """Approve as a command does; return whether the patch is approved now or was before."""
    with elsewhere(store) as guard:
        return guard.approve(agent, why, seq)


def request_proposal(store: Store, agent: str, patch: dict[str, Any], why: str) -> bool:
    with elsewhere(store) as guard:
        return guard.propose(agent, patch, why)


def request_decline(store: Store, agent: str, why: str, seq: int | None = None) -> bool:
    with elsewhere(store) as guard:
        return guard.decline(agent, why, seq)
