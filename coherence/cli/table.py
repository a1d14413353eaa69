"""The table of scored runs, for people."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import groupby

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from coherence.core.lazy import lazy_regex
from coherence.core.readings import Band, one_line, scale_in_words
from coherence.core.strip import worst_of_parts
from coherence.report.cells import CELLS, WIDTH
from coherence.report.score import ScoredRun, count_verdicts
from coherence.sensor.light import BANDS

STYLE = {
    Band.GREEN: "green",
    Band.YELLOW: "yellow",
    Band.ORANGE: "dark_orange",
    Band.RED: "red",
    Band.UNKNOWN: "dim",
}
"""Style of a band."""

REASONS = 40
"""Columns below which reasons do not stand in the table but under it."""

WORST = "worst step and why"
OUTCOME = "outcome"


def print_runs(runs: Sequence[ScoredRun]) -> None:
    """Print one line a run: a coloured table on a terminal, plain columns with band words elsewhere."""
    console = Console()
    counted = count_verdicts(runs)
    told = f"known outcomes: {counted}" if counted else ""
    if console.is_terminal:
        _print_table(console, runs)
        for line in fold(told, console.width):
            console.print(Text(line))
        return
    for line in plain_lines(runs):
        sys.stdout.write(line + "\n")
    if told:
        sys.stdout.write(told + "\n")


def _print_table(console: Console, runs: Sequence[ScoredRun]) -> None:
    room = max(console.width // 4, 9)
    names = [shorten(run.transcript.id, room) for run in runs]
    column = max(map(len, [*names, "run"]))
    left = console.width - column - len("  steps   now   low  press  decision  ")
    width = max(min(WIDTH, console.width // 5, left), 5)
    known = any(run.verdict for run in runs) and left - len("false alarm  ") >= width
    why = left - width - 2 - known * len("false alarm  ")
    beside = why >= REASONS
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0), expand=beside)
    table.add_column("run", no_wrap=True, width=column)
    for name in ("steps", "now", "low", "press"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("decision", no_wrap=True)
    table.add_column("bands", no_wrap=True, max_width=WIDTH)
    if known:
        table.add_column(OUTCOME, no_wrap=True, min_width=len("false alarm"))
    if beside:
        table.add_column(WORST, ratio=1)
    for name, run in zip(names, runs, strict=True):
        now, low, worst = _cells(run)
        cells: list[str | Text] = [Text(name), str(len(run.readings)), now, low, *_judged(run), strip(run.bands, width)]
        if known:
            cells.append(_verdict(run))
        if beside:
            cells.append(Text("\n".join(fold(worst.plain, why - 2))))
        table.add_row(*cells)
    console.print(table)
    legend = Text()
    for band in BANDS:
        legend.append(f"{CELLS[band]} {band}   ", style=STYLE[band])
    legend.append("· nothing to measure yet", style=STYLE[Band.UNKNOWN])
    console.print(legend)
    for scale in dict.fromkeys(run.scale for run in runs if run.scale is not None):
        for line in fold(scale_in_words(scale), console.width):
            console.print(Text(line))
    if not beside or any(name != one_line(run.transcript.id) for name, run in zip(names, runs, strict=True)):
        _print_below(console, runs, reasons=not beside, outcomes=not known)


def _print_below(console: Console, runs: Sequence[ScoredRun], *, reasons: bool, outcomes: bool) -> None:
    """Print what the table has no room for: whole names, outcomes and reasons."""
    console.print(Text(f"\n{WORST}" if reasons else "\nthe runs' whole names", style="bold"))
    for run in runs:
        for line in fold(one_line(run.transcript.id), console.width):
            console.print(Text(line))
        if reasons:
            worst = _cells(run)[2].plain
            told = f"{run.verdict} - {worst}" if outcomes and run.verdict else worst
            for line in fold(told, console.width - 2):
                console.print(Text(f"  {line}"))


def shorten(name: str, width: int) -> str:
    """Cut a name in the middle, at its joints: runs of one source differ at the end.

    Examples
    --------
    >>> shorten("agentdojo/gpt-4/workspace/injection_task_0", 20)
    'agentdojo/…task_0'
    """
    name = one_line(name)
    if len(name) <= width:
        return name
    parts = _JOINT.split(name)
    head = parts[0] if 0 < len(parts[0]) <= width // 2 else ""
    tail = ""
    for part in reversed(parts[1:]):
        if len(head) + len(part) + len(tail) >= width:
            break
        tail = part + tail
    if not tail:
        half = max((width - 1) // 2, 4)
        return f"{name[:half]}…{name[-half:]}"
    return f"{head}…{tail}"


def fold(text: str, width: int) -> list[str]:
    """Return a text as lines that are broken between words, and a word too long for a line at its joints.

    Examples
    --------
    >>> fold("the newest calls failed in suite/injection_task_0", 16)
    ['the newest calls', 'failed in suite/', 'injection_task_0']
    """
    lines = [""]
    for word in text.split():
        gap = " " if lines[-1] else ""
        if cell_len(lines[-1] + gap + word) <= width:
            lines[-1] += gap + word
            continue
        pieces = [word] if cell_len(word) <= width else _JOINT.split(word)
        for at, piece in enumerate(pieces):
            gap = " " if at == 0 and lines[-1] else ""
            if lines[-1] and cell_len(lines[-1] + gap + piece) > width:
                lines.append("")
                gap = ""
            lines[-1] += gap + piece
            while cell_len(lines[-1]) > width:
                # at least one character, however wide, or it would never end
                most = next(at for at in range(len(lines[-1]), 0, -1) if cell_len(lines[-1][:at]) <= width or at == 1)
                lines[-1:] = [lines[-1][:most], lines[-1][most:]]
    return [line for line in lines if line]


_JOINT = lazy_regex(r"(?<=[/_.:,;=&?-])(?=\w)")


def _cells(run: ScoredRun) -> tuple[Text, Text, Text]:
    last, lowest = run.last, run.lowest
    if last is None or lowest is None:
        reasons = {reason for reading in run.readings for reason in reading.unknown.values()}
        return Text("-"), Text("-"), Text(one_line("; ".join(sorted(reasons)) or "no steps"))
    return (
        Text(f"{last.coherence_index:.2f}", style=STYLE[last.band]),
        Text(f"{lowest.coherence_index:.2f}", style=STYLE[lowest.band]),
        Text(one_line(f"{lowest.tick_seq}: {run.why(lowest)}")),
    )


STYLES = {"continue": "dim", "guide": "yellow", "warn": "dark_orange", "block": "red"}


def _judged(run: ScoredRun) -> tuple[Text, Text]:
    """Return the highest pressure of a run and its worst decision."""
    pressure, decision = run.highest_pressure, run.worst_decision
    if pressure is None or decision is None:
        return Text("-"), Text("-")
    return Text(f"{pressure:.2f}"), Text(decision.kind, style=STYLES[decision.kind])


VERDICTS = {"miss": "red", "false alarm": "red", "hit": "green", "calm": "dim"}


def _verdict(run: ScoredRun) -> Text:
    """Return what the light was worth, beside how the run ended."""
    return Text(run.verdict or "unknown", style=VERDICTS.get(run.verdict, "dim"))


def strip(bands: Sequence[Band], width: int) -> Text:
    """Draw the bands step by step; with more steps than cells, a cell shows the worst of its steps."""
    text = Text()
    for band in (bands[at] for at in worst_of_parts(bands, width)):
        text.append(CELLS[band], style=STYLE[band])
    return text


def plain_lines(runs: Sequence[ScoredRun]) -> list[str]:
    """Return a header and one line a run, columns aligned, bands in words."""
    known = any(run.verdict for run in runs)
    rows = [("run", "steps", "now", "low", "press", "decision", "bands", *([OUTCOME] if known else []), WORST)]
    for run in runs:
        now, low, worst = _cells(run)
        pressure, decision = (cell.plain for cell in _judged(run))
        bands = " ".join(f"{band}x{len(list(group))}" for band, group in groupby(run.bands))
        name, steps = one_line(run.transcript.id), str(len(run.readings))
        outcome = [_verdict(run).plain] if known else []
        rows.append((name, steps, now.plain, low.plain, pressure, decision, bands, *outcome, worst.plain))
    last = len(rows[0]) - 1
    widths = [max(len(row[column]) for row in rows) for column in range(last)]
    return [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[last]]) for row in rows
    ]
