"""The accounts that a process holds: of the agents it called last, and of all that have something open."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from coherence.guard.error_counts import ErrorCounts
from coherence.guard.view import View
from coherence.store.errors import StoreError
from coherence.store.store import Store

MAX_HELD = 1000
"""Accounts that are held at once, of 2 to 70 kB each; those with a patch open or something to write come on top."""

MAX_BUSY = 10_000
"""Accounts that are held in any case: a store that cannot be written for so many agents loses the oldest calls."""

LOOKED_AT = 8
"""Accounts that are looked at for one to let go, whenever one is added."""

AT_ONCE = 200
"""Agents that are written in one transaction."""


class Views:
    """The views of one guard in this process.

    The view used longest ago is let go once there are too many, and read anew from the store at the agent's next call.
    A thread that still holds it goes on with it: two views of one agent keep one order, as two processes do.
    """

    def __init__(self, store: Store, troubles: ErrorCounts) -> None:
        self._store = store
        self._troubles = troubles
        self._lock = threading.RLock()
        self._held: OrderedDict[str, View] = OrderedDict()
        self._marked: dict[View, None] = {}
        self.fails = False
        """Whether the store could not be written the last time."""

    def of(self, agent: str) -> View:
        """Return an agent's view, read from the store if it is not held."""
        with self._lock:
            view = self._held.get(agent)
            if view is not None:
                self._held.move_to_end(agent)
                return view
        view = View(agent, self._store)
        with self._lock:
            view = self._held.setdefault(agent, view)
            self._let_go(LOOKED_AT)
        return view

    @property
    def path(self) -> Path:
        """The store's file."""
        return self._store.path

    def values(self) -> list[View]:
        """Return the views that are held."""
        with self._lock:
            return list(self._held.values())

    def knows(self, agent: str) -> bool:
        """Return whether an agent's view is held: it was called, or asked about, in this process."""
        return agent in self._held

    def mark(self, view: View) -> None:
        """Note that a view has something to write; the caller holds the view's lock."""
        self._marked[view] = None

    def write(self) -> None:
        """Write what waits, of all views that were marked.

        Raises
        ------
        StoreError
            If the store cannot be written; what was not written goes on waiting.
        """
        views = list(self._marked)
        for start in range(0, len(views), AT_ONCE):
            some = views[start : start + AT_ONCE]
            try:
                write_together(self._store, some)
            except StoreError:
                self.fails = True
                raise
            self.fails = False
            for view in some:
                with view.lock:
                    if not view.waits:
                        self._marked.pop(view, None)
        with self._lock:
            self._let_go(len(self._held))

    def _let_go(self, most: int) -> None:
        """Let go what is too much, after a look at ``most`` views at most; never the newest one."""
        for _ in range(min(most, len(self._held) - 1)):
            if len(self._held) <= MAX_HELD:
                return
            agent, view = next(iter(self._held.items()))
            if view.busy and len(self._held) <= MAX_BUSY:
                self._held.move_to_end(agent)
                continue
            del self._held[agent]
            self._marked.pop(view, None)
            if view.waits:
                self._troubles.add("store", "too many agents wait for a store that cannot be written: calls are lost")


def write_together(store: Store, views: Iterable[View]) -> None:
    """Write what waits of several views in one transaction.

    Raises
    ------
    StoreError
        Nothing was written; all goes on waiting.
    """
    views = sorted(views, key=lambda view: (view.agent, id(view)))  # one order, so that no two threads block each other
    with ExitStack() as stack:
        for view in views:
            stack.enter_context(view.writing)
        with store.transaction() as transaction:
            found = [view.insert(transaction) for view in views]
        for view, (seq, count) in zip(views, found, strict=True):
            view.inserted(seq, count)
