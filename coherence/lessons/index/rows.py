"""The vectors of an index in the order they were added: mapped from files, and the newest in memory."""

from __future__ import annotations

import mmap
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from coherence.lessons.index.base import CHUNK_ROWS, HalfRows
from coherence.lessons.index.growable import Growing


class IndexPart(NamedTuple):
    """Neighbouring rows that lie in one piece of memory."""

    start: int
    """The place of the first of them in the index."""
    rows: HalfRows


class Spill:
    """A file without a name for rows that are not saved yet; it is gone with the process, however that ends."""

    def __init__(self, folder: Path, dimensions: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - lives as long as the index
        weakref.finalize(self, self._file.close)
        self._dimensions = dimensions
        self.count = 0

    def append(self, rows: HalfRows) -> HalfRows:
        """Write rows and return all that were ever written, mapped.

        Raises
        ------
        OSError
            If the disk is full; what was written before stays.
        """
        self._file.seek(self.count * self._dimensions * rows.itemsize)
        write_all(self._file, rows)
        self.count += len(rows)
        return mapped(self._file, self.count, self._dimensions)


class Rows:
    """Rows in files, then rows in memory.

    Parameters
    ----------
    dimensions : int
        Length of a row.
    saved : HalfRows, optional
        ``(n, d)``: the first rows, mapped from a file.
    """

    def __init__(self, dimensions: int, saved: HalfRows | None = None) -> None:
        self.dimensions = dimensions
        self.saved = 0 if saved is None else len(saved)
        """So many of the first rows are mapped from saved files."""
        self._in_files = [IndexPart(0, saved)] if saved is not None and len(saved) else []
        self._spill: Spill | None = None
        self._tail = Growing(np.float16, dimensions)
        self._tail_start = self.saved

    @property
    def count(self) -> int:
        """Rows in all."""
        return self._tail_start + self._tail.count

    @property
    def in_memory(self) -> int:
        """Rows that lie in no file that this process has mapped."""
        return self._tail.count

    @property
    def spilled(self) -> bool:
        """Whether rows lie in a nameless file."""
        return self._spill is not None

    @property
    def in_files(self) -> bool:
        """Whether any rows lie in files."""
        return bool(self._in_files)

    @property
    def memory_bytes(self) -> int:
        """Anonymous memory."""
        return self._tail.memory_bytes

    def append(self, rows: HalfRows) -> None:
        """Add rows behind the last one."""
        self._tail.append(rows)

    def parts(self) -> tuple[IndexPart, ...]:
        """Return the pieces in order; they stay valid and as they are."""
        if not self._tail.count:
            return tuple(self._in_files)
        return (*self._in_files, IndexPart(self._tail_start, self._tail.view))

    def spill(self, folder: Path) -> None:
        """Move the rows in memory to a nameless file in ``folder``.

        Raises
        ------
        OSError
            If that is impossible; the rows stay in memory then.
        """
        if self._spill is None:
            self._spill = Spill(folder, self.dimensions)
        written = self._spill.append(self._tail.view)
        start = self.count - len(written)
        self._in_files = [*(part for part in self._in_files if part.start < start), IndexPart(start, written)]
        self._tail, self._tail_start = Growing(np.float16, self.dimensions), self.count

    def adopt(self, saved: HalfRows) -> None:
        """Use rows of a file for the first ``len(saved)`` rows, which they equal, from now on."""
        behind = chunks(self.parts(), len(saved))
        tail = Growing(np.float16, self.dimensions)
        for _, rows in behind:
            tail.append(rows)
        self._in_files, self._spill, self._tail = [IndexPart(0, saved)], None, tail
        self.saved = self._tail_start = len(saved)


def select(parts: tuple[IndexPart, ...], places: npt.NDArray[np.int64], dimensions: int) -> HalfRows:
    """Return the rows at these places ``(n, d)``, in their order."""
    if len(parts) == 1:
        return parts[0].rows[places]
    found = np.empty((len(places), dimensions), np.float16)
    for start, rows in parts:
        here = (places >= start) & (places < start + len(rows))
        found[here] = rows[places[here] - start]
    return found


def chunks(parts: tuple[IndexPart, ...], start: int = 0) -> Iterator[tuple[int, HalfRows]]:
    """Yield all rows from ``start`` on, a bounded number at a time, each time with the place of the first."""
    for first, rows in parts:
        for at in range(max(start - first, 0), len(rows), CHUNK_ROWS):
            yield first + at, rows[at : at + CHUNK_ROWS]


def mapped(file: BinaryIO, count: int, dimensions: int) -> HalfRows:
    """Return the first ``count`` rows of a file without reading them.

    Raises
    ------
    OSError, ValueError
        If the file is shorter.
    """
    if count == 0:
        return np.empty((0, dimensions), np.float16)
    memory = mmap.mmap(file.fileno(), count * dimensions * 2, access=mmap.ACCESS_READ)
    return np.frombuffer(memory, np.float16).reshape(count, dimensions)


def write_all(file: BinaryIO, array: npt.NDArray[np.generic]) -> None:
    """Write an array to an unbuffered file, which may take less than it is given at a time."""
    left = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    while left:
        left = left[file.write(left) :]
