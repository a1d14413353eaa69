"""State that is a few lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from coherence.core.readings import Counters


@dataclass
class StaticState:
    """A state provider over lists; change them (or :attr:`counters`) between ticks as the agent goes on.

    Parameters
    ----------
    goals, context, memories, all_memories : iterable of str
        The texts. ``all_memories`` defaults to ``memories``.
    counters : Counters
        For the scalar metrics.

    Examples
    --------
    >>> state = StaticState(goals=["book a flight"])
    >>> state.context.append("searching flights to Oslo")
    >>> state.get_recent_context()
    ['searching flights to Oslo']
    """

    in_place = True

    goals: Iterable[str] = ()
    context: list[str] = field(default_factory=list)
    memories: Iterable[str] = ()
    all_memories: Iterable[str] | None = None
    counters: Counters = field(default_factory=Counters)

    def __post_init__(self) -> None:
        for name in ("goals", "context", "memories", "all_memories"):
            texts = getattr(self, name)
            if isinstance(texts, str):  # it would be taken for a list of letters
                raise TypeError(f"{name} must be a list of str, not a str")
            if texts is not None and not isinstance(texts, Sequence):  # a generator would be empty at the second tick
                setattr(self, name, list(texts))

    def get_goals(self) -> Sequence[str]:
        """Return the goals."""
        return list(self.goals)

    def get_recent_context(self) -> Sequence[str]:
        """Return the context."""
        return self.context

    def get_goal_relevant_memories(self) -> Sequence[str]:
        """Return the memories."""
        return list(self.memories)

    def get_all_memories(self) -> Sequence[str]:
        """Return all memories."""
        return list(self.memories if self.all_memories is None else self.all_memories)

    def get_counters(self) -> Counters:
        """Return the counters."""
        return self.counters
