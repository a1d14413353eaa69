"""Runs calls: the caller's result or exception first, unchanged and always; what is recorded comes after it."""

from __future__ import annotations

import inspect
import multiprocessing
import os
import sys
import threading
import time
import types
import weakref
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import msgspec

from coherence.core.callback import Callback
from coherence.core.plain import is_a, type_name
from coherence.core.reentrancy import do_later, is_inside
from coherence.core.strangers import Asking, ask, asking
from coherence.core.validation import check_text, plain_text
from coherence.guard.context import serving
from coherence.guard.error_counts import ErrorCounts
from coherence.guard.executor import CHANGE_S, Actor, Taken
from coherence.guard.measure import LEAST_ANSWER_S, MAX_TASK, Measuring, Started
from coherence.guard.patch_events import GuardedCall
from coherence.guard.threads import aside, in_guard_thread, start_thread
from coherence.guard.traces import Entry
from coherence.guard.views import View, Views
from coherence.monitor.arguments import check_name
from coherence.store.errors import StoreError
from coherence.store.store import Store

T = TypeVar("T")

Durability: TypeAlias = Literal["batched", "full"]
"""``batched``: a killed process loses at most the last 0.1 s, and nothing that was flushed. ``full``: a call returns
after its trace is safe on the disk."""

REFRESH_S = 0.05
"""A call looks for what other processes have written if this process has not looked for so long."""

LEAST_WRITE_S = 1.0
"""A call that waits for the store waits so long at least."""


class Out(msgspec.Struct, Generic[T], frozen=True):
    """Result of a call, and what the guard did after it."""

    result: T
    """The callable's own result, as it was returned; None if it raised."""
    success: bool | None
    """None = not known: the callable returned a coroutine, future or generator, whose work is still to be done. Nothing
    is recorded then."""
    duration_s: float
    """Seconds in the callable."""
    patch_applied: bool
    """True = a patch was applied after this call; always False for :meth:`Guard.arun`, which does not wait."""
    rolled_back: bool
    """True = a patch was rolled back or given up after this call; always False for :meth:`Guard.arun`."""
    error: Exception | None = None
    """Exception of the callable, if it was called with ``raises=False``."""


