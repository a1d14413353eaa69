"""The protocol of a vector index, what it says about itself, and the checks that all of them make."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from coherence.core.errors import CoherenceError

Ids: TypeAlias = npt.NDArray[np.int64]
"""``(n,)`` ids of lessons, 0 or above."""

HalfRows: TypeAlias = npt.NDArray[np.float16]
"""``(n, d)`` float16, rows of unit length."""

Cosines: TypeAlias = npt.NDArray[np.float32]
"""``(n,)`` float32 in [-1, 1]."""

Found: TypeAlias = tuple[Ids, Cosines]
"""What a search gives: ids and cosines, best first."""

CHUNK_ROWS = 8_192
"""So many rows are widened at a time, which bounds the memory of adding many at once (12 MB at 384 dimensions)."""


class IndexMismatch(CoherenceError):  # noqa: N818 - it names a state of two things, not a failure of one
    """A saved index holds the vectors of another embedder than the one in use."""

    def __init__(self, where: object, saved: str, wanted: str) -> None:
        super().__init__(
            f"the lesson index {where} was built with the embedder {saved!r}, not with {wanted!r}; "
            "use that embedder, or build the index anew: coherence lessons rebuild"
        )


class IndexFileError(CoherenceError):
    """An index cannot be written to its files; the index in memory is untouched and still works."""

    def __init__(self, where: object, error: OSError) -> None:
        super().__init__(f"the lesson index cannot be written to {where}: {error.strerror or error}")


class Mark(msgspec.Struct, frozen=True):
    """Which embedder an index is for, and how far the database has been read into it."""

    fingerprint: str
    """The embedder's."""
    dimensions: int
    lesson: int = 0
    """Every lesson with this id or a smaller one is in the index, unless it was removed."""
    removal: int = 0
    """Every removal with this number or a smaller one has been carried out in the index."""


class IndexStats(msgspec.Struct, frozen=True):
    """What an index is and what it takes."""

    tier: str
    """``"flat"`` (exact), ``"binary"`` (sign codes, then exact cosines of the best) or ``"remote"``."""
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
        """Add vectors, all or none.

        Parameters
        ----------
        ids : array_like of int
            ``(n,)``, 0 or above, each new to the index.
        vectors : array_like
            ``(n, d)`` of any length; brought to unit length and rounded to float16.

        Raises
        ------
        ValueError
            Wrong shape, NaN, infinity, a zero vector, or an id that is there already; the message names which.
        """
        ...

    def remove(self, ids: npt.ArrayLike) -> int:
        """Remove vectors and return how many of the ids were there. One call for many is much cheaper than many."""
        ...

    def search(self, vector: npt.ArrayLike, k: int) -> Found:
        """Return at most ``k`` ids and cosines, best first, equal ones by id.

        Raises
        ------
        ValueError
            If ``k`` is below 1 or the vector has a wrong shape, NaN, infinity or only zeros.
        """
        ...

    def save(self, path: Path, mark: Mark) -> None:
        """Keep the index, whose content is what ``mark`` says, for later processes."""
        ...

    def load(self, path: Path, fingerprint: str) -> Mark | None:
        """Replace the content by what was saved and return its mark; ``None`` = nothing usable, nothing changed.

        Raises
        ------
        IndexMismatch
            If what was saved belongs to another embedder.
        """
        ...

    def missing(self, ids: npt.ArrayLike) -> Ids:
        """Return those of the ids that are not in the index, in their order: what :meth:`add` would take."""
        ...

    def stats(self) -> IndexStats:
        """Return tier, count and size."""
        ...


def check_dimensions(dimensions: int) -> int:
    """Return a number of dimensions that is one.

    Raises
    ------
    ValueError
        If it is not an int of 1 or above.
    """
    if isinstance(dimensions, bool) or not isinstance(dimensions, int) or dimensions < 1:
        raise ValueError(f"dimensions must be an int of 1 or above, not {dimensions!r}")
    return dimensions


