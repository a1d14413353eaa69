"""Events that a host has recorded and nobody has folded yet: first in, first out, and bounded in memory.

Whoever records never waits for whoever folds. What comes faster than it can be folded goes to a file beside the store,
which has no name and ends with the process; without a store, the oldest texts are dropped, and counted.
"""

from __future__ import annotations

import pickle
import tempfile
from collections import deque
from pathlib import Path
from threading import RLock
from typing import IO, Any, NamedTuple

import msgspec

from coherence.core.events import TEXT_FIELDS, Event, ToolCall, text_of

MAX_WAITING = 8_000_000
"""Bytes of events that wait in memory."""

MAX_DROPPED = 50_000
"""Events that wait in memory without a store; later ones are lost, and counted."""

OVERHEAD = 400
"""Bytes of an event beside its text."""

WIDE = 3
"""Bytes of a character of a text that is not only ASCII."""

LONG = 2_000
"""Bytes of a text that is worth dropping."""

AT_ONCE = 500_000
"""Bytes that are written to the file at once: whoever writes waits for the interpreter afterwards."""

DROPPED = "[a text of {size:,} bytes was dropped: events came faster than they could be read]"


class Losses(NamedTuple):
    """Losses since somebody asked last."""

    texts: int
    events: int


class Posted:
    """An event that waits."""

    __slots__ = ("event", "size", "ts")

    def __init__(self, ts: float, event: Event, size: int) -> None:
        self.ts = ts
        self.event = event
        self.size = size


