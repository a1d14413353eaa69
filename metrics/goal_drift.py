"""Goal drift: how far the recent context is from the goals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from coherence.core.readings import Evidence, Kind, MetricInput, excerpt
from coherence.core.vectors import Rows, exact_cosines


def compute_goal_drift(goals: Rows, context: Rows) -> float | None:
    """Return ``1 - mean over context of (max over goals of cosine)``, in float64.

    Clipped to [0, 1], inverted: 0 = every message is about a goal, 1 = none is. ``None`` without goals or context.

    Parameters
    ----------
    goals, context : array_like, shapes (m, d) and (n, d)
        Vectors of any length; a zero vector has cosine 0 with everything.

    Raises
    ------
    ValueError
        If the dimensions differ.

    Notes
    -----
    On real runs the mean drift is mostly topic: compare an agent with itself, not with another one.

    References
    ----------
    The formula and its test values are those of the ``interoception`` package (TypeScript, version 0.1.0, 2026).

    Examples
    --------
    >>> compute_goal_drift([[1, 0], [0, 1]], [[3, 4]])
    0.19999999999999996
    """
    return _drift(exact_cosines(goals, context))


def _drift(cosines: npt.NDArray[np.floating]) -> float | None:
    if not cosines.size:
        return None
    nearest = _nearest(cosines)
    mean = float(nearest.sum(dtype=np.float64)) / len(nearest)
    return min(max(1.0 - mean, 0.0), 1.0)


def _nearest(cosines: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    nearest: npt.NDArray[np.floating] = cosines[0] if len(cosines) == 1 else cosines.max(axis=0)
    return nearest


@dataclass(frozen=True)
class GoalDrift:
    """Distance of the recent context from the goals, see :func:`compute_goal_drift`."""

    name = "goal_drift"
    inverted = True
    in_place = True
    pure = True
    reads: ClassVar[tuple[Kind, ...]] = ("goals", "context")

    def compute(self, data: MetricInput) -> float | None:
        """Return the drift, ``None`` without goals or context."""
        return _drift(data.cosines("goals", "context"))

    def explain(self, data: MetricInput) -> Evidence | None:
        """Point at the message that is farthest from every goal."""
        cosines = data.cosines("goals", "context")
        if not cosines.size:
            return None
        nearest = _nearest(cosines)
        worst = int(nearest.argmin())
        why = f"is farthest from every goal (cosine {float(nearest[worst]):.2f})"
        return Evidence(why, "context", (worst,), (excerpt(data.context_texts[worst]),))
