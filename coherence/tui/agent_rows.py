"""Rows of the agents, and the card of the chosen one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len

from coherence.store.tally import BANDS
from coherence.tui.agent_tree import RANKS, Key, Node, key_of
from coherence.tui.figures import ago, cost, number, percent, tokens, when
from coherence.tui.lines import Line, Part, cropped, cut, fitted, wrapped
from coherence.tui.palette import DECISION_STYLES, LETTERS, LEVELS, SHAPES, light

if TYPE_CHECKING:
    from coherence.views.shapes import Overview, SessionLine, SessionView

FIGURES = {"steps": (7, 56), "cost": (9, 66), "tokens": (8, 110), "ctx": (6, 74), "last": (8, 40)}
"""Name of a figure: cells that it takes, and width from which on there is room for it."""


class Columns:
    """Widths of the columns that fit into so many cells; names and trends get what is left."""

    def __init__(self, width: int) -> None:
        self.figures = [name for name, (_, least) in FIGURES.items() if width >= least]
        left = max(width - 9 - sum(FIGURES[name][0] for name in self.figures), 16)
        self.trend = max(min(60, left * 2 // 5), 6)
        self.name = left - self.trend - 2

    def head(self) -> Line:
        """Return the names of the columns."""
        name, trend = fitted("agent · session", self.name), fitted("index over time", self.trend)
        figures = "".join(each.rjust(FIGURES[each][0]) for each in self.figures)
        return ((f"{'light':<9}{name}  {trend}{figures}", "dim"),)

    def row(self, node: Node, now: float, *, muted: bool) -> Line:
        """Return one line on a session."""
        line = node.line
        branch = "  " * (node.depth - 1) + "└ " if node.depth else ""
        above = f"{line.parent}/" if node.depth and line.parent else ""
        fold = f"▸{node.children} " if node.folded else ""
        # below its parent, of the same session, an agent needs no name of its session
        session = "" if node.depth and above else f" · {line.session}"
        name = cut(f"{branch}{fold}{line.agent.removeprefix(above)}", self.name)
        rest = fitted(session, self.name - cell_len(name)) if cell_len(name) < self.name else ""
        figures = "".join(
            f"{text:>{FIGURES[each][0]}}" for each, text in self._texts(line, now).items() if each in self.figures
        )
        parts: list[Part] = [
            *light(line.band, line.index),
            (" ", ""),
            (name, "title"),
            (rest, "dim"),
            ("  ", ""),
            *([(fitted("muted", self.trend), "dim")] if muted else trend(line, self.trend)),
            (figures, "good" if line.live and now - line.last_ts < 2 else ""),
        ]
        return tuple((text, "dim") for text, _ in parts) if muted else tuple(parts)

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
    """Return the key and the lines of each row: one line, and below it the cause unless the light is green."""
    columns = Columns(width)
    found = []
    for node in nodes:
        line, quiet = node.line, key_of(node.line) in muted
        lines = [columns.row(node, now, muted=quiet)]
        if not quiet and line.band != "green" and line.cause:
            indent = " " * (9 + 2 * node.depth)
            said = f"{line.decision}: {line.cause}" if line.decision != "continue" else line.cause
            lines.append(((indent, ""), (cut(said, width - len(indent)), DECISION_STYLES[line.decision])))
        if node.folded and RANKS[node.worst] < RANKS["green"]:
            said = f"{' ' * (9 + 2 * node.depth)}folded: {node.children} below, the worst "
            lines.append(((said, "dim"), (f"{SHAPES[node.worst]} {LETTERS[node.worst]}", node.worst)))
        found.append((key_of(line), tuple(lines)))
    return found


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


def counts_of(overview: Overview, muted: Collection[Key]) -> Line:
    """Return how many sessions there are, and how many have which light, the worst first; muted ones do not count."""
    heard = [line for line in overview.lines if key_of(line) not in muted]
    parts: list[tuple[str, str]] = []
    for band in sorted(RANKS, key=RANKS.__getitem__):
        count = sum(line.band == band for line in heard)
        if count:
            parts += [(f"{SHAPES[band]} {count} {band}", band), ("  ", "")]
    shown = len(overview.lines)
    if shown < overview.matched:
        parts.append((f"{shown} of {overview.matched:,} shown", "dim"))
    elif overview.matched < overview.total:
        parts.append((f"{overview.matched:,} of {overview.total:,} sessions", "dim"))
    else:
        parts.append((f"{overview.total:,} session{'' if overview.total == 1 else 's'}", "dim"))
    return tuple(parts)


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
        add("told", "reading …", "dim")
        return lines
    told = sorted((each for each in view.firings if each.arm != "control"), key=lambda each: -each.seq)
    if told:
        newest = told[0]
        arrived = "" if newest.delivered else ", not confirmed"
        add("told", f"{ago(now - newest.ts)} ago{arrived}: “{newest.text or newest.pattern}”", "accent")
        measured = next((each for each in told if each.helped is not None), None)
        before = "" if measured is newest else f"{newest.effect}; "
        if measured is None:
            add("helped", newest.effect, "dim")
        else:
            which = "the one before " if measured is not newest else ""
            verdict = f"{which}{'helped' if measured.helped else 'did not help'}"
            add("helped", f"{before}{verdict}: {measured.effect}", "good" if measured.helped else "error", 1)
    else:
        add("told", "nothing", "dim", 1)
    refused = sorted((each for each in view.refusals if not each.unblocked), key=lambda each: -each.seq)
    if refused:
        # the light has said the same already, perhaps with one word more
        why = "" if refused[0].why[:SAME] == line.cause[:SAME] else f": {refused[0].why}"
        add("refused", f"{refused[0].tool or 'all calls'} (u lets it go on){why}", "red", 1)
    add("label", line.label or "none yet (l sets it)", {"good": "good", "bad": "error"}.get(line.label or "", "dim"), 1)
    ended = f"; ended: {view.ended}" if view.ended else ""
    add("time", f"began {when(line.started, now)}, last event {when(line.last_ts, now)}{ended}", "dim")
    filled = "context unknown" if line.context is None else f"context {percent(line.context)} full"
    figures = f"pressure {number(line.pressure)}, {line.steps:,} steps, {line.events:,} events"
    add("so far", f"{figures}, {tokens(line.tokens)} tokens, {cost(line.cost_usd)}, {filled}", "dim")
    if line.rules:
        add("fired", ", ".join(line.rules[:6]), "dim", 1)
    return lines


SAME = 40
"""Characters by which two reasons are taken for the same."""

LABELS_WIDTH = 9
"""Cells of the names on a card."""


def card_title(line: SessionLine, width: int) -> Line:
    """Return the heading of a card."""
    name = f" {line.agent} · {line.session} "
    return cropped((("─", "rule"), (name, "title"), ("─" * max(width - len(name) - 1, 0), "rule")), width)
