"""The index of few vectors: all of them in memory, and every cosine computed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from threading import RLock

import numpy as np
import numpy.typing as npt

from coherence.core.vectors import Matrix
from coherence.lessons.index.base import Found, Ids, IndexStats, Mark, best_first, unit_query, unit_rows
from coherence.lessons.index.growing import Growing


class LocalIndex(ABC):
    """Ids in memory, and under the same places whatever a subclass keeps of their vectors.

    Parameters
    ----------
    dimensions : int
        Length of the vectors, 1 or above.
    """

    def __init__(self, dimensions: int) -> None:
        self._dimensions = dimensions
        self._lock = RLock()
        self._ids = Growing(np.int64)
        self._largest = -1

    @property
    def dimensions(self) -> int:
        """Length of the vectors."""
        return self._dimensions

    def add(self, ids: npt.ArrayLike, vectors: npt.ArrayLike) -> None:
        """Add vectors, all or none; see :meth:`VectorIndex.add`."""
        given = np.asarray(ids, np.int64)
        rows = unit_rows(vectors, (len(given), self._dimensions))
        with self._lock:
            if given.min(initial=self._largest + 1) <= self._largest:
                self._drop(given)
            self._largest = int(given.max(initial=self._largest))
            self._ids.append(given)
            self._append(rows)

    def remove(self, ids: npt.ArrayLike) -> None:
        """Remove vectors; ids that are not there are skipped."""
        with self._lock:
            self._drop(np.asarray(ids, np.int64))

    def _drop(self, ids: Ids) -> None:
        stay = ~np.isin(self._ids.view, ids)
        if not stay.all():
            self._ids.keep(stay)
            self._keep(stay)

    @abstractmethod
    def _append(self, rows: Matrix) -> None:
        """Keep rows of unit length behind the last one."""

    @abstractmethod
    def _keep(self, wanted: npt.NDArray[np.bool_]) -> None:
        """Forget all but the wanted rows, a mask ``(n,)``."""


class ExactIndex(LocalIndex):
    """Computes every cosine; for some thousand vectors. Keeps no file: so few are read from the database at once.

    Parameters
    ----------
    dimensions : int
        Length of the vectors, 1 or above.

    Examples
    --------
    >>> index = ExactIndex(2)
    >>> index.add([7, 9], [[3.0, 4.0], [1.0, 0.0]])
    >>> ids, cosines = index.search([0.6, 0.8], k=1)
    >>> ids.tolist(), [round(float(each), 3) for each in cosines]
    ([7], [1.0])
    """

    def __init__(self, dimensions: int) -> None:
        super().__init__(dimensions)
        self._rows = Growing(np.float32, dimensions)

    def search(self, vector: npt.ArrayLike, k: int) -> Found:
        """Return at most ``k`` ids and cosines, best first; see :meth:`VectorIndex.search`."""
        query = unit_query(vector, self._dimensions)
        with self._lock:
            ids, rows = self._ids.view, self._rows.view
        return best_first(ids, np.vecdot(rows, query), k)

    def save(self, path: Path, mark: Mark) -> bool:
        """Keep nothing."""
        del path, mark
        return True

    def load(self, path: Path, fingerprint: str) -> Mark | None:
        """Find nothing."""
        del path, fingerprint
        return None

    def stats(self) -> IndexStats:
        """Return tier, count and size."""
        with self._lock:
            ids, rows = self._ids.view, self._rows.view
        return IndexStats("flat", len(ids), ids.nbytes + rows.nbytes, 0)

    def _append(self, rows: Matrix) -> None:
        self._rows.append(rows)

    def _keep(self, wanted: npt.NDArray[np.bool_]) -> None:
        self._rows.keep(wanted)
