"""One thread of the process that does what must not be done on the caller's path."""

from __future__ import annotations

import atexit
import logging
import os
import time
from threading import Event, Lock, Thread
from typing import Protocol
from weakref import WeakSet

LOG = logging.getLogger("coherence")

GATHER_S = 0.01
"""Seconds between being called and beginning, so that a burst is one batch."""


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
        self._busy: dict[int, tuple[BackgroundJob, float]] = {}
        """Jobs with something to do, and from which time on (monotonic). Kept alive until it is done."""
        self._lock = Lock()
        self._wake = Event()
        self._thread: Thread | None = None
        self.known: WeakSet[BackgroundJob] = WeakSet()
        """Everybody, for a fork and for the end."""

    def call(self, worker: BackgroundJob, after_s: float = GATHER_S) -> None:
        """Have ``worker.work()`` called soon, on the thread."""
        due = time.monotonic() + after_s
        with self._lock:
            busy = self._busy.get(id(worker))
            if busy is not None and busy[1] <= due:
                return
            self._busy[id(worker)] = (worker, due)
            if self._thread is None:
                self._start()
        self._wake.set()

    def _start(self) -> None:
        # daemon: the interpreter would wait for any other before it lets atexit finish the work
        thread = Thread(target=self._run, name="coherence-background", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the interpreter is shutting down
            return
        self._thread = thread
        # Not at import: what was registered before a fork does not run in a child of multiprocessing.
        atexit.register(self.finish)

    def _run(self) -> None:
        while True:
            pause = self._turn()
            # Cleared only here: a call that comes during the turn ends the wait at once.
            if self._wake.wait(pause):
                self._wake.clear()

    def _turn(self) -> float | None:
        """Work for whom it is time; return how long there is nothing to do, ``None`` = until called."""
        now = time.monotonic()
        with self._lock:
            due = [worker for worker, at in self._busy.values() if at <= now]
            # Taken out before they work: a call that comes meanwhile puts them in again.
            for worker in due:
                del self._busy[id(worker)]
        for worker in due:
            try:
                more = worker.work()
            except Exception:  # the others must not wait for ever
                LOG.exception("coherence: background work failed")
                continue
            if more is not None:
                self.call(worker, more)
        with self._lock:
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
