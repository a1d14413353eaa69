"""Work of recording that a host need not wait for: done behind its back, or before anybody asks or records."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock, get_ident

from coherence.core.reentrancy import is_inside

LOG = logging.getLogger("coherence")

MAX_BYTES = 4_000_000
"""Bytes that wait to be read; whoever adds more reads them himself."""


class Deferred:
    """Readings of raw requests and answers, each of which records something, in order.

    Examples
    --------
    >>> told = []
    >>> waiting = Deferred()
    >>> waiting.add(lambda: told.append("an answer"), size=1_000)
    >>> told
    []
    >>> waiting.settle()
    >>> told
    ['an answer']
    """

    def __init__(self) -> None:
        self._queue: deque[tuple[float, Callable[[], None], int]] = deque()
        self._bytes = 0
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget what waits, in a child process: it is the parent's to record."""
        self._queue.clear()
        self._bytes = 0
        self._lock = RLock()
        self._depth = 0
        self._reader, self._ts = 0, 0.0

    def add(self, read: Callable[[], None], *, size: int) -> None:
        """Have something read later; ``size`` is the number of bytes that it holds until then."""
        self._queue.append((time.time(), read, size))
        self._bytes += size
        if self._bytes > MAX_BYTES:
            self.settle()

    def added_at(self) -> float | None:
        """Return when the host added what this thread reads now; ``None`` if it reads nothing."""
        return self._ts if self._reader == get_ident() else None

    def settle(self) -> None:
        """Read all that waits; nothing of it is left when this returns, unless the thread interrupts itself."""
        if self._queue and not is_inside():
            with self.alone():
                pass

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Read all that waits, then let no other thread read until the block is left."""
        with self._lock:
            if not self._depth:
                self._read()
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1

    def hold(self, timeout_s: float) -> bool:
        """Take the lock for a fork; return True if it was free in time."""
        return self._lock.acquire(timeout=timeout_s)

    def release(self) -> None:
        """Give back what :meth:`hold` took."""
        self._lock.release()

    def _read(self) -> None:
        self._depth += 1
        self._reader = get_ident()
        try:
            while self._queue:
                self._ts, read, size = self._queue.popleft()
                self._bytes -= size
                try:
                    read()
                except Exception:  # the others must not be lost with it
                    LOG.exception("coherence: something recorded could not be read")
        finally:
            self._reader = 0
            self._depth -= 1
