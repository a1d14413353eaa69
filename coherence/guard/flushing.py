"""The thread that writes what calls left behind, and takes steps whose time has come."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

from coherence.guard.acting import Actor
from coherence.guard.troubles import Troubles
from coherence.guard.view import View

FLUSH_S = 0.1
"""How long an entry waits to be written at most, if the store can be written."""

LOOK_S = 1.0
"""How often it is looked for what other processes and persons have asked for, and for restores that failed."""


class Flusher:
    """Writes in the background.

    Parameters
    ----------
    views : Mapping of str to View
        The agents' accounts; may grow meanwhile.
    actor : Actor
        Takes steps.
    troubles : Troubles
        Where failures are counted.
    """

    def __init__(self, views: Mapping[str, View], actor: Actor, troubles: Troubles) -> None:
        self._views = views
        self._actor = actor
        self._troubles = troubles
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
            for view in list(self._views.values()):
                self._look_after(view)

    def _catch_up(self) -> None:
        try:
            self._actor.catch_up(list(self._views.values()))
        except Exception as error:
            self._troubles.add("store", error)

    def _look_after(self, view: View) -> None:
        try:
            if view.waits:
                view.write(None)
            self._actor.look_after(view)
        except Exception as error:
            self._troubles.add("store", error)
            self._wake.set()
