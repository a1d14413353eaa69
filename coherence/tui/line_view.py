"""Widgets that draw lines: fixed ones, those that scroll, and rows with a cursor."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Sequence
from itertools import accumulate
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBarRender
from textual.strip import Strip
from textual.widget import Widget

from coherence.tui.lines import Line, clean, cropped, width_of
from coherence.tui.palette import CURSOR, CURSOR_PLAIN, STYLES


def strip_of(line: Line, width: int, base: Style, over: Style | None = None) -> Strip:
    """Return a line as it is drawn, in exactly so many cells.

    After the name of a style may stand ``chosen``, as a row under the cursor looks, or an @ and an action that a click
    on the part runs.
    """
    if over is not None:
        base += over
    if width_of(line) > width:
        line = cropped(line, width)
    segments = [Segment(clean(text), base + _style(name)) for text, name in line]
    return Strip(segments).adjust_cell_length(width, base)


def _style(name: str) -> Style:
    name, _, action = name.partition("@")
    name, _, chosen = name.partition(" ")
    style = STYLES[name]
    if chosen:
        style += CURSOR
    return style + Style.from_meta({"@click": action}) if action else style


class Lines(Widget):
    """Lines that do not scroll."""

    DEFAULT_CSS = "Lines { height: auto; width: 1fr; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: Sequence[Line] = ()

    def show(self, lines: Sequence[Line]) -> None:
        """Draw other lines."""
        if len(lines) != len(self._lines):
            self._lines = lines
            self.refresh(layout=True)
        elif lines != self._lines:
            self._lines = lines
            self.refresh()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the number of lines."""
        return len(self._lines)

    def render_line(self, y: int) -> Strip:
        """Draw one line."""
        line = self._lines[y] if y < len(self._lines) else ()
        return strip_of(line, self.size.width, self.rich_style)


class WholeCells(ScrollBarRender):
    """Scroll bar that ends with whole cells."""

    VERTICAL_BARS: ClassVar[list[str]] = [" "]


class LineView(ScrollView, can_focus=True, inherit_bindings=False):
    """Lines that scroll up and down; all other keys are the screen's."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("up,k", "scroll_up", "up"),
        ("down,j", "scroll_down", "down"),
        ("pageup", "page_up", "page up"),
        ("pagedown", "page_down", "page down"),
    ]

    class Resized(Message):
        """There is room for other lines."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: Sequence[Line] = ()

    def on_mount(self) -> None:
        """Draw the bar in whole cells where parts of one cannot be drawn."""
        if getattr(self.app, "ascii", False):
            self.vertical_scrollbar.renderer = WholeCells  # type: ignore[misc]

    def show(self, lines: Sequence[Line], *, top: bool = False) -> None:
        """Draw other lines; ``top``: from the first one, else from where one was."""
        if lines != self._lines:
            self._lines = lines
            self.virtual_size = Size(self.scrollable_content_region.width, len(lines))
            self.refresh()
        if top:
            self.scroll_to(y=0, animate=False)

    def on_resize(self) -> None:
        """Let the lines fill the new width."""
        self.virtual_size = Size(self.scrollable_content_region.width, len(self._lines))
        self.post_message(self.Resized())

    def render_line(self, y: int) -> Strip:
        """Draw one line of those in view."""
        at = y + self.scroll_offset.y
        width = self.scrollable_content_region.width
        return strip_of(self._lines[at] if at < len(self._lines) else (), width, self.rich_style)


Row = tuple[Hashable, Sequence[Line]]
"""The thing that a row stands for, and the row's lines."""


