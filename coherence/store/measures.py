"""Measures of what guidance brought: apart from the rows, as options of commands name them and load nothing else."""

from __future__ import annotations

from typing import Literal, TypeAlias

Measure: TypeAlias = Literal["pressure", "error", "switch", "task"]
"""``pressure``: the fall of the pressure. ``error``: whether the error was resolved. ``switch``: whether the agent took
another tool, which is neither good nor bad. ``task``: whether the task succeeded."""

HORIZONS = (0, 1, 5, 10)
"""Actions after a firing at which outcomes are kept; 0 = the end of the task."""
