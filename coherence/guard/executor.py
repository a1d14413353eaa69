"""The steps that reach outside: ask the strategy, apply, restore, notify. Each is claimed in the trail first."""

from __future__ import annotations

import contextvars
import itertools
import os
import threading
import time
from collections.abc import Callable
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

import msgspec

from coherence.guard import adapter as adapting
from coherence.guard.account import Account
from coherence.guard.collaborators import NotAwaitedError, not_awaited
from coherence.guard.error_counts import ErrorCounts
from coherence.guard.patch_events import Decision, Notice
from coherence.guard.patches import Patching, notice_of
from coherence.guard.proposals import Plan, outcome_of, outcome_of_approval
from coherence.guard.threads import start_thread
from coherence.guard.traces import newest_calls, newest_seqs
from coherence.guard.views import View, Views
from coherence.store.store import Store

SHOWN_CALLS = 100
"""Traces that a strategy is shown."""

PAUSE_S = 0.02
"""Pause between two looks at what another thread or process is doing."""

CHANGE_S = 30.0
"""Seconds that a person's request, and the end of a guard, wait for an adapter that is changing a configuration.

If it is cut off, nobody knows what is in force, and the next process waits for its claim to run out.
"""

_OUTSIDE = ("approved", "ending", "retrying", "resuming")
"""These need an adapter."""


class Taken(NamedTuple):
    """Outcome of the steps after a call."""

    applied: bool
    rolled_back: bool


