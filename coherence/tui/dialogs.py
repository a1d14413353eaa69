"""Dialogs: a choice, a line of text, and the page of help."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from coherence.tui.line_view import HelpLine, Lines, LineView, RowList
from coherence.tui.lines import Line, wrapped

BOX = (
    "width: 72; max-width: 94%; height: auto; max-height: 90%; padding: 0 1; background: $panel; border: round $accent;"
)


TEXT_WIDTH = 66
"""Cells of a dialog's text."""


def _question(title: str, width: int) -> list[Line]:
    """Return a question as lines that fit into a dialog on a terminal of so many columns."""
    return [((part, "title"),) for part in wrapped(title, min(TEXT_WIDTH, width * 94 // 100 - 4))]


class ChoiceDialog(ModalScreen[Hashable]):
    """One of several, by its key, the arrows or the mouse; nothing on Escape.

    Parameters
    ----------
    title : str
        Question.
    choices : sequence of (key, value, words)
        A key of one letter, or none; what is returned; what it means.
    """

    DEFAULT_CSS = f"""
    ChoiceDialog {{ align: center middle; }}
    ChoiceDialog Vertical {{ {BOX} }}
    ChoiceDialog RowList {{ height: auto; max-height: 16; margin: 1 0; background: $panel; }}
    """
    BINDINGS: ClassVar[list[BindingType]] = [("escape,q", "cancel", "cancel")]

    def __init__(self, title: str, choices: Sequence[tuple[str, Hashable, Line]]) -> None:
        super().__init__()
        self._title = title
        self._choices = choices

    def compose(self) -> ComposeResult:
        """Lay the dialog out."""
        with Vertical():
            yield Lines(id="question")
            yield RowList(id="choices")
            yield HelpLine(id="keys")

    def on_mount(self) -> None:
        """Show the choices."""
        self.query_one("#question", Lines).show(_question(self._title, self.app.size.width))
        rows = self.query_one(RowList)
        rows.show_rows(
            [(at, [((f" {key or ' '}  ", "key"), *words)]) for at, (key, _, words) in enumerate(self._choices)]
        )
        rows.styles.height = len(self._choices)
        rows.focus()
        help_line = self.query_one(HelpLine)
        help_line.keys(("↑↓", "move", ""), ("⏎", "choose", "screen.enter"), ("esc", "cancel", "screen.cancel"))

    def on_key(self, event: events.Key) -> None:
        """Take the choice that has the key."""
        for key, value, _ in self._choices:
            if key and event.character == key:
                event.stop()  # or it would be a key of the screen below, too
                self.dismiss(value)
                return

    def on_row_list_chosen(self, message: RowList.Chosen) -> None:
        """Take the choice under the cursor."""
        if isinstance(message.key, int):
            self.dismiss(self._choices[message.key][1])

    def action_enter(self) -> None:
        """Take the choice under the cursor."""
        self.query_one(RowList).action_choose()

    def action_cancel(self) -> None:
        """Choose nothing."""
        self.dismiss(None)


class TextDialog(ModalScreen[str]):
    """A line of text; nothing on Escape.

    Parameters
    ----------
    title : str
        Question.
    value : str
        Text to begin with.
    hint : str
        Shown while there is no text.
    about : sequence of Line
        What the question is about, below it.
    needed : str
        Said where no text was given; empty = that is an answer, too.
    """

    DEFAULT_CSS = f"""
    TextDialog {{ align: center middle; }}
    TextDialog Vertical {{ {BOX} }}
    TextDialog Input {{ margin: 1 0; background: $surface; padding: 0 1; }}
    TextDialog Input:focus {{ background-tint: $foreground 0%; }}
    """
    BINDINGS: ClassVar[list[BindingType]] = [("escape", "cancel", "cancel")]

    def __init__(
        self, title: str, value: str = "", hint: str = "", about: Sequence[Line] = (), needed: str = ""
    ) -> None:
        super().__init__()
        self._title = title
        self._value = value
        self._hint = hint
        self._about = about
        self._needed = needed

    def compose(self) -> ComposeResult:
        """Lay the dialog out."""
        with Vertical():
            yield Lines(id="question")
            yield Input(self._value, placeholder=self._hint, id="text", compact=True)  # of one row, without a border
            yield HelpLine(id="keys")

    def on_mount(self) -> None:
        """Show the question."""
        self._ask()
        self.query_one(HelpLine).keys(("⏎", "done", "screen.enter"), ("esc", "cancel", "screen.cancel"))
        self.query_one(Input).focus()

    def _ask(self, *more: Line) -> None:
        self.query_one("#question", Lines).show([*_question(self._title, self.app.size.width), *self._about, *more])

    def on_input_submitted(self) -> None:
        """Take the text."""
        self.action_enter()

    def action_enter(self) -> None:
        """Take the text."""
        text = self.query_one(Input).value.strip()
        if text or not self._needed:
            self.dismiss(text)
        else:
            self._ask(((self._needed, "error"),))

    def action_cancel(self) -> None:
        """Give no text."""
        self.dismiss(None)


class HelpScreen(ModalScreen[None]):
    """Keys and signs on one page."""

    DEFAULT_CSS = f"""
    HelpScreen {{ align: center middle; }}
    HelpScreen Vertical {{ {BOX} }}
    HelpScreen LineView {{ height: auto; max-height: 100%; background: $panel; }}
    """
    BINDINGS: ClassVar[list[BindingType]] = [("escape,q,question_mark,enter", "cancel", "close")]

    def __init__(self, lines: Sequence[Line]) -> None:
        super().__init__()
        self._lines = lines

    def compose(self) -> ComposeResult:
        """Lay the page out."""
        with Vertical():
            yield LineView(id="page")
            yield HelpLine(id="keys")

    def on_mount(self) -> None:
        """Show the page."""
        page = self.query_one(LineView)
        page.styles.height = min(len(self._lines), max(self.app.size.height - 6, 5))
        page.show(self._lines)
        page.focus()
        keys = [("esc", "close", "screen.cancel")]
        more = len(self._lines) > self.app.size.height - 6
        self.query_one(HelpLine).keys(*([("↑↓", "scroll", ""), *keys] if more else keys))

    def action_cancel(self) -> None:
        """Close the page."""
        self.dismiss(None)
