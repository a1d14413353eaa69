"""Arrays of an index that grow at the end."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T", bound=np.generic)

GROWTH = 1.25
"""Capacity over rows when an array was full: adding stays O(1) on average. Unused room takes no memory."""

FIRST_ROWS = 64


class Growing(Generic[T]):
    """Rows of one type with spare room behind them.

    An array that :attr:`view` returned stays as it is, whatever happens later.

    Parameters
    ----------
    dtype : type
        Of the elements.
    width : int, optional
        Elements a row; ``None`` = the array has one dimension.
    """

    def __init__(self, dtype: type[T], width: int | None = None) -> None:
        self._store: npt.NDArray[T] = np.empty((0,) if width is None else (0, width), dtype)
        self._count = 0

    @property
    def view(self) -> npt.NDArray[T]:
        """The rows, without a copy."""
        return self._store[: self._count]

    def append(self, rows: npt.NDArray[Any]) -> None:
        """Add rows behind the last one."""
        count = self._count + len(rows)
        if count > len(self._store):
            roomier = np.empty((max(int(GROWTH * count), FIRST_ROWS), *self._store.shape[1:]), self._store.dtype)
            roomier[: self._count] = self.view
            self._store = roomier
        self._store[self._count : count] = rows
        self._count = count

    def keep(self, wanted: npt.NDArray[np.bool_]) -> None:
        """Leave out all rows but the wanted ones, a mask ``(n,)``."""
        self._store = self.view[wanted]
        self._count = len(self._store)
