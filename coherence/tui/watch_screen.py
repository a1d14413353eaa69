"""Base of the screens: the program behind them, labels, blocks, mutes, and lines about all of it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, cast

from textual.screen import Screen

from coherence.tui.agent_tree import Key
from coherence.tui.guidance_rows import refused_words, standing
from coherence.tui.lines import Line, clean, cropped, cut, named, spread, wrapped
from coherence.tui.reader import MISSING, Answer

if TYPE_CHECKING:
    from coherence.tui.face import WatchFace
    from coherence.views.changes import Label
    from coherence.views.shapes import SessionView

SAID_S = 8.0
"""Seconds for which a remark stays."""

LABELS: list[tuple[str, Hashable, Line]] = [
    ("g", ("good", False), (("good", "good"), ("  it stayed on course", "dim"))),
    ("b", ("bad", False), (("bad", "error"), ("   it went off course, or somebody steered it", "dim"))),
    ("n", (None, False), (("none", "bold"), ("  take the label back", "dim"))),
    ("G", ("good", True), (("good", "good"), (", and say why", "dim"))),
    ("B", ("bad", True), (("bad", "error"), (", and say why", "dim"))),
]
"""Key, value (label, with a comment), words."""

JUDGEMENTS: list[tuple[str, Hashable, Line]] = [
    ("g", "good", (("good", "good"), ("  it was right", "dim"))),
    ("b", "bad", (("bad", "error"), ("   a false alarm", "dim"))),
    ("n", "", (("none", "bold"), ("  take the label back", "dim"))),
]


class WatchScreen(Screen[None]):
    """Screen of the program."""

    def __init__(self) -> None:
        super().__init__()
        self._said: Line = ()
        self._said_at = 0.0
        self._unblocks = False
        """``True`` while it is read whether there is something to unblock."""

    @property
    def face(self) -> WatchFace:
        """The program."""
        return cast("WatchFace", self.app)

    def take(self, answer: Answer) -> None:
        """Take an answer of the reader."""
        if not self.is_current:
            self._unblocks = False  # one has gone on
            return
        if answer.name == "act":
            self.say(answer.error or str(answer.value), "error" if answer.error else "good")
        elif answer.name == "refused" and self._unblocks:
            self._unblocks = False
            self.face.reader.drop("refused")
            if answer.error:
                self.say(answer.error, "error")
            else:
                self._ask_why(answer.value)

    def draw(self) -> None:
        """Draw all anew."""

    def on_line_view_resized(self) -> None:
        """Draw for the new width."""
        self.draw()

    def say(self, text: str, style: str = "good") -> None:
        """Show a remark for some seconds."""
        self._said, self._said_at = ((clean(text), style),), self.face.clock()
        self.draw()

    def title_line(self, left: Line, right: Line) -> Line:
        """Return the first line of a screen: what it is about, and what was just done, or else how things stand."""
        if self._said and self.face.clock() - self._said_at < SAID_S:
            right = cropped(self._said, max(self.app.size.width - 12, 10))
        return spread(((" ", ""), *left), (*right, (" ", "")), self.app.size.width)

    def label_session(self, key: Key) -> None:
        """Ask for the label of a session, and write it."""
        from coherence.tui.dialogs import ChoiceDialog, TextDialog

        agent, session = key

        def write(label: Label | None, comment: str) -> None:
            from coherence.views.changes import label_session

            def action(store: Any) -> str:
                label_session(store, agent, session, label, comment)
                return f"labelled {label}: {short(key)}" if label else f"no label any more: {short(key)}"

            self.face.act(action)

        def chosen(value: Hashable | None) -> None:
            if not isinstance(value, tuple):
                return
            label, comments = value
            if comments:
                ask = TextDialog(f"Why is {agent} · {session} {label}?", hint="a remark for the record")
                self.app.push_screen(ask, lambda text: None if text is None else write(label, text))
            else:
                write(label, "")

        self.app.push_screen(ChoiceDialog(f"How did {agent} · {session} do?", LABELS), chosen)

    def label_firing(self, id: str, what: str, name: str) -> None:
        """Ask whether guidance or a refusal was right, and write it; its name is what is then told of it."""
        from coherence.tui.dialogs import ChoiceDialog

        def chosen(value: Hashable | None) -> None:
            from coherence.views.changes import label_firing

            if isinstance(value, str):
                label: Label | None = "good" if value == "good" else "bad" if value == "bad" else None
                self.face.act(lambda store: _labelled(label_firing(store, id, label), name, label))

        self.app.push_screen(ChoiceDialog(what, JUDGEMENTS), chosen)

    def unblock(self, key: Key, view: SessionView | None) -> None:
        """Ask for a reason, and let an agent go on, if anything of it is refused now.

        Parameters
        ----------
        key : (str, str)
            Agent and session.
        view : SessionView or None
            The session; ``None`` while it is not known, and then it is read first.
        """
        if view is not None:
            self._ask_why(view)
            return
        self._unblocks = True
        self.face.reader.ask("refused", lambda views: views.session(*key), follow=False)

    def _ask_why(self, view: SessionView) -> None:
        from coherence.tui.dialogs import TEXT_WIDTH, TextDialog

        agent, session = view.line.agent, view.line.session
        refused = standing(view)
        if not refused:
            self.say(f"nothing of {short((agent, session))} is refused now", "dim")
            return

        def done(reason: str | None) -> None:
            from coherence.views.changes import unblock

            def action(store: Any) -> str:
                unblock(store, agent, session, reason or "")
                return f"may go on: {short((agent, session))}"

            if reason:
                self.face.act(action)

        why = wrapped(refused[0].why, min(TEXT_WIDTH, self.app.size.width * 94 // 100 - 4), most=300)
        about: list[Line] = [
            (("refused ", "red"), (refused_words(refused[0]), "tool")),
            *(((part, ""),) for part in why),
        ]
        ask = TextDialog(
            f"Let {agent} · {session} go on?",
            hint="reason, for the record",
            about=about,
            needed="A reason is needed: it is kept with the session.",
        )
        self.app.push_screen(ask, done)

    def mute(self, key: Key) -> None:
        """Hear no more of a session here, or hear of it again."""
        muted = self.face.muted
        if key in muted:
            muted.discard(key)
            self.say(f"heard again: {short(key)}")
        else:
            muted.add(key)
            self.say(f"muted in this window: {short(key)}", "dim")


def short(key: Key) -> str:
    """Return agent and session in words that leave room for a verb."""
    return "".join(named(*key, SHORT))


SHORT = 36
"""Cells of the names in a remark."""


def _labelled(_: object, name: str, label: str | None) -> str:
    return f"labelled {label}: {name}" if label else f"no label any more: {name}"


def trouble_lines(path: str, trouble: str, width: int) -> list[Line]:
    """Return why there is nothing to see, and what to do."""
    if trouble != MISSING:
        lines: list[Line] = [((f"  {part}", "error"),) for part in wrapped(trouble, width - 4)]
        return [
            (),
            *lines,
            (),
            (("  coherence doctor looks into it. This page goes on as soon as it can be read.", "dim"),),
        ]
    return [
        (),
        (("  There is no store yet at ", ""), (cut(path, width - 28), "title")),
        (),
        *FIRST_STEPS,
        (("  This page shows it as soon as it is there.", "dim"),),
    ]


FIRST_STEPS: list[Line] = [
    (("  A store is written by", "dim"),),
    (("    coherence init           ", "key"), ("  your coding agent, from its next session on", "")),
    (('    Monitor(store="runs.db") ', "key"), ("  your own loop in Python", "")),
    (("    coherence demo --live    ", "key"), ("  three recorded runs, to look around", "")),
    (),
    (("  Another store: ", "dim"), ("coherence watch runs.db", "key")),
    (),
]

EMPTY: list[Line] = [
    (),
    (("  This store holds no session yet.", ""),),
    (),
    *FIRST_STEPS,
    (("  This page shows the first one as soon as it has begun.", "dim"),),
]
