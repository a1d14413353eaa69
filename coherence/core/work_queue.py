"""A bounded queue with a thread of its own, for work that must never hold the host up."""

from __future__ import annotations

import logging
import os
import queue
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

from coherence.core.plain import type_name

T = TypeVar("T")

LOG = logging.getLogger("coherence")

LOG_EVERY = 1_000
"""Of items that are dropped or fail the first is logged, and each one after so many more."""


class WorkQueue(Generic[T]):
    """Work off items in order, on a daemon thread that starts with the first.

    Parameters
    ----------
    work : callable
        Takes an item; what it raises counts as dropped.
    name : str
        Name of the thread, and in the log.
    most_waiting : int
        Items that wait at most; what comes then is dropped.
    """

    def __init__(self, work: Callable[[T], object], *, name: str, most_waiting: int) -> None:
        self._work, self._name, self._most = work, name, most_waiting
        self.dropped = 0
        """Items that were not worked off: too many waited, it was closed, or the work failed."""
        self._begin()
        _queues.add(self)

    def _begin(self) -> None:
        self._queue: queue.Queue[T] = queue.Queue(self._most)
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False

    def put(self, item: T) -> None:
        """Queue an item; returns at once, and raises nothing."""
        try:
            if self._closed:
                raise queue.Full
            if self._thread is None:
                with self._starting:
                    if self._thread is None:
                        thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                        thread.start()
                        self._thread = thread
            self._queue.put_nowait(item)
        except (queue.Full, RuntimeError):  # a RuntimeError where no thread can be started
            self._drop("too many wait, or it is closed")

    def flush(self, timeout_s: float) -> bool:
        """Wait until all that was given so far is worked off; return whether it is, in time."""
        with self._queue.all_tasks_done:
            return self._queue.all_tasks_done.wait_for(lambda: not self._queue.unfinished_tasks, max(timeout_s, 0.0))

    def close(self, timeout_s: float) -> bool:
        """Take no more, and wait likewise."""
        self._closed = True
        return self.flush(timeout_s)

    def _run(self) -> None:
        while True:
            item = self._queue.get()
            try:
                self._work(item)
            except Exception as error:  # the thread goes on to the next one
                self._drop(type_name(error))
            self._queue.task_done()

    def _drop(self, why: str) -> None:
        self.dropped += 1
        if self.dropped % LOG_EVERY == 1:
            with suppress(Exception):  # a stranger's handler or filter
                LOG.warning("%s: dropped: %s (%d so far)", self._name, why, self.dropped)


_queues: weakref.WeakSet[WorkQueue[Any]] = weakref.WeakSet()


def _after_fork() -> None:
    for each in list(_queues):
        each._begin()  # the parent's thread is not here


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
