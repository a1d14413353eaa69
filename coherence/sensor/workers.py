"""Threads that may be lost to a plug-in that hangs, and the one event loop kept for synchronous callers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, Protocol

MAX_IDLE = 4
"""Idle worker threads kept for the next tick; further ones end."""


class Work(Protocol):
    """What a worker does: the work, then, when the worker is free again, the signal that it is done."""

    def work(self) -> bool:
        """Do it; return whether the signal is still wanted."""
        ...

    def done(self) -> None:
        """Signal."""
        ...


class _Worker(Thread):
    def __init__(self) -> None:
        super().__init__(name="coherence-worker", daemon=True)
        self.queue: SimpleQueue[Work] = SimpleQueue()

    def run(self) -> None:
        while True:
            job = self.queue.get()
            wanted = True
            try:
                wanted = job.work()
            finally:
                # Free first, signal second: the waiter's next job then finds this thread instead of starting another.
                stay = _release(self)
                if wanted:
                    job.done()
            del job
            if not stay:
                return


_idle: list[_Worker] = []
_lock = Lock()


def submit(job: Work) -> None:
    """Run a job on an idle worker, or on a new one."""
    with _lock:
        worker = _idle.pop() if _idle else None
    if worker is None:
        worker = _Worker()
        worker.start()
    worker.queue.put(job)


def _release(worker: _Worker) -> bool:
    with _lock:
        if len(_idle) >= MAX_IDLE:
            return False
        _idle.append(worker)
        return True


class _KeptLoop:
    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = Thread(target=self._run, name="coherence-loop", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.loop.run_forever()
            tasks = asyncio.all_tasks(self.loop)
            for task in tasks:
                task.cancel()
            if tasks:
                self.loop.run_until_complete(asyncio.wait(tasks, timeout=0.1))
        finally:
            self.loop.close()

    def retire(self) -> None:
        """End the thread as soon as what blocks it lets go."""
        with suppress(RuntimeError):  # it is closed already
            self.loop.call_soon_threadsafe(self.loop.stop)


_kept: _KeptLoop | None = None


def run_on_kept_loop(work: Coroutine[Any, Any, bool], seconds: float) -> bool:
    """Run a coroutine on the kept loop; ``False`` if the loop itself is blocked past the time, and is then replaced."""
    global _kept
    with _lock:
        if _kept is None:
            _kept = _KeptLoop()
        kept = _kept
    future = asyncio.run_coroutine_threadsafe(work, kept.loop)
    try:
        return future.result(seconds)
    except (FutureTimeoutError, CancelledError):
        if kept.thread.is_alive():
            future.cancel()
        with _lock:
            if _kept is kept:
                _kept = None
        kept.retire()
        return False


def _after_fork() -> None:
    """Forget the parent's threads: they do not exist in a forked child."""
    global _lock, _kept
    _lock = Lock()
    _idle.clear()
    _kept = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
