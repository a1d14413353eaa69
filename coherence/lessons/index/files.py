"""The files of an index: rows, ids and codes that only grow, and a small head that says how much of them counts.

::

    <folder>/head                   magic, checksum, then a Head
             rows-<generation>      float16 rows, mapped by readers
             ids-<generation>       int64 ids
             codes-<generation>     sign codes
             lock                   held while somebody writes

A writer appends, then replaces the head by a rename: whoever is killed at any moment leaves the old or the new state,
and bytes behind what the head counts are overwritten by the next writer. Removed rows are bits in the head; when there
are many, the others are written as a new generation and the old files are unlinked, which does not disturb who has
them mapped. Nothing is flushed to the disk on purpose: checksums find what a power cut tore, and the index is rebuilt.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from coherence.lessons.index.base import HalfRows, Ids, Mark
from coherence.lessons.index.kernels import code_bytes, sign_codes
from coherence.lessons.index.rows import mapped, write_all

MAGIC = b"coherence lesson index 1\n"
"""The number is the version of the format."""

DIGEST_BYTES = 16

TAIL_ROWS = 1_024
"""So many of the last rows are checked on loading: a power cut tears what was written last."""

SPREAD_ROWS = 64
"""And so many of all the others."""

LENGTH_TOLERANCE = 0.01
"""Rounding to float16 changes the squared length of a unit vector by at most 0.001 (2 x 2**-11), plus what vanishes."""

KINDS = ("rows", "ids", "codes")

LOOKS = 5
"""So often a reader looks again when a writer replaces the files while it opens them."""
PATIENCE_S = 10.0


class IndexHead(msgspec.Struct, frozen=True, array_like=True):
    """What the files hold."""

    mark: Mark
    generation: str
    """The end of the names of the files; never used twice."""
    count: int = 0
    """Rows, removed ones too."""
    ids_crc: int = 0
    codes_crc: int = 0
    dead: bytes = b""
    """One bit a row, set where it was removed; empty = no row was."""


class SavedIndex(NamedTuple):
    """The files of an index, open."""

    head: IndexHead
    digest: bytes
    ids: Ids
    alive: npt.NDArray[np.bool_]
    rows: HalfRows
    codes: npt.NDArray[np.uint8]


def read_head(folder: Path) -> tuple[IndexHead, bytes] | None:
    """Return the head and its checksum; ``None`` = missing, torn or of another version."""
    try:
        raw = (folder / "head").read_bytes()
    except OSError:
        return None
    start = len(MAGIC) + DIGEST_BYTES
    digest, body = raw[len(MAGIC) : start], raw[start:]
    if not raw.startswith(MAGIC) or _digest(body) != digest:
        return None
    try:
        return msgspec.msgpack.decode(body, type=IndexHead), digest
    except msgspec.DecodeError:
        return None


def open_saved(folder: Path) -> SavedIndex | None:
    """Open the files; ``None`` = missing, torn or of another version."""
    for _ in range(LOOKS):
        found = read_head(folder)
        if found is None:
            return None
        with suppress(OSError, ValueError):
            return _checked(folder, *found)
        if read_head(folder) == found:
            return None
    return None


def rows_of(folder: Path, head: IndexHead) -> HalfRows:
    """Map the rows that the head counts.

    Raises
    ------
    OSError, ValueError
        If the file is gone or too short.
    """
    with (folder / f"rows-{head.generation}").open("rb") as file:
        return mapped(file, head.count, head.mark.dimensions)


def new_head(mark: Mark) -> IndexHead:
    """Return the head of files that do not exist yet."""
    return IndexHead(mark, secrets.token_hex(8))


def append(folder: Path, head: IndexHead, ids: Ids, rows: Iterator[HalfRows]) -> IndexHead:
    """Write rows behind those that the head counts and return the head that counts them too; it is not written.

    Raises
    ------
    OSError
        If that is impossible; the files count as before.
    """
    codes_crc = head.codes_crc
    if len(ids):
        folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            row_file, id_file, code_file = (
                stack.enter_context(path.open("r+b" if head.count else "wb", 0)) for path in _sizes(folder, head)
            )
            for file, size in zip((row_file, id_file, code_file), _sizes(folder, head).values(), strict=True):
                file.seek(size)
            write_all(id_file, ids)
            for chunk in rows:
                codes = sign_codes(chunk)
                write_all(row_file, chunk)
                write_all(code_file, codes)
                codes_crc = zlib.crc32(codes.data, codes_crc)
    ids_crc = zlib.crc32(np.ascontiguousarray(ids).data, head.ids_crc)
    return msgspec.structs.replace(head, count=head.count + len(ids), ids_crc=ids_crc, codes_crc=codes_crc)


def publish(folder: Path, head: IndexHead) -> bytes:
    """Write the head, so that what it counts holds, and return its checksum.

    Raises
    ------
    OSError
        If that is impossible; the head before it holds.
    """
    folder.mkdir(parents=True, exist_ok=True)
    body = msgspec.msgpack.encode(head)
    digest = _digest(body)
    fresh = folder / "head.new"
    with fresh.open("wb") as file:
        file.write(MAGIC + digest + body)
    os.replace(fresh, folder / "head")
    return digest


def clean(folder: Path, generation: str) -> None:
    """Unlink the files of all other generations, as far as possible."""
    with suppress(OSError):
        for name in os.listdir(folder):
            kind, dash, other = name.partition("-")
            if dash and kind in KINDS and other != generation:
                (folder / name).unlink(missing_ok=True)


def discard(folder: Path) -> None:
    """Remove the files, so that an index of another embedder can be saved there.

    Raises
    ------
    OSError
        If that is impossible, or another process keeps writing to them for :data:`PATIENCE_S` seconds.
    """
    with writing(folder, PATIENCE_S) as free:
        if not free:
            raise BlockingIOError(errno.EWOULDBLOCK, "another process is writing", str(folder))
        (folder / "head").unlink(missing_ok=True)
        clean(folder, "")


def complete(folder: Path, head: IndexHead) -> bool:
    """Return whether the files are as long as the head says."""
    try:
        return all(path.stat().st_size >= size for path, size in _sizes(folder, head).items() if size)
    except OSError:
        return False


def disk_bytes(head: IndexHead) -> int:
    """Return what the files take."""
    return len(head.dead) + sum(_sizes(Path(), head).values())


@contextmanager
def writing(folder: Path, patience_s: float = 0.0) -> Iterator[bool]:
    """Hold the lock of the folder; gives ``False`` where somebody else holds it for ``patience_s`` seconds.

    Raises
    ------
    OSError
        If the folder cannot be written to.
    """
    from filelock import FileLock, Timeout

    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / "lock", timeout=patience_s)
    try:
        lock.acquire()
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


def _checked(folder: Path, head: IndexHead, digest: bytes) -> SavedIndex | None:
    """Read ids and codes and map the rows; ``None`` where they are not what the head says.

    Raises
    ------
    OSError, ValueError
        If a file is gone or too short.
    """
    count, width = head.count, code_bytes(head.mark.dimensions)
    ids = np.fromfile(folder / f"ids-{head.generation}", np.int64, count) if count else np.empty(0, np.int64)
    flat = np.fromfile(folder / f"codes-{head.generation}", np.uint8, count * width) if count else np.empty(0, np.uint8)
    codes = flat.reshape(count, width)
    if len(ids) != count or zlib.crc32(ids.data) != head.ids_crc or zlib.crc32(codes.data) != head.codes_crc:
        return None
    rows = rows_of(folder, head) if count else np.empty((0, head.mark.dimensions), np.float16)
    dead = np.zeros(count, np.bool_)
    if head.dead:
        dead[:] = np.unpackbits(np.frombuffer(head.dead, np.uint8), count=count)
    return SavedIndex(head, digest, ids, ~dead, rows, codes) if _whole(rows, codes) else None


def _whole(rows: HalfRows, codes: npt.NDArray[np.uint8]) -> bool:
    """Return whether the rows that a power cut hits first, and some others, have unit length and fit their codes."""
    count = len(rows)
    spread = np.linspace(0, count, SPREAD_ROWS, endpoint=False, dtype=np.int64) if count else np.empty(0, np.int64)
    sample = np.union1d(spread, np.arange(max(count - TAIL_ROWS, 0), count))
    wide = rows[sample].astype(np.float32)
    lengths = np.vecdot(wide, wide)
    return bool((np.abs(lengths - 1.0) < LENGTH_TOLERANCE).all() and (sign_codes(wide) == codes[sample]).all())


def _sizes(folder: Path, head: IndexHead) -> dict[Path, int]:
    """Return the paths of rows, ids and codes, and how many bytes of each count."""
    widths = (2 * head.mark.dimensions, 8, code_bytes(head.mark.dimensions))
    return {folder / f"{kind}-{head.generation}": width * head.count for kind, width in zip(KINDS, widths, strict=True)}


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=DIGEST_BYTES).digest()
