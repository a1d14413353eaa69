"""Printing of a figure beside its target."""

from __future__ import annotations

import sys


def row(name: str, value: float, target: float, unit: str, *, least: bool = False) -> None:
    met = value >= target if least else value <= target
    sign = ">=" if least else "<="
    say(name, f"{value:,.2f}{unit}", f"{sign} {target:,g}{unit}", "met" if met else "missed")


def say(name: str, value: str = "", target: str = "", verdict: str = "") -> None:
    sys.stdout.write(f"{name:<68} {value:>14}   {target:<12} {verdict}\n")
    sys.stdout.flush()
