"""Arrays that grow at the end, and the place of each id in them."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from coherence.lessons.index.base import Ids

T = TypeVar("T", bound=np.generic)

GROWTH = 1.25
"""Capacity over rows when an array was full: adding stays O(1) on average. Unused room takes no memory."""

FIRST_ROWS = 64

RECENT_IDS = 20_000
"""So many ids wait in a dict (3 MB) before they are merged into the sorted arrays."""


class Growing(Generic[T]):
    """Rows of one type with spare room behind them.

    What :attr:`view` returned stays as it is, whatever happens later.

    Parameters
    ----------
    dtype : type
        Of the elements.
    width : int, optional
        Elements a row; ``None`` = the array has one dimension.
    """

    def __init__(self, dtype: type[T], width: int | None = None) -> None:
        self._shape = () if width is None else (width,)
        self._store: npt.NDArray[T] = np.empty((0, *self._shape), dtype)
        self.count = 0

    @property
    def view(self) -> npt.NDArray[T]:
        """The rows, without a copy."""
        return self._store[: self.count]

    @property
    def memory_bytes(self) -> int:
        """What the rows take; the spare room is not touched before it is used."""
        return self.view.nbytes

    def append(self, rows: npt.NDArray[Any]) -> None:
        """Add rows behind the last one."""
        count = self.count + len(rows)
        if count > len(self._store):
            roomier = np.empty((max(int(GROWTH * count), FIRST_ROWS), *self._shape), self._store.dtype)
            roomier[: self.count] = self.view
            self._store = roomier
        self._store[self.count : count] = rows
        self.count = count

    def put(self, places: npt.NDArray[np.int64], value: T | bool) -> None:
        """Change rows, in a copy: a search in another thread may be reading what :attr:`view` returned."""
        self._store = self._store.copy()
        self._store[places] = value


class Positions:
    """Where each id was last put: sorted arrays for nearly all, a dict for the newest."""

    def __init__(self) -> None:
        self._sorted = np.empty(0, np.int64)
        self._at = np.empty(0, np.int64)
        self._recent: dict[int, int] = {}

    @property
    def memory_bytes(self) -> int:
        """An estimate."""
        return self._sorted.nbytes + self._at.nbytes + 150 * len(self._recent)

    def add(self, ids: Ids, start: int) -> None:
        """Note that these ids lie at ``start`` and the places after it."""
        if len(ids) + len(self._recent) <= RECENT_IDS:
            self._recent.update(zip(ids.tolist(), range(start, start + len(ids)), strict=True))
            return
        recent = len(self._recent)
        merged = np.concatenate([self._sorted, np.fromiter(self._recent.keys(), np.int64, recent), ids])
        at = np.concatenate(
            [self._at, np.fromiter(self._recent.values(), np.int64, recent), np.arange(start, start + len(ids))]
        )
        order = np.argsort(merged, kind="stable")
        merged, at = merged[order], at[order]
        newest = np.append(merged[1:] != merged[:-1], True)  # of equal ids the last added stands last
        self._sorted, self._at = merged[newest], at[newest]
        self._recent = {}

    def find(self, ids: Ids) -> npt.NDArray[np.int64]:
        """Return the place of each id, -1 for one that was never there."""
        places = np.full(len(ids), -1, np.int64)
        if len(self._sorted):
            near = np.minimum(np.searchsorted(self._sorted, ids), len(self._sorted) - 1)
            there = self._sorted[near] == ids
            places[there] = self._at[near[there]]
        if self._recent:
            recent = np.fromiter((self._recent.get(each, -1) for each in ids.tolist()), np.int64, len(ids))
            places = np.where(recent >= 0, recent, places)
        return places
