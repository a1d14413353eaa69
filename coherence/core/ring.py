"""A bounded, ordered, thread-safe buffer of numbered items."""

from __future__ import annotations

from bisect import bisect_right, insort
from threading import RLock
from typing import Generic, TypeVar

T = TypeVar("T")


class Poll(list[T]):
    """Items after a number, oldest first; ``missed`` is the number of items that had already left the buffer."""

    missed: int = 0


class Ring(Generic[T]):
    """Keep the ``size`` items with the highest sequence numbers; equal numbers stay in the order they came.

    Examples
    --------
    >>> ring = Ring[str](2)
    >>> for seq, item in [(1, "a"), (3, "c"), (2, "b")]:
    ...     ring.add(seq, item)
    >>> ring.newest(5), ring.since(0), ring.since(0).missed
    (['c', 'b'], ['b', 'c'], 1)
    """

    def __init__(self, size: int) -> None:
        if not isinstance(size, int) or isinstance(size, bool):
            raise TypeError(f"history_size must be an int, not {size!r}")
        if size < 0:
            raise ValueError(f"history_size must be 0 or more, not {size}")
        self.size = size
        self._lock = RLock()  # a finalizer may look while its own thread adds
        self._seqs: list[int] = []
        self._items: list[T] = []
        self._lost: list[int] = []
        """Numbers that left, highest last; only the newest ``size`` are remembered."""
        self.latest: T | None = None
        self._latest_seq = float("-inf")

    def add(self, seq: int, item: T) -> None:
        """Insert by number; the lowest number leaves when the buffer is full."""
        with self._lock:
            at = bisect_right(self._seqs, seq)
            self._seqs.insert(at, seq)
            self._items.insert(at, item)
            if seq >= self._latest_seq:
                self.latest, self._latest_seq = item, seq
            if len(self._items) > self.size:
                insort(self._lost, self._seqs.pop(0))
                del self._items[0]
                if len(self._lost) > max(self.size, 1):
                    del self._lost[0]

    def replace(self, old: T, new: T) -> None:
        """Put ``new`` where ``old`` is, if it is still there."""
        with self._lock:
            if self.latest is old:
                self.latest = new
            for at in range(len(self._items) - 1, -1, -1):
                if self._items[at] is old:
                    self._items[at] = new
                    return

    def newest(self, count: int | None = None) -> list[T]:
        """Return up to ``count`` items, newest first; ``None`` = all, 0 or less = none."""
        if count is not None and (not isinstance(count, int) or isinstance(count, bool)):
            raise TypeError(f"n must be an int, not {count!r}")
        with self._lock:
            items = self._items[::-1]
        return items if count is None else items[: max(count, 0)]

    def since(self, seq: int) -> Poll[T]:
        """Return every kept item numbered above ``seq``, oldest first, and how many above it were lost."""
        if not isinstance(seq, int) or isinstance(seq, bool):
            raise TypeError(f"seq must be an int, not {seq!r}")
        with self._lock:
            found = Poll(self._items[bisect_right(self._seqs, seq) :])
            found.missed = sum(lost > seq for lost in self._lost)
        return found
