"""Awaiting what plug-ins returned, on the caller's event loop or on the one that is kept for synchronous callers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Sequence
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from functools import partial
from threading import Lock, Thread
from typing import Any

from coherence.core.calls import GRACE, Breaker, PluginCall, PluginOutcome, discard, failed


class _KeptLoop:
    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = Thread(target=self._run, name="coherence-loop", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.loop.run_forever()
            # asyncio warns of tasks that are destroyed while pending.
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


_lock = Lock()
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
            # another thread may have replaced it already
            if _kept is kept:
                _kept = None
        kept.retire()
        return False


class Awaiting:
    """Awaitables that calls returned, awaited together."""

    def __init__(self, calls: Sequence[PluginCall]) -> None:
        self._calls = calls

    def block(self, seconds: float) -> bool:
        # pause() keeps the time itself: only a loop that is blocked takes longer than this.
        return run_on_kept_loop(self.pause(seconds), max(seconds, 0.0) + 2 * GRACE)

    async def pause(self, seconds: float) -> bool:
        tasks = {asyncio.ensure_future(_awaited(call)): call for call in self._calls}
        try:
            done, late = await asyncio.wait(tasks, timeout=max(seconds, 0.0))
        except asyncio.CancelledError:
            for task, call in tasks.items():
                _cancel(task, call.breaker)
            raise
        for task in late:
            tasks[task].time_out(seconds, running=True)
            _cancel(task, tasks[task].breaker)
        for task in done:
            cancelled = failed(asyncio.CancelledError("the plug-in cancelled itself"))
            tasks[task].settle(cancelled if task.cancelled() else task.result())
        if late:
            await asyncio.wait(late, timeout=GRACE)  # let them take their cancellation while the loop runs
        return not late


async def _awaited(call: PluginCall) -> PluginOutcome:
    """Await what a call returned; nothing but a cancellation comes out as an exception, or it would end the loop."""
    value = call.value
    try:
        if asyncio.isfuture(value):
            if value.get_loop() is not asyncio.get_running_loop():
                raise ValueError("returned a future of another event loop")
            value = asyncio.shield(value)  # the host's own task is not ours to cancel
        value = await value
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        return failed(error)
    outcome = call.attempt(lambda: value)
    if outcome.pending:
        discard(outcome.value)
        return failed(TypeError("returned an awaitable of an awaitable"))
    return outcome


def _cancel(task: asyncio.Future[Any], breaker: Breaker) -> None:
    if not task.done():
        breaker.running = True
    task.add_done_callback(partial(_retrieve, breaker))
    task.cancel()


def _retrieve(breaker: Breaker, task: asyncio.Future[Any]) -> None:
    """Note that an overrunning coroutine has ended; fetch its exception, or asyncio logs it."""
    breaker.running = False
    if not task.cancelled():
        task.exception()


def _after_fork() -> None:
    """Forget the parent's thread: it does not exist in a forked child."""
    global _lock, _kept
    _lock = Lock()
    _kept = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
