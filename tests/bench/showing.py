"""Printing of a figure beside its target, and of the targets that were missed."""

from __future__ import annotations

import sys

_VERDICTS: list[tuple[str, bool]] = []
"""Each figure with a target that was printed, and whether it was met."""


def row(name: str, value: float, target: float, unit: str, *, least: bool = False) -> None:
    met = value >= target if least else value <= target
    sign = ">=" if least else "<="
    shown, wanted = f"{value:,.2f}{unit}", f"{sign} {target:,g}{unit}"
    _VERDICTS.append((f"{name}: {shown}, {wanted}", met))
    say(name, shown, wanted, "met" if met else "missed")


def say(name: str, value: str = "", target: str = "", verdict: str = "") -> None:
    sys.stdout.write(f"{name:<68} {value:>14}   {target:<12} {verdict}\n")
    sys.stdout.flush()


def summary() -> None:
    """Print how many targets were met, and each one that was missed."""
    missed = [what for what, met in _VERDICTS if not met]
    say(f"targets met: {len(_VERDICTS) - len(missed)} of {len(_VERDICTS)}")
    for what in missed:
        say(f"missed: {what}")
