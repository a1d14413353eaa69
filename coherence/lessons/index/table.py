"""What an index holds: rows, their ids, which of them were removed, and the codes of many rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from coherence.lessons.index.base import HalfRows, Ids
from coherence.lessons.index.growable import Growing, Positions
from coherence.lessons.index.kernels import code_bytes, sign_codes
from coherence.lessons.index.rows import Rows, chunks, select
from coherence.lessons.index.scan import ScanView

FEW_ROWS = 2_000
"""Up to so many rows, numpy on float32 is as fast as faiss and spares its import."""

MAX_FLAT = 50_000
"""Above so many vectors, codes are scanned first."""

LEAST_BINARY = 40_000
"""Below so many vectors, all rows are scanned again; the gap keeps one vector more or less from switching each time."""

DEAD_SHARE = 0.2
"""Rows are rewritten when more than this share of them was removed."""

DEAD_ROWS = 1_000
"""But not for fewer removed rows than this."""


class Table:
    """Vectors by id.

    Parameters
    ----------
    dimensions : int
        Length of the vectors.
    """

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self.rows = Rows(dimensions)
        self._ids = Growing(np.int64)
        self._alive = Growing(np.bool_)
        self._places = Positions()
        self._wide: Growing[np.float32] | None = Growing(np.float32, dimensions)
        self._codes: Growing[np.uint8] | None = None
        self.live = 0

    @classmethod
    def from_saved(cls, ids: Ids, alive: npt.NDArray[np.bool_], rows: HalfRows, codes: npt.NDArray[np.uint8]) -> Table:
        """Return the table of what files hold; ``rows`` stay mapped."""
        table = cls(rows.shape[1])
        table.rows = Rows(rows.shape[1], rows)
        table._note(ids)
        table._alive.put(np.flatnonzero(~alive), False)
        table.live = int(alive.sum())
        table._fit(codes)
        return table

    @property
    def tier(self) -> str:
        """``"flat"`` or ``"binary"``."""
        return "flat" if self._codes is None else "binary"

    @property
    def count(self) -> int:
        """Rows, removed ones too."""
        return self._ids.count

    @property
    def ids(self) -> Ids:
        """``(count,)``, removed ones too."""
        return self._ids.view

    @property
    def alive(self) -> npt.NDArray[np.bool_]:
        """``(count,)``: not removed."""
        return self._alive.view

    @property
    def memory_bytes(self) -> int:
        """Anonymous memory."""
        held: list[Any] = [self._ids, self._alive, self._places, self.rows, self._wide, self._codes]
        return sum(part.memory_bytes for part in held if part is not None)

    @property
    def wasteful(self) -> bool:
        """Whether so many rows were removed that the others should be rewritten."""
        dead = self.count - self.live
        return dead > max(DEAD_ROWS, DEAD_SHARE * self.count)

    def add(self, ids: Ids, rows: HalfRows) -> None:
        """Add vectors whose ids are new."""
        self.rows.append(rows)
        self._note(ids)
        self._fit(None)

    def remove(self, ids: Ids) -> int:
        """Mark vectors as removed and return how many were there."""
        places = self._places.find(ids)
        places = np.unique(places[self._there(places)])
        self._alive.put(places, False)
        self.live -= len(places)
        self._fit(None)
        return len(places)

    def has(self, ids: Ids) -> npt.NDArray[np.bool_]:
        """Return which of the ids are there."""
        return self._there(self._places.find(ids))

    def of(self, ids: Ids) -> HalfRows:
        """Return the vectors of ids that are there."""
        return select(self.rows.parts(), self._places.find(ids), self.dimensions)

    def view(self) -> ScanView:
        """Return what a search needs."""
        wide = None if self._wide is None else self._wide.view
        codes = None if self._codes is None else self._codes.view
        return ScanView(self.ids, self.alive, self.live, self.rows.parts(), wide, codes)

    def compacted(self) -> Table:
        """Return a table in memory without the removed rows."""
        table = Table(self.dimensions)
        for start, rows in chunks(self.rows.parts()):
            stay = self.alive[start : start + len(rows)]
            table.add(self.ids[start : start + len(rows)][stay], rows[stay])
        return table

    def _there(self, places: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        there = places >= 0
        there[there] = self.alive[places[there]]
        return there

    def _note(self, ids: Ids) -> None:
        self._places.add(ids, self._ids.count)
        self._ids.append(ids)
        self._alive.append(np.ones(len(ids), np.bool_))
        self.live += len(ids)

    def _fit(self, codes: npt.NDArray[np.uint8] | None) -> None:
        """Choose the tier and bring its form of the rows up to date; ``codes`` = those of all rows, where known."""
        if self.count > FEW_ROWS:
            self._wide = None
        elif self._wide is not None:
            for _, rows in chunks(self.rows.parts(), self._wide.count):
                self._wide.append(rows)
        if self._codes is None and self.live > MAX_FLAT:
            self._codes = Growing(np.uint8, code_bytes(self.dimensions))
            if codes is not None:
                self._codes.append(codes)
        elif self._codes is not None and self.live < LEAST_BINARY:
            self._codes = None
        if self._codes is not None:
            for _, rows in chunks(self.rows.parts(), self._codes.count):
                self._codes.append(sign_codes(rows))
