"""Printing of a figure beside its target, of the targets that were missed, and a file with all of them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TypedDict


class Figure(TypedDict):
    """A figure that has a target."""

    name: str
    value: float
    unit: str
    target: float
    """The most that it should be, or the least where ``least`` is true."""
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


def say(name: str, value: str = "", target: str = "", verdict: str = "") -> None:
    """Print a line in columns."""
    sys.stdout.write(f"{name:<68} {value:>14}   {target:<12} {verdict}\n")
    sys.stdout.flush()


def summary(written: Path | None = None) -> None:
    """Print how many targets were met, and each one that was missed; write all figures to a file."""
    missed = [figure for figure in _FIGURES if not figure["met"]]
    say(f"targets met: {len(_FIGURES) - len(missed)} of {len(_FIGURES)}")
    for each in missed:
        sign = ">=" if each["least"] else "<="
        unit = each["unit"]
        say(f"missed: {each['name']}: {each['value']:,.2f} {unit}, {sign} {each['target']:,g} {unit}")
    if written is not None:
        written.write_text(json.dumps(_FIGURES, indent=1) + "\n", encoding="utf-8")
