"""The thread that writes what calls left behind, and takes steps whose time has come."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue

from coherence.guard.error_counts import ErrorCounts
from coherence.guard.executor import Actor
from coherence.guard.threads import start_thread
from coherence.guard.views import Views

FLUSH_S = 0.1
"""How long an entry waits to be written at most, if the store can be written."""

LOOK_S = 1.0
"""How often it is looked for what other processes and persons have asked for, and for restores that failed."""


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
            if self._stopped.wait(FLUSH_S):
                return
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
