"""Lines that a client adds to a file of its own."""

from __future__ import annotations

import os
from pathlib import Path

from coherence.core.files import open_input

MAX_READ = 32_000_000
"""Bytes that are read at once; what a client has written beyond them since the last time is left out."""


class AddedLines:
    """Read what is added to a file, whole lines only.

    A file that is missing or cannot be read has nothing to say.

    Parameters
    ----------
    path : Path
        It may be missing yet.
    at_end : bool
        Begin with what is written from now on.
    """

    def __init__(self, path: Path, *, at_end: bool = False) -> None:
        self.path = path
        self._offset = size_of(path) if at_end else 0

    def read(self) -> list[bytes]:
        """Return the lines that are new since the last time."""
        if size_of(self.path) <= self._offset:
            return []
        try:
            with open_input(self.path) as file:
                file.seek(self._offset)
                added = file.read(MAX_READ)
        except OSError:
            return []
        whole = added.rfind(b"\n") + 1
        self._offset += whole
        if len(added) == MAX_READ:
            self._offset = max(self._offset, size_of(self.path))
        return added[:whole].splitlines()


def size_of(path: Path) -> int:
    """Return the bytes of a file, 0 if it cannot be had."""
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
