"""The run's own start: how far a measure has moved from where the same run began."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from coherence.core.readings import CHANGE

RECENT = 0.4
"""Weight of the newest value in the recent level, an exponential mean."""

WINDOW = 12
"""Steps over which the usual level is taken: the plain mean of the first ones, then it follows slowly, so that a long
session may move from one piece of work to the next."""

ENOUGH = 2
"""Values of a run before a change is told."""

CHANGING = ("novelty", "goal_drift", "goal_coherence", "drift")
"""Metrics whose absolute level differs from agent to agent, so that their change says more."""


class Level(msgspec.Struct, frozen=True):
    """Where a measure has been in this run."""

    count: int
    mean: float
    """The usual: of the first twelve values their mean, from then on a twelfth of the way to each new one."""
    recent: float
    """Exponential mean, the newest value with weight 0.4."""


class OwnStart(msgspec.Struct):
    """The levels of one run's measures; plain data.

    Examples
    --------
    >>> start = OwnStart()
    >>> for value in (0.2, 0.2, 0.2):
    ...     start.learn({"drift": value})
    >>> start.changes({"drift": 0.9})
    {'drift.change': 0.28}
    """

    levels: dict[str, Level] = {}

    def changes(self, risks: Mapping[str, float | None], names: Sequence[str] = CHANGING) -> dict[str, float]:
        """Return how far the recent level, with these values, lies above the usual of the run so far, in [-1, 1].

        Parameters
        ----------
        risks : mapping
            Name -> value in [0, 1], higher = worse; ``None`` = unknown.
        names : sequence of str
            Which of them count; a measure with fewer than two values before is passed over.
        """
        found: dict[str, float] = {}
        for name in names:
            value, level = risks.get(name), self.levels.get(name)
            if value is not None and level is not None and level.count >= ENOUGH:
                found[name + CHANGE] = round((1.0 - RECENT) * level.recent + RECENT * value - level.mean, 9)
        return found

    def learn(self, risks: Mapping[str, float | None], names: Sequence[str] = CHANGING) -> None:
        """Take in the values of one step, after they were compared."""
        for name in names:
            value = risks.get(name)
            if value is None:
                continue
            level = self.levels.get(name, Level(0, 0.0, value))
            count = level.count + 1
            mean = level.mean + (value - level.mean) / min(count, WINDOW)
            self.levels[name] = Level(count, mean, (1.0 - RECENT) * level.recent + RECENT * value)
