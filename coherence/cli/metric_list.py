"""The list of registered metrics."""

from __future__ import annotations

import inspect
import re
import sys
from typing import Any

from rich.console import Console
from rich.table import Table

from coherence.cli.documents import print_document
from coherence.core.errors import PluginError
from coherence.core.registry import Plugin, available, is_scalar


def list_metrics(*, as_json: bool) -> None:
    """Print every registered metric; one that fails to load is listed with its error."""
    rows = [_row(plugin) for plugin in available("metrics")]
    if as_json:
        print_document("coherence.metrics/1", rows)
        return
    console = Console()
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("name", "direction", "reads", "origin", "what it is"):
        table.add_column(name, no_wrap=name != "what it is", overflow="fold")
    for row in rows:
        table.add_row(*(row[key] for key in ("name", "direction", "reads", "origin", "summary")))
    if console.is_terminal:
        console.print(table, markup=False)
    else:
        for row in rows:
            sys.stdout.write("\t".join(row[key] for key in ("name", "direction", "reads", "origin", "summary")) + "\n")


def _row(plugin: Plugin) -> dict[str, str]:
    row = {"name": plugin.name, "origin": plugin.origin, "direction": "?", "reads": "?"}
    try:
        target: Any = plugin.load()
        scalar = is_scalar(target)
    except (PluginError, TypeError) as error:
        return {**row, "summary": f"error: {error}"}
    inverted = getattr(target, "inverted", None)
    if isinstance(inverted, bool):
        row["direction"] = "high is bad" if inverted else "high is good"
    row["reads"] = "counters" if scalar else "texts"
    summary = (inspect.getdoc(target) or "").split("\n\n")[0].replace("\n", " ")
    return {**row, "summary": re.sub(r":func:`(\w+)`", r"\1", summary)}
