"""The index in this process: exact up to 50,000 vectors, codes before exact cosines above; kept in files."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from threading import Lock

import msgspec
import numpy as np
import numpy.typing as npt

from coherence.lessons.index import files, scan
from coherence.lessons.index.base import (
    CHUNK_ROWS,
    Found,
    Ids,
    IndexFileError,
    IndexMismatch,
    IndexStats,
    Mark,
    check_absent,
    check_dimensions,
    check_ids,
    check_k,
    new_rows,
    unit_query,
)
from coherence.lessons.index.rows import chunks
from coherence.lessons.index.table import Table

IN_MEMORY_ROWS = 20_000
"""More rows than this are not kept in memory where a file can hold them (15 MB at 384 dimensions)."""


class LocalIndex:
    """Finds the nearest vectors, in this process and without a server.

    Up to 50,000 vectors every cosine is computed. Above that (and until fewer than 40,000 are left) the sign bits of
    all vectors are scanned, and the exact cosines of the 1,000 or more that differ in the fewest bits decide. It is
    safe to use from several threads; searches run beside each other.

    Parameters
    ----------
    dimensions : int
        Length of the vectors, 1 or above.
    folder : Path, optional
        Where rows that were not saved yet may lie once there are many of them, in a file without a name.
        After :meth:`save` or :meth:`load` it is the folder that these were given. Without any, all rows stay in memory.

    Examples
    --------
    >>> index = LocalIndex(2)
    >>> index.add([7, 9], [[3.0, 4.0], [1.0, 0.0]])
    >>> ids, cosines = index.search([0.6, 0.8], k=1)
    >>> ids.tolist(), [round(float(each), 3) for each in cosines]
    ([7], [1.0])
    >>> index.remove([7, 8])
    1
    >>> index.stats().tier, index.stats().count
    ('flat', 1)
    """

    def __init__(self, dimensions: int, folder: Path | None = None) -> None:
        self._dimensions = check_dimensions(dimensions)
        self._folder = folder
        self._lock = Lock()
        self._table = Table(dimensions)
        self._view: scan.ScanView | None = None
        self._head: files.IndexHead | None = None
        self._digest = b""

    @property
    def dimensions(self) -> int:
        """Length of the vectors."""
        return self._dimensions

    def add(self, ids: npt.ArrayLike, vectors: npt.ArrayLike) -> None:
        """Add vectors, all or none; see :meth:`VectorIndex.add`."""
        given, rows = new_rows(ids, vectors, self.dimensions)
        with self._lock:
            check_absent(given[self._table.has(given)])
            self._view = None
            for start in range(0, len(given), CHUNK_ROWS):
                part = slice(start, start + CHUNK_ROWS)
                self._table.add(given[part], rows[part])
                self._make_room(self._table, self._head)

    def remove(self, ids: npt.ArrayLike) -> int:
        """Remove vectors and return how many of the ids were there."""
        with self._lock:
            self._view = None
            removed = self._table.remove(check_ids(ids))
            if self._table.wasteful and not self._table.rows.in_files:
                self._table = self._table.compacted()
            return removed

    def missing(self, ids: npt.ArrayLike) -> Ids:
        """Return those of the ids that are not in the index, in their order."""
        given = check_ids(ids)
        with self._lock:
            return given[~self._table.has(given)]

    def search(self, vector: npt.ArrayLike, k: int) -> Found:
        """Return at most ``k`` ids and cosines, best first; see :meth:`VectorIndex.search`."""
        query, wanted = unit_query(vector, self.dimensions), check_k(k)
        view = self._view
        if view is None:
            with self._lock:
                view = self._view = self._table.view()
        return scan.search(view, query, wanted)

    def save(self, path: Path, mark: Mark) -> None:
        """Bring the files in the folder ``path`` up to date with the index.

        The files are a cache that many processes share, so this does nothing where another process is saving at this
        moment, or where the files are already as far as ``mark``. What another process has saved since this index was
        loaded stays, as far as it agrees with this index. Only new rows are written; all are, in a new set of files,
        once more than a fifth was removed.

        Parameters
        ----------
        path : Path
            A folder, made where it is missing; give every embedder and database its own.
        mark : Mark
            How far the database has been read into this index.

        Raises
        ------
        IndexFileError
            If the files cannot be written; the index works on, and the files hold what they held.
        IndexMismatch
            If the files belong to another embedder; :func:`~coherence.lessons.index.files.discard` removes them.
        ValueError
            If the mark has other dimensions than the index.
        """
        if mark.dimensions != self.dimensions:
            raise ValueError(f"the mark is for {mark.dimensions} dimensions, the index has {self.dimensions}")
        with self._lock:
            self._folder = path
            try:
                with files.writing(path) as free:
                    if free:
                        self._write(path, mark)
            except OSError as error:
                raise IndexFileError(path, error) from error

    def load(self, path: Path, fingerprint: str) -> Mark | None:
        """Replace the content by what the files in the folder ``path`` hold; rows stay there and are mapped.

        Parameters
        ----------
        path : Path
            The folder that :meth:`save` was given.
        fingerprint : str
            Of the embedder in use.

        Returns
        -------
        Mark or None
            How far the database has been read into what was loaded. ``None`` = the files are missing, torn or of
            another version; nothing has changed then, and the index is to be built from the database.

        Raises
        ------
        IndexMismatch
            If the files belong to another embedder.
        """
        with self._lock:
            self._folder = path
            found = files.read_head(path)
            if found is None:
                return None
            self._check_same(path, found[0].mark, fingerprint)
            saved = files.open_saved(path)
            if saved is None:
                return None
            self._attach(saved)
            return saved.head.mark

    def stats(self) -> IndexStats:
        """Return tier, count and size; the size of files is as of the last saving or loading."""
        with self._lock:
            on_disk = 0 if self._head is None else files.disk_bytes(self._head)
            return IndexStats(self._table.tier, self._table.live, self._table.memory_bytes, on_disk)

    def _check_same(self, path: Path, saved: Mark, fingerprint: str) -> None:
        if (saved.fingerprint, saved.dimensions) != (fingerprint, self.dimensions):
            there = f"{saved.fingerprint} ({saved.dimensions} dimensions)"
            raise IndexMismatch(path, there, f"{fingerprint} ({self.dimensions} dimensions)")

    def _write(self, path: Path, mark: Mark) -> None:
        """Bring the files up to date; the lock of the folder is held."""
        found = files.read_head(path)
        if found is None or found[1] != self._digest:
            saved = files.open_saved(path)
            if saved is None:
                self._head = None
            else:
                self._check_same(path, saved.head.mark, mark.fingerprint)
                if not _further(mark, saved.head.mark):
                    return
                self._rebase(saved)
        if self._head is None or self._table.wasteful or not files.complete(path, self._head):
            self._rewrite(path, mark)
        else:
            self._append(path, self._head, mark)

    def _append(self, path: Path, head: files.IndexHead, mark: Mark) -> None:
        """Add to the files what they lack."""
        table = self._table
        dead = np.packbits(~table.alive).tobytes() if table.live < table.count else b""
        if (mark, table.count, dead) == (head.mark, head.count, head.dead):
            return
        rows = (chunk for _, chunk in chunks(table.rows.parts(), head.count))
        longer = files.append(path, msgspec.structs.replace(head, mark=mark, dead=dead), table.ids[head.count :], rows)
        self._digest = files.publish(path, longer)
        self._head = longer
        self._make_room(table, longer)

    def _rewrite(self, path: Path, mark: Mark) -> None:
        """Write all rows that were not removed to new files and use those."""
        table, kept = self._table, self._head
        rows = (chunk[table.alive[at : at + len(chunk)]] for at, chunk in chunks(table.rows.parts()))
        head = files.new_head(mark)
        try:
            head = files.append(path, head, table.ids[table.alive], rows)
            files.publish(path, head)
        except OSError:
            files.clean(path, "" if kept is None else kept.generation)
            raise
        files.clean(path, head.generation)
        saved = files.open_saved(path)
        if saved is not None:
            self._attach(saved)

    def _rebase(self, saved: files.SavedIndex) -> None:
        """Continue from files that another process has written: add what they lack, remove what is gone here."""
        mine, fresh = self._table, _table_of(saved)
        ids = mine.ids[mine.alive]
        fresh.remove(np.setdiff1d(fresh.ids[fresh.alive], ids))
        lacking = ids[~fresh.has(ids)]
        for start in range(0, len(lacking), CHUNK_ROWS):
            part = lacking[start : start + CHUNK_ROWS]
            fresh.add(part, mine.of(part))
            self._make_room(fresh, saved.head)
        self._attach(saved, fresh)

    def _attach(self, saved: files.SavedIndex, table: Table | None = None) -> None:
        self._table = _table_of(saved) if table is None else table
        self._head, self._digest, self._view = saved.head, saved.digest, None

    def _make_room(self, table: Table, head: files.IndexHead | None) -> None:
        """Move rows out of memory, as far as files can be written: to the saved ones, or to one without a name."""
        rows = table.rows
        if self._folder is None or (rows.in_memory <= IN_MEMORY_ROWS and not rows.spilled):
            return
        self._view = None
        with suppress(OSError, ValueError):
            if head is not None and head.count > rows.saved:
                rows.adopt(files.rows_of(self._folder, head))
        with suppress(OSError):
            if rows.in_memory > IN_MEMORY_ROWS:
                rows.spill(self._folder)


def _table_of(saved: files.SavedIndex) -> Table:
    return Table.from_saved(saved.ids, saved.alive, saved.rows, saved.codes)


def _further(mark: Mark, than: Mark) -> bool:
    """Return whether ``mark`` is further in one count of the database and not behind in the other."""
    return mark != than and mark.lesson >= than.lesson and mark.removal >= than.removal
