"""First screen: the agents as a tree, and a card of the chosen one."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container

from coherence.tui.agent_rows import Columns, card_of, card_title, heading, rows_of
from coherence.tui.agent_tree import RANKS, Key, Node, key_of, tree_of
from coherence.tui.filters import PAGE, SORTS, Filter, choices_of
from coherence.tui.line_view import HelpLine, Lines, LineView, RowList
from coherence.tui.lines import Line, middle_cut
from coherence.tui.palette import SHAPES
from coherence.tui.reader import TROUBLE, Answer
from coherence.tui.watch_screen import EMPTY, WatchScreen, trouble_lines

if TYPE_CHECKING:
    from coherence.views.shapes import Overview, SessionLine, SessionView

WIDE = 150
"""Cells from which on the card stands beside the agents."""

NEWS_S = 30.0
"""Seconds for which a light that became worse is told of."""

NEWS = 20
"""Cells of the agent's name there."""


class AgentsScreen(WatchScreen):
    """Agents of the store, the worst first."""

    DEFAULT_CSS = """
    AgentsScreen #body { height: 1fr; layout: vertical; }
    AgentsScreen #list { height: 1fr; }
    AgentsScreen #side { height: 11; }
    AgentsScreen.tall #side { height: 15; }
    AgentsScreen.wide #body { layout: horizontal; }
    AgentsScreen.wide #list { width: 2fr; }
    AgentsScreen.wide #side { width: 1fr; height: 1fr; padding-left: 1; }
    AgentsScreen.short #side { display: none; }
    AgentsScreen.bare #side { display: none; }
    AgentsScreen.bare #head { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        ("l", "label", "label"),
        ("u", "unblock", "unblock"),
        ("m", "mute", "mute"),
        ("f", "filter", "filter"),
        ("slash", "search", "search"),
        ("s", "sort", "sort"),
        ("g", "guidance", "guidance"),
        ("space", "fold", "fold"),
        ("escape", "clear", "clear"),
        ("q", "app.quit", "quit"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.filter = Filter()
        self._overview: Overview | None = None
        self._view: SessionView | None = None
        self._tree_nodes: list[Node] = []
        self._folded: set[Key] = set()
        self._bands: dict[Key, str] = {}
        self._news: tuple[Line, float] = ((), 0.0)
        self._turned = False
        """``True`` until there are rows of another order or filter, whose first one is then chosen."""

    def compose(self) -> ComposeResult:
        """Lay the screen out."""
        yield Lines(id="title")
        with Container(id="body"):
            with Container(id="list"):
                yield Lines(id="head")
                yield RowList(id="agents")
            with Container(id="side"):
                yield Lines(id="card-title")
                yield LineView(id="card")
        yield HelpLine(id="keys")

    def on_mount(self) -> None:
        """Ask for the agents."""
        self._overview = self.face.first
        self._ask()
        self.query_one("#agents").focus()
        self.set_interval(1.0, self.draw)  # times pass
        self.draw()

    def on_resize(self, event: events.Resize) -> None:
        """Put the card beside the agents where there is room."""
        self.set_class(event.size.width >= WIDE, "wide")
        self.set_class(event.size.height >= 34, "tall")
        self.set_class(event.size.height < 18, "short")
        self.call_after_refresh(self.draw)

    @property
    def chosen(self) -> Key | None:
        """Session under the cursor."""
        key = self.query_one("#agents", RowList).chosen
        return key if isinstance(key, tuple) else None

    def take(self, answer: Answer) -> None:
        """Take an overview or the session of the card."""
        super().take(answer)
        if answer.name == "overview" and not answer.error:
            on_first = self._is_on_first()
            asked, self._overview = answer.value
            self._hear(answer.value[1])
            self.draw()
            if self._turned and asked == self.filter:
                self._turned = False
                self._choose_first()
            elif on_first:
                self._choose_first()
        elif answer.name == "card":
            self._view = answer.value
            self._draw_card()
        elif answer.name == TROUBLE:
            self._overview = self._view = None
            self.draw()

    def draw(self) -> None:
        """Draw all anew."""
        if not self.is_attached:
            return
        overview = self._overview
        self._draw_title()
        agents = self.query_one("#agents", RowList)
        width = agents.scrollable_content_region.width or self.app.size.width - 1
        bare = overview is None or not overview.lines
        self.set_class(bare, "bare")
        if overview is None:
            agents.show_rows([])
            trouble = self.face.trouble
            path = str(self.face.path)
            agents.show(trouble_lines(path, trouble, width) if trouble else [(), ((f"  reading {path}", "dim"),)])
        elif not overview.lines:
            agents.show_rows([])
            none: list[Line] = [(), (("  No session fits ", ""), (self.filter.in_words(), "title")), ()]
            agents.show([*none, (("  esc shows all again", "dim"),)] if overview.total else EMPTY)
        else:
            self._tree_nodes = tree_of(overview.lines, self._folded, self.face.muted)
            self.query_one("#head", Lines).show([Columns(width).head()])
            first = agents.chosen is None
            agents.show_rows(rows_of(self._tree_nodes, width, self.face.clock(), self.face.muted))
            if first and self.filter.sort == "worst":
                self._choose_first()
        self._draw_card()
        self._draw_keys(bare)

    def _is_on_first(self) -> bool:
        """Tell whether the cursor is on the worst session: it stays there, and nobody misses a worse one."""
        lines = () if self._overview is None else self._overview.lines
        return bool(lines) and self.filter.sort == "worst" and self.chosen == key_of(lines[0])

    def _choose_first(self) -> None:
        """Choose the first session of the order, which may stand below the one that started it."""
        if self._overview is not None and self._overview.lines:
            self.query_one("#agents", RowList).choose(key_of(self._overview.lines[0]), top=True)

    def _draw_keys(self, bare: bool) -> None:
        keys = self.query_one(HelpLine)
        if bare:
            keys.keys(("esc", "all", "screen.clear"), ("?", "help", "app.help"), ("q", "quit", "app.quit"))
            return
        keys.keys(
            ("⏎", "open", "screen.open"),
            ("l", "label", "screen.label"),
            ("u", "unblock", "screen.unblock"),
            ("m", "mute", "screen.mute"),
            ("f", "filter", "screen.filter"),
            ("/", "search", "screen.search"),
            ("g", "told", "screen.guidance"),
            ("s", "sort", "screen.sort"),
            ("space", "fold", "screen.fold"),
            ("?", "help", "app.help"),
            ("q", "quit", "app.quit"),
        )

    def _draw_title(self) -> None:
        asked: Line = ()
        if self.filter.sort != "worst":
            asked = ((f"{self.filter.sort} first  " if self.filter.sort != "agent" else "by agent  ", "accent"),)
        words = self.filter.in_words()
        if words:
            asked = (*asked, (f" only {words} ", "mark"))
        news, at = self._news
        if self.face.clock() - at < NEWS_S:
            asked = (*asked, *news)
        left, right = heading(self.face.path.name, self._overview, self.face.muted, asked, self.app.size.width)
        self.query_one("#title", Lines).show([self.title_line(left, right)])

    def _draw_card(self) -> None:
        line = self._line()
        if line is None or not self.is_attached:
            return
        card = self.query_one("#card", LineView)
        width = card.scrollable_content_region.width or self.app.size.width
        view = self._view if self._view is not None and key_of(self._view.line) == key_of(line) else None
        self.query_one("#card-title", Lines).show([card_title(line, width)])
        card.show(card_of(line, view, width - 1, self.face.clock(), roomy=self.has_class("wide")))

    def _line(self) -> SessionLine | None:
        chosen = self.chosen
        return next((node.line for node in self._tree_nodes if key_of(node.line) == chosen), None)

    def _hear(self, overview: Overview) -> None:
        """Note the newest light that became worse."""
        for line in overview.lines:
            key, before = key_of(line), self._bands.get(key_of(line))
            worse = before is not None and RANKS[line.band] < RANKS[before] and line.band in ("red", "orange")
            if worse and key not in self.face.muted:
                news = f" {SHAPES[line.band]} turned {line.band}: {middle_cut(line.agent, NEWS)} "
                self._news = ((news, line.band),), self.face.clock()
            self._bands[key] = line.band

    def _ask(self) -> None:
        asked = self.filter
        self.face.reader.ask("overview", lambda views: (asked, asked.ask(views)))

    def on_row_list_moved(self, message: RowList.Moved) -> None:
        """Read the chosen session, and more of them at the end."""
        if not isinstance(message.key, tuple) or message.rows.id != "agents":
            return
        agent, session = message.key
        self.face.reader.ask("card", lambda views: views.session(agent, session))
        overview = self._overview
        if message.rows.is_last and overview is not None and len(overview.lines) < overview.matched:
            self._set(more=True, limit=self.filter.limit + PAGE)
        self._draw_card()

    def on_row_list_chosen(self, message: RowList.Chosen) -> None:
        """Open a session."""
        if isinstance(message.key, tuple):
            self._open(message.key)

    def _open(self, key: Key) -> None:
        from coherence.tui.session_screen import SessionScreen

        self.app.push_screen(SessionScreen(key, text=self.filter.text))

    def _set(self, *, more: bool = False, **changes: object) -> None:
        import msgspec

        self.filter = msgspec.structs.replace(self.filter, **changes)
        self._turned = not more
        self._ask()
        self._draw_title()

    def action_open(self) -> None:
        """Open the chosen session."""
        if self.chosen:
            self._open(self.chosen)

    def action_label(self) -> None:
        """Label the chosen session."""
        if self.chosen:
            self.label_session(self.chosen)

    def action_unblock(self) -> None:
        """Let the chosen agent go on."""
        if self.chosen:
            known = self._view is not None and key_of(self._view.line) == self.chosen
            self.unblock(self.chosen, self._view if known else None)

    def action_mute(self) -> None:
        """Mute the chosen session and go on to the next one, or hear it again."""
        chosen = self.chosen
        if chosen:
            if chosen not in self.face.muted:
                self._leave(chosen)  # for this one goes to the end
            self.mute(chosen)

    def _leave(self, key: Key) -> None:
        """Go on to the next session that is not muted, else to the one before."""
        keys = [key_of(node.line) for node in self._tree_nodes]
        at = keys.index(key)
        others = [each for each in [*keys[at + 1 :], *reversed(keys[:at])] if each not in self.face.muted]
        if others:
            self.query_one("#agents", RowList).choose(others[0])

    def action_fold(self) -> None:
        """Hide or show those below the chosen one."""
        if self.chosen:
            self._folded ^= {self.chosen}
            self.draw()

    def action_sort(self) -> None:
        """Take the next order."""
        sort = SORTS[(SORTS.index(self.filter.sort) + 1) % len(SORTS)]
        self._set(sort=sort)

    def action_filter(self) -> None:
        """Choose a filter."""
        from coherence.tui.dialogs import ChoiceDialog

        def chosen(value: object) -> None:
            if isinstance(value, Filter):
                self._set(band=value.band, rule=value.rule, label=value.label, state=value.state, limit=PAGE)

        rules = self._overview.rules if self._overview is not None else ()
        self.app.push_screen(ChoiceDialog("Which sessions?", choices_of(rules)), chosen)

    def action_search(self) -> None:
        """Ask for a text that sessions must hold."""
        from coherence.tui.dialogs import TextDialog

        def chosen(text: str | None) -> None:
            if text is not None:
                self._set(text=text, limit=PAGE)

        hint = "words of a goal, a message, a call, an agent"
        self.app.push_screen(TextDialog("Search all sessions", self.filter.text, hint), chosen)

    def action_clear(self) -> None:
        """Show all sessions again, the chosen one among them."""
        if self.filter.in_words():
            self._set(more=True, band="", rule="", label="", state="", text="", limit=PAGE)

    def action_guidance(self) -> None:
        """Show what all agents were told."""
        from coherence.tui.guidance_screen import GuidanceScreen

        self.app.push_screen(GuidanceScreen())
