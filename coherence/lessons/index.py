"""The vectors of lessons: those in a file are searched by sign codes, those that came since by all cosines.

SQLite is the truth about lessons, and an index can always be made again from it. faiss is imported only when the first
file is searched.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from coherence.core.files import check_folder, make_folder, open_input, open_output
from coherence.core.vectors import Half, Vector, to_unit

Ids: TypeAlias = npt.NDArray[np.int64]
"""``(n,)`` ids of lessons."""

HalfRows: TypeAlias = npt.NDArray[np.float16]
"""``(n, d)`` float16."""

Codes: TypeAlias = npt.NDArray[np.uint8]
"""``(n, bytes)`` one bit a dimension."""

CANDIDATES = 1_000
"""At least so many of the nearest codes are compared exactly."""

CANDIDATES_EACH = 20
"""And at least so many for each lesson that is asked for."""

MAX_COUNTED = 8_192
"""Up to so many neighbours are collected in buckets by distance (34 MB at 64 bytes), above in a heap."""

QUICK_BYTES = (8, 16, 32, 64)
"""Lengths of codes that faiss counts fast: 1,000,000 codes of 64 bytes take 6 ms, of 48 bytes 11 ms."""

LEAST_LENGTH = 1e-300
"""Length below which a vector is taken as zero."""

FORMAT = 3
"""Number of the file's format."""

NAME = "index"

HEAD_BYTES = 4_096
"""The head of the file is padded to so many bytes."""

CHUNK_ROWS = 8_192
"""So many rows are written at a time (6 MB at 384 dimensions)."""

CHECKED_ROWS = 256
"""So many rows of a file, spread over it, are compared with their codes."""

PATIENCE_S = 10.0
"""So long a writer waits for another one."""


class IndexHead(msgspec.Struct, frozen=True):
    """The first line of the file, in JSON; ids, codes and rows follow."""

    owner: str
    """The embedder, and the token of the tables."""
    dimensions: int
    newest: int
    """Number of the newest vector that was taken in."""
    count: int
    crc: int
    """Of owner, number, ids and codes."""
    format: int = FORMAT


class Saved(NamedTuple):
    """The content of the file."""

    ids: Ids
    codes: Codes
    rows: HalfRows
    """``(n, d)`` of unit length, mapped: the system takes their memory back when it needs room."""


