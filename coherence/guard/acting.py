"""The steps that reach outside: ask the strategy, apply, restore, tell. Each is claimed in the trail first."""

from __future__ import annotations

import contextvars
import itertools
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from coherence.guard.account import Account
from coherence.guard.bounds import Bounds
from coherence.guard.classic import Metrics
from coherence.guard.collaborators import ConfigAdapter, Notice, Notify, Strategy
from coherence.guard.frequency import AdaptiveThresholds
from coherence.guard.happenings import (
    Accepted,
    Asked,
    Decision,
    Declined,
    Dropped,
    Ending,
    NotApplied,
    Policy,
    Proposed,
    Restored,
    RestoreFailed,
    Resuming,
    Retrying,
    Serving,
    kind_of,
)
from coherence.guard.tagged import tagged
from coherence.guard.traces import newest_calls
from coherence.guard.troubles import Troubles
from coherence.guard.view import View
from coherence.store.store import Store

SHOWN_CALLS = 100
"""Traces that a strategy is shown."""

_QUIET = (Asked, Declined, Resuming, Retrying)
"""Of these nobody is told."""


class Plan(NamedTuple):
    """How patches are made and tried."""

    strategy: Strategy | None
    adapter: ConfigAdapter | None
    notifier: Notify | None
    bounds: Bounds | None
    thresholds: AdaptiveThresholds
    policy: Policy
    share: float
    slice: int
    returns: bool
    """Whether a confirmed configuration that decays gives way to the one before it."""
    measures: Callable[[], Mapping[str, float | None]] | None


class Taken(NamedTuple):
    """What came of the steps after a call."""

    applied: bool
    rolled_back: bool


