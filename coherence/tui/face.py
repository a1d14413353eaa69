"""The program: screens over one store that is read in the background."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rich.segment import Segment
from textual.app import App
from textual.binding import BindingType
from textual.color import Color
from textual.filter import LineFilter
from textual.message import Message
from textual.theme import Theme

from coherence.tui.agent_tree import Key
from coherence.tui.agents_screen import AgentsScreen
from coherence.tui.palette import ascii_parts
from coherence.tui.reader import TROUBLE, Answer, Reader

if TYPE_CHECKING:
    from coherence.store.store import Store
    from coherence.tui.first_picture import Opened

THEME = Theme(
    name="coherence",
    primary="#6cb6ff",
    accent="#6cb6ff",
    foreground="#d5dde5",
    background="#0f151b",
    surface="#161e26",
    panel="#1b252f",
    dark=True,
)


class AsciiFilter(LineFilter):
    """The drawn lines, in ASCII."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments of a line in ASCII, as wide as they were."""
        texts = ascii_parts([segment.text for segment in segments])
        return [Segment(text, style, control) for text, (_, style, control) in zip(texts, segments, strict=True)]


class WatchFace(App[None]):
    """Agents of a store as they run.

    Parameters
    ----------
    path : Path
        The store; it may come later.
    ascii : bool
        Draw with ASCII only.
    clock : callable, optional
        Unix time in seconds; default: the system's.
    opened : Opened, optional
        The store and its agents, where they were read already.
    """

    TITLE = "coherence watch"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Screen { background: $background; color: $foreground; }
    ModalScreen { background: $background 70%; }
    WatchScreen { overflow: hidden; }
    LineView { overflow-x: hidden; scrollbar-size-vertical: 1; scrollbar-gutter: stable; }
    #title { background: $surface; }
    HelpLine { dock: bottom; height: 1; }
    WatchScreen > HelpLine { background: $surface; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [("question_mark", "help", "help"), ("ctrl+q,ctrl+c", "quit", "quit")]

    class Told(Message):
        """The reader has an answer."""

        def __init__(self, answer: Answer) -> None:
            super().__init__()
            self.answer = answer

    def __init__(
        self,
        path: Path,
        *,
        ascii: bool = False,
        clock: Callable[[], float] | None = None,
        opened: Opened | None = None,
    ) -> None:
        self.ascii = ascii
        """``True`` if it draws with ASCII only."""
        self._ascii = AsciiFilter() if ascii else None
        # without colours, those of the terminal are left as they are
        plain = bool(os.environ.get("NO_COLOR"))
        super().__init__(ansi_color=True if plain else None)
        self.register_theme(THEME)
        self.theme = "ansi-dark" if plain else "coherence"
        self.path = path
        self.clock = clock or time.time
        self.first = None if opened is None else opened.overview
        """Agents that the first picture showed."""
        self.reader = Reader(path, self._tell, None if opened is None else opened.views)
        self.muted: set[Key] = set()
        self.trouble = ""
        """Reason why nothing can be read; empty while all is well."""
        self.answers: dict[str, Any] = {}
        """Name of a question -> its newest answer."""

    def _tell(self, answer: Answer) -> None:
        self.post_message(self.Told(answer))

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return the filters of what is drawn."""
        filters = super().get_line_filters()
        return filters if self._ascii is None else [*filters, self._ascii]

    def get_default_screen(self) -> AgentsScreen:
        """Return the first screen."""
        return AgentsScreen()

    def on_mount(self) -> None:
        """Begin to read once the first screen has been drawn."""
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        gc.freeze()  # what was loaded until now stays
        gc.enable()
        self.reader.start()

    def on_unmount(self) -> None:
        """End reading."""
        self.reader.close()

    def on_watch_face_told(self, message: Told) -> None:
        """Hand an answer to the screens that want it."""
        answer = message.answer
        if answer.name == TROUBLE:
            self.trouble = answer.error
        else:
            self.trouble = ""
            self.answers[answer.name] = answer.value
        for screen in self.screen_stack:
            take = getattr(screen, "take", None)
            if take is not None:
                take(answer)

    def act(self, action: Callable[[Store], str]) -> None:
        """Change the store in the background; the screens are told of it by the name ``act``."""
        self.reader.act("act", action)

    def action_help(self) -> None:
        """Show the page of help."""
        from coherence.tui.dialogs import HelpScreen
        from coherence.tui.help_page import PAGE

        self.push_screen(HelpScreen(PAGE))
