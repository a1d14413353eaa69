"""One thread of the process that does what must not be done on the caller's path."""

from __future__ import annotations

import atexit
import logging
import os
import time
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Protocol
from weakref import WeakSet

from coherence.core.reentrancy import Entered

LOG = logging.getLogger("coherence")

GATHER_S = 0.01
"""Seconds between being called and beginning, so that a burst is one batch."""

FORK_WAIT_S = 3.0
"""Seconds that a fork waits at most for what is under way: a measurement, or a model that is being loaded."""


class BackgroundJob(Protocol):
    """Interface of the object that the background thread works for: a monitor."""

    def work(self) -> float | None:
        """Do what is due; return in how many seconds there is more, ``None`` = nothing until called again."""
        ...

    def finish(self) -> None:
        """Do everything now: the process ends."""
        ...

    def before_fork(self) -> None:
        """Hold everything still for the moment of a fork."""
        ...

    def after_fork_in_parent(self) -> None:
        """Go on."""
        ...

    def after_fork_in_child(self) -> None:
        """Begin anew in a child process."""
        ...


class Background:
    """The thread, started at its first use, and whom it works for."""

    def __init__(self) -> None:
        # Its put() may be interrupted by a finalizer that calls it again; a lock or an Event may not.
        self._calls: SimpleQueue[tuple[BackgroundJob, float]] = SimpleQueue()
        self._busy: dict[int, tuple[BackgroundJob, float]] = {}
        """Jobs with something to do, and from which time on (monotonic). Kept alive until it is done."""
        self._starting = Lock()
        self._thread: Thread | None = None
        self.known: WeakSet[BackgroundJob] = WeakSet()
        """Everybody, for a fork and for the end."""

    def call(self, worker: BackgroundJob, after_s: float = GATHER_S) -> None:
        """Have ``worker.work()`` called soon, on the thread; never waits."""
        self._calls.put((worker, time.monotonic() + after_s))
        if self._thread is None:
            self.start()

    def start(self) -> None:
        """Start the thread, if it does not run yet."""
        if not self._starting.acquire(blocking=False):
            return
        try:
            if self._thread is None:
                # daemon: the interpreter would wait for any other before it lets atexit finish the work
                thread = Thread(target=self._run, name="coherence-background", daemon=True)
                thread.start()
                self._thread = thread
                # Not at import: what was registered before a fork does not run in a child of multiprocessing.
                atexit.register(self.finish)
        except RuntimeError:  # the interpreter is shutting down
            return
        finally:
            self._starting.release()

    def _run(self) -> None:
        while True:
            with Entered():
                pause = self._turn()
            self._await_calls(pause)

    def _await_calls(self, pause: float | None) -> None:
        """Wait for calls, ``None`` = for ever, and note when they are due."""
        with suppress(Empty):
            while True:
                worker, due = self._calls.get(timeout=pause)
                busy = self._busy.get(id(worker))
                if busy is None or due < busy[1]:
                    self._busy[id(worker)] = (worker, due)
                pause = 0.0

    def _turn(self) -> float | None:
        """Work for whom it is time; return how long there is nothing to do, ``None`` = until called."""
        now = time.monotonic()
        for worker in [worker for worker, at in self._busy.values() if at <= now]:
            del self._busy[id(worker)]
            try:
                more = worker.work()
            except Exception:  # the others must not wait for ever
                LOG.exception("coherence: background work failed")
                continue
            if more is not None:
                self._busy[id(worker)] = (worker, time.monotonic() + more)
        first = min((at for _, at in self._busy.values()), default=None)
        return None if first is None else max(first - time.monotonic(), 0.0)

    def finish(self) -> None:
        """Let everybody end what is under way; at the end of the process."""
        for worker in list(self.known):  # not only the busy ones: the thread has taken what it works at from these
            try:
                worker.finish()
            except Exception:  # the others must not be lost with it
                LOG.exception("coherence: the last events could not be written")

    def before_fork(self) -> None:
        """Hold everybody still."""
        for worker in list(self.known):
            worker.before_fork()

    def after_fork_in_parent(self) -> None:
        """Let everybody go on."""
        for worker in list(self.known):
            worker.after_fork_in_parent()

    def after_fork_in_child(self) -> None:
        """Begin anew in a child: the thread is not there, and what was to do is the parent's."""
        known = list(self.known)
        self.__init__()  # type: ignore[misc]  # everything is as at the beginning
        self.known = WeakSet(known)
        for worker in known:
            worker.after_fork_in_child()


BACKGROUND = Background()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=BACKGROUND.before_fork,
        after_in_parent=BACKGROUND.after_fork_in_parent,
        after_in_child=BACKGROUND.after_fork_in_child,
    )
