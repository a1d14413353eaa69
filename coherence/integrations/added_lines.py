"""Lines that a client adds to a file of its own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec

from coherence.core.files import open_input

MAX_READ = 32_000_000
"""Bytes that are read at once."""


class AddedLines:
    """Read what is added to a file, whole lines only.

    A file that is missing or cannot be read has nothing to say.

    Parameters
    ----------
    path : Path
        It may be missing yet.
    at_end : bool
        Begin with what is written from now on.
    max_read : int
        Bytes that are read at once; a line that is longer is passed over.
    max_behind : int
        Bytes that the reader goes back at most; what it does not read at once is read the next time.
    """

    def __init__(
        self, path: Path, *, at_end: bool = False, max_read: int = MAX_READ, max_behind: int = MAX_READ
    ) -> None:
        self.path = path
        self._max_read, self._max_behind = max_read, max_behind
        self._offset = size_of(path) if at_end else 0
        self._in_line = False
        self.left_out = 0
        """Bytes that lay too far back."""
        self.at_end = False
        """True if the newest reading came to the end of the file."""

    def read(self) -> list[bytes]:
        """Return the lines that are new since the last time."""
        size = size_of(self.path)
        self.at_end = size <= self._offset
        if self.at_end:
            return []
        if size - self._offset > self._max_behind:
            self.left_out += size - self._max_behind - self._offset
            self._offset, self._in_line = size - self._max_behind, True
        try:
            with open_input(self.path) as file:
                file.seek(self._offset)
                added = file.read(self._max_read)
        except OSError:
            return []
        self.at_end = self._offset + len(added) >= size
        is_full, whole = len(added) == self._max_read, added.rfind(b"\n") + 1
        begin = added.find(b"\n") + 1 if self._in_line else 0
        self._in_line = not whole and (self._in_line or is_full)
        self._offset += whole or (len(added) if is_full else 0)
        return added[begin:whole].splitlines()


def object_in(line: bytes) -> dict[str, Any]:
    """Return the JSON object of a line, an empty one if it is something else.

    Examples
    --------
    >>> object_in(b'{"type": "user"}'), object_in(b'[7]'), object_in(b'{"type": "us')
    ({'type': 'user'}, {}, {})
    """
    try:
        read = msgspec.json.decode(line)
    except (ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


def size_of(path: Path) -> int:
    """Return the bytes of a file, 0 if it cannot be had."""
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
