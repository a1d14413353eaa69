"""Print the runs of a score as Markdown: one line a run, its light as a strip of characters.

usage: summary.py SCORE.json STATUS
"""

import json
import sys

CELLS = {"green": "█", "yellow": "▆", "orange": "▄", "red": "▂", "unknown": "·"}
WIDTH = 30
MAX_RUNS, MAX_TEXT = 100, 160
VERDICT = {"0": "all runs are on course", "1": "a run went off course", "2": "not everything could be read"}


def strip(bands: list[str]) -> str:
    """Draw the bands; with more steps than cells, a cell shows the worst of its steps."""
    order = ["unknown", *CELLS]
    count = min(len(bands), WIDTH)
    parts = [bands[at * len(bands) // count : (at + 1) * len(bands) // count] for at in range(count)]
    return "".join(CELLS[max(part, key=order.index)] for part in parts)


def plain(text: object) -> str:
    """Return a text on one line, without what could end the block of code around it."""
    line = " ".join("".join(each if each.isprintable() else " " for each in str(text)).split())
    return (line[:MAX_TEXT] + "…" * (len(line) > MAX_TEXT)).replace("`", "'")


def main() -> None:
    """Print the summary."""
    path, status = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        text = file.read()
    found = json.loads(text) if text.strip() else {"runs": [], "errors": []}
    print(f"### coherence: {VERDICT.get(status, 'scoring failed')}\n\n```text")
    rows = [
        (strip(run["bands"]), run["worst_decision"] or "unknown", plain(run["run_id"]), plain(run["why"] or ""))
        for run in found["runs"][:MAX_RUNS]
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    if len(found["runs"]) > MAX_RUNS:
        print(f"and {len(found['runs']) - MAX_RUNS} more runs")
    for error in found["errors"]:
        print(f"error: {plain(error['path'])}: {plain(error['reason'])}")
    print("```\n\n" + "  ".join(f"`{cell}` {band}" for band, cell in CELLS.items()))


main()
