"""Texts of each source at this tick, and the cosines between sources, carried over from the tick before.

Only pairs with a new text are computed. Every array is made anew when it changes and never written again, so what a
metric keeps stays what it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import RLock
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from coherence.core.errors import UnknownSourceError
from coherence.core.readings import KINDS, Kind, Reading
from coherence.core.vectors import Half, Matrix, cosine_table, dots, to_unit

Index: TypeAlias = slice | npt.NDArray[np.intp]
Carry: TypeAlias = tuple[Index, Index, npt.NDArray[np.intp]]
"""Positions now and before of what stayed, and positions of what is new."""


FEW = 64
"""Cosines that are sooner computed again than carried over."""


class Window:
    """The texts of one source and their vectors."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.raw: list[str] = []
        self.texts: tuple[str, ...] = ()
        self.matrix: Matrix = np.empty((0, 0), np.float32)
        self.version = 0
        self.carry: Carry | None = None
        self.bad: dict[str, str] = {}
        """Texts without a usable vector, and why."""
        self._rows: dict[str, int] = {}

    def unseen(self, raw: Sequence[str]) -> list[str]:
        """Return the texts that are not in the window now."""
        return [text for text in raw if text not in self._rows or text in self.bad]

    def update(self, raw: list[str], vectors: Mapping[str, Half | str], *, keep_bad: bool) -> None:
        """Hold these texts; those without a vector are left out, or kept as zero rows."""
        if self._slide(raw, vectors):
            return
        bad = {text: reason for text in raw if type(reason := vectors.get(text)) is str}
        texts = tuple(raw) if keep_bad else tuple(text for text in raw if text not in bad)
        # a row that was zero for want of a vector may have one by now
        before = [-1 if text in self.bad else self._rows.get(text, -1) for text in texts]
        new = [i for i, row in enumerate(before) if row < 0]
        stayed = [i for i, row in enumerate(before) if row >= 0]
        made: dict[int, Half] = {i: vector for i in new if not isinstance(vector := vectors[texts[i]], str)}
        width = self.matrix.shape[1] or next((vector.size for vector in made.values()), 0)
        matrix = np.zeros((len(texts), width), np.float32)
        now, then = _compact(stayed), _compact([before[i] for i in stayed])
        if stayed and self.matrix.size:
            matrix[now] = self.matrix[then]
        for i, vector in made.items():
            matrix[i] = to_unit(vector)
        self.raw, self.texts, self.matrix, self.bad = list(raw), texts, read_only(matrix), bad
        self._rows = {text: i for i, text in enumerate(texts)}
        self.version += 1
        self.carry = (now, then, np.array(new, np.intp))

    def _slide(self, raw: list[str], vectors: Mapping[str, Half | str]) -> bool:
        """Do it at once in the common case: one new text at the end, and at most the oldest has left."""
        n, kept = len(self.texts), len(raw) - 1
        # Where a text is there twice, or was left out for want of a vector, places in raw and rows differ.
        if not n or kept not in (n, n - 1) or self.bad or len(self._rows) != n or len(self.raw) != n:
            return False
        vector = vectors.get(raw[-1])
        if vector is None or isinstance(vector, str) or raw[-1] in self._rows or raw[:-1] != self.raw[n - kept :]:
            return False
        matrix = np.empty((kept + 1, self.matrix.shape[1]), np.float32)
        matrix[:kept] = self.matrix[n - kept :]
        matrix[kept] = to_unit(vector)
        self.raw, self.texts, self.matrix = list(raw), tuple(raw), read_only(matrix)
        self._rows = dict(zip(raw, range(kept + 1), strict=True))
        self.version += 1
        self.carry = (slice(0, kept), slice(n - kept, n), np.array([kept], np.intp))
        return True


def read_only(matrix: Matrix) -> Matrix:
    """Return a view that cannot be made writable again, unlike an array that owns its data."""
    matrix.setflags(write=False)
    return matrix.view()


def _compact(positions: list[int]) -> Index:
    """Return a slice where the positions are one run, which copies ten times faster."""
    if not positions:
        return slice(0, 0)
    first, last = positions[0], positions[-1]
    if last - first == len(positions) - 1 and positions == list(range(first, last + 1)):
        return slice(first, last + 1)
    return np.array(positions, np.intp)


