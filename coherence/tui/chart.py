"""Course of a session: index, pressure, lights, decisions and marks above one another, a column a part."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

from coherence.tui.lines import Line, cut, fitted
from coherence.tui.palette import DECISION_STYLES, DECISIONS, LETTERS, LEVELS, MARK_STYLES, MARKS

if TYPE_CHECKING:
    from coherence.views.shapes import Mark, Point, Timeline

MARGIN = 9
"""Cells before the columns, for the names of the rows."""

HEIGHT = 4
"""Rows of the index."""

MOST = 4
"""Cells of a column at most, so that a short session does not look like a long one."""


class Chart:
    """Drawing of a timeline, and which of its columns is where.

    Parameters
    ----------
    timeline : Timeline
        No more points than :func:`columns_in` cells hold.
    width : int
        Cells.
    chosen : int or None
        Number of an event; the column that holds it is marked.
    step : int or None
        Number of the step that holds this event. Default: that of the column.
    """

    def __init__(self, timeline: Timeline, width: int, chosen: int | None = None, step: int | None = None) -> None:
        self.points = timeline.points[-columns_in(width) :]
        self.size = max(min(columns_in(width) // max(len(self.points), 1), MOST), 1)
        self._width = width
        self._marks = _by_column(self.points, timeline.marks)
        self._more = timeline.total
        self._step = step
        self.column = None if chosen is None or not self.points else self.column_of(chosen)

    def column_of(self, seq: int) -> int:
        """Return the column that holds an event: a tick measures what came before it."""
        ends = [point.seq for point in self.points]
        return min(bisect_right(ends, seq - 1), len(ends) - 1)

    def column_at(self, cell: int) -> int | None:
        """Return the column that was drawn at a cell, ``None`` beside the columns."""
        column = (cell - MARGIN) // self.size
        return column if cell >= MARGIN and column < len(self.points) else None

    def marks_at(self, column: int) -> tuple[Mark, ...]:
        """Return the marks of a column."""
        return self._marks[column]

    def lines(self) -> list[Line]:
        """Return the drawing from top to bottom."""
        if not self.points:
            return [
                ((fitted("index", MARGIN), "dim"), ("nothing measured yet: a step is measured when it ends", "dim"))
            ]
        rows = [
            self._row("index  1│" if at == HEIGHT - 1 else "       0│" if at == 0 else "        │", self._index(at))
            for at in reversed(range(HEIGHT))
        ]
        rows.append(self._row("pressure│", [(_level(point.pressure), "pressure") for point in self.points]))
        rows.append(self._row("light   │", [(LETTERS[point.band], point.band) for point in self.points]))
        decided = [(DECISIONS[point.decision], DECISION_STYLES[point.decision]) for point in self.points]
        rows.append(self._row("decision│", decided))
        rows.append(self._row("events  │", [_mark(marks) for marks in self._marks]))
        rows.append(self._axis())
        return rows

    def _index(self, at: int) -> list[tuple[str, str]]:
        """Draw one row of bars; ``at`` counts from the bottom."""
        found = []
        for point in self.points:
            if point.index is None:
                found.append(("·" if at == 0 else " ", "unknown"))
                continue
            eighths = max(round(point.index * HEIGHT * 8), 1) - at * 8
            found.append((LEVELS[max(min(eighths, 8), 0)], point.band))
        return found

    def _row(self, name: str, cells: Sequence[tuple[str, str]]) -> Line:
        parts: list[tuple[str, str]] = [(name, "dim")]
        for at, (sign, style) in enumerate(cells):
            filled = (
                sign * self.size
                if sign in LEVELS and self.size < 3
                else sign * (self.size - 1) + " "
                if sign in LEVELS
                else sign.ljust(self.size)
            )
            parts.append((filled, f"{style} chosen" if at == self.column else style))
        return tuple(parts)

    def _axis(self) -> Line:
        """Return the row of step numbers, and the mark of the chosen column."""
        cells = [" "] * (len(self.points) * self.size)
        end = 0
        for at, point in enumerate(self.points):
            label = f"{point.step}"
            start = at * self.size
            if (
                start >= end
                and start + len(label) <= len(cells)
                and (at == 0 or point.step != self.points[at - 1].step)
            ):
                cells[start : start + len(label)] = label
                end = start + max(len(label) + 3, 8)
        parts: list[tuple[str, str]] = [("step    │", "dim")]
        if self.column is None:
            return (*parts, ("".join(cells), "dim"))
        start = self.column * self.size
        number = f"{self.points[self.column].step if self._step is None else self._step}"
        label = f"▲{number}"
        if start + len(label) > self._width - MARGIN:  # at the right edge the number stands before the mark
            start, label = max(start - len(number), 0), f"{number}▲"
        if start + len(label) > len(cells):
            cells += [" "] * (start + len(label) - len(cells))
        before, after = "".join(cells[:start]), "".join(cells[start + len(label) :])
        # a number that the mark has cut would be another number
        if before and before[-1] != " ":
            before = before[: before.rstrip("0123456789").__len__()].ljust(len(before))
        if after and after[0] != " ":
            after = " " * (len(after) - len(after.lstrip("0123456789"))) + after.lstrip("0123456789")
        return (*parts, (before, "dim"), (label, "accent"), (after, "dim"))


def columns_in(width: int) -> int:
    """Return how many columns fit into so many cells."""
    return max(width - MARGIN - 1, 8)


def _by_column(points: Sequence[Point], marks: Sequence[Mark]) -> list[tuple[Mark, ...]]:
    found: list[list[Mark]] = [[] for _ in points]
    ends = [point.seq for point in points]
    for mark in marks:
        if points:
            found[min(bisect_right(ends, mark.seq - 1), len(points) - 1)].append(mark)
    return [tuple(each) for each in found]


def _mark(marks: Sequence[Mark]) -> tuple[str, str]:
    kinds = {mark.kind for mark in marks}
    kind = next((kind for kind in MARKS if kind in kinds), None)
    return (" ", "") if kind is None else (MARKS[kind], MARK_STYLES.get(kind, "dim"))


def _level(value: float | None) -> str:
    return "·" if value is None else LEVELS[1 + min(int(value * 7), 6)]


def legend(width: int) -> list[Line]:
    """Return what the signs mean."""
    decisions = "  ".join(f"{sign} {name}" for name, sign in DECISIONS.items())
    marks = "  ".join(f"{sign} {name}" for name, sign in MARKS.items())
    return [((cut(f"decision: {decisions}", width), "dim"),), ((cut(f"events: {marks}", width), "dim"),)]
