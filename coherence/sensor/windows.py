"""Texts of each source at this tick, and the cosines between sources, carried over from the tick before.

Only pairs with a new text are computed. Every array is made anew when it changes and never written again, so what a
metric keeps stays what it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import NamedTuple

import numpy as np

from coherence.core.errors import UnknownSourceError
from coherence.core.readings import KINDS, Kind
from coherence.core.vectors import Half, Matrix, cosine_table, to_unit

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
        self.rows: dict[str, int] = {}
        """Text with a usable vector -> its row."""
        self.bad: dict[str, str] = {}
        """Text without one -> why."""

    def unseen(self, raw: Sequence[str]) -> list[str]:
        """Return the texts that have no vector in the window now."""
        return [text for text in raw if text not in self.rows]

    def update(self, raw: list[str], vectors: Mapping[str, Half | str], *, keep_bad: bool) -> None:
        """Hold these texts; those without a vector are left out, or kept as zero rows."""
        bad = {text: reason for text in raw if type(reason := vectors.get(text)) is str}
        texts = tuple(raw) if keep_bad else tuple(text for text in raw if text not in bad)
        rows = {text: at for at, text in enumerate(texts) if text not in bad}
        made = {text: to_unit(vectors[text]) for text in rows if text not in self.rows}  # type: ignore[arg-type]  # none is bad
        width = self.matrix.shape[1] or next((vector.size for vector in made.values()), 0)
        matrix = np.zeros((len(texts), width), np.float32)
        for at, text in enumerate(texts):
            if text in rows:
                matrix[at] = made[text] if text in made else self.matrix[self.rows[text]]
        self.raw, self.texts, self.matrix, self.rows, self.bad = list(raw), texts, read_only(matrix), rows, bad
        self.version += 1


def read_only(matrix: Matrix) -> Matrix:
    """Return a view that cannot be made writable again, unlike an array that owns its data."""
    matrix.setflags(write=False)
    return matrix.view()


class _Table(NamedTuple):
    """Cosines of two sources at one state of both."""

    versions: tuple[int, int]
    rows: Mapping[str, int]
    columns: Mapping[str, int]
    cosines: Matrix


class Windows:
    """All sources of one sensor."""

    def __init__(self) -> None:
        self._windows: dict[Kind, Window] = {kind: Window() for kind in KINDS}
        self._tables: dict[tuple[Kind, Kind], _Table] = {}
        self._fingerprint = ""
        self._generation = 0
        self._lock = Lock()

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

    def update(self, kind: Kind, raw: list[str], vectors: Mapping[str, Half | str], *, keep_bad: bool) -> None:
        """Let a source hold these texts; see :meth:`Window.update`."""
        with self._lock:
            self._generation += 1
            self._windows[kind].update(raw, vectors, keep_bad=keep_bad)

    def view(self) -> Callable[[Kind, Kind], Matrix]:
        """Return a function for the cosines of the present state; it refuses once the state has moved on.

        A metric that overran may still call it during a later tick.
        """
        generation = self._generation

        def cosines(rows: Kind, columns: Kind) -> Matrix:
            with self._lock:
                if generation != self._generation:
                    raise UnknownSourceError("the tick is over")
                return self.cosines(rows, columns)

        return cosines

    def cosines(self, rows: Kind, columns: Kind) -> Matrix:
        """Return the cosine table of two sources at their present state, read-only."""
        left, right = self._windows[rows], self._windows[columns]
        kept = self._tables.get((rows, columns))
        versions = (left.version, right.version)
        if kept is not None and kept.versions == versions:
            return kept.cosines
        if KINDS.index(rows) > KINDS.index(columns):
            return self.cosines(columns, rows).T
        table = read_only(_table(left, right, kept))
        self._tables[rows, columns] = _Table(versions, left.rows, right.rows, table)
        return table


def _table(left: Window, right: Window, kept: _Table | None) -> Matrix:
    """Return the cosines of two windows; those of two texts that were there before are carried over."""
    if kept is None or len(left.texts) * len(right.texts) <= FEW:
        return cosine_table(left.matrix, right.matrix)
    rows, columns = (
        np.array([before.get(text, -1) if text in window.rows else -1 for text in window.texts], np.intp)
        for window, before in ((left, kept.rows), (right, kept.columns))
    )
    table = np.empty((len(rows), len(columns)), np.float32)
    stayed = np.ix_(rows >= 0, columns >= 0)
    table[stayed] = kept.cosines[np.ix_(rows[rows >= 0], columns[columns >= 0])]
    table[rows < 0] = cosine_table(left.matrix[rows < 0], right.matrix)
    table[:, columns < 0] = cosine_table(left.matrix, right.matrix[columns < 0])
    return table