class Windows:
    """All sources of one sensor."""

    def __init__(self) -> None:
        self._windows: dict[Kind, Window] = {kind: Window() for kind in KINDS}
        self._tables: dict[tuple[Kind, Kind], tuple[int, int, Matrix]] = {}
        self.results: dict[str, Any] = {}
        """Result of each metric at the newest tick measured in place, after what it stands still with."""
        self.standing: tuple[object, ...] | None = None
        """Sources of windows and results at that tick, if nothing was missing."""
        self.reading: Reading | None = None
        """Of the newest tick measured in place, if nothing failed."""
        self.generation = 0
        """Counts changes of the windows."""
        self._fingerprint = ""
        self._lock = RLock()

    def __getitem__(self, kind: Kind) -> Window:
        return self._windows[kind]

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the model that made the vectors; empty before the first."""
        return self._fingerprint

    def follow(self, fingerprint: str) -> None:
        """Forget everything if the vectors come from another model now."""
        if fingerprint != self._fingerprint:
            self._fingerprint = fingerprint
            for window in self._windows.values():
                window.clear()
            self._tables.clear()
            self.results, self.standing = {}, None

    def update(self, kind: Kind, raw: list[str], vectors: Mapping[str, Half | str], *, keep_bad: bool) -> None:
        """Let a source hold these texts; see :meth:`Window.update`."""
        with self._lock:
            self.generation += 1
            self._windows[kind].update(raw, vectors, keep_bad=keep_bad)

    def view(self) -> Callable[[Kind, Kind], Matrix]:
        """Return a function for the cosines of the present state; it refuses once the state has moved on.

        A metric that overran may still call it during a later tick.
        """
        generation = self.generation

        def cosines(rows: Kind, columns: Kind) -> Matrix:
            with self._lock:
                if generation != self.generation:
                    raise UnknownSourceError("the tick is over")
                return self.cosines(rows, columns)

        return cosines

    def cosines(self, rows: Kind, columns: Kind) -> Matrix:
        """Return the cosine table of two sources at their present state, read-only."""
        left, right = self._windows[rows], self._windows[columns]
        kept = self._tables.get((rows, columns))
        if kept is not None and kept[0] == left.version and kept[1] == right.version:
            return kept[2]
        if KINDS.index(rows) > KINDS.index(columns):
            return self.cosines(columns, rows).T
        table = read_only(_renew(left, right, kept))
        self._tables[rows, columns] = (left.version, right.version, table)
        return table


def _renew(left: Window, right: Window, kept: tuple[int, int, Matrix] | None) -> Matrix:
    """Bring a table up to date, or make it anew if it is older than one change of a window."""
    if len(left.texts) * len(right.texts) <= FEW:
        return cosine_table(left.matrix, right.matrix)
    rows = _since(left, kept[0]) if kept is not None else None
    columns = _since(right, kept[1]) if kept is not None else None
    if kept is None or rows is None or columns is None:
        return cosine_table(left.matrix, right.matrix)
    (row_now, row_then, new_rows), (column_now, column_then, new_columns) = rows, columns
    table = np.empty((len(left.texts), len(right.texts)), np.float32)
    rows_in_one_run = isinstance(row_now, slice) and isinstance(row_then, slice)
    one_new = not new_rows.size and new_columns.size == 1
    if one_new and rows_in_one_run and left.matrix.size and right.matrix.size:
        # the common case: one new message, the goals as before
        table[row_now, column_now] = kept[2][row_then, column_then]
        newest = int(new_columns[0])
        table[:, newest] = dots(left.matrix, right.matrix[newest])
        return table
    if rows_in_one_run or (isinstance(column_now, slice) and isinstance(column_then, slice)):
        table[row_now, column_now] = kept[2][row_then, column_then]
    else:
        # two plain index arrays would be paired off one by one
        table[np.ix_(_listed(row_now), _listed(column_now))] = kept[2][np.ix_(_listed(row_then), _listed(column_then))]
    # one source with itself: what is new as a row is new as a column too
    if left is right:
        for i in new_rows:
            table[i] = table[:, i] = dots(left.matrix, left.matrix[i])
        return table
    if new_columns.size:
        table[:, new_columns] = cosine_table(left.matrix, right.matrix[new_columns])
    if new_rows.size:
        table[new_rows] = cosine_table(left.matrix[new_rows], right.matrix)
    return table


def _since(window: Window, version: int) -> Carry | None:
    if window.version == version:
        everything = slice(0, len(window.texts))
        return everything, everything, np.empty(0, np.intp)
    return window.carry if window.version == version + 1 else None


def _listed(index: Index) -> npt.NDArray[np.intp]:
    return np.arange(index.start, index.stop) if isinstance(index, slice) else index