class LessonIndex:
    """Finds the lessons whose vectors are nearest. Not thread-safe.

    Vectors are only added. A lesson that was removed is found until the next :meth:`save`; whoever asks leaves it out.

    Parameters
    ----------
    owner : str
        The embedder and the tables that the vectors are of.
    dimensions : int
        Length of the vectors, 1 or above.

    Examples
    --------
    >>> index = LessonIndex("bench", 2)
    >>> index.add([7, 9], np.array([[3.0, 4.0], [1.0, 0.0]]), newest=2)
    >>> [(id, round(cosine, 3)) for id, cosine in index.search(np.array([0.6, 0.8], np.float16), k=1)]
    [(7, 1.0)]
    """

    def __init__(self, owner: str, dimensions: int) -> None:
        self.owner = owner
        self.dimensions = dimensions
        self.newest = 0
        """Number of the newest vector that was taken in."""
        self._saved = _nothing(dimensions)
        self.fresh = 0
        """Vectors that are in no file."""
        self._ids: Ids = np.empty(0, np.int64)
        self._rows: npt.NDArray[np.float32] = np.empty((0, dimensions), np.float32)

    def __len__(self) -> int:
        return len(self._saved.ids) + self.fresh

    def add(self, ids: Iterable[int], vectors: npt.NDArray[Any], newest: int) -> None:
        """Take in vectors ``(n, d)``, the last of which has the number ``newest``; a damaged one is near to nothing."""
        wide = np.nan_to_num(vectors.astype(np.float64), posinf=0.0, neginf=0.0)
        rows = wide / np.maximum(np.sqrt(np.vecdot(wide, wide)), LEAST_LENGTH)[:, None]
        start, self.fresh = self.fresh, self.fresh + len(rows)
        if self.fresh > len(self._ids):  # with spare room, so that adding one takes constant time on average
            room = 2 * self.fresh - start
            self._ids = np.concatenate([self._ids[:start], np.empty(room, np.int64)])
            self._rows = np.concatenate([self._rows[:start], np.empty((room, self.dimensions), np.float32)])
        self._ids[start : self.fresh] = list(ids)
        self._rows[start : self.fresh] = rows
        self.newest = newest

    def search(self, vector: Half, k: int) -> list[tuple[int, float]]:
        """Return at most ``k`` ids and cosines, the nearest first, equal ones by id."""
        query, saved = to_unit(vector), self._saved
        ids, cosines = self._ids[: self.fresh], np.vecdot(self._rows[: self.fresh], query)
        if len(saved.ids):
            most = min(max(CANDIDATES, CANDIDATES_EACH * k), len(saved.ids))
            near = nearest_codes(saved.codes, sign_codes(query), most)
            near.sort()  # neighbours share a page of the file
            places, products = nearest_rows(saved.rows[near], query, k)
            ids, cosines = np.concatenate([ids, saved.ids[near[places]]]), np.concatenate([cosines, products])
        if k < len(cosines):  # sorting all would cost more than the scan
            enough = cosines >= np.partition(cosines, -k)[-k]
            ids, cosines = ids[enough], cosines[enough]
        best = np.lexsort((ids, -cosines))[:k]
        return list(zip(ids[best].tolist(), cosines[best].clip(-1.0, 1.0).tolist(), strict=True))

    @classmethod
    def load(cls, folder: Path, owner: str, dimensions: int) -> LessonIndex:
        """Return the index in a folder; an empty one if there is none, it is torn, or of another owner or format."""
        index = cls(owner, dimensions)
        index._take_up(folder)
        return index

    def save(self, folder: Path, alive: Ids) -> None:
        """Write the lessons that are ``alive`` to a folder, and go on with that file.

        A writer makes a new file and renames it over the old one: a process that is killed at any moment leaves the old
        or the new file, and a process that has the old one mapped goes on with it. Nothing is flushed to the disk on
        purpose: checksums find what a power cut tore. If another process has saved as much, its file stays.

        Raises
        ------
        OSError
            If it cannot be written; the index works on, and the file is the one it was.
        """
        from filelock import FileLock

        check_folder(folder)
        make_folder(folder)
        with FileLock(folder / "lock", timeout=PATIENCE_S, mode=0o600):
            there = LessonIndex(self.owner, self.dimensions)
            there._take_up(folder)
            if there.newest < self.newest or (there.newest == self.newest and len(there) > len(alive)):
                self._write(folder, alive)
            self._take_up(folder)

    def _write(self, folder: Path, alive: Ids) -> None:
        saved, fresh = self._saved, np.isin(self._ids[: self.fresh], alive)
        places = np.flatnonzero(np.isin(saved.ids, alive))
        rows = self._rows[: self.fresh][fresh].astype(np.float16)
        ids = np.concatenate([saved.ids[places], self._ids[: self.fresh][fresh]])
        codes = np.concatenate([saved.codes[places], sign_codes(rows)])
        head = IndexHead(self.owner, self.dimensions, self.newest, len(ids), self._checksum(self.newest, ids, codes))
        old = (saved.rows[places[at : at + CHUNK_ROWS]] for at in range(0, len(places), CHUNK_ROWS))
        unfinished = folder / f"{NAME}.new"
        with open_output(unfinished) as file:
            file.write(msgspec.json.encode(head).ljust(HEAD_BYTES - 1) + b"\n")
            for array in chain((ids, codes), old, (rows,)):
                file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        os.replace(unfinished, folder / NAME)
        for other in folder.iterdir():  # of an earlier format
            if other.name not in (NAME, "lock"):
                with suppress(OSError):
                    other.unlink()

    def _take_up(self, folder: Path) -> None:
        """Replace the content by that of the file, if there is one for this index."""
        try:
            with open_input(folder / NAME) as file:  # once: a writer may replace it meanwhile
                head = msgspec.json.decode(file.read(HEAD_BYTES), type=IndexHead)
                if (head.format, head.owner, head.dimensions) != (FORMAT, self.owner, self.dimensions):
                    return
                ids = np.fromfile(file, np.int64, head.count)
                bytes_each = code_bytes(self.dimensions)
                codes = np.fromfile(file, np.uint8, head.count * bytes_each).reshape(head.count, bytes_each)
                shape = (head.count, self.dimensions)
                rows = _nothing(self.dimensions).rows
                if head.count:
                    rows = np.asarray(np.memmap(file, np.float16, "r", file.tell(), shape))
        except (OSError, ValueError):  # missing, too short, or no such head
            return
        some = np.arange(0, len(ids), len(ids) // CHECKED_ROWS + 1)
        if self._checksum(head.newest, ids, codes) != head.crc:
            return
        if not np.array_equal(sign_codes(rows[some]), codes[some]):
            return
        self._saved, self.newest, self.fresh = Saved(ids, codes, rows), head.newest, 0
        self._ids, self._rows = self._ids[:0], self._rows[:0]

    def _checksum(self, newest: int, ids: Ids, codes: Codes) -> int:
        start = zlib.crc32(f"{self.owner} {newest}".encode("utf-8", "surrogatepass"))
        return zlib.crc32(codes.data, zlib.crc32(ids.data, start))

    @property
    def tier(self) -> str:
        """``flat`` while nothing is in a file, else ``binary``."""
        return "binary" if len(self._saved.ids) else "flat"

    @property
    def memory_bytes(self) -> int:
        """Anonymous memory; the mapped file is not counted."""
        fresh = self._ids[: self.fresh].nbytes + self._rows[: self.fresh].nbytes
        return fresh + self._saved.ids.nbytes + self._saved.codes.nbytes

    @property
    def disk_bytes(self) -> int:
        """Size of the mapped rows."""
        return self._saved.rows.nbytes


def _nothing(dimensions: int) -> Saved:
    rows = np.empty((0, dimensions), np.float16)
    return Saved(np.empty(0, np.int64), sign_codes(rows), rows)


def code_bytes(dimensions: int) -> int:
    """Return the length of a sign code.

    Examples
    --------
    >>> code_bytes(8), code_bytes(384), code_bytes(1024)
    (8, 64, 128)
    """
    least = (dimensions + 7) // 8
    return next((quick for quick in QUICK_BYTES if quick >= least), -least // 8 * -8)


def sign_codes(rows: npt.NDArray[Any]) -> Codes:
    """Return one bit a dimension, set where the component is above 0; padded with zeros to :func:`code_bytes`.

    Examples
    --------
    >>> sign_codes(np.array([[0.6, -0.8, 0.0]])).tolist()
    [[128, 0, 0, 0, 0, 0, 0, 0]]
    """
    bits = np.packbits(rows > 0, axis=-1)
    codes = np.zeros((*bits.shape[:-1], code_bytes(rows.shape[-1])), np.uint8)
    codes[..., : bits.shape[-1]] = bits
    return codes


def nearest_rows(rows: HalfRows, query: Vector, k: int) -> tuple[Ids, npt.NDArray[np.float32]]:
    """Return places and cosines of the ``k`` nearest rows; faiss widens float16 some ten times faster than numpy."""
    with _one_thread() as faiss:
        index = faiss.IndexScalarQuantizer(rows.shape[1], faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)
        flat = rows.reshape(-1).view(np.uint8)
        owner = faiss.MaybeOwnedVectorUInt8().owner  # numpy owns the memory and outlives this call
        index.codes = faiss.MaybeOwnedVectorUInt8.create_view(faiss.swig_ptr(flat), flat.size, owner)
        index.ntotal = len(rows)
        products, places = index.search(query[None, :], min(k, len(rows)))
    return places[0], products[0]


def nearest_codes(codes: Codes, code: Codes, k: int) -> Ids:
    """Return the places of the ``k`` codes (1 or above, at most all) that differ from ``code`` in the fewest bits."""
    with _one_thread() as faiss:
        _, places = faiss.knn_hamming(code[None, :], codes, k, "mc" if k <= MAX_COUNTED else "hc")
    found: Ids = places[0]
    return found


@contextmanager
def _one_thread() -> Iterator[Any]:
    """Keep faiss on the calling thread: over all cores, one query would cost a threaded host more than it gains."""
    import faiss

    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield faiss
    finally:
        faiss.omp_set_num_threads(threads)