def check_k(k: int) -> int:
    """Return a number of neighbours that is one.

    Raises
    ------
    ValueError
        If it is not an int of 1 or above.
    """
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise ValueError(f"k must be an int of 1 or above, not {k!r}")
    return int(k)


def check_ids(ids: npt.ArrayLike) -> Ids:
    """Return ids as an array ``(n,)``.

    Raises
    ------
    ValueError
        If they are not integers of 0 or above in one dimension.
    """
    array = np.asarray(ids)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ValueError(f"ids must be integers in one dimension, not {array.dtype} of shape {array.shape}")
    given: Ids = array.astype(np.int64)
    if given.size and given.min() < 0:
        raise ValueError(f"ids must be 0 or above, not {given.min()}")
    return given


def check_absent(known: Ids) -> None:
    """Raise a ``ValueError`` that names the first of the ids which an index has, if there are any."""
    if known.size:
        raise ValueError(f"id {known[0]} is in the index already")


def unit_query(vector: npt.ArrayLike, dimensions: int) -> npt.NDArray[np.float32]:
    """Return a vector to search for: ``(d,)`` float32 of unit length.

    Raises
    ------
    ValueError
        If it has another shape, NaN, infinity or only zeros.
    """
    array = np.asarray(vector)
    if array.shape != (dimensions,):
        raise ValueError(f"the vector must have shape ({dimensions},), not {array.shape}")
    unit: npt.NDArray[np.float32]
    if array.dtype == np.float32:
        peak = float(np.abs(array).max())
        if 0.0 < peak < math.inf:
            unit = array.astype(np.float32)
            unit /= peak
            unit /= np.sqrt(np.vecdot(unit, unit))
            return unit
    unit = _to_unit(array[None, :], None)[0]
    return unit


def new_rows(ids: npt.ArrayLike, vectors: npt.ArrayLike, dimensions: int) -> tuple[Ids, HalfRows]:
    """Return ids and vectors as an index keeps them: vectors of unit length, rounded to float16.

    Raises
    ------
    ValueError
        If ids are not integers of 0 or above in one dimension or one is given twice; if vectors have another shape,
        NaN, infinity or only zeros. The message names the id.

    Examples
    --------
    >>> ids, rows = new_rows([7], [[3.0, 4.0]], 2)
    >>> ids.tolist(), rows.tolist()
    ([7], [[0.60009765625, 0.7998046875]])
    """
    given = check_ids(ids)
    _check_once(given)
    array = np.asarray(vectors)
    if array.shape != (len(given), dimensions):
        raise ValueError(f"vectors must have shape ({len(given)}, {dimensions}), not {array.shape}")
    rows = np.empty(array.shape, np.float16)
    for start in range(0, len(rows), CHUNK_ROWS):
        part = slice(start, start + CHUNK_ROWS)
        rows[part] = _to_unit(array[part], given[part])
    return given, rows


def _check_once(ids: Ids) -> None:
    """Raise a ``ValueError`` that names an id given twice."""
    if len(ids) < 2:
        return
    ordered = np.sort(ids)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if twice.size:
        raise ValueError(f"id {twice[0]} is given twice")


def _to_unit(rows: npt.NDArray[Any], ids: Ids | None) -> npt.NDArray[np.float32]:
    """Return rows of unit length; dividing by the largest entry first keeps squares from overflowing or vanishing."""
    if rows.dtype.kind not in "fiu":
        raise ValueError(f"vectors must hold numbers, not {rows.dtype}")
    wide: npt.NDArray[np.floating] = rows.astype(np.float64 if rows.dtype.itemsize > 4 else np.float32)
    peak = np.abs(wide).max(axis=1)
    usable = np.isfinite(peak) & (peak > 0.0)
    if not usable.all():
        at = int(np.argmin(usable))
        what = "only zeros" if peak[at] == 0.0 else "NaN or infinity"
        raise ValueError("the vector" + ("" if ids is None else f" of id {ids[at]}") + f" holds {what}")
    wide /= peak[:, None]
    wide /= np.sqrt(np.vecdot(wide, wide))[:, None]
    return wide.astype(np.float32)