class Runner:
    """Runs and records the calls of one guard; without a store and an actor calls just run."""

    def __init__(
        self,
        store: Store | None,
        actor: Actor | None,
        measuring: Measuring,
        troubles: ErrorCounts,
        durability: Durability,
        clock: Callable[[], float],
        wait_s: float,
        *,
        owns_store: bool,
    ) -> None:
        self._store = store
        self._owns_store = owns_store
        self._actor = actor
        self._measuring = measuring
        self.troubles = troubles
        self._full = durability == "full"
        self._clock = clock
        self._wait_s = wait_s
        self._longest_write_s = max(wait_s, LEAST_WRITE_S)
        self._answer_s = max(wait_s, LEAST_ANSWER_S)
        self._call_ids: Callback[str | None] = Callback("call_id", troubles.failed)
        self._closed = False
        self._begin()
        _runners.add(self)
        self._wake()

    def _begin(self) -> None:
        """Hold nothing yet: when made, and in a forked child. Threads, locks and what waits stay with the parent."""
        self._starting = threading.RLock()
        self._left: SimpleQueue[tuple[Started, float, BaseException | None]] = SimpleQueue()
        self.troubles.renew()
        self._views = None if self._store is None else Views(self._store, self.troubles)
        self._flusher: Flusher | None = None

    def _wake(self) -> Flusher | None:
        """Return what writes in the background; it begins here if need be. None = nothing is recorded."""
        if self._flusher is None and not self._closed and self._actor is not None and self._views is not None:
            with self._starting:
                # again, under the lock: another thread may have begun it, or the guard may have ended
                if self._flusher is None and not self._closed:
                    self._flusher = Flusher(self._views, self._actor, self.troubles, self._take_left)
                    _end_with_process(self)
        return self._flusher

    def view(self, agent: str) -> View:
        """Return an agent's account."""
        if self._views is None:
            raise RuntimeError("the package is switched off: nothing is recorded")
        self._wake()
        self._take_left()
        return self._views.of(agent)

    def start(
        self, agent: str, task: str, arguments: Any = None, call_id: str | Callable[[], str | None] | None = None
    ) -> Started:
        """Begin a call; for :meth:`run` and :meth:`wrap`."""
        started = Started(check_name("agent", agent), task if type(task) is str else self._task(task), arguments)
        if self._store is not None and not self._closed:
            try:
                self._look(started, self._drawn_by(call_id) if callable(call_id) else call_id)
            except Exception as error:
                self.troubles.add("start", error)
        started.begin(self._measuring.monitor)
        return started

    def called(self, started: Started, fn: Callable[[], T], *, raises: bool = True) -> Out[T]:
        """Do what has been begun; for :meth:`run` and :meth:`wrap`."""
        try:
            with serving(started.patch):
                result = fn()
        except BaseException as error:
            failed = self._measuring.failed(started, error)
            # Not isinstance(), which asks the exception for its class. Who ends the process is not kept waiting.
            failure: Any = error if issubclass(type(error), Exception) else None
            taken = self._finish(started, failed, failure is not None)
            if raises or failure is None:
                raise
            return _out(started, failed, taken, error=failure)
        call = self._measuring.returned(started, result)
        taken = _NOTHING if call is None else self._finish(started, call, True)
        return _out(started, call, taken, result)

    async def acalled(self, started: Started, fn: Callable[[], Awaitable[T]], *, raises: bool = True) -> Out[T]:
        """Do what has been begun; for :meth:`arun` and :meth:`wrap`."""
        try:
            with serving(started.patch):
                given: Any = fn()
                result: T = await given if _is_awaitable(given) else given
        except BaseException as error:
            failed = self._measuring.failed(started, error)
            self._finish(started, failed, False)  # a task that was cancelled must not wait
            if raises or not is_a(error, Exception):
                raise
            return _out(started, failed, error=error)
        # Whoever waited for the steps that follow could be cancelled meanwhile, and the result would be lost.
        call = self._measuring.returned(started, result)
        if call is not None and self._full:
            await aside(partial(self._finish, started, call, wait=False))
        elif call is not None:
            self._finish(started, call, wait=False)
        return _out(started, call, result=result)

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
            call: GuardedCall | None = self._measuring.failed(started, error, duration_s)
        else:
            call = self._measuring.returned(started, result, duration_s)
        if call is not None:  # who interrupts or ends the process is not kept waiting
            self._finish(started, call, wait and (error is None or is_a(error, Exception)))

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

    def _task(self, task: object) -> str:
        """Return the purpose of a call that was not given as exactly a str."""
        text = plain_text(task)
        if text is not None:
            return text
        with asking(Asking(self._wait_s)):
            call = ask(task, lambda: str.__str__(repr(task))[:MAX_TASK])
        if call.failure is not None:
            self.troubles.add("task", call.failure.message, kind=call.failure.kind)
            return type_name(task)
        found: str = call.value
        return found

    def _drawn_by(self, call_id: Callable[[], str | None]) -> str | None:
        """Return what a host makes of the arguments of a call; None = a new id."""

        def drawn() -> str | None:
            found = call_id()
            return None if found is None else check_text("call_id", found)

        return self._call_ids.ask(drawn, None, self._answer_s)

    def _look(self, started: Started, call_id: str | None) -> None:
        """Note which configuration serves a call that begins."""
        view = self.view(started.agent)
        now_s = time.monotonic()
        if now_s - view.looked_s > REFRESH_S:
            view.looked_s = now_s
            # a call waits for no thread that writes: the next look takes it in
            view.refresh(wait=False)
        with view.lock:
            patching = view.account.patching
            started.epoch = patching.epoch
            if patching.trial is not None:
                started.serve(patching.trial, patching.phase, call_id)

    def _finish(self, started: Started, call: GuardedCall, wait: bool) -> Taken:
        """Record a call, and take the steps that follow; nothing is raised."""
        if is_inside():  # of a finalizer or a signal, while this thread writes
            do_later(lambda: self._finish(started, call, wait=False))
            return _NOTHING
        claimed: View | None = None
        try:
            flusher = self._wake()
            if self._actor is None or self._views is None or flusher is None:
                return _NOTHING
            view = self._views.of(started.agent)
            entry = Entry(self._clock(), call)
            if view.full and not self._views.fails:  # calls come faster than they are written
                with suppress(StoreError, RuntimeError):  # a signal handler, while this thread writes
                    view.write(self._longest_write_s)
            # counted and claimed in one go: of calls that end together one takes the step
            with view.lock:
                lost = view.lost
                account = view.observe(entry)
                if not self._full:
                    self._views.mark(view)
                if not view.acting and self._actor.due(started.agent, "", account, entry.at, failed=not call.success):
                    view.acting, claimed = True, view
            if view.lost > lost:
                self.troubles.add("store", "too much waits for a store that cannot be written: a call is lost")
            # after the lock is free: the disk is slow, and other calls go on meanwhile
            if self._full:
                self._write_now(view, self._views, flusher)
            else:
                flusher.wake()
            if claimed is not None:
                steps, claimed = self._actor.start(view, failed=not call.success), None
                return steps(self._wait_s) if wait else _NOTHING
        except Exception as error:
            self.troubles.add("recording", error)
        finally:
            # the step has not begun, and a view that acts takes no other
            if claimed is not None:
                claimed.acting = False
        return _NOTHING

    def _write_now(self, view: View, views: Views, flusher: Flusher) -> None:
        try:
            view.write(self._longest_write_s)
        except BaseException:  # it is written later
            with view.lock:
                views.mark(view)
            flusher.wake()
            raise

    def flush(self) -> None:
        """Write everything that waits."""
        self._take_left()
        if self._views is not None:
            self._views.write()

    def close(self) -> None:
        """Write everything, and close the store that was opened here; calls go on running, and are not recorded.

        Steps under way are waited for as long as a call would wait for them, an adapter that changes the configuration
        for up to :data:`CHANGE_S`.
        """
        try:
            self._end()
        finally:
            if self._owns_store and self._store is not None:
                self._store.close()

    def _end(self) -> None:
        self._take_left()  # while something is recorded yet
        with self._starting:
            # first, so that no call begins a step while those under way are waited for
            self._closed = True
            flusher, self._flusher = self._flusher, None
        if flusher is None or self._views is None:
            return
        began_s = time.monotonic()
        while any(self._awaited(view, time.monotonic() - began_s) for view in self._views.values()):
            time.sleep(0.005)
        flusher.stop()
        self.flush()

    def _awaited(self, view: View, waited_s: float) -> bool:
        changes = view.account.patching.phase in ("applying", "restoring")
        return view.acting and waited_s < (max(CHANGE_S, self._wait_s) if changes else self._wait_s)

    def after_fork(self) -> None:
        """Begin anew in a forked child."""
        self._begin()