class Actor:
    """Takes steps for agents, one at a time for each agent in this process, and one at a time in all of them."""

    def __init__(self, plan: Plan, store: Store, troubles: ErrorCounts, clock: Callable[[], float]) -> None:
        self.plan = plan
        self._store = store
        self._troubles = troubles
        self._clock = clock
        self._suffix = os.urandom(4).hex()
        self._numbers = itertools.count(1)

    def due(self, agent: str, owner: str, account: Account, at: float, *, failed: bool) -> Decision | None:
        """Return the step to take at a wall time; ``failed`` = a call of the agent has just failed."""
        # of a copy, like the trigger below: only entries of the trail may change an account
        patching, now_s = account.patching, msgspec.structs.replace(account.clock).read(at)
        reaches = self.plan.adapter is not None
        step = patching.due(owner, now_s, returns=self.plan.returns and reaches)
        if step is not None and step.kind in _OUTSIDE and not reaches:
            return None  # a process that has an adapter does it
        if step is not None or not failed or patching.phase != "idle" or self.plan.strategy is None:
            return step
        trigger = msgspec.structs.replace(account.trigger)
        due = trigger.check(agent, account.rolling, self.plan.overrides, now_s)
        return Decision("asked", owner=owner, failures=due.burst) if due.fires else None

    def start(self, view: View, *, failed: bool) -> Callable[[float], Taken]:
        """Begin to take steps on a thread; return what waits for them up to some seconds.

        The caller has set the view's :attr:`~coherence.guard.views.View.acting`. It is False again once they are taken,
        or if they cannot begin, which raises.
        """
        done = threading.Event()
        found: set[str] = set()
        # a strategy sees the variables, a trace id for example, of the call that failed
        context = contextvars.copy_context()

        def work() -> None:
            try:
                context.run(self._steps, view, failed, found)
            except BaseException as error:
                self._troubles.add("guard", error)
            finally:
                # in this order: who waited may begin the next step at once
                view.acting = False
                done.set()

        def wait(seconds: float) -> Taken:
            done.wait(seconds)
            return Taken("applied" in found, "rolled back" in found)

        try:
            start_thread(work, "steps")
        except BaseException:  # too many threads, or the interpreter ends
            view.acting = False
            raise
        return wait

    def look_after(self, view: View) -> None:
        """Take the steps whose time has come, if any."""
        with view.lock:
            if view.acting or view.account.patching.rests:
                return
            if self.due(view.agent, "", view.account, self._clock(), failed=False) is None:
                return
            view.acting = True
        self.start(view, failed=False)

    def carry_out(self, view: View, wait_s: float, done: Callable[[Patching], bool]) -> bool:
        """Take the steps that are due; return whether what was asked for is ``done``.

        What another thread or process is doing is waited for up to ``wait_s`` seconds, the adapter up to
        :data:`CHANGE_S`. Without an adapter all is left to a process that has one.
        """
        if self.plan.adapter is None:
            return done(view.account.patching)
        until_s = time.monotonic() + wait_s
        while True:
            # beside a thread that acts: the claims in the trail keep the two apart
            self._steps_aside(view, max(wait_s, CHANGE_S))
            with view.lock:
                patching = view.account.patching
                found, busy = done(patching), bool(patching.owner)
            if found or not busy or time.monotonic() >= until_s:
                return found
            time.sleep(PAUSE_S)

    def _steps_aside(self, view: View, seconds: float) -> None:
        """Take the steps that are due on a thread of the guard, which an adapter may hold for ever."""
        ended: SimpleQueue[BaseException | None] = SimpleQueue()
        context = contextvars.copy_context()

        def work() -> None:
            try:
                context.run(self._steps, view, False, set())
            except BaseException as error:
                ended.put(error)
            else:
                ended.put(None)

        start_thread(work, "steps")
        try:
            error = ended.get(timeout=seconds)
        except Empty:
            self._troubles.add("adapter", f"no answer after {seconds:g} s", kind="timeout")
            return
        if error is not None:
            raise error

    def catch_up(self, views: Views) -> None:
        """Take in what other processes have written for agents that this one knows: a person may have asked there.

        Agents that it does not hold are left alone: their configuration may be another adapter's.
        """
        if self.plan.adapter is None:
            return
        under_way = [view.agent for view in views.values() if not view.account.patching.rests]
        for agent, seq in newest_seqs(self._store, under_way).items():
            if views.knows(agent):
                views.of(agent).refresh(seq)

    def _owner(self) -> str:
        return f"{os.getpid()}-{self._suffix}-{next(self._numbers)}"  # a forked child is somebody else

    def _steps(self, view: View, failed: bool, found: set[str]) -> None:
        """Take each step that is due, do what it claims, and write what came of it; only then somebody is notified."""
        while True:
            # a name for one step: the answer to a claim that was taken over must not pass for another's
            owner, notices = self._owner(), list[Notice]()
            step = self._write(view, partial(self.due, view.agent, owner, failed=failed), notices)
            if step is None:
                return
            failed = False
            while step is not None:
                patching = view.account.patching
                if step.kind in ("serving", "accepted") and patching.trial is not None and patching.trial.applied == 1:
                    found.add("applied")
                elif step.kind in ("restored", "dropped") and patching.phase == "idle":
                    found.add("rolled back")
                backup = patching.backup
                result = self._do(view, owner, step)
                step = None
                if result is not None:
                    step = self._write(view, partial(self._result, owner, result, backup), notices)
            # last: a notifier may be slow, and may use the guard itself
            for notice in notices:
                self.notify(notice)

    def _write(
        self, view: View, choose: Callable[[Account, float], Decision | None], notices: list[Notice]
    ) -> Decision | None:
        """Write what is chosen and return it; the notice of it, if any, is added to the notices."""

        def choosing(account: Account, at: float) -> Decision | None:
            found = choose(account, at)
            if found is not None and (notice := notice_of(view.agent, account.patching, found)) is not None:
                notices.append(notice)
            return found

        return view.decide(self._clock, choosing)

    @staticmethod
    def _result(
        owner: str, result: Decision, backup: dict[str, Any] | None, account: Account, at: float
    ) -> Decision | None:
        """Return what came of a claim; if it was taken over meanwhile, only what has to be undone by that."""
        patching = account.patching
        if patching.owner == owner:
            return patching.settled(result, msgspec.structs.replace(account.clock).read(at))
        # the patch was given up meanwhile, and is in force now
        if result.kind in ("serving", "ending") and backup is not None:
            return Decision("late", owner=owner, backup=backup, why="a patch that had been given up was applied late")
        # the next patch was on trial already, and this restore has taken it out of force
        if result.kind == "restored" and patching.trial is not None and patching.phase != "restoring":
            why = "the configuration before an earlier patch was restored late"
            return Decision("late", owner=owner, backup=patching.trial.backup, why=why)
        return None

    def _do(self, view: View, owner: str, step: Decision) -> Decision | None:
        if step.kind == "asked":
            return self._ask(view, owner)
        if step.kind == "approved":
            return outcome_of_approval(view, owner, self.plan, self._troubles)
        if step.kind in ("accepted", "resuming"):
            both = step.kind == "accepted" and step.both
            return None if both else self._apply(view, owner)
        return self._restore(view) if step.kind in ("ending", "retrying") else None

    def _ask(self, view: View, owner: str) -> Decision:
        plan = self.plan
        try:
            assert plan.strategy is not None
            traces = newest_calls(self._store, view.agent, SHOWN_CALLS)
            proposal = plan.strategy.analyze(agent_id=view.agent, traces=traces, before_metrics=self._metrics(view))
            return outcome_of(not_awaited(proposal, "analyze"), view, owner, plan, self._troubles)
        except BaseException as error:
            self._troubles.add("strategy", error)
            if isinstance(error, NotAwaitedError):
                return Decision("declined", why=str(error))
            return Decision("declined", why=f"the strategy failed: {type(error).__name__}")

    def _metrics(self, view: View) -> dict[str, float | None]:
        with view.lock:
            rolling = view.account.rolling
            summary, in_row = rolling.over_newest(), rolling.failures_in_row
        metrics: dict[str, float | None] = {
            "calls": float(summary.calls),
            "success_rate": summary.success_rate,
            "consecutive_failures": float(in_row),
            "mean_latency_s": summary.latency_mean_s,
            "total_cost": summary.cost,
            "coherence_index": summary.index_mean,
        }
        if self.plan.measures is not None:
            metrics.update(not_awaited(self.plan.measures(), "measures"))
        return metrics

    def _apply(self, view: View, owner: str) -> Decision:
        trial = view.account.patching.trial
        if self.plan.adapter is None or trial is None:
            return Decision("not_applied", why="there is no adapter")
        return adapting.apply(self.plan.adapter, view.agent, trial, owner, partial(self._troubles.add, "adapter"))

    def _restore(self, view: View) -> Decision:
        patching = view.account.patching
        backup, holder = patching.backup, patching.holder
        if self.plan.adapter is None or backup is None:
            return Decision("restore_failed", why="there is no adapter")
        known = holder is not None and holder.backup is backup  # else of a late change only the backup is known
        patch = holder.patch if holder is not None and known else backup
        trial = patching.trial
        fill = known and trial is not None and (trial.both or not trial.applied)
        count = partial(self._troubles.add, "adapter")
        return adapting.restore(self.plan.adapter, view.agent, patch, backup, count, fill=fill)

    def notify(self, notice: Notice | None) -> None:
        """Hand a notice of a step that has been written to the notifier, if there are both."""
        notifier = self.plan.notifier
        if notifier is None or notice is None:
            return
        try:
            notify: Any = getattr(notifier, "notify", notifier)
            not_awaited(notify(notice), "notifier")
        except BaseException as error:
            self._troubles.add("notifier", error)
