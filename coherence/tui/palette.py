"""Signs and colours: a letter and a shape beside each colour, and characters for terminals that have ASCII only."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.style import Style

from coherence.core.strip import SIGNS

BANDS = ("red", "orange", "yellow", "green", "unknown")
"""Bands, the worst first."""

SHAPES = {band.value: sign.split()[0] for band, sign in SIGNS.items()}
LETTERS = {band.value: sign.split()[1] for band, sign in SIGNS.items()}

DECISIONS = {"continue": "·", "guide": "g", "warn": "w", "block": "B"}
"""Decision -> its sign on a timeline."""
DECISION_STYLES = {"continue": "dim", "guide": "yellow", "warn": "orange", "block": "red"}

MARKS = {
    "refusal": "x",
    "firing": "!",
    "finding": "*",
    "outcome": "=",
    "unblock": "u",
    "compaction": "≈",
    "goal": "»",
}
"""Kind of a mark -> its sign on a timeline, the most important first."""
MARK_STYLES = {"refusal": "red", "firing": "accent", "finding": "orange", "outcome": "bold"}

OUTCOMES = {"succeeded": ("✓", "good"), "failed": ("✗", "error"), "ended": ("=", "dim")}
"""Outcome of a task -> its sign and style."""

LABEL_STYLES = {"good": "good", "bad": "error"}

LEVELS = " ▁▂▃▄▅▆▇█"
"""Cells of growing height."""

STYLES = {
    "": Style(),
    "dim": Style(color="#8b98a5"),
    "bold": Style(bold=True),
    "title": Style(bold=True, color="#e6edf3"),
    "accent": Style(color="#6cb6ff"),
    "key": Style(bold=True, color="#6cb6ff"),
    "green": Style(color="#3fb97f"),
    "yellow": Style(color="#e3c341"),
    "orange": Style(color="#f0883e", bold=True),
    "red": Style(color="#ff6b6b", bold=True),
    "unknown": Style(color="#8b98a5"),
    "pressure": Style(color="#b392f0"),
    "rule": Style(color="#3d4a57"),
    "mark": Style(reverse=True),
    "tool": Style(color="#79c0ff", bold=True),
    "error": Style(color="#ff6b6b"),
    "good": Style(color="#3fb97f", bold=True),
}
"""Name of a style -> how it looks."""

CURSOR = Style(bgcolor="#22344a")
"""Look of a chosen row, where the terminal has colours."""
CURSOR_PLAIN = Style(reverse=True)

_ASCII = {
    **dict(zip(LEVELS[1:], "_.:-=+*#", strict=True)),
    "●": "o",
    "▲": "^",
    "◆": "+",
    "■": "#",
    "○": ".",
    "·": ".",
    "│": "|",
    "─": "-",
    "└": "`",
    "├": "|",
    "…": "~",
    "╭": "+",
    "╮": "+",
    "╰": "+",
    "╯": "+",
    "✓": "+",
    "✗": "x",
    "–": "-",
    "−": "-",
    "↑": "^",
    "↓": "v",
    "←": "<",
    "→": ">",
    "⏎": ">",
    "┤": "|",
    "▸": ">",
    "▾": "v",
    "“": '"',
    "”": '"',
    "’": "'",
    "×": "x",
    "┃": "|",
    "╸": "-",
    "╺": "-",
    "━": "-",
    "▼": "v",
    "»": ">",
    "≈": "~",
    "±": "+-",
}


def ascii_text(text: str) -> str:
    """Return a text in ASCII: signs by their like, all other characters by question marks.

    It is as wide as it was, but for ``±``, which takes one cell more. What was cut ends in ``>``.

    Examples
    --------
    >>> ascii_text("■ R ▁▅█ naïve 東")
    '# R _=# na?ve ??'
    >>> ascii_text("send(…) was refused, for it…")
    'send(~) was refused, for it>'
    """
    if text.isascii():
        return text
    said = text.rstrip(" ")
    if said.endswith("…"):
        return ascii_text(said[:-1]) + ">" + text[len(said) :]
    return "".join(char if char.isascii() else _ASCII.get(char) or "?" * cell_len(char) for char in text)


def ascii_parts(texts: Sequence[str]) -> list[str]:
    """Return the parts of a drawn line in ASCII, together as wide as they were.

    What takes more cells takes them from the next gap, or else from the end of the last longer part.

    Examples
    --------
    >>> ascii_parts(["│", "±0.0 after 5 steps   ", "│"])
    ['|', '+-0.0 after 5 steps  ', '|']
    """
    found: list[str] = []
    over = 0
    for text in texts:
        said = ascii_text(text)
        over += cell_len(said) - cell_len(text)
        while over and "  " in said:
            before, _, after = said.rpartition("  ")
            said, over = f"{before} {after}", over - 1
        found.append(said)
    for at in reversed(range(len(found))):
        if over and len(found[at]) > over:
            found[at], over = found[at][:-over], 0
    return found


def light(band: str, index: float | None) -> list[tuple[str, str]]:
    """Return a band as a shape, a letter and its index, in 8 cells.

    Examples
    --------
    >>> light("red", 0.124)
    [('■ R 0.12', 'red')]
    """
    number = "  – " if index is None else f"{index:.2f}"
    return [(f"{SHAPES[band]} {LETTERS[band]} {number}", band)]
