"""The thread that writes what calls left behind, and takes steps whose time has come."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from coherence.guard.acting import Actor
from coherence.guard.troubles import Troubles
from coherence.guard.view import View
from coherence.guard.views import Views

FLUSH_S = 0.1
"""How long an entry waits to be written at most, if the store can be written."""

LOOK_S = 1.0
"""How often it is looked for what other processes and persons have asked for, and for restores that failed."""


class Flusher:
    """Writes in the background.

    Parameters
    ----------
    views : Views
        The agents' accounts.
    actor : Actor
        Takes steps.
    troubles : Troubles
        Where failures are counted.
    take_left : callable
        Records calls that ended where nothing could be recorded.
    """

    def __init__(self, views: Views, actor: Actor, troubles: Troubles, take_left: Callable[[], None]) -> None:
        self._views = views
        self._actor = actor
        self._troubles = troubles
        self._take_left = take_left
        self._wake = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="coherence-guard", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Say that there is something to write."""
        if not self._wake.is_set():
            self._wake.set()

    def stop(self) -> None:
        """End the thread, after what it is writing."""
        self._stopped.set()
        self._wake.set()
        self._thread.join()

    def _run(self) -> None:
        looked_s = time.monotonic()
        while not self._stopped.is_set():
            self._wake.wait(LOOK_S)
            if self._stopped.wait(FLUSH_S):
                return
            self._wake.clear()
            if time.monotonic() - looked_s >= LOOK_S:
                looked_s = time.monotonic()
                self._catch_up()
            self._write()
            for view in self._views.values():
                if not view.account.patching.rests:
                    self._look_after(view)

    def _write(self) -> None:
        try:
            self._take_left()
            self._views.write()
        except Exception as error:
            self._troubles.add("store", error)
            self._wake.set()

    def _catch_up(self) -> None:
        try:
            self._actor.catch_up(self._views.values())
        except Exception as error:
            self._troubles.add("store", error)

    def _look_after(self, view: View) -> None:
        try:
            self._actor.look_after(view)
        except Exception as error:
            self._troubles.add("store", error)
