"""Measured ticks of a session, and the worst of each part of them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from coherence.core.decisions import KINDS
from coherence.store.tally import BANDS, FROM_BEST
from coherence.views.shapes import Point

Rows: TypeAlias = npt.NDArray[Any]

ROW = np.dtype(
    [
        ("seq", "<i8"),
        ("ts", "<f8"),
        ("step", "<i8"),
        ("index", "<f8"),
        ("pressure", "<f8"),
        ("band", "u1"),
        ("decision", "u1"),
    ]
)
"""Columns of :data:`~coherence.store.tally.POINT`."""


class Ticks:
    """Ticks of a session, oldest first; they only ever grow."""

    def __init__(self) -> None:
        self._data = b""
        self._rows: Rows = np.empty(0, ROW)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def newest(self) -> int:
        """Number of the newest tick, 0 without any."""
        return int(self._rows["seq"][-1]) if len(self._rows) else 0

    def extend(self, data: bytes) -> None:
        """Append packed ticks; those that are known are passed over."""
        whole = len(data) // ROW.itemsize * ROW.itemsize
        known = int(np.searchsorted(np.frombuffer(data[:whole], ROW)["seq"], self.newest, "right"))
        # bytes are joined faster than arrays of rows
        if new := data[known * ROW.itemsize : whole]:
            self._data += new
            self._rows = np.frombuffer(self._data, ROW)

    def points(self, first: int, last: int, most: int) -> tuple[Point, ...]:
        """Return the ticks between two events as points, each the worst of its part if there are more than so many."""
        begin, end = np.searchsorted(self._rows["seq"], [first, last + 1])
        total = int(end - begin)
        count = min(total, max(most, 1))
        # the band counts first, then the lower index; an unknown index is no bad one
        chosen = self._rows[begin:end]
        badness = chosen["band"] * 2.0 - np.nan_to_num(chosen["index"], nan=1.0)
        cuts = [part * total // count for part in range(count + 1)] if count else [0]
        return tuple(_point(chosen[start:stop], int(badness[start:stop].argmax())) for start, stop in pairwise(cuts))

    def step_at(self, seq: int) -> int | None:
        """Return how many steps were complete at the first tick from an event on; ``None`` if none follows."""
        at = int(np.searchsorted(self._rows["seq"], seq))
        return int(self._rows["step"][at]) if at < len(self._rows) else None


def _point(ticks: Rows, at: int) -> Point:
    """Return some ticks as a point: the one at a place, with the highest pressure and the gravest decision of all."""
    worst = ticks[at]
    pressures = ticks["pressure"]
    known = pressures[~np.isnan(pressures)]
    return Point(
        seq=int(worst["seq"]),
        ts=float(worst["ts"]),
        step=int(worst["step"]),
        index=None if np.isnan(worst["index"]) else float(worst["index"]),
        pressure=float(known.max()) if known.size else None,
        band=BANDS[FROM_BEST[worst["band"]]],
        decision=KINDS[int(ticks["decision"].max())],
        count=len(ticks),
    )