def _is_awaitable(value: Any) -> bool:
    """Do what ``inspect.isawaitable`` does without a look at the value's own ``__class__``."""
    kind = type(value)
    if issubclass(kind, types.GeneratorType):  # of a function under types.coroutine
        return bool(value.gi_code.co_flags & inspect.CO_ITERABLE_COROUTINE)
    return issubclass(kind, Awaitable)


def end_quietly(runner: Runner) -> None:
    """End a guard that is dropped, or open when the process ends."""

    def quietly() -> None:
        try:
            runner.close()
        except Exception as error:
            runner.troubles.add("store", error)

    if in_guard_thread():  # which may be in the middle of a transaction, and would wait for itself
        with suppress(RuntimeError):  # the interpreter ends
            threading.Thread(target=quietly, name="coherence-end").start()
            return
    quietly()


_NOTHING = Taken(False, False)


def _out(
    started: Started,
    call: GuardedCall | None,
    taken: Taken = _NOTHING,
    result: Any = None,
    error: Exception | None = None,
) -> Out[Any]:
    if call is None:  # the work is still to be done
        return Out(result, None, time.perf_counter() - started.began_s, False, False)
    return Out(result, call.success, call.duration_s or 0.0, taken.applied, taken.rolled_back, error)


_runners: weakref.WeakSet[Runner] = weakref.WeakSet()


def _after_fork() -> None:
    for runner in list(_runners):
        runner.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _end_with_process(runner: Runner) -> None:
    """Let a child of multiprocessing write what waits: it ends without the functions of :mod:`atexit`."""
    module = sys.modules.get("multiprocessing.util")
    if module is not None and multiprocessing.parent_process() is not None:
        module.Finalize(None, _flush_quietly, (weakref.ref(runner),), exitpriority=10)


def _flush_quietly(found: weakref.ref[Runner]) -> None:
    runner = found()
    if runner is not None:
        with suppress(Exception):
            runner.flush()


FLUSH_S = 0.1
"""Seconds that an entry waits at most, if the store can be written."""

LOOK_S = 1.0
"""Seconds between two looks at what other processes and persons have asked for, and at restores that failed."""


class Flusher:
    """Writes in the background; ``take_left`` records calls that ended where nothing could be recorded."""

    def __init__(self, views: Views, actor: Actor, troubles: ErrorCounts, take_left: Callable[[], None]) -> None:
        self._views = views
        self._actor = actor
        self._troubles = troubles
        self._take_left = take_left
        self._file = _identity(views.path)
        self._bell: SimpleQueue[None] = SimpleQueue()  # an Event cannot be set by a signal handler in the middle of it
        self._stopped = threading.Event()
        self._thread = start_thread(self._run, "writes")

    def wake(self) -> None:
        """Say that there is something to write."""
        if self._bell.empty():
            self._bell.put(None)

    def stop(self) -> None:
        """End the thread, after what it is writing."""
        self._stopped.set()
        self._bell.put(None)
        self._thread.join()

    def _run(self) -> None:
        looked_s = time.monotonic()
        while not self._stopped.is_set():
            with suppress(Empty):
                self._bell.get(timeout=LOOK_S)
            # calls within this time share one transaction
            if self._stopped.wait(FLUSH_S):
                return
            # before the write: what comes during it has to ring again
            with suppress(Empty):
                while True:
                    self._bell.get_nowait()
            if time.monotonic() - looked_s >= LOOK_S:
                looked_s = time.monotonic()
                self._look_at_file()
                self._tried(partial(self._actor.catch_up, self._views))
            if not self._tried(self._write):
                self.wake()
            for view in self._views.values():
                if not view.account.patching.rests:
                    self._tried(partial(self._actor.look_after, view))

    def _tried(self, work: Callable[[], object]) -> bool:
        """Do some work and return True; a failure is counted, and the thread goes on."""
        try:
            work()
        except Exception as error:
            self._troubles.add("store", error)
            return False
        return True

    def _write(self) -> None:
        self._take_left()
        self._views.write()

    def _look_at_file(self) -> None:
        if _identity(self._views.path) != self._file:
            self._troubles.add("store", "its file was removed or replaced: what is recorded is lost")


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what distinguishes a file from another one of the same name; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