class RowList(LineView, inherit_bindings=False):
    """Rows of one or more lines, one of which is chosen, and in view: keys act on no row that nobody sees.

    The cursor stays on what its row stands for, wherever that row goes, and the view goes there with it. Where somebody
    scrolls away from it, it takes the nearest row in view.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        ("up,k", "move(-1)", "up"),
        ("down,j", "move(1)", "down"),
        ("pageup", "page(-1)", "page up"),
        ("pagedown", "page(1)", "page down"),
        ("home", "move(-1_000_000)", "first"),
        ("end", "move(1_000_000)", "last"),
        ("enter", "choose", "open"),
    ]

    class Moved(Message):
        """The cursor is on another row."""

        def __init__(self, rows: RowList, key: Hashable | None) -> None:
            super().__init__()
            self.rows = rows
            self.key = key

        @property
        def control(self) -> RowList:
            """The list."""
            return self.rows

    class Chosen(Moved):
        """The row was opened."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._keys: list[Hashable] = []
        self._ends: list[int] = []
        self._at = 0

    @property
    def chosen(self) -> Hashable | None:
        """The thing that the row under the cursor stands for; ``None`` without rows."""
        return self._keys[self._at] if self._keys else None

    @property
    def is_last(self) -> bool:
        """``True`` if the cursor is on the last row."""
        return self._at >= len(self._keys) - 1

    def show_rows(self, rows: Sequence[Row]) -> None:
        """Draw other rows."""
        before, place = self.chosen, self._start(self._at)
        self._keys = [key for key, _ in rows]
        self._ends = list(accumulate(len(lines) for _, lines in rows))
        self._at = self._keys.index(before) if before in self._keys else max(min(self._at, len(rows) - 1), 0)
        self.show([line for _, lines in rows for line in lines])
        if self.chosen != before:
            self.post_message(self.Moved(self, self.chosen))
        if self.chosen != before or self._start(self._at) != place:
            self._reveal()

    def choose(self, key: Hashable, *, top: bool = False) -> None:
        """Put the cursor on a row, if there is one that stands for this; ``top``: with the first rows in view."""
        if top:
            self.scroll_to(y=0, animate=False, force=True)
        if key in self._keys:
            self._move_to(self._keys.index(key))

    def on_resize(self) -> None:
        """Keep the cursor in view."""
        self.call_after_refresh(self._reveal)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Take the nearest row in view where the one of the cursor was scrolled away."""
        super().watch_scroll_y(old_value, new_value)
        height = self.scrollable_content_region.height
        if not self._keys or height < 1:
            return
        top = round(new_value)
        if self._ends[self._at] <= top:
            self._put(bisect_right(self._ends, top))
        elif self._start(self._at) >= top + height:
            self._put(bisect_right(self._ends, top + height - 1))

    def render_line(self, y: int) -> Strip:
        """Draw one line of those in view."""
        at = y + self.scroll_offset.y
        if at >= len(self._lines):
            return strip_of((), self.scrollable_content_region.width, self.rich_style)
        over = None
        if bisect_right(self._ends, at) == self._at:
            over = CURSOR_PLAIN if self.app.no_color else CURSOR
        return strip_of(self._lines[at], self.scrollable_content_region.width, self.rich_style, over)

    def action_move(self, by: int) -> None:
        """Move the cursor by rows."""
        self._move_to(self._at + by)

    def action_page(self, by: int) -> None:
        """Move the cursor by a screenful."""
        line = self._start(self._at) + by * max(self.size.height - 2, 1)
        self._move_to(bisect_right(self._ends, max(line, 0)))

    def action_choose(self) -> None:
        """Open the row under the cursor."""
        if self._keys:
            self.post_message(self.Chosen(self, self.chosen))

    def on_click(self, event: events.Click) -> None:
        """Choose a row by the mouse; a click on the chosen one opens it."""
        row = bisect_right(self._ends, event.y + self.scroll_offset.y)
        if row >= len(self._keys):
            return
        if row == self._at:
            self.action_choose()
        else:
            self._move_to(row)

    def _start(self, row: int) -> int:
        return self._ends[row - 1] if row else 0

    def _move_to(self, row: int) -> None:
        self._put(row)
        self._reveal()

    def _put(self, row: int) -> None:
        row = max(min(row, len(self._keys) - 1), 0)
        if self._keys and row != self._at:
            self._at = row
            self.refresh()
            self.post_message(self.Moved(self, self.chosen))

    def _reveal(self) -> None:
        if self._keys:
            start = self._start(self._at)
            region = Region(0, start, 1, self._ends[self._at] - start)
            self.scroll_to_region(region, animate=False, force=True)


class HelpLine(Lines):
    """The one line of help: keys and their meaning; a click does the same."""

    def keys(self, *pairs: tuple[str, str, str]) -> None:
        """Show keys, their meaning and the action that a click runs.

        Where there is no room for all of them, the last two are shown, and of the others those that come first.
        """
        room = self.app.size.width
        left = list(pairs)
        while len(left) > 2 and sum(len(key) + len(meaning) + 3 for key, meaning, _ in left) > room:
            del left[-3]
        parts: list[tuple[str, str]] = []
        for key, meaning, action in left:
            parts += [(f" {key}", f"key@{action}"), (f" {meaning} ", f"dim@{action}")]
        self.show([tuple(parts)])
