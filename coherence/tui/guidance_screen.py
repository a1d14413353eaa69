"""Screen of the guidance that all agents of the store were given, and of its effect."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from coherence.tui.guidance_rows import name_of, told_rows
from coherence.tui.line_view import HelpLine, Lines, RowList
from coherence.tui.lines import Line
from coherence.tui.reader import TROUBLE, Answer
from coherence.tui.watch_screen import WatchScreen, trouble_lines

if TYPE_CHECKING:
    from coherence.views.shapes import FiringView

LIMIT = 500
"""Firings that are shown, the newest."""


class GuidanceScreen(WatchScreen):
    """Guidance of all agents, the newest first."""

    DEFAULT_CSS = "GuidanceScreen #firings { height: 1fr; }"
    BINDINGS: ClassVar[list[BindingType]] = [("l", "label", "label"), ("escape,q,g", "back", "back")]

    def __init__(self) -> None:
        super().__init__()
        self._firings: tuple[FiringView, ...] | None = None

    def compose(self) -> ComposeResult:
        """Lay the screen out."""
        yield Lines(id="title")
        yield RowList(id="firings")
        yield HelpLine(id="keys")

    def on_mount(self) -> None:
        """Ask for the guidance."""
        self.face.reader.ask("firings", lambda views: views.firings(limit=LIMIT))
        self.query_one("#firings").focus()
        self.set_interval(1.0, self.draw)
        self.draw()

    def on_unmount(self) -> None:
        """Ask no more."""
        self.face.reader.drop("firings")

    def take(self, answer: Answer) -> None:
        """Take the guidance."""
        super().take(answer)
        if answer.name == "firings" and not answer.error:
            self._firings = answer.value
            self.draw()
        elif answer.name == TROUBLE:
            self._firings = None
            self.draw()

    def draw(self) -> None:
        """Draw all anew."""
        if not self.is_attached:
            return
        rows = self.query_one("#firings", RowList)
        width = (rows.scrollable_content_region.width or self.app.size.width) - 1
        firings = self._firings or ()
        better = sum(firing.verdict == "better" for firing in firings)
        measured = sum(firing.verdict != "" for firing in firings)
        after = f"better after {better} of {measured} measured" if measured else "none measured yet"
        right: Line = ((f"{len(firings)} in all, {after}" if firings else "", "dim"),)
        self.query_one("#title", Lines).show(
            [self.title_line((("guidance", "title"), ("  newest first", "dim")), right)]
        )
        rows.show_rows(told_rows(firings, (), width, self.face.clock(), agents=True))
        if self._firings is None:
            trouble = self.face.trouble
            rows.show(trouble_lines(str(self.face.path), trouble, width) if trouble else [(("  reading", "dim"),)])
        elif not firings:
            rows.show(NOTHING)
        keys = (("⏎", "open its step", "screen.open"), ("l", "label", "screen.label"), ("?", "help", "app.help"))
        self.query_one(HelpLine).keys(*keys, ("esc", "back", "screen.back"))

    def _chosen(self) -> FiringView | None:
        chosen = self.query_one("#firings", RowList).chosen
        return next((each for each in self._firings or () if ("firing", each.id) == chosen), None)

    def on_row_list_chosen(self, _: RowList.Chosen) -> None:
        """Open the step in which it was said."""
        self.action_open()

    def action_open(self) -> None:
        """Open the step in which it was said."""
        from coherence.tui.session_screen import SessionScreen

        firing = self._chosen()
        if firing is not None:
            self.app.push_screen(SessionScreen((firing.agent, firing.session), firing.seq))

    def action_label(self) -> None:
        """Say whether it was right."""
        firing = self._chosen()
        if firing is not None:
            self.label_firing(firing.id, "Was this guidance right?", name_of(firing))

    def action_back(self) -> None:
        """Go back."""
        self.app.pop_screen()


NOTHING: list[Line] = [
    (),
    (("  No agent was told anything yet.", ""),),
    (),
    (("  Guidance is sent when an agent repeats itself, fails in a row or leaves its goal.", "dim"),),
    (("  coherence explain tells of each one; coherence experiments of what they are worth.", "dim"),),
]
