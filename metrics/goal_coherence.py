"""Goal coherence: whether the recent messages, taken together, are about the goal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coherence.core.readings import Kind, MetricInput

RECENT = 5


@dataclass(frozen=True)
class GoalCoherence:
    """The cosine of the mean vector of the last five messages with the mean vector of the goals, at least 0.

    Range [0, 1], not inverted: 1 = about the goal. ``None`` without goals or context.

    Examples
    --------
    >>> import numpy as np
    >>> goal = np.array([[1, 0]], dtype=np.float32)
    >>> said = np.array([[0, 1], [0.6, 0.8]], dtype=np.float32)
    >>> data = MetricInput(goals=goal, goals_texts=["g"], context=said, context_texts=["a", "b"])
    >>> round(GoalCoherence().compute(data), 3)
    0.316
    """

    name = "goal_coherence"
    inverted = False
    in_place = True
    pure = True
    reads: ClassVar[tuple[Kind, ...]] = ("goals", "context")

    def compute(self, data: MetricInput) -> float | None:
        """Return the coherence."""
        if not data.goals.size or not data.context.size:
            return None
        goal = data.goals.sum(axis=0, dtype=np.float64)
        recent = data.context[-RECENT:].sum(axis=0, dtype=np.float64)
        scale = float(np.vecdot(goal, goal)) * float(np.vecdot(recent, recent))
        return min(max(float(np.vecdot(goal, recent)) / scale**0.5, 0.0), 1.0) if scale > 0 else None