class Actor:
    """Takes steps for agents, one at a time for each agent in this process, and one at a time in all of them."""

    def __init__(self, plan: Plan, store: Store, troubles: Troubles, clock: Callable[[], float]) -> None:
        self.plan = plan
        self._store = store
        self._troubles = troubles
        self._clock = clock
        self._prefix = f"{os.getpid()}-{os.urandom(4).hex()}"
        self._numbers = itertools.count(1)

    def due(self, agent: str, account: Account, owner: str, *, failed: bool) -> Decision | None:
        """Return the step to take now; ``failed`` = a call of the agent has just failed."""
        patching, now_s = account.patching, msgspec.structs.replace(account.clock).read(self._clock())
        step = patching.due(owner, now_s, returns=self.plan.returns and self.plan.adapter is not None)
        if step is not None or not failed or patching.phase != "idle" or self.plan.strategy is None:
            return step
        found = self.plan.thresholds
        trigger = msgspec.structs.replace(account.trigger)
        due = trigger.check(agent, account.rolling, found, now_s)
        return Asked(owner=owner, failures=due.failures) if due.fires else None

    def start(self, view: View, *, failed: bool) -> Callable[[float], Taken]:
        """Begin to take steps on a thread; return what waits for them up to some seconds."""
        done = threading.Event()
        found: set[str] = set()
        context = contextvars.copy_context()

        def work() -> None:
            try:
                context.run(self._steps, view, failed, found)
            except BaseException as error:
                self._troubles.add("guard", error)
            finally:
                view.acting = False
                done.set()

        def wait(seconds: float) -> Taken:
            done.wait(seconds)
            return Taken("applied" in found, "rolled back" in found)

        threading.Thread(target=work, name="coherence-guard-steps", daemon=True).start()
        return wait

    def look_after(self, view: View) -> None:
        """Take the steps whose time has come, if any."""
        with view.lock:
            if (
                view.acting
                or view.account.patching.phase == "idle"
                or self.due(view.agent, view.account, "", failed=False) is None
            ):
                return
            view.acting = True
        self.start(view, failed=False)

    def end(self, view: View, why: str) -> bool:
        """Give up the patch of an agent, on trial or confirmed, because a person asks; return whether it is done."""
        owner = self._owner()

        def decide(account: Account) -> tuple[float, Decision] | None:
            patching = account.patching
            trial, standing = patching.trial, patching.standing
            if patching.phase == "paused" or (patching.phase == "serving" and trial is not None and trial.both):
                return self._clock(), Dropped(why=why)
            if patching.phase == "serving" or (patching.phase == "idle" and standing is not None):
                return self._clock(), Ending(owner=owner, why=why)
            return None

        step = view.write(decide)
        found: set[str] = set()
        self._follow(view, owner, step, found)
        return "rolled back" in found

    def _owner(self) -> str:
        return f"{self._prefix}-{next(self._numbers)}"

    def _steps(self, view: View, failed: bool, found: set[str]) -> None:
        while True:
            owner = self._owner()

            def decide(account: Account, owner: str = owner, failed: bool = failed) -> tuple[float, Decision] | None:
                step = self.due(view.agent, account, owner, failed=failed)
                return None if step is None else (self._clock(), step)

            step = view.write(decide)
            failed = False
            if step is None:
                return
            self._follow(view, owner, step, found)

    def _follow(self, view: View, owner: str, step: Decision | None, found: set[str]) -> None:
        """Do what a claim says, and write what came of it, until nothing follows."""
        while step is not None:
            patching = view.account.patching
            if isinstance(step, Serving | Accepted) and patching.trial is not None and patching.trial.applied == 1:
                found.add("applied")
            elif isinstance(step, Restored | Dropped) and patching.phase == "idle":
                found.add("rolled back")
            self._tell(view, step)
            result = self._do(view, owner, step)
            step = None if result is None else self._result(view, owner, result)

    def _result(self, view: View, owner: str, result: Decision) -> Decision | None:
        """Write what came of a claim, if the claim still is ours."""
        return view.write(lambda account: (self._clock(), result) if account.patching.owner == owner else None)

    def _do(self, view: View, owner: str, step: Decision) -> Decision | None:
        if isinstance(step, Asked):
            return self._ask(view, owner)
        if isinstance(step, Accepted | Resuming):
            both = isinstance(step, Accepted) and step.both
            return None if both else self._apply(view)
        return self._restore(view) if isinstance(step, Ending | Retrying) else None

    def _ask(self, view: View, owner: str) -> Decision:
        plan = self.plan
        try:
            assert plan.strategy is not None
            traces = newest_calls(self._store, view.agent, SHOWN_CALLS)
            proposal = plan.strategy.analyze(agent_id=view.agent, traces=traces, before_metrics=self._metrics(view))
        except BaseException as error:
            self._troubles.add("strategy", error)
            return Declined(why=f"the strategy failed: {type(error).__name__}")
        if proposal is None or proposal == {}:
            return Declined(why="the strategy proposes nothing")
        if plan.bounds is None:
            return Proposed(patch=_plain(proposal), why="no bounds say what a patch may change")
        if plan.adapter is None:
            return self._judged(proposal, {}, plan.bounds) or Proposed(
                patch=_plain(proposal), why="there is no adapter"
            )
        try:
            backup = kept_config(plan.adapter.get_config(agent_id=view.agent))
        except BaseException as error:
            self._troubles.add("adapter", error)
            return Declined(why=f"the configuration could not be read: {type(error).__name__}")
        if (refused := self._judged(proposal, backup, plan.bounds)) is not None:
            return refused
        patch = plan.bounds.judge(proposal, backup).patch or {}
        both = getattr(plan.adapter, "serves_both", False) is True
        summary = view.account.rolling.over_newest()
        before = Metrics(summary.success_rate or 0.0, summary.latency_mean_s or 0.0, 0)
        share = 1.0 if plan.policy == "classic" else plan.share
        return Accepted(
            owner=owner, patch=patch, backup=backup, policy=plan.policy, share=share, slice=plan.slice, both=both,
            before=before,
        )  # fmt: skip

    def _judged(self, proposal: object, current: dict[str, Any], bounds: Bounds) -> Decision | None:
        """Return what becomes of a proposal that is not to be applied; None = it is to be applied."""
        judged = bounds.judge(proposal, current)
        if judged.patch is None:
            return Declined(why="; ".join(str(refusal) for refusal in judged.refusals[:5]))
        return None if judged.apply else Proposed(patch=judged.patch, why=judged.waits)

    def _metrics(self, view: View) -> dict[str, float | None]:
        with view.lock:
            rolling = view.account.rolling
            summary, in_row = rolling.over_newest(), rolling.failures_in_row
        metrics: dict[str, float | None] = {
            "calls": float(summary.calls),
            "success_rate": summary.success_rate,
            "consecutive_failures": float(in_row),
            "mean_latency_s": summary.latency_mean_s,
            "cost": summary.cost,
            "coherence_index": summary.index_mean,
        }
        if self.plan.measures is not None:
            metrics.update(self.plan.measures())
        return metrics

    def _apply(self, view: View) -> Decision:
        trial = view.account.patching.trial
        if self.plan.adapter is None or trial is None:
            return NotApplied(why="there is no adapter")
        try:
            done = self.plan.adapter.apply_config(agent_id=view.agent, config_patch=_copy(trial.patch))
            return Serving() if done else NotApplied(why=f"the adapter returned {done!r:.80}")
        except BaseException as error:
            self._troubles.add("adapter", error)
            return NotApplied(why=f"the adapter failed: {type(error).__name__}")

    def _restore(self, view: View) -> Decision:
        patching = view.account.patching
        holder = patching.trial or patching.standing
        if self.plan.adapter is None or holder is None:
            return RestoreFailed(why="there is no adapter")
        try:
            done = self.plan.adapter.rollback_config(agent_id=view.agent, backup_config=_copy(holder.backup))
            return RestoreFailed(why="the adapter returned False") if done is False else Restored()
        except BaseException as error:
            self._troubles.add("adapter", error)
            return RestoreFailed(why=f"the adapter failed: {type(error).__name__}")

    def _tell(self, view: View, step: Decision) -> None:
        notifier = self.plan.notifier
        if notifier is None or isinstance(step, _QUIET) or (isinstance(step, Ending) and step.pause):
            return
        patching = view.account.patching
        if isinstance(step, RestoreFailed) and patching.attempts > 1:
            return
        if isinstance(step, Serving | Restored) and patching.phase in ("serving", "paused") and _sliced(view):
            return
        holder = patching.trial or patching.standing
        patch = step.patch if isinstance(step, Accepted | Proposed) else holder.patch if holder else None
        try:
            notice = Notice(view.agent, kind_of(step), getattr(step, "why", ""), patch)
            tell: Any = getattr(notifier, "notify", notifier)
            tell(notice)
        except BaseException as error:
            self._troubles.add("notifier", error)


def _sliced(view: View) -> bool:
    trial = view.account.patching.trial
    return trial is not None and (trial.applied > 1 or view.account.patching.phase == "paused")


def _copy(value: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(value))
    return found


def _plain(proposal: object) -> dict[str, Any]:
    found = tagged(proposal)
    return found if isinstance(found, dict) else {"value": found}


def kept_config(config: object) -> dict[str, Any]:
    """Return a copy of a configuration that can be kept and restored as it is.

    Raises
    ------
    ValueError
        If it is not made of dicts with text keys, lists, texts, finite numbers, True, False and None.
    """
    try:
        found = msgspec.json.decode(msgspec.json.encode(config))
    except Exception as error:
        raise ValueError(f"the configuration is not plain JSON: {type(error).__name__}") from error
    if not isinstance(found, dict) or found != config:
        raise ValueError("the configuration is not plain JSON: it would not come back as it is")
    return found
