"""The protocol of a vector index, what it says about itself, and the arithmetic that all of them share."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from coherence.core.vectors import Matrix, Vector, scale_exactly

Ids: TypeAlias = npt.NDArray[np.int64]
"""``(n,)`` ids of lessons, 0 or above."""

HalfRows: TypeAlias = npt.NDArray[np.float16]
"""``(n, d)`` float16, rows of unit length."""

Cosines: TypeAlias = npt.NDArray[np.float32]
"""``(n,)`` float32 in [-1, 1]."""

Found: TypeAlias = tuple[Ids, Cosines]
"""The result of a search: ids and cosines, best first."""


class Mark(msgspec.Struct, frozen=True):
    """The embedder that an index is for, and how far the database has been read into it."""

    fingerprint: str
    """The embedder's."""
    dimensions: int
    lesson: int = 0
    """Every lesson whose vector has this number or a smaller one is in the index, unless it was removed."""
    removal: int = 0
    """Every removal with this number or a smaller one has been carried out in the index."""


class IndexStats(msgspec.Struct, frozen=True):
    """The kind and the size of an index."""

    tier: str
    """``"flat"`` (exact) or ``"binary"`` (sign codes, then exact cosines of the best)."""
    count: int
    """Vectors that can be found."""
    memory_bytes: int
    """Anonymous memory; mapped files are not counted, the system takes them back when it needs room."""
    disk_bytes: int


class VectorIndex(Protocol):
    """Finds the nearest vectors; every method may be called from any thread."""

    @property
    def dimensions(self) -> int:
        """Length of the vectors."""
        ...

    def add(self, ids: npt.ArrayLike, vectors: npt.ArrayLike) -> None:
        """Add vectors, all or none; a vector replaces the one that its id had.

        Parameters
        ----------
        ids : array_like of int
            ``(n,)``, 0 or above, each once.
        vectors : array_like
            ``(n, d)`` of any length; brought to unit length and rounded.

        Raises
        ------
        ValueError
            Wrong shape, NaN, infinity or a zero vector.
        """
        ...

    def remove(self, ids: npt.ArrayLike) -> None:
        """Remove vectors; ids that are not there are skipped. One call for many is much cheaper than many."""
        ...

    def search(self, vector: npt.ArrayLike, k: int) -> Found:
        """Return at most ``k`` (1 or above) ids and cosines, best first, equal ones by id.

        Raises
        ------
        ValueError
            If the vector has a wrong shape, NaN, infinity or only zeros.
        """
        ...

    def save(self, path: Path, mark: Mark) -> bool:
        """Keep the index, whose content is what ``mark`` says, for later processes.

        Return ``False``, and keep nothing, if another process has kept more.
        """
        ...

    def load(self, path: Path, fingerprint: str) -> Mark | None:
        """Replace the content by what was saved and return its mark; ``None`` = nothing usable, nothing changed."""
        ...

    def stats(self) -> IndexStats:
        """Return tier, count and size."""
        ...


def unit_rows(vectors: npt.ArrayLike, shape: tuple[int, int]) -> Matrix:
    """Return vectors as rows of unit length.

    Raises
    ------
    ValueError
        If they have another shape, NaN, infinity or only zeros.

    Examples
    --------
    >>> unit_rows([[3.0, 4.0]], (1, 2)).round(3).tolist()
    [[0.6000000238418579, 0.800000011920929]]
    """
    rows = np.asarray(vectors, np.float64)
    if rows.shape != shape:
        raise ValueError(f"vectors must have shape {shape}, not {rows.shape}")
    peaks = np.abs(rows).max(axis=1, initial=0.0)
    if not (np.isfinite(peaks) & (peaks > 0.0)).all():
        raise ValueError("a vector holds NaN, infinity or only zeros")
    scaled = scale_exactly(rows)
    unit: Matrix = (scaled / np.sqrt(np.vecdot(scaled, scaled))[:, None]).astype(np.float32)
    return unit


def unit_query(vector: npt.ArrayLike, dimensions: int) -> Vector:
    """Return one vector of unit length, or raise as :func:`unit_rows` does."""
    unit: Vector = unit_rows(np.asarray(vector)[None], (1, dimensions))[0]
    return unit


def best_first(ids: Ids, cosines: Cosines, k: int) -> Found:
    """Return the ``k`` largest cosines and their ids, best first, equal ones by id."""
    cosines = cosines.clip(-1.0, 1.0)
    if k < len(cosines):  # sorting all would cost more than the scan
        enough = cosines >= np.partition(cosines, -k)[-k]
        ids, cosines = ids[enough], cosines[enough]
    order = np.lexsort((ids, -cosines))[:k]
    return ids[order], cosines[order]
