"""The table of scored runs, for people."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import groupby

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from coherence.core.readings import Band, one_line, scale_in_words
from coherence.report.score import ScoredRun, count_verdicts

CELLS: dict[Band, tuple[str, str]] = {
    Band.GREEN: ("█", "green"),
    Band.YELLOW: ("▆", "yellow"),
    Band.ORANGE: ("▄", "dark_orange"),
    Band.RED: ("▂", "red"),
    Band.UNKNOWN: ("·", "dim"),
}
"""A cell of the strip and its style: the higher the better, so that it reads without colour."""

ORDER = (Band.UNKNOWN, Band.GREEN, Band.YELLOW, Band.ORANGE, Band.RED)
"""From best to worst; a cell that stands for several steps shows the worst."""

STRIP = 30
"""Most cells of a strip."""

REASONS = 40
"""Columns below which reasons do not stand in the table but under it."""

WORST = "worst step and why"


def print_runs(runs: Sequence[ScoredRun]) -> None:
    """Print one line a run: a coloured table on a terminal, plain columns with band words elsewhere."""
    console = Console()
    if console.is_terminal:
        _print_table(console, runs)
    else:
        for line in plain_lines(runs):
            sys.stdout.write(line + "\n")
    counted = count_verdicts(runs)
    if counted:
        sys.stdout.write(f"known outcomes: {counted}\n")


def _print_table(console: Console, runs: Sequence[ScoredRun]) -> None:
    room = max(console.width // 4, 9)
    names = [_short(run.transcript.id, room) for run in runs]
    column = max(map(len, [*names, "run"]))
    left = console.width - column - len("  steps   now   low  press  decision  ")
    width = max(min(STRIP, console.width // 5, left), 5)
    beside = left - width - 2 >= REASONS
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0), expand=beside)
    table.add_column("run", no_wrap=True, width=column)
    for name in ("steps", "now", "low", "press"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("decision", no_wrap=True)
    table.add_column("bands", no_wrap=True, max_width=STRIP)
    if beside:
        table.add_column(WORST, ratio=1, overflow="fold")
    for name, run in zip(names, runs, strict=True):
        now, low, worst = _cells(run)
        cells = (Text(name), str(len(run.readings)), now, low, *_judged(run), strip(run.bands, width))
        table.add_row(*cells, *([worst] if beside else []))
    console.print(table)
    legend = Text()
    for band in ORDER[1:]:
        cell, style = CELLS[band]
        legend.append(f"{cell} {band}   ", style=style)
    legend.append("· nothing to measure yet", style=CELLS[Band.UNKNOWN][1])
    console.print(legend)
    for scale in dict.fromkeys(run.scale for run in runs if run.scale is not None):
        console.print(Text(scale_in_words(scale), overflow="fold"))
    if not beside or any(name != one_line(run.transcript.id) for name, run in zip(names, runs, strict=True)):
        _print_below(console, runs, reasons=not beside)


def _print_below(console: Console, runs: Sequence[ScoredRun], *, reasons: bool) -> None:
    """Print what the table has no room for: whole names, and why."""
    console.print(Text(f"\n{WORST}" if reasons else "\nthe runs' whole names", style="bold"))
    for run in runs:
        console.print(Text(one_line(run.transcript.id), overflow="fold"))
        if reasons:
            worst = _cells(run)[2]
            worst.overflow = "fold"
            console.print(Padding(worst, (0, 0, 0, 2)))


def _short(name: str, width: int) -> str:
    """Cut a name in the middle: runs of one source differ at the end."""
    name = one_line(name)
    half = max((width - 1) // 2, 4)
    return name if len(name) <= width else f"{name[:half]}…{name[-half:]}"


def _cells(run: ScoredRun) -> tuple[Text, Text, Text]:
    last, lowest = run.last, run.lowest
    if last is None or lowest is None:
        reasons = {reason for reading in run.readings for reason in reading.unknown.values()}
        return Text("-"), Text("-"), Text(one_line("; ".join(sorted(reasons)) or "no steps"))
    return (
        Text(f"{last.coherence_index:.2f}", style=CELLS[last.band][1]),
        Text(f"{lowest.coherence_index:.2f}", style=CELLS[lowest.band][1]),
        Text(one_line(f"{lowest.tick_seq}: {run.why(lowest)}")),
    )


STYLES = {"continue": "dim", "guide": "yellow", "warn": "dark_orange", "block": "red"}


def _judged(run: ScoredRun) -> tuple[Text, Text]:
    """Return the highest pressure of a run and its worst decision."""
    pressure, decision = run.highest_pressure, run.worst_decision
    if pressure is None or decision is None:
        return Text("-"), Text("-")
    return Text(f"{pressure:.2f}"), Text(decision.kind, style=STYLES[decision.kind])


def strip(bands: Sequence[Band], width: int) -> Text:
    """Draw the bands step by step; with more steps than cells, a cell shows the worst of its steps."""
    count = min(len(bands), width)
    text = Text()
    for cell in range(count):
        part = bands[cell * len(bands) // count : (cell + 1) * len(bands) // count]
        text.append(*CELLS[max(part, key=ORDER.index)])
    return text


def plain_lines(runs: Sequence[ScoredRun]) -> list[str]:
    """Return a header and one line a run, columns aligned, bands in words."""
    rows = [("run", "steps", "now", "low", "press", "decision", "bands", WORST)]
    for run in runs:
        now, low, worst = _cells(run)
        pressure, decision = (cell.plain for cell in _judged(run))
        bands = " ".join(f"{band}x{len(list(group))}" for band, group in groupby(run.bands))
        name, steps = one_line(run.transcript.id), str(len(run.readings))
        rows.append((name, steps, now.plain, low.plain, pressure, decision, bands, worst.plain))
    last = len(rows[0]) - 1
    widths = [max(len(row[column]) for row in rows) for column in range(last)]
    return [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[last]]) for row in rows
    ]
