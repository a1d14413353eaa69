"""Printing of a figure beside its target, of the targets that were missed, and a file with all of them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict


class Figure(TypedDict):
    """A figure that has a target, or that of an ablation."""

    name: str
    value: float
    unit: str
    target: float | None
    """The most that it should be, or the least where ``least`` is true; ``None``: an ablation."""
    least: bool
    met: bool


_FIGURES: list[Figure] = []


def row(name: str, value: float, target: float, unit: str, *, least: bool = False) -> None:
    """Print a figure that has a target, and keep it."""
    met = value >= target if least else value <= target
    sign = ">=" if least else "<="
    _FIGURES.append(
        {"name": name.strip(), "value": value, "unit": unit.strip(), "target": target, "least": least, "met": met}
    )
    say(name, f"{value:,.2f}{unit}", f"{sign} {target:,g}{unit}", "met" if met else "missed")


def ablation(name: str, value: float, unit: str) -> None:
    """Print and keep a figure of something that no user gets: a part is left out, or done in another way."""
    _FIGURES.append(
        {"name": name.strip(), "value": value, "unit": unit.strip(), "target": None, "least": False, "met": True}
    )
    say(name, f"{value:,.2f}{unit}", "", "ablation")


def say(name: str, value: str = "", target: str = "", verdict: str = "", *more: str) -> None:
    """Print a line in columns."""
    further = "".join(f"   {each:<12}" for each in more)
    sys.stdout.write(f"{name:<68} {value:>14}   {target:<12} {verdict:<12}{further}".rstrip() + "\n")
    sys.stdout.flush()


def summary(written: Path | None = None, ratios: Mapping[str, Mapping[str, float]] | None = None) -> None:
    """Print how many targets were met, and each one that was missed; write all figures and ratios to a file."""
    aimed = [figure for figure in _FIGURES if figure["target"] is not None]
    missed = [figure for figure in aimed if not figure["met"]]
    say(f"targets met: {len(aimed) - len(missed)} of {len(aimed)}")
    for each in missed:
        sign = ">=" if each["least"] else "<="
        unit = each["unit"]
        say(f"missed: {each['name']}: {each['value']:,.2f} {unit}, {sign} {each['target']:,g} {unit}")
    if written is not None:
        told = {"figures": _FIGURES, "ratios": ratios or {}}
        written.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def resident_mb() -> float:
    """Return the resident memory of this process in megabytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
