"""Runs calls: the caller's result or exception first, unchanged and always; what is recorded comes after it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from queue import Empty, SimpleQueue
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import msgspec

from coherence.given import check_name
from coherence.guard.acting import Actor, Taken
from coherence.guard.flushing import Flusher
from coherence.guard.measuring import Finished, Measuring, Started
from coherence.guard.serving import serving
from coherence.guard.traces import Entry
from coherence.guard.troubles import Troubles
from coherence.guard.view import View
from coherence.plain import shown
from coherence.store.store import Store

T = TypeVar("T")

Durability: TypeAlias = Literal["batched", "full"]
"""``batched``: a killed process loses at most the last 0.1 s, and nothing that was flushed. ``full``: a call returns
after its trace is safe on the disk."""

REFRESH_S = 0.05
"""A call looks for what other processes have written if this process has not looked for so long."""


class Out(msgspec.Struct, Generic[T], frozen=True):
    """What a call returned, and what came of it."""

    result: T
    """The callable's own result, as it was returned."""
    success: bool
    duration_s: float
    """Seconds in the callable."""
    patch_applied: bool
    """Whether a patch was applied after this call."""
    rolled_back: bool
    """Whether a patch was rolled back, or given up, after this call."""


class Runner:
    """Runs and records the calls of one guard.

    Parameters
    ----------
    store : Store or None
        Where traces are kept; None = calls just run.
    actor : Actor or None
        Takes the steps that follow; None without a store.
    measuring : Measuring
        Measures calls.
    troubles : Troubles
        Where failures are counted.
    durability : {"batched", "full"}
        When traces are written.
    clock : callable
        Returns wall time, Unix seconds.
    wait_s : float
        How long a call waits for the steps that follow it.
    """

    def __init__(
        self,
        store: Store | None,
        actor: Actor | None,
        measuring: Measuring,
        troubles: Troubles,
        durability: Durability,
        clock: Callable[[], float],
        wait_s: float,
    ) -> None:
        self._store = store
        self._actor = actor
        self._measuring = measuring
        self._troubles = troubles
        self._full = durability == "full"
        self._clock = clock
        self._wait_s = wait_s
        self._flusher: Flusher | None = None
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._views: dict[str, View] = {}
        self._left: SimpleQueue[tuple[Started, float, BaseException | None]] = SimpleQueue()
        self._flusher = None if self._actor is None else Flusher(self._views, self._actor, self._troubles)

    def view(self, agent: str) -> View:
        self._take_left()
        view = self._views.get(agent)
        if view is None:
            if self._store is None:
                raise RuntimeError("the package is switched off: nothing is recorded")
            view = self._views.setdefault(agent, View(agent, self._store))
        return view

    def start(self, agent: str, task: str, arguments: Any = None, call_id: str | None = None) -> Started:
        """Begin a call; for :meth:`run` and :meth:`wrap`."""
        started = Started(check_name("agent", agent), task if isinstance(task, str) else shown(task), arguments)
        if self._store is not None:
            try:
                self._look(started, call_id)
            except Exception as error:
                self._troubles.add("start", error)
        started.begin(self._measuring.monitor)
        return started

    def called(self, started: Started, fn: Callable[[], T]) -> Out[T]:
        """Do what has been begun; for :meth:`run` and :meth:`wrap`."""
        try:
            with serving(started.patch):
                result = fn()
        except BaseException as error:
            self.record(started, error=error)
            raise
        finished = self._measuring.returned(started, result)
        taken = self._finish(started, finished, wait=True)
        return Out(result, finished.success, finished.duration_s, taken.applied, taken.rolled_back)

    async def acalled(self, started: Started, fn: Callable[[], Awaitable[T]]) -> Out[T]:
        """Do what has been begun; for :meth:`arun` and :meth:`wrap`."""
        try:
            with serving(started.patch):
                result = await fn()
        except BaseException as error:
            finished = self._measuring.failed(started, error)
            self._finish(started, finished, wait=False)  # a task that was cancelled must not wait
            raise
        finished = self._measuring.returned(started, result)
        if self._full or self._may_step(started, finished):
            taken = await asyncio.to_thread(self._finish, started, finished, wait=True)
        else:
            taken = self._finish(started, finished, wait=False)
        return Out(result, finished.success, finished.duration_s, taken.applied, taken.rolled_back)

    def record(
        self,
        started: Started,
        *,
        duration_s: float | None = None,
        result: Any = None,
        error: BaseException | None = None,
        wait: bool = True,
    ) -> None:
        """End what has been begun; for :meth:`wrap`."""
        if error is not None:
            finished = self._measuring.failed(started, error, duration_s)
        else:
            finished = self._measuring.returned(started, result, duration_s)
        self._finish(started, finished, wait=wait)

    def leave(self, started: Started, duration_s: float, error: BaseException | None) -> None:
        """End what has been begun where no lock may be waited for; it is recorded with what comes next."""
        self._left.put((started, duration_s, error))

    def _take_left(self) -> None:
        found = []
        while not self._left.empty():
            try:
                found.append(self._left.get_nowait())
            except Empty:  # another thread was faster
                break
        for started, duration_s, error in found:
            self.record(started, duration_s=duration_s, error=error, wait=False)

    def _look(self, started: Started, call_id: str | None) -> None:
        """Note which configuration serves a call that begins."""
        if self._pid != os.getpid():  # the threads, and what waits, stayed with the parent
            self._begin()
        view = self.view(started.agent)
        now_s = time.monotonic()
        if now_s - view.looked_s > REFRESH_S:
            view.looked_s = now_s
            view.refresh()
        with view.lock:
            patching = view.account.patching
            started.epoch = patching.epoch
            if patching.trial is not None:
                started.serve(patching.trial, patching.phase, call_id)

    def _may_step(self, started: Started, finished: Finished) -> bool:
        view = self._views.get(started.agent)
        return view is not None and (not finished.success or view.account.patching.phase != "idle")

    def _finish(self, started: Started, finished: Finished, *, wait: bool) -> Taken:
        """Record a call, and take the steps that follow; nothing is raised."""
        nothing = Taken(False, False)
        if self._actor is None or self._flusher is None:
            return nothing
        try:
            view = self.view(started.agent)
            call = finished.call(started)
            entry = Entry(self._clock(), call, started.task, finished.error, finished.band, started.arguments)
            with view.lock:
                account = view.take(entry)
                due = not view.acting and self._actor.due(started.agent, account, "", failed=not call.success)
                view.acting = view.acting or bool(due)
            if due:
                steps = self._actor.start(view, failed=not call.success)
                return steps(self._wait_s) if wait else nothing
            if self._full:
                view.write(None)
            else:
                self._flusher.wake()
        except Exception as error:
            self._troubles.add("recording", error)
        return nothing

    def flush(self) -> None:
        """Write everything that waits."""
        self._take_left()
        for view in list(self._views.values()):
            if view.waits:
                view.write(None)

    def close(self) -> None:
        """Write everything and end; calls go on running, and are not recorded."""
        if self._flusher is None or self._pid != os.getpid():  # what waits in a forked child is the parent's
            return
        self._take_left()
        flusher, self._flusher = self._flusher, None
        flusher.stop()
        self.flush()
