"""The file of a large index: a head of one line, then ids, sign codes and rows of all vectors.

A writer makes a new file and renames it over the old one: a process that is killed at any moment leaves the old or the
new file, and a process that has the old one mapped goes on with it. Nothing is flushed to the disk on purpose:
checksums find what a power cut tore, and the index is made again from the database.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from coherence.lessons.index.base import HalfRows, Ids, Mark
from coherence.lessons.index.kernels import sign_codes

FORMAT = 2
"""Number of the format."""

NAME = "index"

HEAD_BYTES = 4_096
"""The head is padded to so many bytes."""

CHUNK_ROWS = 8_192
"""So many rows are written at a time (6 MB at 384 dimensions)."""

CHECKED_ROWS = 256
"""So many rows of a file, spread over it, are compared with their codes."""

PATIENCE_S = 10.0
"""So long a writer waits for another one."""


class SnapshotHead(msgspec.Struct, frozen=True):
    """The first line of the file, in JSON."""

    format: int
    mark: Mark
    count: int
    code_bytes: int
    crc: int
    """Of the mark, the ids and the codes."""


class Snapshot(NamedTuple):
    """The content of the file."""

    mark: Mark
    ids: Ids
    codes: npt.NDArray[np.uint8]
    rows: HalfRows
    """``(n, d)``, mapped."""


def write(folder: Path, mark: Mark, ids: Ids, codes: npt.NDArray[np.uint8], rows: Iterable[HalfRows]) -> bool:
    """Replace the file; ``False``, and nothing is changed, if it is as far as ``mark`` or further already.

    Parameters
    ----------
    folder : Path
        Its folder, made where it is missing; what else lies there is removed.
    mark : Mark
        How far the database has been read.
    ids, codes : ndarray
        ``(n,)`` and ``(n, bytes)``.
    rows : iterable of HalfRows
        ``n`` rows in all.

    Raises
    ------
    OSError
        If that is impossible, or another process keeps writing for :data:`PATIENCE_S` seconds.
    """
    from filelock import FileLock

    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "lock", timeout=PATIENCE_S):
        there = read(folder, mark.fingerprint, mark.dimensions)
        if there is not None and there.mark.lesson >= mark.lesson and there.mark.removal >= mark.removal:
            return False
        head = SnapshotHead(FORMAT, mark, len(ids), codes.shape[1], _checksum(mark, ids, codes))
        fresh = folder / f"{NAME}.new"
        with fresh.open("wb") as file:
            file.write(msgspec.json.encode(head).ljust(HEAD_BYTES - 1) + b"\n")
            for array in (ids, codes, *rows):
                file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        os.replace(fresh, folder / NAME)
        for other in folder.iterdir():  # of an earlier format
            if other.name not in (NAME, "lock"):
                with suppress(OSError):
                    other.unlink()
    return True


def read(folder: Path, fingerprint: str, dimensions: int) -> Snapshot | None:
    """Open the file; ``None`` = missing, torn, of another version, or of another embedder."""
    try:
        with (folder / NAME).open("rb") as file:  # once: a writer may replace it meanwhile
            head = _read_head(file)
            if head is None or (head.mark.fingerprint, head.mark.dimensions) != (fingerprint, dimensions):
                return None
            ids = np.fromfile(file, np.int64, head.count)
            codes = np.fromfile(file, np.uint8, head.count * head.code_bytes).reshape(head.count, head.code_bytes)
            shape, start = (head.count, dimensions), file.tell()
            rows = np.asarray(np.memmap(file, np.float16, "r", start, shape)) if head.count else np.empty(shape, "f2")
    except (OSError, ValueError):  # missing, or too short
        return None
    found = Snapshot(head.mark, ids, codes, rows)
    return found if _is_whole(found, head.crc) else None


def _read_head(file: IO[bytes]) -> SnapshotHead | None:
    try:
        head = msgspec.json.decode(file.read(HEAD_BYTES), type=SnapshotHead)
    except msgspec.DecodeError:
        return None
    return head if head.format == FORMAT else None


def _is_whole(found: Snapshot, crc: int) -> bool:
    """Tell whether ids and codes are those that were written, and some of the rows fit their codes."""
    some = np.arange(0, len(found.ids), len(found.ids) // CHECKED_ROWS + 1)
    fits = np.array_equal(sign_codes(found.rows[some]), found.codes[some])
    return fits and _checksum(found.mark, found.ids, found.codes) == crc


def _checksum(mark: Mark, ids: Ids, codes: npt.NDArray[np.uint8]) -> int:
    return zlib.crc32(codes.data, zlib.crc32(ids.data, zlib.crc32(msgspec.json.encode(mark))))
