"""Memory retention: whether each goal is still backed by a memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from coherence.core.readings import Evidence, Kind, MetricInput, excerpt
from coherence.core.vectors import Rows, exact_cosines


def compute_memory_retention(goals: Rows, memories: Rows) -> float | None:
    """Return ``mean over goals of (max over relevant memories of cosine)``, in float64.

    Clipped to [0, 1], direct: 1 = every goal has a memory about it, 0 = none has. ``None`` without goals or memories.

    Parameters
    ----------
    goals, memories : array_like, shapes (m, d) and (n, d)
        Vectors of any length; a zero vector has cosine 0 with everything.

    Raises
    ------
    ValueError
        If the dimensions differ.

    References
    ----------
    The formula and its test values are those of the ``interoception`` package (TypeScript, version 0.1.0, 2026).

    Examples
    --------
    >>> compute_memory_retention([[1, 0], [0, 1]], [[1, 0]])
    0.5
    """
    return _retention(exact_cosines(goals, memories))


def _retention(cosines: npt.NDArray[np.floating]) -> float | None:
    if not cosines.size:
        return None
    nearest = cosines.max(axis=1)
    mean = float(nearest.sum(dtype=np.float64)) / len(nearest)
    return min(max(mean, 0.0), 1.0)


@dataclass(frozen=True)
class MemoryRetention:
    """Share of goals that are backed by a relevant memory, see :func:`compute_memory_retention`."""

    name = "memory_retention"
    inverted = False
    in_place = True
    pure = True
    reads: ClassVar[tuple[Kind, ...]] = ("goals", "memories")

    def compute(self, data: MetricInput) -> float | None:
        """Return the retention, ``None`` without goals or memories."""
        return _retention(data.cosines("goals", "memories"))

    def explain(self, data: MetricInput) -> Evidence | None:
        """Point at the goal that the memories back least."""
        cosines = data.cosines("goals", "memories")
        if not cosines.size:
            return None
        nearest = cosines.max(axis=1)
        worst = int(nearest.argmin())
        why = f"is the goal with the least memory of it (cosine {nearest[worst]:.2f})"
        return Evidence(why, "goals", (worst,), (excerpt(data.goals_texts[worst]),))
