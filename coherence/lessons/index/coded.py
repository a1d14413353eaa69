"""The index of many vectors: sign codes are scanned first, exact cosines of the nearest codes decide."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from coherence.core.vectors import Matrix
from coherence.lessons.index import snapshot
from coherence.lessons.index.base import Found, HalfRows, IndexStats, Mark, best_first, unit_query
from coherence.lessons.index.exact import LocalIndex
from coherence.lessons.index.growing import Growing
from coherence.lessons.index.kernels import code_bytes, nearest_codes, nearest_rows, sign_codes

CANDIDATES = 1_000
"""At least so many of the nearest codes are compared exactly."""

CANDIDATES_EACH = 20
"""And at least so many for each vector that is asked for."""


class CodedIndex(LocalIndex):
    """Finds the nearest of up to millions of vectors, among those whose signs differ from the query's in the fewest.

    Ids and codes lie in memory, 80 bytes a vector of 384 dimensions. The rows lie in the file that was saved last,
    which is mapped; those added since lie in memory until the next saving.

    Parameters
    ----------
    dimensions : int
        Length of the vectors, 1 or above.

    Examples
    --------
    >>> index = CodedIndex(2)
    >>> index.add([7, 9], [[3.0, 4.0], [1.0, 0.0]])
    >>> ids, cosines = index.search([0.6, 0.8], k=1)
    >>> ids.tolist(), [round(float(each), 3) for each in cosines]
    ([7], [1.0])
    """

    def __init__(self, dimensions: int) -> None:
        super().__init__(dimensions)
        self._begin(np.empty((0, dimensions), np.float16), np.empty((0, code_bytes(dimensions)), np.uint8))

    def _begin(self, saved: HalfRows, codes: npt.NDArray[np.uint8]) -> None:
        self._saved = saved
        self._fresh = Growing(np.float16, self._dimensions)
        """Rows that are not saved; none is taken out before the next saving."""
        self._places = Growing(np.int64)
        """The place of each id's row, those of fresh rows behind those of saved ones."""
        self._places.append(np.arange(len(saved)))
        self._codes = Growing(np.uint8, code_bytes(self._dimensions))
        self._codes.append(codes)

    def search(self, vector: npt.ArrayLike, k: int) -> Found:
        """Return at most ``k`` ids and cosines, best first; see :meth:`VectorIndex.search`."""
        query = unit_query(vector, self._dimensions)
        with self._lock:
            ids, places, codes = self._ids.view, self._places.view, self._codes.view
            saved, fresh = self._saved, self._fresh.view
        if not len(ids):
            return ids, np.empty(0, np.float32)
        near = nearest_codes(codes, sign_codes(query), min(max(CANDIDATES, CANDIDATES_EACH * k), len(ids)))
        near.sort()  # neighbours share a page of the file
        best, cosines = nearest_rows(_rows_at(places[near], saved, fresh), query, k)
        return best_first(ids[near[best]], cosines, k)

    def save(self, path: Path, mark: Mark) -> bool:
        """Replace the file in the folder ``path``; the rows lie there from then on.

        ``False``, and nothing is changed, if another process has saved as much of the same lessons.

        Raises
        ------
        OSError
            If the file cannot be written; the index works on, and the file is the one it was.
        """
        with self._lock:
            places, saved, fresh = self._places.view, self._saved, self._fresh.view
            rows = (
                _rows_at(places[at : at + snapshot.CHUNK_ROWS], saved, fresh)
                for at in range(0, len(places), snapshot.CHUNK_ROWS)
            )
            if not snapshot.write(path, mark, self._ids.view, self._codes.view, rows):
                return False
            self.load(path, mark.fingerprint)
            return True

    def load(self, path: Path, fingerprint: str) -> Mark | None:
        """Replace the content by the file in the folder ``path``.

        ``None`` = there is no such file, it is torn, of another version, or of another embedder; nothing has changed.
        """
        found = snapshot.read(path, fingerprint, self._dimensions)
        if found is None:
            return None
        with self._lock:
            self._ids = Growing(np.int64)
            self._ids.append(found.ids)
            self._largest = int(found.ids.max(initial=-1))
            self._begin(found.rows, found.codes)
        return found.mark

    def stats(self) -> IndexStats:
        """Return tier, count and size."""
        with self._lock:
            held = (self._ids.view, self._places.view, self._codes.view, self._fresh.view)
            return IndexStats("binary", len(held[0]), sum(array.nbytes for array in held), self._saved.nbytes)

    def _append(self, rows: Matrix) -> None:
        start = len(self._saved) + len(self._fresh.view)
        half = rows.astype(np.float16)
        self._fresh.append(half)
        self._places.append(np.arange(start, start + len(rows)))
        self._codes.append(sign_codes(half))

    def _keep(self, wanted: npt.NDArray[np.bool_]) -> None:
        self._places.keep(wanted)
        self._codes.keep(wanted)


def _rows_at(places: npt.NDArray[np.int64], saved: HalfRows, fresh: HalfRows) -> HalfRows:
    """Return rows in the order of their places."""
    if not len(fresh):
        return saved[places]
    rows = np.empty((len(places), saved.shape[1]), np.float16)
    old = places < len(saved)
    rows[old], rows[~old] = saved[places[old]], fresh[places[~old] - len(saved)]
    return rows
