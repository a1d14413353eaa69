"""One session: its course above, the chosen step and what the agent was told below."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.message import Message

from coherence.tui.agent_tree import Key
from coherence.tui.chart import Chart, columns_in
from coherence.tui.figures import ago, cost, number, percent
from coherence.tui.guidance_rows import name_of, told_rows
from coherence.tui.line_view import HelpLine, Lines, LineView, RowList
from coherence.tui.lines import Line, cut, first_lines, named, width_of
from coherence.tui.palette import DECISION_STYLES, LABEL_STYLES, LETTERS, MARK_STYLES, MARKS, OUTCOMES, SHAPES
from coherence.tui.reader import TROUBLE, Answer
from coherence.tui.step_lines import line_of, lines_of
from coherence.tui.watch_screen import WatchScreen, trouble_lines

if TYPE_CHECKING:
    from coherence.views.shapes import EventView, FiringView, RefusalView, SessionView, StepView, Timeline
    from coherence.views.views import Views

WIDE = 130
"""Cells from which on guidance stands beside the step."""

TALL = 34
"""Lines of a terminal from which on there is room for the whole reason of the light."""

COMMENT = 30
"""Cells of the comment on a label."""

LEAST_NAMES = 16
"""Cells of the names of agent and session at least."""

MAX_HITS = 500
"""Events with a searched text that are gone through."""

LEAST_EVENTS = 20
"""Events that the nearest look at a session shows."""


class Course(NamedTuple):
    """Timeline and the step that is looked at."""

    timeline: Timeline
    step: StepView | None


class ChartView(Lines):
    """The chart, which can be clicked at."""

    class Picked(Message):
        """A cell was clicked at."""

        def __init__(self, cell: int) -> None:
            super().__init__()
            self.cell = cell

    def on_click(self, event: events.Click) -> None:
        """Tell which cell was meant."""
        self.post_message(self.Picked(event.x))


class SessionScreen(WatchScreen):
    """One session, live.

    Parameters
    ----------
    key : (str, str)
        Agent and session.
    seq : int, optional
        Event whose step is looked at first. Default: the newest, and those that come.
    text : str
        Text that was searched for: the first event that holds it is looked at first, if there is one.
    """

    DEFAULT_CSS = """
    SessionScreen #body { height: 1fr; layout: horizontal; }
    SessionScreen #step { width: 1fr; height: 1fr; }
    SessionScreen #told { display: none; height: 1fr; }
    SessionScreen.told #told { display: block; }
    SessionScreen.told #step { display: none; }
    SessionScreen.wide #told { display: block; width: 44; }
    SessionScreen.wide #step { display: block; }
    SessionScreen.broad #told { width: 60; }
    SessionScreen.wide #told { border-left: solid $panel; padding-left: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        ("left", "column(-1)", "earlier"),
        ("right", "column(1)", "later"),
        ("comma", "step(-1)", "step before"),
        ("full_stop", "step(1)", "next step"),
        ("home", "first", "first"),
        ("end", "follow", "follow"),
        ("plus,equals_sign", "zoom(1)", "zoom in"),
        ("minus", "zoom(-1)", "zoom out"),
        ("n", "mark(1)", "next mark"),
        ("N,p", "mark(-1)", "mark before"),
        ("w", "whole", "whole texts"),
        ("g,tab", "told", "guidance"),
        ("l", "label", "label"),
        ("u", "unblock", "unblock"),
        ("m", "mute", "mute"),
        ("slash", "search", "search"),
        ("escape,q", "back", "back"),
    ]

    def __init__(self, key: Key, seq: int | None = None, text: str = "") -> None:
        super().__init__()
        self.key = key
        self.seq = seq
        """Event whose step is looked at; ``None`` = the newest one."""
        self.course: Course | None = None
        self._view: SessionView | None = None
        self._window: tuple[int, int | None] = (1, None)
        self._chart: Chart | None = None
        self._zoom = 0
        """Number of times that the events on the chart were halved."""
        self._whole = False
        self._text = text
        self._hits: tuple[int, ...] = ()
        self._unseen: int | None = None
        """Event with the searched text that the step has not been scrolled to yet."""
        self._shown_step = 0

    def compose(self) -> ComposeResult:
        """Lay the screen out."""
        yield Lines(id="title")
        yield Lines(id="about")
        yield ChartView(id="chart")
        with Container(id="body"):
            yield LineView(id="step")
            yield RowList(id="told")
        yield HelpLine(id="keys")

    def on_mount(self) -> None:
        """Ask for the session."""
        agent, session = self.key
        self.face.reader.ask("session", lambda views: views.session(agent, session))
        self._ask()
        if self._text:
            self._search()
        self.query_one("#step").focus()
        self.set_interval(1.0, self.draw)
        self.draw()

    def on_unmount(self) -> None:
        """Ask no more."""
        self.face.reader.drop("session", "course", "hits")

    def on_resize(self, event: events.Resize) -> None:
        """Ask for as many points as there is room for."""
        self.set_class(event.size.width >= WIDE, "wide")
        self.set_class(event.size.width >= WIDE + 40, "broad")
        self._ask()
        self.call_after_refresh(self.draw)

    def _ask(self) -> None:
        """Ask for what the chart and the step show."""
        agent, session = self.key
        points, seq = columns_in(self.app.size.width), self.seq
        first, last = self._window

        def look(views: Views) -> Course:
            timeline = views.timeline(agent, session, first=first, last=last, points=points)
            at = timeline.total if seq is None else seq
            return Course(timeline, views.step(agent, session, at) if at else None)

        self.face.reader.ask("course", look)

    def take(self, answer: Answer) -> None:
        """Take the course, the session or what was searched for."""
        super().take(answer)
        if answer.name == "session" and not answer.error:
            self._view = answer.value
        elif answer.name == "course":
            if answer.error:
                self.say(answer.error, "error")
            else:
                self.course = answer.value
        elif answer.name == "hits" and not answer.error:
            self._found(*answer.value)
        elif answer.name == TROUBLE:
            self.course = self._view = None
        else:
            return
        self.draw()

    def draw(self) -> None:
        """Draw all anew."""
        if not self.is_attached:
            return
        width, now = self.app.size.width, self.face.clock()
        self._draw_title(width)
        step_view = self.query_one("#step", LineView)
        room = (step_view.scrollable_content_region.width or width) - 1
        if self.course is None:
            self.query_one("#chart", Lines).show([])
            trouble = self.face.trouble
            lines: list[Line] = [(), (("  reading", "dim"),)]
            step_view.show(trouble_lines(str(self.face.path), trouble, room) if trouble else lines)
        else:
            timeline, step = self.course
            # a step may hold several ticks: the one that was picked, not the step's last one
            chosen = None if step is None else self.seq or step.seq or step.first
            self._chart = Chart(timeline, width, chosen, None if step is None else step.step)
            self.query_one("#chart", Lines).show(self._chart.lines())
            if step is None:
                step_view.show([(), (("  The session has no event yet. This page shows the first one.", "dim"),)])
            else:
                lines = [*self._marks(step, room), *lines_of(step, room, now, whole=self._whole, sought=self._text)]
                step_view.show(lines, top=step.first != self._shown_step)
                self._shown_step = step.first
                if self._unseen is not None and step.first <= self._unseen <= step.last:
                    step_view.scroll_to(y=line_of(lines, self._unseen), animate=False)
                    self._unseen = None
        self._draw_told(now)
        self._draw_keys()

    def _marks(self, step: StepView, width: int) -> list[Line]:
        """Return what the chart marks within the step and nothing below tells of."""
        if self.course is None:
            return []
        marks = [mark for mark in self.course.timeline.marks if step.first <= mark.seq <= step.last]
        kinds = ("outcome", "unblock", "compaction")
        return [
            ((f" {MARKS[mark.kind]} {mark.kind} ", MARK_STYLES.get(mark.kind, "dim")), (cut(mark.text, width - 16), ""))
            for mark in marks
            if mark.kind in kinds
        ]

    def _draw_title(self, width: int) -> None:
        agent, session = self.key
        view = self._view
        title, about = self.query_one("#title", Lines), self.query_one("#about", Lines)
        if view is None:
            title.show([self.title_line(_names(agent, session, width - 2), ())])
            about.show([((" reading", "dim"),)])
            return
        line = view.line
        sign, style = OUTCOMES.get(line.outcome, ("", ""))
        outcome: Line = ((f"  {sign} {line.outcome}", style),) if sign else ()
        muted = (("  muted", "dim"),) if self.key in self.face.muted else ()
        state = f"{SHAPES[line.band]} {LETTERS[line.band]} {number(line.index)}"
        comment = f": {cut(view.comment, COMMENT)}" if view.comment else ""
        label = ((f"  [{line.label}{comment}]", LABEL_STYLES.get(line.label, "")),) if line.label else ()
        live: Line = (
            (("  live", "good"),) if line.live else ((f"  {ago(self.face.clock() - line.last_ts)} ago", "dim"),)
        )
        looked = None if self.seq is None or self.course is None or self.course.step is None else self.course.step.step
        place = f"step {line.steps:,}" if looked in (None, line.steps) else f"step {looked:,} of {line.steps:,}"
        context = "" if line.context is None else f"  ctx {percent(line.context)}"
        right: Line = ((f"{place}  {cost(line.cost_usd)}{context}", ""), *live)
        label = (*outcome, *label)
        room = width - width_of(label) - width_of(muted) - len(state) - 5
        if room - width_of(right) < LEAST_NAMES:
            right = ((place, ""),)
        room -= width_of(right)
        names = _names(agent, session, max(room, LEAST_NAMES))
        title.show([self.title_line(((f"{state}  ", line.band), *names, *label, *muted), right)])
        about.show(self._about(view, width - 7))

    def _about(self, view: SessionView, width: int) -> list[Line]:
        """Return why the light is what it is, the goal, and the end: whole where there is room, or one wants it."""
        line, height = view.line, self.app.size.height
        most = height // 3 if self._whole else 3 if height >= TALL else 1
        why = view.cause or line.cause or ("on course" if line.band == "green" else "nothing has been measured yet")
        said = f"{line.decision}: {why}" if line.decision != "continue" else why
        parts = [("why", said, DECISION_STYLES[line.decision]), ("goal", line.goal or "none was set", "")]
        if view.ended:
            parts.append(("end", view.ended, ""))
        lines: list[Line] = []
        for name, text, style in parts:
            for at, part in enumerate(first_lines(text, width, most)):
                lines.append(((f" {name if at == 0 else '':<5}", "dim"), (part, style)))
        return lines

    def _draw_told(self, now: float) -> None:
        told = self.query_one("#told", RowList)
        if self._view is None or not told.display:
            return
        width = (told.scrollable_content_region.width or 44) - 1
        rows = told_rows(self._view.firings, self._view.refusals, width, now)
        told.show_rows(rows)
        if not rows:
            lines: list[Line] = [
                ((" The agent was told nothing yet.", "dim"),),
                ((" Guidance and refusals come here.", "dim"),),
            ]
            told.show(lines)

    def _draw_keys(self) -> None:
        keys = self.query_one(HelpLine)
        following = ("end", "follow", "screen.follow")
        if self._hits:
            following = ("n/N", f"hit {self._hit_place()}", "screen.mark(1)")
        keys.keys(
            ("←→", "step", "screen.column(1)"),
            following,
            ("g", "told", "screen.told"),
            ("l", "label", "screen.label"),
            ("u", "unblock", "screen.unblock"),
            ("/", "search", "screen.search"),
            ("w", "whole", "screen.whole"),
            ("+-", "zoom", "screen.zoom(1)"),
            ("↑↓", "scroll", ""),
            ("?", "help", "app.help"),
            ("esc", "back", "screen.back"),
        )

    def _look_at(self, seq: int | None) -> None:
        if seq != self.seq or seq is None:
            self.seq, self._said = seq, ()  # the title tells where one is now
            first, last = self._window
            if seq is not None and self._zoom and (seq < first or (last is not None and seq > last)):
                self._frame(seq)
            self._ask()

    def _frame(self, middle: int) -> None:
        """Put the events around one on the chart, as many as the zoom shows."""
        total = self.course.timeline.total if self.course is not None else 0
        shown = total >> self._zoom
        first = max(middle - shown // 2, 1)
        last = first + shown
        self._window = (first, None if last >= total else last) if self._zoom else (1, None)

    def on_chart_view_picked(self, message: ChartView.Picked) -> None:
        """Look at the step that was clicked at."""
        if self._chart is not None:
            column = self._chart.column_at(message.cell)
            if column is not None:
                self._look_at(self._chart.points[column].seq)

    def on_row_list_chosen(self, message: RowList.Chosen) -> None:
        """Look at the step in which the agent was told something."""
        seq = self._told_seq(message.key)
        if seq is not None:
            self.remove_class("told")
            self.query_one("#step").focus()
            self._look_at(seq)

    def on_row_list_moved(self, message: RowList.Moved) -> None:
        """Look at it beside the list, if both are there and the list is used."""
        seq = self._told_seq(message.key)
        if seq is not None and self.has_class("wide") and message.rows.has_focus:
            self._look_at(seq)

    def _told_seq(self, key: Hashable | None) -> int | None:
        found = self._told_of(key)
        return None if found is None else found.seq

    def _told_of(self, key: Hashable | None) -> FiringView | RefusalView | None:
        if self._view is None or not isinstance(key, tuple):
            return None
        told = self._view.firings if key[0] == "firing" else self._view.refusals
        return next((each for each in told if each.id == key[1]), None)

    def action_column(self, by: int) -> None:
        """Look at the next column of the chart, or the one before; after the last one, follow."""
        chart = self._chart
        if chart is None or not chart.points:
            self.action_step(by)
            return
        at = (len(chart.points) - 1 if chart.column is None else chart.column) + by
        if at >= len(chart.points) and self._window[1] is None:
            self.action_follow()
        elif 0 <= at < len(chart.points):
            self._look_at(chart.points[at].seq)
        else:
            self.action_step(by)  # beyond the part that is on the chart, which follows

    def action_step(self, by: int) -> None:
        """Look at the next step, or the one before."""
        if self.course is not None and self.course.step is not None:
            step = self.course.step
            seq = step.last + 1 if by > 0 else step.first - 1
            if 1 <= seq <= self.course.timeline.total:
                self._look_at(seq)

    def action_first(self) -> None:
        """Look at the first step of the session, whichever part of it is on the chart."""
        if self.course is not None and self.course.timeline.total:
            self._look_at(max(self._view.first if self._view is not None else 1, 1))

    def action_follow(self) -> None:
        """Look at the newest step, and at those that come."""
        if self._window[1] is not None:
            self._window, self._zoom = (1, None), 0
        self._look_at(None)

    def action_zoom(self, by: int) -> None:
        """Show half of the events around the chosen one, or twice as many."""
        if self.course is None:
            return
        timeline, step = self.course
        if by > 0 and timeline.total >> self._zoom <= LEAST_EVENTS:
            return
        self._zoom = max(self._zoom + by, 0)
        self._frame(step.first if step is not None else timeline.last)
        self._ask()

    def action_mark(self, by: int) -> None:
        """Look at the next event that was searched for, or else at the next one with a mark."""
        if self.course is None:
            return
        if self._hits:
            self._next_hit(by)
            return
        step = self.course.step
        found = sorted({mark.seq for mark in self.course.timeline.marks})
        at = 0 if step is None else step.last if by > 0 else step.first
        ahead = [seq for seq in found if (seq > at if by > 0 else seq < at)]
        if ahead:
            self._look_at(ahead[0] if by > 0 else ahead[-1])
        else:
            self.say("no more ahead" if by > 0 else "no more before", "dim")

    def _next_hit(self, by: int) -> None:
        """Look at the next event that was searched for; after the last one, at the first."""
        hits = self._hits
        at = hits[-1] + 1 if self.seq is None else self.seq
        ahead = [seq for seq in hits if (seq > at if by > 0 else seq < at)]
        self._look_at_hit((ahead or hits)[0 if by > 0 else -1])
        if not ahead:
            self.say("on from the first hit" if by > 0 else "on from the last hit", "dim")

    def _look_at_hit(self, seq: int) -> None:
        self._unseen = seq
        self._look_at(seq)
        self.draw()

    def action_whole(self) -> None:
        """Show whole texts, or their beginnings."""
        self._whole = not self._whole
        self.draw()

    def action_told(self) -> None:
        """Go to the guidance, or back to the step."""
        told, step = self.query_one("#told", RowList), self.query_one("#step", LineView)
        if self.has_class("wide"):
            (step if told.has_focus else told).focus()
        else:
            self.toggle_class("told")
            # what is not shown cannot be focused
            self.call_after_refresh((told if self.has_class("told") else step).focus)
        self.call_after_refresh(self.draw)

    def action_label(self) -> None:
        """Label what the agent was told, if that is what one is at, or else the session."""
        told = self.query_one("#told", RowList)
        if told.has_focus and isinstance(told.chosen, tuple):
            what = "Was this guidance right?" if told.chosen[0] == "firing" else "Was this refusal right?"
            found = self._told_of(told.chosen)
            self.label_firing(told.chosen[1], what, name_of(found) if found is not None else told.chosen[1])
        else:
            self.label_session(self.key)

    def action_unblock(self) -> None:
        """Let the agent go on."""
        self.unblock(self.key, self._view)

    def action_mute(self) -> None:
        """Mute the session, or hear it again."""
        self.mute(self.key)

    def action_search(self) -> None:
        """Ask for a text that an event must hold."""
        from coherence.tui.dialogs import TextDialog

        def chosen(text: str | None) -> None:
            if text is None:
                return
            self._text, self._hits = text, ()
            if text:
                self._search(said=True)
            self.draw()

        self.app.push_screen(
            TextDialog("Search this session", self._text, "words of a message, call or result"), chosen
        )

    def _search(self, *, said: bool = False) -> None:
        """Ask for the events with the text; ``said``: say so if there are none, as where only a name holds it."""
        (agent, session), text = self.key, self._text
        self.face.reader.ask(
            "hits", lambda views: (views.events(agent, session, text=text, limit=MAX_HITS), said), follow=False
        )

    def _found(self, hits: tuple[EventView, ...], said: bool) -> None:
        self._hits = tuple(event.seq for event in hits)
        if self._hits:
            self._look_at_hit(self._hits[0])
            return
        if said:
            self.say(f"no event holds “{self._text}”", "error")
        self._text = ""

    def _hit_place(self) -> str:
        place = len(self._hits) if self.seq is None else bisect_right(self._hits, self.seq)
        return f"{place} of {len(self._hits)}"

    def action_back(self) -> None:
        """Go back to the step, or to the agents."""
        if self.has_class("told") and not self.has_class("wide"):
            self.action_told()
        elif self._text:
            self._text, self._hits = "", ()
            self.draw()
        else:
            self.app.pop_screen()


def _names(agent: str, session: str, width: int) -> Line:
    name, rest = named(agent, session, width)
    return (name, "title"), (rest, "dim")
