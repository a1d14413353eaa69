"""Rows of the agents, and the card of the chosen one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len

from coherence.core.readings import number_of
from coherence.store.tally import BANDS
from coherence.tui.agent_tree import RANKS, Key, Node, key_of
from coherence.tui.figures import ago, cost, number, percent, tokens, when
from coherence.tui.guidance_rows import VERDICTS, refused_words, standing
from coherence.tui.lines import Line, Part, cropped, cut, fitted, middle_cut, named, width_of, wrapped
from coherence.tui.palette import DECISION_STYLES, LABEL_STYLES, LETTERS, LEVELS, OUTCOMES, SHAPES, light

if TYPE_CHECKING:
    from coherence.views.shapes import FiringView, Overview, SessionLine, SessionView

FIGURES = {"steps": (7, 56), "cost": (8, 66), "tokens": (8, 110), "ctx": (6, 74), "last": (8, 40)}
"""Name of a figure: cells that it takes, and width from which on there is room for it."""

LEAST_END = 70
"""Cells from which on there is room for outcome and label."""
WORDS = 10
"""Cells of an outcome in words."""
ENDS = {94: 3 + WORDS + 4, LEAST_END: 8}
"""Width from which on there is room for outcome and label: cells of them, in words or as signs."""


ROOMY = 100
"""Cells from which on there is room for a longer trend."""


class Columns:
    """Widths of the columns that fit into so many cells; names and trends get what is left."""

    def __init__(self, width: int) -> None:
        self.figures = [name for name, (_, least) in FIGURES.items() if width >= least]
        self.end = next((cells for least, cells in ENDS.items() if width >= least), 0)
        left = max(width - 9 - self.end - sum(FIGURES[name][0] for name in self.figures), 16)
        self.trend = max(min(60, left * 2 // 5 if width >= ROOMY else left // 3), 6)
        self.name = left - self.trend - 2

    def head(self) -> Line:
        """Return the names of the columns."""
        name, trend = (
            fitted("agent · session", self.name),
            fitted("index over time" if self.trend > 15 else "index", self.trend),
        )
        figures = "".join(each.rjust(FIGURES[each][0]) for each in self.figures)
        end = fitted(" outcome", self.end)
        return ((f"{'light':<9}{name}  {trend}{end}{figures}", "dim"),)

    def row(self, node: Node, now: float, *, muted: bool) -> Line:
        """Return one line on a session."""
        line = node.line
        branch = "  " * (node.depth - 1) + "└ " if node.depth else ""
        above = f"{line.parent}/" if node.depth and line.parent else ""
        fold = f"▸{node.children} " if node.folded else ""
        # below its parent, of the same session, an agent needs no name of its session
        before = f"{branch}{fold}"
        agent, room = line.agent.removeprefix(above), self.name - cell_len(before)
        if node.depth and above:
            name, session = middle_cut(agent, room), ""
        else:
            name, session = named(agent, line.session, room)
        figures = "".join(
            f"{text:>{FIGURES[each][0]}}" for each, text in self._texts(line, now).items() if each in self.figures
        )
        parts: list[Part] = [
            *light(line.band, line.index),
            (" ", ""),
            (before, "title"),
            (name, "title"),
            (fitted(session, room - cell_len(name)), "dim"),
            ("  ", ""),
            *([(fitted("muted", self.trend), "dim")] if muted else trend(line, self.trend)),
            *self._end(line),
            (figures, "good" if line.live and now - line.last_ts < 2 else ""),
        ]
        return tuple((text, "dim") for text, _ in parts) if muted else tuple(parts)

    def _end(self, line: SessionLine) -> list[Part]:
        """Return how the task ended, by its host and by a person."""
        if not self.end:
            return []
        sign, style = OUTCOMES.get(line.outcome, (" ", ""))
        label = line.label or ""
        # a sign says it all but for an end of which nobody said how it was
        words = line.outcome if self.end > ENDS[LEAST_END] or (sign == "=" and not label) else ""
        said = f" {sign} {words:<{WORDS}}" if self.end > ENDS[LEAST_END] else f" {sign} {words}"
        return [(said, style), (fitted(label, self.end - len(said)), LABEL_STYLES.get(label, ""))]

    @staticmethod
    def _texts(line: SessionLine, now: float) -> dict[str, str]:
        return {
            "steps": f"{line.steps:,}",
            "cost": cost(line.cost_usd),
            "tokens": tokens(line.tokens),
            "ctx": percent(line.context),
            "last": "live" if line.live and now - line.last_ts < 2 else ago(now - line.last_ts),
        }


def rows_of(
    nodes: Sequence[Node], width: int, now: float, muted: Collection[Key]
) -> list[tuple[Key, tuple[Line, ...]]]:
    """Return the key and the lines of each row: one line, and below it the cause unless all is well."""
    columns = Columns(width)
    found = []
    for node in nodes:
        line, quiet = node.line, key_of(node.line) in muted
        lines = [columns.row(node, now, muted=quiet)]
        said = cause_of(line)
        well = line.band == "green" and not line.refused and not said.startswith(UNMEASURED)
        if not quiet and said and not well:
            indent = " " * (9 + 2 * node.depth)
            lines.append(((indent, ""), (cut(said, width - len(indent)), DECISION_STYLES[line.decision])))
        if node.folded and RANKS[node.worst] < RANKS["green"]:
            said = f"{' ' * (9 + 2 * node.depth)}folded: {node.children} below, the worst "
            lines.append(((said, "dim"), (f"{SHAPES[node.worst]} {LETTERS[node.worst]}", node.worst)))
        found.append((key_of(line), tuple(lines)))
    return found


UNMEASURED = "not measured"
"""Beginning of a cause that is told of a green light, too."""


def cause_of(line: SessionLine) -> str:
    """Return why a light is what it is, after the calls that were refused; empty if there is nothing to say."""
    cause = f"{line.decision}: {line.cause}" if line.decision != "continue" and line.cause else line.cause
    refused = f"{number_of(line.refused, 'call')} refused" if line.refused else ""
    return cause if cause.startswith(refused) else f"{refused}; {cause}" if cause else refused


def trend(line: SessionLine, width: int) -> list[tuple[str, str]]:
    """Draw the index over the session: the height of a cell is its lowest index, the colour its worst light."""
    count = min(len(line.spark), width)
    if not count:
        return [(fitted("nothing measured yet", width), "dim")]
    cells: list[tuple[str, str]] = []
    for at in range(count):
        part = slice(at * len(line.spark) // count, (at + 1) * len(line.spark) // count)
        values = [value for value in line.spark[part] if value is not None]
        bands = [BANDS.get(letter, "unknown") for letter in line.strip[part]] or ["unknown"]
        sign = LEVELS[1 + min(int(min(values) * 7), 6)] if values else "·"
        cells.append((sign, min(bands, key=RANKS.__getitem__)))
    return [*cells, (" " * (width - count), "")]


def counts_of(overview: Overview, muted: Collection[Key], *, brief: bool = False) -> Line:
    """Return how many sessions there are, and how many have which light, the worst first; muted ones do not count.

    ``brief``: with the letters of the lights in place of their names.
    """
    heard = [line for line in overview.lines if key_of(line) not in muted]
    parts: list[tuple[str, str]] = []
    for band in sorted(RANKS, key=RANKS.__getitem__):
        count = sum(line.band == band for line in heard)
        if count:
            said = f"{count}{LETTERS[band]}" if brief else f"{count} {band}"
            parts += [(f"{SHAPES[band]} {said}", band), ("  ", "")]
    shown = len(overview.lines)
    if shown < overview.matched:
        parts.append((f"{shown} of {overview.matched:,} shown", "dim"))
    elif overview.matched < overview.total:
        parts.append((f"{overview.matched:,} of {overview.total:,} sessions", "dim"))
    else:
        parts.append((f"{overview.total:,} session{'' if overview.total == 1 else 's'}", "dim"))
    return tuple(parts)


def heading(name: str, overview: Overview | None, muted: Collection[Key], asked: Line, width: int) -> tuple[Line, Line]:
    """Return the two ends of the first line: what one has asked for stays longest where there is no room for all.

    Parameters
    ----------
    name : str
        Name of the store.
    overview : Overview or None
        ``None`` while it is read.
    muted : collection of Key
        Sessions that do not count.
    asked : Line
        Order and filter, and what is new.
    width : int
        Cells.
    """
    right = () if overview is None else counts_of(overview, muted)
    brief = () if overview is None else counts_of(overview, muted, brief=True)
    store: Line = ((f"{name}  ", "dim"), *asked)
    ways: list[tuple[Line, Line]] = [((("coherence watch  ", "title"), *store), right), (store, right), (store, brief)]
    ways += [(asked, brief), (asked, ())] if asked else [((), brief)]
    fits = (way for way in ways if width_of(way[0]) + width_of(way[1]) + MARGINS <= width)
    return next(fits, ways[-1])


MARGINS = 3
"""Cells of the first line around and between its ends."""


def card_of(line: SessionLine, view: SessionView | None, width: int, now: float, *, roomy: bool = False) -> list[Line]:
    """Return what one wants to know of a session first: goal, reason of the light, what was told, and its effect.

    Parameters
    ----------
    line : SessionLine
        Of the overview.
    view : SessionView or None
        The same session as a whole; ``None`` while it is read.
    width : int
        Cells.
    now : float
        Unix time in seconds.
    roomy : bool
        There is room for longer texts.
    """
    room = width - LABELS_WIDTH
    lines: list[Line] = []

    def add(name: str, text: str, style: str = "", most: int = 2) -> None:
        most = 6 if roomy else most
        folded = wrapped(text, room, most=400)
        if len(folded) > most:
            folded = [*folded[: most - 1], cut(f"{folded[most - 1]}…", room)]
        for at, part in enumerate(folded):
            lines.append(((fitted(name if at == 0 else "", LABELS_WIDTH), "dim"), (part, style)))

    add("goal", line.goal or "none was set", "")
    why = line.cause or ("nothing is wrong" if line.band == "green" else "nothing has been measured yet")
    add("why", f"{line.decision}: {why}" if line.decision != "continue" else why, DECISION_STYLES[line.decision])
    if view is None:
        add("told", "reading", "dim")
        return lines
    told = sorted((each for each in view.firings if each.arm != "control"), key=lambda each: -each.seq)
    if told:
        newest = told[0]
        arrived = "" if newest.delivered else ", not delivered"
        add("told", f"{ago(now - newest.ts)} ago{arrived}: “{newest.text or newest.pattern}”", "accent")
        add("helped", *_effect_of(told), 1)
    else:
        add("told", "nothing", "dim", 1)
    refused = standing(view)
    if refused:
        # the light has said the same already, perhaps with one word more
        why = "" if refused[0].why[:SAME] == line.cause[:SAME] else f": {refused[0].why}"
        add("refused", f"{refused_words(refused[0])} (u lets it go on){why}", "red", 1)
    label = f"{line.label}{f': {view.comment}' if view.comment else ''}" if line.label else "none yet (l sets it)"
    add("label", label, LABEL_STYLES.get(line.label or "", "dim"), 1)
    ended = f"; ended: {view.ended}" if view.ended else ""
    add("time", f"began {when(line.started, now)}, last event {when(line.last_ts, now)}{ended}", "dim")
    filled = "context unknown" if line.context is None else f"context {percent(line.context)} full"
    figures = f"pressure {number(line.pressure)}, {number_of(line.steps, 'step')}, {number_of(line.events, 'event')}"
    add("so far", f"{figures}, {tokens(line.tokens)} tokens, {cost(line.cost_usd)}, {filled}", "dim")
    if line.rules:
        add("fired", ", ".join(line.rules[:6]), "dim", 1)
    return lines


def _effect_of(told: Sequence[FiringView]) -> tuple[str, str]:
    """Return what came after the newest guidance that was delivered, and the style of these words."""
    delivered = next((each for each in told if each.delivered), None)
    if delivered is None:
        return "not known: none was delivered", "dim"
    _, word, style = VERDICTS[delivered.verdict]
    which = "" if delivered is told[0] else "the last delivered one: "
    return f"{which}{f'{word}: ' if word else ''}{delivered.effect}", style


SAME = 40
"""Characters by which two reasons are taken for the same."""

LABELS_WIDTH = 9
"""Cells of the names on a card."""


def card_title(line: SessionLine, width: int) -> Line:
    """Return the heading of a card."""
    name = f" {''.join(named(line.agent, line.session, width - 4))} "
    return cropped((("─", "rule"), (name, "title"), ("─" * max(width - cell_len(name) - 1, 0), "rule")), width)