class Inbox:
    """Events that wait to be folded.

    Parameters
    ----------
    folder : Path, optional
        Folder of the store, for what memory does not hold.
    most : int
        Bytes to hold in memory.
    """

    def __init__(self, folder: Path | None = None, most: int = MAX_WAITING) -> None:
        self._folder = folder
        self._most = most
        self._queue: deque[Posted] = deque()
        self._tail: deque[Posted] = deque()
        """Those that came after what is in the file, until they go there together."""
        self._long: dict[int, Posted] = {}
        """Those of ``_queue`` and ``_tail`` with a long text, by their identity, the oldest first."""
        self._aside: deque[Posted] = deque()
        self._bytes = self._tail_bytes = 0
        self._file: IO[bytes] | None = None
        self._parts: deque[tuple[int, int]] = deque()
        """Bytes and events of each part of the file that is not read yet, in order."""
        self._in_file = 0
        self._read = self._written = 0
        self._texts = self._events = 0
        # Re-entrant, for a signal handler may interrupt whoever holds it; such a one only takes put_aside().
        self._lock = RLock()

    def put(self, ts: float, event: Event) -> None:
        """Take an event; never waits for a disk or a fold."""
        posted = Posted(ts, event, size_of(event))
        part = min(AT_ONCE, self._most // 4)
        with self._lock:
            if not (self._parts or self._tail or (self._folder and self._bytes + posted.size > self._most - part)):
                if self._make_room(posted.size):
                    self._append(posted, self._queue)
                return
            self._append(posted, self._tail)
            self._tail_bytes += posted.size
            if self._tail_bytes > part or self._bytes > self._most:
                self._spill()
            if self._tail and self._bytes > self._most and not self._make_room():  # a full disk
                self._bytes -= self._tail.pop().size

    def put_aside(self, ts: float, event: Event) -> None:
        """Take an event from a call that interrupts another one of its thread, and touch nothing else."""
        self._aside.append(Posted(ts, event, 0))

    def pop(self) -> tuple[float, Event] | None:
        """Return the oldest event and when it came, ``None`` if none waits."""
        with self._lock:
            if not self._queue and (self._parts or self._tail):
                self._fetch()
            if self._aside and (not self._queue or self._aside[0].ts <= self._queue[0].ts):
                posted = self._aside.popleft()
            elif self._queue:
                posted = self._queue.popleft()
                self._long.pop(id(posted), None)
            else:
                return None
            self._bytes -= posted.size
            return posted.ts, posted.event

    @property
    def has_losses(self) -> bool:
        """``True`` if something was lost that nobody has asked about."""
        return bool(self._texts or self._events)

    def losses(self) -> Losses:
        """Return what was lost since the last call."""
        with self._lock:
            found = Losses(self._texts, self._events)
            self._texts = self._events = 0
        return found

    def close(self) -> None:
        """Let go of the file, and of what is in it."""
        self._read = self._written = 0
        self._parts.clear()
        self._in_file = 0
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def clear(self) -> None:
        """Forget everything, in the child of a fork: it is the parent's."""
        self.close()
        self.__init__(self._folder, self._most)  # type: ignore[misc]

    def __len__(self) -> int:
        return len(self._queue) + self._in_file + len(self._tail) + len(self._aside)

    @property
    def bytes(self) -> int:
        """Bytes that wait, in memory and in the file."""
        return self._bytes + self._written - self._read

    def age(self, now: float) -> float:
        """Return for how many seconds the oldest event has waited."""
        try:
            return now - self._queue[0].ts
        except IndexError:
            return 0.0

    def _append(self, posted: Posted, to: deque[Posted]) -> None:
        to.append(posted)
        self._bytes += posted.size
        if posted.size > LONG:
            self._long[id(posted)] = posted

    def _make_room(self, size: int = 0) -> bool:
        """Drop the oldest texts until there is room for some bytes; return whether another event may wait."""
        while self._long and self._bytes + size > self._most:
            oldest = self._long.pop(next(iter(self._long)))
            self._bytes -= oldest.size
            oldest.event = without_text(oldest.event, oldest.size)
            oldest.size = size_of(oldest.event)
            self._bytes += oldest.size
            self._texts += 1
        if len(self._queue) + len(self._tail) < MAX_DROPPED:
            return True
        self._events += 1
        return False

    def _spill(self) -> None:
        """Write the newest events behind what is in the file; on a full disk they stay in memory."""
        # pickle knows every text, unlike JSON
        data = pickle.dumps([(posted.ts, posted.event, posted.size) for posted in self._tail])
        try:
            if self._file is None:
                # Unnamed, or deleted once opened: nobody else reads what is not redacted yet.
                self._file = tempfile.TemporaryFile(dir=self._folder, prefix=".coherence-", buffering=0)  # noqa: SIM115
            self._file.seek(self._written)
            if self._file.write(data) != len(data):
                return
        except OSError:  # a full disk: what was written of it is written over
            return
        self._written += len(data)
        self._parts.append((len(data), len(self._tail)))
        self._in_file += len(self._tail)
        for posted in self._tail:
            self._long.pop(id(posted), None)
        self._bytes -= sum(posted.size for posted in self._tail)
        self._tail_bytes = 0
        self._tail.clear()

    def _fetch(self) -> None:
        """Take the next events from the file, and what came after them when it is empty."""
        if not self._parts:
            self._queue, self._tail = self._tail, self._queue
            self._tail_bytes = 0
            return
        assert self._file is not None
        length, count = self._parts.popleft()
        self._in_file -= count
        self._file.seek(self._read)
        self._read += length
        try:
            for kept in pickle.loads(self._file.read(length)):  # noqa: S301 - nobody else has the file
                self._append(Posted(*kept), self._queue)
        except (OSError, ValueError, EOFError, pickle.UnpicklingError):
            self._events += count
        if not self._parts:
            self.close()


def size_of(event: Event) -> int:
    """Return the bytes that an event takes, roughly."""
    if type(event) is ToolCall:
        return OVERHEAD + len(bytes(event.arguments))
    text = text_of(event)
    return OVERHEAD + (len(text) if text.isascii() else WIDE * len(text))


def without_text(event: Event, size: int) -> Event:
    """Return an event with a note in place of its text."""
    note = DROPPED.format(size=size)
    changed: dict[str, Any] = {"arguments": msgspec.Raw(msgspec.json.encode(note))}
    if type(event) is not ToolCall:
        changed = {TEXT_FIELDS[type(event)]: note}
    return msgspec.structs.replace(event, **changed)
